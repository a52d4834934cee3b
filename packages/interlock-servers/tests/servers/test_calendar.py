"""The calendar server: its tools, resources, completions and notices, as clients of all revisions
see them.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from icalendar import Calendar

from interlock import Client, McpError, Server, Watch, types
from interlock.testing import EVERY_WAY, ScriptedAnswers, Way, connect
from interlock_servers.calendar import calendar_server
from tests.servers.calendars import FOREIGN, TODAY, bytes_of, calendar
from tests.servers.calls import done, refusal, words

TRIP = {"title": "Barcelona Trip", "start_date": "2024-06-15", "end_date": "2024-06-22"}
JUNE = {"from": "2024-06-01", "to": "2024-06-30"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that is not there yet."""
    return tmp_path / "calendars"


@pytest.fixture
def server(folder: Path) -> Server:
    """A server over that folder, on a day that stays."""
    return calendar_server(folder, lambda: TODAY)


async def made(client: Client, **arguments: Any) -> dict[str, Any]:
    """An event that was created, as data."""
    return await done(client, "create_event", **arguments)


async def listed(client: Client, **arguments: Any) -> list[tuple[str, str, str]]:
    """What list_events finds: title, start and end."""
    return [
        (one["title"], one["start"], one["end"])
        for one in (await done(client, "list_events", **{**JUNE, **arguments}))["events"]
    ]


# -- what it offers --------------------------------------------------------------------------------


async def test_nobody_who_uses_it_is_broken(server: Server, interlock_catalogue: Any) -> None:
    """Tools, resources and templates are those of the snapshot (`TOL-02`, `RES-02`)."""
    assert not (await interlock_catalogue(server, "calendar_catalogue.json")).breaking


async def test_every_tool_says_truly_what_it_does(client: Client) -> None:
    """Titles, descriptions, output schemas, and hints by which a host may decide (`TOL-04`,
    `TOL-05`).
    """
    hints = {}
    for tool in await client.list_tools():
        assert all((tool.title, tool.description, tool.output_schema)), tool.name
        assert tool.annotations is not None
        assert tool.annotations.open_world_hint is False
        hints[tool.name] = (tool.annotations.read_only_hint, tool.annotations.destructive_hint)
    assert hints == {
        "create_event": (False, False),
        "update_event": (False, True),
        "delete_event": (False, True),
        "list_events": (True, None),
        "find_free_days": (True, None),
    }


async def test_what_only_reads_changes_nothing(client: Client, folder: Path) -> None:
    """Neither a tool that says so, nor a resource, nor a completion leaves a trace; no folder is
    made (`TOL-04`).
    """
    assert await listed(client) == []
    assert not folder.exists()
    event = (await made(client, **TRIP))["id"]
    (folder / "other.ics").write_bytes(FOREIGN)
    before = bytes_of(folder)
    arguments = {"from": "2024-01-01", "to": "2024-12-31", "length": 3}
    for tool in await client.list_tools():
        if tool.annotations and tool.annotations.read_only_hint:
            given = {name: arguments[name] for name in tool.input_schema["required"]}
            assert not (await client.call_tool(tool.name, given)).is_error
    for uri in ("events/2024", "events/2024/6", "my-calendar/June-2024", f"event/{event}"):
        await client.read_resource(f"calendar://{uri}")
    await client.complete("calendar://{calendar}/{month}", "month", "J")
    assert bytes_of(folder) == before


# -- events ----------------------------------------------------------------------------------------


async def test_the_trip_of_the_guide(client: Client, folder: Path) -> None:
    """An event for whole days ends on the day that is given: DTEND is the day after (RFC 5545,
    section 3.6.1; `TOL-09`).
    """
    event = await made(client, **TRIP)
    assert (event["start"], event["end"], event["allDay"], event["calendar"]) == (
        "2024-06-15",
        "2024-06-22",
        True,
        "my-calendar",
    )
    (kept,) = Calendar.from_ical((folder / "my-calendar.ics").read_bytes()).events
    assert (str(kept.start), str(kept.end), kept["SUMMARY"], kept["UID"]) == (
        "2024-06-15",
        "2024-06-23",
        "Barcelona Trip",
        event["id"],
    )
    assert await listed(client) == [("Barcelona Trip", "2024-06-15", "2024-06-22")]
    assert await listed(client, **{"from": "2024-06-22", "to": "2024-06-22"}) == [
        ("Barcelona Trip", "2024-06-15", "2024-06-22")
    ]
    assert await listed(client, **{"from": "2024-06-23", "to": "2024-06-23"}) == []


