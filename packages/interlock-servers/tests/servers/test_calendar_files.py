"""The calendar's files: repetitions as tables, broken files, and what is left when processes change
one at once or are killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icalendar import Calendar

from interlock import Client, ToolError
from interlock.store import file_lock
from interlock_servers.calendar import calendar_files as folder_module
from interlock_servers.calendar import calendar_server
from interlock_servers.calendar.calendar_files import MOST_BYTES, Calendars
from interlock_servers.calendar.edits import add_event, change_event
from interlock_servers.calendar.ical_text import IcalDocument, InvalidCalendar, empty
from interlock_servers.calendar.results import events_in, free_days
from tests.servers.calendars import FOREIGN, TODAY, bytes_of, calendar

TOP = Path(__file__).parents[4]


@pytest.fixture
def calendars(tmp_path: Path) -> Calendars:
    """The calendars of a folder of this test's own."""
    return Calendars(tmp_path, lambda: TODAY)


def put(
    calendars: Calendars, title: str, calendar: str = "my-calendar", start: str = "2024-06-15"
) -> str:
    """Create an event; its id."""
    changed = add_event(
        calendars, calendar, title, start, None, time_zone=None, location=None, notes=None
    )
    return str(changed.after[0].id)


# -- on which days ---------------------------------------------------------------------------------

# The event's lines, and its starts within June and July 2024.
ON_DAYS = {
    "daily, twice": (
        "DTSTART;VALUE=DATE:20240630\nRRULE:FREQ=DAILY;COUNT=2",
        ["2024-06-30", "2024-07-01"],
    ),
    "without an end": ("DTSTART;VALUE=DATE:20000615\nRRULE:FREQ=YEARLY", ["2024-06-15"]),
    "every second week on two days": (
        "DTSTART:20240603T100000\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;UNTIL=20240620T000000",
        [
            "2024-06-03T10:00:00",
            "2024-06-05T10:00:00",
            "2024-06-17T10:00:00",
            "2024-06-19T10:00:00",
        ],
    ),
    "the last Friday": (
        "DTSTART;VALUE=DATE:20240126\nRRULE:FREQ=MONTHLY;BYDAY=-1FR",
        ["2024-06-28", "2024-07-26"],
    ),
    "until a day that counts, as some write it": (
        "DTSTART;TZID=Europe/Madrid:20240610T100000\nRRULE:FREQ=DAILY;UNTIL=20240611",
        ["2024-06-10T10:00:00+02:00", "2024-06-11T10:00:00+02:00"],
    ),
    "until a universal time": (
        "DTSTART;TZID=Europe/Madrid:20240610T100000\nRRULE:FREQ=DAILY;UNTIL=20240611T075959Z",
        ["2024-06-10T10:00:00+02:00"],
    ),
    "until the same moment, in universal time": (
        "DTSTART;TZID=Europe/Madrid:20240610T100000\nRRULE:FREQ=DAILY;UNTIL=20240611T080000Z",
        ["2024-06-10T10:00:00+02:00", "2024-06-11T10:00:00+02:00"],
    ),
    "but not then, in universal time": (
        "DTSTART;TZID=Europe/Madrid:20240610T100000\nRRULE:FREQ=DAILY;COUNT=2\nEXDATE:20240611T080000Z",
        ["2024-06-10T10:00:00+02:00"],
    ),
    "ten o'clock stays ten o'clock over summer time": (
        "DTSTART;TZID=Europe/Madrid:20240130T100000\nRRULE:FREQ=MONTHLY",
        ["2024-06-30T10:00:00+02:00", "2024-07-30T10:00:00+02:00"],
    ),
    "but not on two days": (
        "DTSTART;VALUE=DATE:20240601\nRRULE:FREQ=DAILY;COUNT=4\nEXDATE;VALUE=DATE:20240602,20240603",
        ["2024-06-01", "2024-06-04"],
    ),
    "but not then, said of a time by its day": (
        "DTSTART:20240601T100000\nRRULE:FREQ=DAILY;COUNT=2\nEXDATE;VALUE=DATE:20240602",
        ["2024-06-01T10:00:00"],
    ),
    "besides": (
        "DTSTART;VALUE=DATE:20240601\nRDATE;VALUE=DATE:20240610",
        ["2024-06-01", "2024-06-10"],
    ),
    "a rule that never holds": (
        "DTSTART;VALUE=DATE:20240601\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        ["2024-06-01"],
    ),
    "rules that make no sense": (
        "DTSTART;VALUE=DATE:20240601\nRRULE:FREQ=DAILY;COUNT=x\nRRULE:FREQ=NEVER",
        ["2024-06-01"],
    ),
    "a rule that makes no sense to everybody": (
        "DTSTART;VALUE=DATE:20240601\nRRULE:FREQ=DAILY;BYDAY=9XX;COUNT=2",
        ["2024-06-01"],
    ),
    "begun before, and still going on": (
        "DTSTART;VALUE=DATE:20240520\nDTEND;VALUE=DATE:20240602",
        ["2024-05-20"],
    ),
    "over before": ("DTSTART;VALUE=DATE:20240520\nDTEND;VALUE=DATE:20240601", []),
    "to midnight": ("DTSTART:20240531T200000\nDTEND:20240601T000000", []),
    "without an end of its own": ("DTSTART:20240601T000000", ["2024-06-01T00:00:00"]),
    "an end before its beginning": (
        "DTSTART;VALUE=DATE:20240601\nDTEND;VALUE=DATE:20240501",
        ["2024-06-01"],
    ),
    "an end of another kind": (
        "DTSTART;VALUE=DATE:20240601\nDTEND:20240603T100000Z",
        ["2024-06-01"],
    ),
    "a zone nobody knows": ("DTSTART;TZID=Nowhere/Land:20240601T100000", ["2024-06-01T10:00:00"]),
    "in the first year there is": (
        "DTSTART;VALUE=DATE:00010101\nRRULE:FREQ=YEARLY;BYMONTH=6;BYMONTHDAY=1",
        ["2024-06-01"],
    ),
    "in the last year there is": ("DTSTART:99991231T230000Z\nDURATION:P400D", []),
}