@pytest.mark.parametrize(
    "given, start, end",
    [
        ({"start_date": "2024-06-15"}, "2024-06-15", "2024-06-15"),
        ({"start_date": "2024-06-15T10:00"}, "2024-06-15T10:00:00", "2024-06-15T11:00:00"),
        (
            {"start_date": "2024-06-15T10:00:00+02:00"},
            "2024-06-15T08:00:00+00:00",
            "2024-06-15T09:00:00+00:00",
        ),
        (
            {"start_date": "2024-06-15T10:00Z", "end_date": "2024-06-15T12:30Z"},
            "2024-06-15T10:00:00+00:00",
            "2024-06-15T12:30:00+00:00",
        ),
        (
            {"start_date": "2024-06-15T10:00", "time_zone": "Europe/Madrid"},
            "2024-06-15T10:00:00+02:00",
            "2024-06-15T11:00:00+02:00",
        ),
        (
            {
                "start_date": "2024-06-15T10:00Z",
                "end_date": "2024-06-15T23:00",
                "time_zone": "Asia/Tokyo",
            },
            "2024-06-15T19:00:00+09:00",
            "2024-06-15T23:00:00+09:00",
        ),
    ],
)
async def test_times(
    client: Client, folder: Path, given: dict[str, str], start: str, end: str
) -> None:
    """Days, times that float, with an offset, and in a zone, whose definition is then in the file
    (RFC 5545, section 3.3.5).
    """
    event = await made(client, title="x", **given)
    assert (event["start"], event["end"]) == (start, end)
    assert (await listed(client)) == [("x", start, end)]
    text = (folder / "my-calendar.ics").read_text()
    assert text.count("BEGIN:VTIMEZONE") == ("time_zone" in given)
    await made(client, title="y", **given)
    assert (folder / "my-calendar.ics").read_text().count("BEGIN:VTIMEZONE") == (
        "time_zone" in given
    )


@pytest.mark.parametrize(
    "given, words",
    [
        ({"start_date": "15.6.2024"}, "start_date: '15.6.2024' is not a date such as 2024-06-15"),
        ({"start_date": "2024-02-30"}, "is not a date"),
        (
            {"start_date": "2024-06-15", "end_date": "2024-06-14"},
            "end (2024-06-14) before it begins",
        ),
        (
            {"start_date": "2024-06-15", "end_date": "2024-06-15T10:00"},
            "both be dates, or both be times",
        ),
        (
            {"start_date": "2024-06-15T10:00", "end_date": "2024-06-15T12:00Z"},
            "Only one of start_date and end_date has a time zone",
        ),
        (
            {"start_date": "2024-06-15T10:00", "time_zone": "Europe/Madird"},
            "Did you mean Europe/Madrid?",
        ),
        ({"start_date": "2024-06-15", "end_date": "2034-06-15"}, "at most 1830 days"),
        ({"start_date": "9999-12-31"}, "range of dates"),
        ({"start_date": "0001-01-01T00:00+14:00"}, "range of dates"),
        ({"start_date": "2024-06-15", "title": ""}, "title"),
        ({"start_date": "2024-06-15", "title": "a\x07b"}, "title has control characters"),
        ({"start_date": "2024-06-15", "calendar": "../../etc/x"}, "There is no calendar called"),
        (
            {"start_date": "2024-06-15", "calendar": "my-calender"},
            "There is no calendar called 'my-calender'",
        ),
        ({}, "start_date"),
    ],
)
async def test_what_is_no_event(
    client: Client, folder: Path, given: dict[str, str], words: str
) -> None:
    """Whatever is wrong is said in words, and nothing is written (`TOL-16`, `TOL-23`)."""
    assert words in await refusal(client, "create_event", **{"title": "x", **given})
    assert not folder.exists()


async def test_text_is_kept_as_it_is(client: Client) -> None:
    """Signs that iCalendar needs for itself, line breaks and other scripts come back; nothing of
    them becomes a property.
    """
    words = "a;b,c\\n \\ “ü” 旅行\nDTSTART:19700101\r\nEND:VEVENT\n" + "long " * 60
    event = await made(
        client, title="旅行; x, y", start_date="2024-06-15", location="A, B; C", notes=words
    )
    result = await client.call_tool("list_events", JUNE)
    (found,) = result.structured_content["events"]
    assert (found["title"], found["location"], found["notes"]) == (
        "旅行; x, y",
        "A, B; C",
        words.replace("\r\n", "\n"),
    )
    assert found["id"] == event["id"]
    assert "END:VEVENT" in result.text


async def test_changing(client: Client, folder: Path) -> None:
    """What is not given stays, what is moved lasts as long, and what is emptied is gone; the change
    is counted (RFC 5545, section 3.8.7.4).
    """
    event = (await made(client, **TRIP, location="Gràcia", notes="Passport!"))["id"]

    async def change(**arguments: Any) -> dict[str, Any]:
        result = await client.call_tool("update_event", {"event": event, **arguments})
        assert not result.is_error, result.text
        assert result.structured_content["id"] == event
        return {
            name: result.structured_content.get(name)
            for name in ("title", "start", "end", "location", "notes")
        }

    assert await change(title="Holiday") == {
        "title": "Holiday",
        "start": "2024-06-15",
        "end": "2024-06-22",
        "location": "Gràcia",
        "notes": "Passport!",
    }
    moved = await change(start_date="2024-07-01", location="")
    assert (moved["start"], moved["end"], moved["location"]) == ("2024-07-01", "2024-07-08", None)
    assert (await change(end_date="2024-07-03"))["end"] == "2024-07-03"
    timed = await change(start_date="2024-07-01T10:00", time_zone="Europe/Madrid", notes="")
    assert (timed["start"], timed["end"], timed["notes"]) == (
        "2024-07-01T10:00:00+02:00",
        "2024-07-01T11:00:00+02:00",
        None,
    )
    assert (await change(end_date="2024-07-01T12:00"))["end"] == "2024-07-01T12:00:00+02:00"
    (kept,) = Calendar.from_ical((folder / "my-calendar.ics").read_bytes()).events
    assert kept["SEQUENCE"] == 5
    assert "before it begins" in await refusal(
        client, "update_event", event=event, end_date="2024-06-30T10:00"
    )
    assert "nothing to change" in await refusal(client, "update_event", event=event)
    assert "There is no event with the id 'x'" in await refusal(
        client, "update_event", event="x", title="y"
    )


async def test_an_event_of_another_program(client: Client, folder: Path) -> None:
    """It keeps all that we know nothing of: its own properties, its alarm, its zone, and what else
    is in the file.
    """
    folder.mkdir()
    (folder / "other.ics").write_bytes(FOREIGN)
    assert await listed(client) == [
        ("Dinner", "2024-06-16T19:00:00+03:30", "2024-06-16T21:00:00+03:30")
    ]
    await client.call_tool(
        "update_event", {"event": "dinner@other", "title": "Supper", "location": "Home"}
    )
    now = (folder / "other.ics").read_bytes().decode()
    before = FOREIGN.decode().split("\r\n")
    after = now.split("\r\n")
    gone = [line for line in before if line not in after]
    assert gone == ["DTSTAMP:20240101T000000Z", "SUMMARY;LANGUAGE=en:Dinner", "SEQUENCE:4"]
    new = [line.partition(":")[0] for line in after if line not in before]
    assert sorted(new) == ["DTSTAMP", "LAST-MODIFIED", "LOCATION", "SEQUENCE", "SUMMARY"]
    await client.call_tool(
        "create_event", {"title": "New", "start_date": "2024-06-17", "calendar": "other"}
    )
    text = (folder / "other.ics").read_bytes()
    assert text.startswith(now.encode().removesuffix(b"END:VCALENDAR\r\n"))
    await client.call_tool("delete_event", {"event": "dinner@other"})
    left = (folder / "other.ics").read_bytes().decode()
    assert "Supper" not in left
    assert all(
        words in left
        for words in (
            "BEGIN:VTODO\r\nUID:todo@other",
            "BEGIN:X-STRANGE\r\nX-A:1",
            "TZID:Our Zone",
            "X-WR-CALNAME:Ann",
        )
    )