@pytest.mark.parametrize("case", ON_DAYS)
def test_on_which_days(calendars: Calendars, case: str) -> None:
    """Repetitions as RFC 5545 has them, by the clock of their zone; and what other programs write
    beside it.
    """
    lines, starts = ON_DAYS[case]
    (calendars.folder / "x.ics").write_bytes(calendar(lines))
    found = events_in(calendars, "2024-06-01", "2024-07-31")
    assert ([event.start for event in found.events], found.problems) == (starts, [])


@pytest.mark.parametrize(
    "rule", ["FREQ=SECONDLY", "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30", "FREQ=HOURLY;INTERVAL=2"]
)
def test_what_repeats_too_often_is_said(calendars: Calendars, rule: str) -> None:
    """It is not followed, and that is not kept from anybody."""
    (calendars.folder / "x.ics").write_bytes(
        calendar(
            f"DTSTART:19700101T000000Z\nSUMMARY:Tick\nRRULE:{rule}", "DTSTART;VALUE=DATE:20240601"
        )
    )
    found = events_in(calendars, "2024-06-01", "2024-06-30")
    assert [event.id for event in found.events] == ["e1"]
    assert not found.complete
    assert found.problems == ["“Tick” (id e0) repeats too often and is left out."]
    assert free_days(calendars, "2024-06-01", "2024-06-30", 1).problems == found.problems


@pytest.mark.parametrize(
    "lines", ["SUMMARY:no time", "DTSTART:garbage", "DTSTART;VALUE=DATE:20240230"]
)
def test_an_event_without_a_time_is_counted(calendars: Calendars, lines: str) -> None:
    """The others are shown, and it is left in the file."""
    (calendars.folder / "x.ics").write_bytes(calendar(lines, "DTSTART;VALUE=DATE:20240601"))
    found = events_in(calendars, "2024-06-01", "2024-06-30")
    assert (len(found.events), found.complete) == (1, False)
    assert found.problems == ["1 events of the calendar x have no readable time."]
    put(calendars, "new", "x")
    assert lines.encode() in (calendars.folder / "x.ics").read_bytes()


def test_a_line_that_is_none_stays(calendars: Calendars) -> None:
    """What another program left in an event is no hindrance, and is not tidied away."""
    (calendars.folder / "x.ics").write_bytes(
        calendar("DTSTART;VALUE=DATE:20240601\n<html>\nSEQUENCE:many\nX-ODD;:\nSUMMARY:a")
    )
    change_event(calendars, "e0", None, "b", None, None, time_zone=None, location=None, notes=None)
    assert b"\r\n<html>\r\nX-ODD;:\r\n" in (calendars.folder / "x.ics").read_bytes()
    assert [(entry.title, entry.first) for entry in calendars.entries()] == [
        ("b", date(2024, 6, 1))
    ]