async def test_events_that_repeat(client: Client, folder: Path) -> None:
    """They are shown on each day, changed in their words as a whole and not in their dates, and
    deleted with all repetitions.
    """
    folder.mkdir()
    series = "DTSTART:20240603T090000Z\nRRULE:FREQ=WEEKLY;COUNT=3\nSUMMARY:Yoga"
    (folder / "work.ics").write_bytes(
        calendar(series).replace(b"END:VCALENDAR", _one_moved(b"Yoga") + b"END:VCALENDAR")
    )
    assert await listed(client) == [
        ("Yoga", "2024-06-03T09:00:00+00:00", "2024-06-03T09:00:00+00:00"),
        ("Yoga", "2024-06-11T09:00:00+00:00", "2024-06-11T10:00:00+00:00"),
        ("Yoga", "2024-06-17T09:00:00+00:00", "2024-06-17T09:00:00+00:00"),
    ]
    assert "repeats, so its dates cannot be changed" in await refusal(
        client, "update_event", event="e0", start_date="2024-06-04"
    )
    await client.call_tool("update_event", {"event": "e0", "title": "Pilates"})
    assert [title for title, _, _ in await listed(client)] == ["Pilates"] * 3
    result = await client.call_tool("delete_event", {"event": "e0"})
    assert not result.is_error
    assert result.structured_content["repeats"] == "FREQ=WEEKLY;COUNT=3"
    assert await listed(client) == []


def _one_moved(title: bytes) -> bytes:
    """The repetition of 10 June, on the 11th and for an hour."""
    return (
        b"BEGIN:VEVENT\r\nUID:e0\r\nRECURRENCE-ID:20240610T090000Z\r\nDTSTART:20240611T090000Z\r\nDURATION:PT1H\r\nSUMMARY:"
        + title
        + b"\r\nEND:VEVENT\r\n"
    )


async def test_one_id_in_two_calendars(client: Client, folder: Path) -> None:
    """It has to be said which is meant."""
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.ics").write_bytes(calendar("DTSTART;VALUE=DATE:20240601\nSUMMARY:x"))
    assert "More than one calendar" in await refusal(client, "update_event", event="e0", title="y")
    await client.call_tool("update_event", {"event": "e0", "title": "y", "calendar": "b"})
    assert [title for title, _, _ in await listed(client)] == ["x", "y"]
    assert [title for title, _, _ in await listed(client, calendar="b")] == ["y"]


# -- deleting asks the person ----------------------------------------------------------------------


@pytest.mark.parametrize("way", EVERY_WAY, ids=str)
async def test_deleting_asks(server: Server, folder: Path, way: Way) -> None:
    """A yes deletes, a no and a dismissal do not, and who cannot be asked deletes nothing; whatever
    the revision (`ELI-14`, `ERR-08`).
    """
    async with Client(server) as client:
        event = (await made(client, **TRIP))["id"]
    before = bytes_of(folder)
    asks = way.revision >= "2025-06-18"
    answers = ScriptedAnswers(elicit=[False, None, {"confirm": False}, {"confirm": True}])
    async with connect(
        server, revision=way.revision, suspend=way.suspend, answers=answers
    ) as client:
        for _ in range(3):
            assert (await client.call_tool("delete_event", {"event": event})).is_error
            assert bytes_of(folder) == before
        if asks:
            assert (
                answers.messages
                == [
                    "Delete “Barcelona Trip” (2024-06-15 to 2024-06-22) from the calendar "
                    "my-calendar?"
                ]
                * 3
            )
            assert not (await client.call_tool("delete_event", {"event": event})).is_error
            assert await listed(client) == []
        else:
            assert answers.messages == []
    async with Client(server, revision=way.revision) as alone:
        event = (await made(alone, **TRIP))["id"] if way.revision >= "2025-06-18" else event
        before = bytes_of(folder)
        try:
            assert (await alone.call_tool("delete_event", {"event": event})).is_error
        except McpError as refused:
            assert refused.code == types.MISSING_CLIENT_CAPABILITY
        assert bytes_of(folder) == before


async def test_a_title_is_no_part_of_the_question(server: Server, folder: Path) -> None:
    """What others wrote as a title is shown to the person in one line, and not at any length."""
    folder.mkdir()
    (folder / "theirs.ics").write_bytes(
        calendar(
            "DTSTART;VALUE=DATE:20240601\nSUMMARY:Lunch?\\n\\nPress yes to go on" + " and on" * 100
        )
    )
    answers = ScriptedAnswers(elicit=[False])
    async with connect(server, answers=answers) as client:
        await client.call_tool("delete_event", {"event": "e0"})
    (question,) = answers.messages
    assert question.startswith("Delete “Lunch? Press yes to go on and on")
    assert "\n" not in question
    assert len(question) < 200


# -- days that are free ----------------------------------------------------------------------------


async def test_free_days(client: Client, folder: Path) -> None:
    """Between what takes time: what is transparent or cancelled takes none, and an event to
    midnight not the next day.
    """
    folder.mkdir()
    (folder / "work.ics").write_bytes(
        calendar(
            "DTSTART;VALUE=DATE:20240605\nDTEND;VALUE=DATE:20240607",
            "DTSTART:20240610T220000\nDTEND:20240611T000000",
            "DTSTART;VALUE=DATE:20240620\nTRANSP:TRANSPARENT",
            "DTSTART;VALUE=DATE:20240621\nSTATUS:CANCELLED",
            "DTSTART;VALUE=DATE:20240401\nDTEND;VALUE=DATE:20240602",
            "DTSTART;VALUE=DATE:20240630\nDTEND;VALUE=DATE:20240801",
        )
    )

    async def free(length: int) -> list[tuple[str, str, int]]:
        result = await client.call_tool("find_free_days", {**JUNE, "length": length})
        return [
            (one["first"], one["last"], one["days"]) for one in result.structured_content["free"]
        ]

    assert await free(1) == [
        ("2024-06-02", "2024-06-04", 3),
        ("2024-06-07", "2024-06-09", 3),
        ("2024-06-11", "2024-06-29", 19),
    ]
    assert await free(4) == [("2024-06-11", "2024-06-29", 19)]
    assert await free(20) == []
    result = await client.call_tool(
        "find_free_days", {"from": "2024-06-07", "to": "2024-06-07", "length": 1}
    )
    assert result.text == "2024-06-07: 1 day"


@pytest.mark.parametrize(
    "given, words",
    [
        ({"from": "2024-06-30", "to": "2024-06-01"}, "ends (2024-06-01) before it begins"),
        ({"from": "June", "to": "2024-06-01"}, '$.from: "June" is not a "date"'),
        ({"from": "1990-06-30", "to": "2024-06-01"}, "more than 1830 days"),
        ({"from": "2024-06-01"}, "to"),
        ({**JUNE, "calendar": "nobody"}, "There is no calendar called 'nobody'. There is work."),
        ({**JUNE, "calendar": "wrok"}, "Did you mean work?"),
    ],
)
async def test_what_cannot_be_listed(
    client: Client, folder: Path, given: dict[str, Any], words: str
) -> None:
    """In words for the model (`TOL-16`)."""
    folder.mkdir()
    (folder / "work.ics").write_bytes(calendar())
    assert words in await refusal(client, "list_events", **given)


# -- resources -------------------------------------------------------------------------------------


async def titles(client: Client, uri: str) -> list[str]:
    """The titles of the events behind a URI."""
    (contents,) = (await client.read_resource(uri)).contents
    assert contents.mime_type == "application/json"
    return [event["title"] for event in json.loads(contents.text or "")["events"]]


async def test_reading(client: Client, folder: Path) -> None:
    """Years, months in three spellings, one calendar's month as the guide has it, and nothing where
    there is nothing (`RES-08`, `RES-13`).
    """
    await made(client, **TRIP)
    await made(client, title="Long", start_date="2024-06-30", end_date="2024-07-01")
    (folder / "work place.ics").write_bytes(calendar("DTSTART;VALUE=DATE:20240620\nSUMMARY:Work"))
    assert await titles(client, "calendar://events/2024") == ["Barcelona Trip", "Work", "Long"]
    for month in ("6", "06", "June"):
        assert await titles(client, f"calendar://events/2024/{month}") == [
            "Barcelona Trip",
            "Work",
            "Long",
        ]
    assert await titles(client, "calendar://events/2024/July") == ["Long"]
    assert await titles(client, "calendar://my-calendar/June-2024") == ["Barcelona Trip", "Long"]
    assert await titles(client, "calendar://work%20place/June-2024") == ["Work"]
    assert await titles(client, "calendar://events/1999") == []
    for uri in (
        "events/soon",
        "events/0000",
        "events/2024/13",
        "events/2024/Juno",
        "my-calendar/June",
        "nobody/June-2024",
        "event/x",
    ):
        with pytest.raises(McpError, match="not found"):
            await client.read_resource(f"calendar://{uri}")