def test_an_end_takes_the_place_of_a_duration(calendars: Calendars) -> None:
    """A file must not have both (RFC 5545, section 3.6.1)."""
    path = calendars.folder / "x.ics"
    path.write_bytes(calendar("DTSTART:20240601T100000Z\nDURATION:PT3H\nSUMMARY:a"))
    change_event(
        calendars,
        "e0",
        None,
        None,
        "2024-06-02T10:00Z",
        None,
        time_zone=None,
        location=None,
        notes=None,
    )
    assert b"DURATION" not in path.read_bytes()
    assert b"DTEND:20240602T130000Z" in path.read_bytes()


def test_a_repetition_keeps_its_own_words(calendars: Calendars) -> None:
    """What it shares with the others is changed in it, too."""
    own = (
        b"BEGIN:VEVENT\r\nUID:e0\r\nRECURRENCE-ID:20240602T100000Z\r\nDTSTART:20240602T110000Z\r\n"
        b"SUMMARY:Party\r\nLOCATION:Here\r\nEND:VEVENT\r\n"
    )
    series = calendar(
        "DTSTART:20240601T100000Z\nRRULE:FREQ=DAILY;COUNT=2\nSUMMARY:Yoga\nLOCATION:Here"
    )
    (calendars.folder / "x.ics").write_bytes(
        series.replace(b"END:VCALENDAR", own + b"END:VCALENDAR")
    )
    change_event(
        calendars, "e0", None, "Pilates", None, None, time_zone=None, location="There", notes=None
    )
    found = events_in(calendars, "2024-06-01", "2024-06-02").events
    assert [(event.title, event.location) for event in found] == [
        ("Pilates", "There"),
        ("Party", "There"),
    ]


NAMES = [
    "DTSTART",
    "DTEND",
    "DURATION",
    "RRULE",
    "RDATE",
    "EXDATE",
    "RECURRENCE-ID",
    "SUMMARY",
    "UID",
    "SEQUENCE",
    "STATUS",
    "X-A",
]
VALUES = [
    "20240601",
    "20240601T100000",
    "20240601T100000Z",
    "99991231T235959Z",
    "P1D",
    "-P9D",
    "FREQ=DAILY;COUNT=x",
    "FREQ=YEARLY",
    "a",
    "",
]
PARAMETERS = ["", ";VALUE=DATE", ";TZID=Europe/Madrid", ";TZID=Nowhere", ";VALUE=PERIOD", ";", ";X"]
LINES = st.builds(
    lambda name, given, value: f"{name}{given}:{value}",
    *map(st.sampled_from, (NAMES, PARAMETERS, VALUES)),
)


@given(
    st.lists(LINES, max_size=6),
    st.text(max_size=20).filter(lambda text: not set(text) & set("\r\n")),
)
def test_no_event_surprises_the_reader(lines: list[str], noise: str) -> None:
    """Whatever stands in an event, it is shown, counted as unreadable, or the file is called
    broken; and it can be looked for.
    """
    days = folder_module.load_days()
    document = IcalDocument(calendar("\n".join([*lines, noise or "X:1"])))
    try:
        entries, unread = days.entries_of(document, "x", {})
    except InvalidCalendar:
        return
    assert len(entries) + unread == len(document.of_kind("VEVENT"))
    days.between(entries, date(2024, 1, 1), date(2024, 12, 31), 100)
    days.years_of(entries, 2027)


def test_at_most_so_many(calendars: Calendars) -> None:
    """A list that would be longer says that it is not complete."""
    (calendars.folder / "x.ics").write_bytes(
        calendar(*["DTSTART;VALUE=DATE:20240601\nRRULE:FREQ=DAILY;COUNT=30"] * 20)
    )
    found = events_in(calendars, "2024-06-01", "2024-06-30")
    assert (len(found.events), found.complete) == (500, False)
    assert found.words().endswith("There are more than 500.")


# -- files that are not as they should be ----------------------------------------------------------

GOOD = calendar("DTSTART;VALUE=DATE:20240601\nSUMMARY:a")
BROKEN = {
    "empty": (b"", "there is no calendar in it"),
    "no calendar at all": (b"Dear Ann,\n", "line 1 is outside of any calendar"),
    "an address book": (b"BEGIN:VCARD\r\nEND:VCARD\r\n", "line 1 begins a VCARD"),
    "cut off": (GOOD[: GOOD.index(b"SUMMARY")], "ends in the middle of a VEVENT"),
    "cut off behind an event": (
        GOOD.removesuffix(b"END:VCALENDAR\r\n"),
        "ends in the middle of a VCALENDAR",
    ),
    "badly nested": (GOOD.replace(b"END:VEVENT", b"END:VTODO"), "ends a VTODO that has not begun"),
    "ended twice": (GOOD + b"END:VCALENDAR\r\n", "ends a VCALENDAR that has not begun"),
    "zones that are none": (
        GOOD.replace(b"BEGIN:VEVENT", b"BEGIN:VTIMEZONE\r\nfoo\r\nEND:VTIMEZONE\r\nBEGIN:VEVENT"),
        "time zones are invalid",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_file_is_named_and_left_alone(tmp_path: Path, case: str) -> None:
    """Reading says which file and where; nothing writes into it; other calendars go on."""
    data, words = BROKEN[case]
    (tmp_path / "home.ics").write_bytes(GOOD)
    (tmp_path / "bad.ics").write_bytes(data)
    async with Client(calendar_server(tmp_path, lambda: TODAY)) as client:
        for tool, arguments in (
            ("list_events", {"from": "2024-06-01", "to": "2024-06-30"}),
            ("find_free_days", {"from": "2024-06-01", "to": "2024-06-30", "length": 1}),
            ("create_event", {"title": "x", "start_date": "2024-06-01", "calendar": "bad"}),
        ):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert "The file of the calendar bad is broken" in result.text
            assert words in result.text
        assert (tmp_path / "bad.ics").read_bytes() == data
        arguments = {"title": "x", "start_date": "2024-06-01", "calendar": "home"}
        assert not (await client.call_tool("create_event", arguments)).is_error
        assert [resource.uri for resource in await client.list_resources()] == [
            "calendar://events/2026"
        ]


def test_a_file_that_is_too_large(calendars: Calendars) -> None:
    """Is not read, and does not grow beyond that."""
    filler = b"X-FILLER:" + b"x" * 60 + b"\r\n"
    path = calendars.folder / "my-calendar.ics"
    path.write_bytes(
        empty().replace(b"END:", filler * ((MOST_BYTES - 300) // len(filler)) + b"END:")
    )
    before = path.stat().st_ino, path.stat().st_mtime_ns, path.stat().st_size
    with pytest.raises(ToolError, match="would have more than"):
        put(calendars, "x" * 400)
    assert (path.stat().st_ino, path.stat().st_mtime_ns, path.stat().st_size) == before
    path.write_bytes(path.read_bytes() + b"\r\n" * MOST_BYTES)
    with pytest.raises(ToolError, match="too large to read"):
        events_in(calendars, "2024-06-01", "2024-06-30")


def test_a_file_of_some_megabytes_is_read_once(
    calendars: Calendars, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change reads again what has changed, and not thousands of events."""
    (calendars.folder / "my-calendar.ics").write_bytes(
        calendar(*[f"DTSTART;VALUE=DATE:20240601\nSUMMARY:{n}" for n in range(3000)])
    )
    assert len(calendars.entries()) == 3000
    days = folder_module.load_days()
    read = []
    one = days._entry
    monkeypatch.setattr(days, "_entry", lambda block, name: read.append(block) or one(block, name))
    put(calendars, "new")
    assert len(calendars.entries()) == 3001
    assert len(read) == 1


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
def test_lines_end_as_they_did(calendars: Calendars, newline: str, mark: bytes) -> None:
    """With the file's own line ends, and the mark that some programs begin with."""
    path = calendars.folder / "x.ics"
    path.write_bytes(mark + calendar("DTSTART;VALUE=DATE:20240601\nSUMMARY:a", newline=newline))
    put(calendars, "new", "x", start="2024-06-15T10:00")
    change_event(
        calendars, "e0", "x", "b", None, None, time_zone=None, location="there", notes=None
    )
    data = path.read_bytes()
    assert data.startswith(mark + b"BEGIN")
    assert data.count(newline.encode()) == data.count(b"\n") == len(data.splitlines())
    assert sorted(entry.title for entry in calendars.entries()) == ["b", "new"]


def test_mode_and_links_stay(calendars: Calendars, tmp_path: Path) -> None:
    """A file that others may read stays so, a new one is for its owner alone, and a link goes on
    leading where it led.
    """
    put(calendars, "x")
    path = calendars.folder / "my-calendar.ics"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o664)
    put(calendars, "y")
    assert stat.S_IMODE(path.stat().st_mode) == 0o664
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path.rename(elsewhere / "real.ics")
    path.symlink_to(elsewhere / "real.ics")
    put(calendars, "z")
    assert path.is_symlink()
    assert b"SUMMARY:z" in (elsewhere / "real.ics").read_bytes()


def test_a_folder_that_cannot_be_written(
    calendars: Calendars, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk leaves the file as it was, and nothing beside it."""
    put(calendars, "x")
    before = bytes_of(calendars.folder)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="cannot be written and was not changed: No space left"):
        put(calendars, "y")
    assert bytes_of(calendars.folder) == before


def test_the_folder_is_the_one_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable's, or one among the user's data."""
    monkeypatch.setenv(folder_module.FOLDER_VARIABLE, str(tmp_path / "a"))
    assert Calendars().folder == tmp_path / "a"
    monkeypatch.delenv(folder_module.FOLDER_VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "data"))
    if sys.platform != "darwin":
        assert Calendars().folder == tmp_path / "data" / "interlock" / "calendars"


async def test_without_icalendar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What to install is said."""
    monkeypatch.delitem(sys.modules, "interlock_servers.calendar.events", raising=False)
    monkeypatch.delattr("interlock_servers.calendar.events", raising=False)
    monkeypatch.setitem(sys.modules, "icalendar", None)
    async with Client(calendar_server(tmp_path)) as client:
        result = await client.call_tool("create_event", {"title": "x", "start_date": "2024-06-01"})
        assert "pip install 'interlock[servers]'" in result.text


# -- the text of a file ----------------------------------------------------------------------------


@given(st.binary(max_size=200))
def test_no_bytes_surprise_the_reader(noise: bytes) -> None:
    """Whatever the bytes, they are a document or Unreadable; a document that is added to keeps all
    of them.
    """
    for data in (noise, GOOD[:40] + noise + GOOD[40:]):
        try:
            document = IcalDocument(data)
        except InvalidCalendar:
            continue
        added = document.with_changes({}, [b"BEGIN:VTODO\r\nEND:VTODO\r\n"])
        assert len(IcalDocument(added).blocks) == len(document.blocks) + 1
        assert document.with_changes({}) in (
            data,
            data[: document._end] + document.newline + data[document._end :],
        )


@given(
    st.lists(
        st.sampled_from(
            [b"BEGIN:VEVENT", b"END:VEVENT", b"BEGIN:VALARM", b"END:VALARM", b"X:1", b" folded"]
        ),
        max_size=12,
    )
)
def test_a_component_that_is_taken_out_leaves_the_others(lines: list[bytes]) -> None:
    """What goes are its own lines and no others."""
    try:
        document = IcalDocument(b"\r\n".join([b"BEGIN:VCALENDAR", *lines, b"END:VCALENDAR", b""]))
    except InvalidCalendar:
        return
    for block in document.blocks:
        without = document.with_changes({block: None})
        assert (
            without == document.data[: block.start] + document.data[block.start + len(block.raw) :]
        )
        assert len(IcalDocument(without).blocks) == len(document.blocks) - 1


# -- several at once, and death in the middle ------------------------------------------------------

WRITER = """
import asyncio, sys
from interlock import Client
from interlock_servers.calendar import calendar_server

async def main(folder, name, count):
    async with Client(calendar_server(folder)) as client:
        for n in range(count):
            result = await client.call_tool("create_event",
                {"title": f"{name}-{n}", "start_date": "2024-06-15"})
            assert not result.is_error, result.text

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


async def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    """Both write one calendar at the same time; every event of both is in it."""
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(tmp_path), name, "25", cwd=TOP
        )
        for name in ("a", "b")
    ]
    assert [await process.wait() for process in processes] == [0, 0]
    events = Calendar.from_ical((tmp_path / "my-calendar.ics").read_bytes()).events
    assert sorted(str(event["SUMMARY"]) for event in events) == sorted(
        f"{name}-{n}" for name in "ab" for n in range(25)
    )


async def test_threads_lose_nothing(tmp_path: Path) -> None:
    """Calls that run at the same time in one server take turns, too."""
    async with Client(calendar_server(tmp_path)) as client:
        calls = [
            client.call_tool("create_event", {"title": f"{n}", "start_date": "2024-06-15"})
            for n in range(20)
        ]
        assert not any(result.is_error for result in await asyncio.gather(*calls))
    assert len(Calendars(tmp_path).entries()) == 20


def test_a_program_that_takes_no_turns(
    calendars: Calendars, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changes the file between our reading and our writing: its change stays, and ours is made
    again.
    """
    put(calendars, "first")
    path = calendars.folder / "my-calendar.ics"
    fsync = os.fsync
    left = [2]

    def interfere(descriptor: int) -> None:
        fsync(descriptor)
        if left[0] and not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            left[0] -= 1
            path.write_bytes(
                path.read_bytes().replace(
                    b"END:VCALENDAR", f"X-THEIRS:{left[0]}\r\nEND:VCALENDAR".encode()
                )
            )

    monkeypatch.setattr(os, "fsync", interfere)
    put(calendars, "second")
    data = path.read_bytes()
    assert all(
        words in data
        for words in (b"X-THEIRS:1", b"X-THEIRS:0", b"SUMMARY:first", b"SUMMARY:second")
    )
    left[0] = 99
    with pytest.raises(ToolError, match="keeps changing the calendar"):
        put(calendars, "third")
    assert b"SUMMARY:third" not in path.read_bytes()


def test_somebody_who_does_not_let_go(
    calendars: Calendars, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for a calendar gives up in words."""
    put(calendars, "x")
    monkeypatch.setattr(folder_module, "PATIENCE", 0.0)
    with (
        file_lock(calendars.folder / ".my-calendar.lock", patience=1.0),
        pytest.raises(ToolError, match="has locked"),
    ):
        put(calendars, "y")


# Stops itself at a place in the middle of writing, says so, and waits to be killed.
VICTIM = """
import os, sys
from interlock_servers.calendar.edits import add_event
from interlock_servers.calendar.calendar_files import Calendars

def stop(*_, **__):
    print("here", flush=True)
    sys.stdin.read()

place = sys.argv[2]
if place == "half":
    from pathlib import Path
    whole = os.fdopen
    import builtins
    opened = builtins.open
    def half(file, mode="r", *rest, **more):
        made = opened(file, mode, *rest, **more)
        if mode == "wb" and isinstance(file, int):
            write = made.write
            class Half:
                def __enter__(self): return self
                def __exit__(self, *_): made.close()
                def write(self, data):
                    write(data[: len(data) // 2]); made.flush(); stop()
            return Half()
        return made
    builtins.open = half
else:
    setattr(os, place, stop)
add_event(Calendars(sys.argv[1]), "my-calendar", "new", "2024-06-15", None, time_zone=None,
    location=None, notes=None)
"""


@pytest.mark.parametrize("place", ["half", "fsync", "replace"])
def test_killed_in_the_middle(calendars: Calendars, place: str) -> None:
    """Whoever is killed while it writes leaves the old file whole, and nobody waits for it: the
    next change is made.
    """
    path = calendars.folder / "my-calendar.ics"
    path.write_bytes(FOREIGN)
    victim = subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(calendars.folder), place],
        cwd=TOP,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert victim.stdout is not None
    try:
        assert victim.stdout.readline() == b"here\n"
        victim.send_signal(signal.SIGKILL)
    finally:
        victim.kill()
        victim.communicate()
    assert path.read_bytes() == FOREIGN
    left = set(bytes_of(calendars.folder)) - {"my-calendar.ics", ".my-calendar.lock"}
    assert left == {".my-calendar.ics.new"}
    put(calendars, "after")
    assert [entry.title for entry in calendars.entries()] == ["Dinner", "after"]
    assert set(bytes_of(calendars.folder)) == {"my-calendar.ics", ".my-calendar.lock"}


def test_days_are_counted_right(calendars: Calendars) -> None:
    """Free days and days of events share out a year."""
    put(calendars, "x", start="2024-06-15")
    free = free_days(calendars, "2024-01-01", "2024-12-31", 1)
    assert sum(one.days for one in free.free) == 365
    assert date.fromisoformat(free.free[0].last) == date(2024, 6, 14)