async def test_an_event_as_a_file(client: Client, folder: Path) -> None:
    """Other programs can open it: it is a whole calendar, with the zone that the event is in and
    with no other event.
    """
    folder.mkdir()
    (folder / "other.ics").write_bytes(FOREIGN)
    await made(client, title="x", start_date="2024-06-15", calendar="other")
    (contents,) = (await client.read_resource("calendar://event/dinner%40other")).contents
    assert contents.mime_type == "text/calendar"
    whole = Calendar.from_ical(contents.text or "")
    assert [event["UID"] for event in whole.events] == ["dinner@other"]
    assert [zone["TZID"] for zone in whole.timezones] == ["Our Zone"]


async def told(changes: Watch, wanted: set[str]) -> set[str]:
    """The URIs of which one hears, until those that are wanted are among them."""
    received: set[str] = set()
    async with asyncio.timeout(
        20
    ):  # so that a notice which does not come is a failure and no standstill
        async for change in changes:
            received.add(change.uri or "")
            if wanted <= received:
                break
    return received


async def test_years_come_and_go(client: Client, folder: Path) -> None:
    """This year is always listed, others where something occurs; listeners are told, and find what
    another program wrote (`RES-09`, `SUB-01`).
    """

    async def years() -> list[str]:
        return sorted(resource.uri.rpartition("/")[2] for resource in await client.list_resources())

    assert await years() == ["2026"]
    months = {f"calendar://events/2024/{month}" for month in ("6", "06", "June")}
    watched = {"calendar://events/2024", "calendar://my-calendar/June-2024", *months}
    async with (
        client.watch(resources=True) as lists,
        client.watch(resources=sorted(watched)) as changes,
    ):
        event = (await made(client, **TRIP))["id"]
        assert (await anext(lists)).kind == "resources"
        assert watched <= await told(changes, watched)
        assert await years() == ["2024", "2026"]
        await client.call_tool("update_event", {"event": event, "start_date": "2025-01-01"})
        assert (await anext(lists)).kind == "resources"
        assert watched <= await told(changes, watched)
        assert await years() == ["2025", "2026"]
    (folder / "other.ics").write_bytes(
        calendar("DTSTART;VALUE=DATE:20200620\nRRULE:FREQ=YEARLY;INTERVAL=4")
    )
    assert await years() == ["2020", "2024", "2025", "2026"]


async def test_completion(client: Client, folder: Path) -> None:
    """Years, months, calendars and ids, the latter by their titles too (`CMP-02`, `CMP-03`)."""
    event = (await made(client, **TRIP))["id"]
    (folder / "work.ics").write_bytes(calendar("DTSTART;VALUE=DATE:20230620\nSUMMARY:Work"))

    async def completed(template: str, argument: str, value: str, **known: str) -> list[str]:
        return list(
            (
                await client.complete(
                    f"calendar://{template}", argument, value, arguments=known or None
                )
            ).values
        )

    assert await completed("events/{year}", "year", "20") == ["2026", "2024", "2023"]
    assert await completed("events/{year}/{month}", "month", "Ju") == ["June", "July"]
    assert await completed("events/{year}/{month}", "month", "1") == ["10", "11", "12"]
    assert await completed("{calendar}/{month}", "calendar", "") == ["my-calendar", "work"]
    assert await completed("{calendar}/{month}", "month", "june", calendar="my-calendar") == [
        "June-2024"
    ]
    assert await completed("{calendar}/{month}", "month", "", calendar="work") == [
        "November-2026",
        "June-2023",
    ]
    assert await completed("{calendar}/{month}", "month", "", calendar="nobody") == []
    assert await completed("event/{id}", "id", "barc") == [event]


async def test_older_clients_read_it_in_words(server: Server) -> None:
    """A peer that knows no structured content finds the ids and times in the text (`TOL-11`)."""
    async with Client(server, revision="2024-11-05") as client:
        created = await words(client, "create_event", **TRIP)
        assert created.startswith(
            "Created: 2024-06-15 to 2024-06-22: Barcelona Trip [my-calendar; id "
        )
        event = created.rpartition("id ")[2].rstrip("]")
        assert "Trip" in await words(client, "update_event", event=event, title="Trip")
        assert event in await words(client, "list_events", **JUNE)
