"""The time server: moments of all zones, changes of clocks, adding and counting, searching, and
what clients of all revisions see.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from interlock import REVISIONS, Client, McpError, Server, Stdio, ToolError
from interlock_servers.time import CHANGES, NOW, server_of, time_server
from interlock_servers.time.moments import (
    CalendarSpan,
    added,
    between,
    changes_after,
    is_summer_time,
    offset_at,
    read_duration,
    read_moment,
    settled,
)
from interlock_servers.time.results import moment_of
from interlock_servers.time.zones import Zones, own_zone
from tests.servers.calls import ON_THE_COMMAND_LINE, done, refusal, words
from tests.servers.roads import over, serving

THEN = datetime(2024, 6, 15, 13, 30, 0, 987654, tzinfo=UTC)  # a Saturday
ZONES = Zones()
NAMES = sorted(ZONES.names.values())
zones = st.sampled_from(NAMES).map(zoneinfo.ZoneInfo)
moments = st.datetimes(datetime(1900, 1, 1), datetime(2100, 12, 31), timezones=st.just(UTC))
spans = st.builds(
    CalendarSpan,
    st.integers(0, 1200),
    st.integers(0, 5000),
    st.timedeltas(timedelta(), timedelta(days=3)),
)


@pytest.fixture
def server() -> Server:
    """A server whose clock stands still, for a person in Madrid."""
    return time_server("Europe/Madrid", lambda: THEN)


# -- what it offers --------------------------------------------------------------------------------

# tool -> arguments of a call that works
CALLS: dict[str, dict[str, Any]] = {
    "get_current_time": {"timezone": "Asia/Tokyo"},
    "convert_time": {"time": "15:30", "target_timezone": "Asia/Tokyo"},
    "add_to_time": {"time": "now", "duration": "P1D"},
    "time_between": {"start": "now", "end": "2025-01-01"},
    "next_clock_changes": {},
    "find_timezones": {"query": "Spain"},
}


async def test_nobody_who_uses_it_is_broken(interlock_catalogue: Any) -> None:
    """Tools, resources, templates and prompts are those of the snapshot (`TOL-02`, `RES-02`)."""
    assert not (await interlock_catalogue(time_server("UTC"), "time_catalogue.json")).breaking


async def test_annotations_are_there_and_true(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it only reads: nothing is written wherever one stands, and a second look has the same
    answer (`TOL-02`, `TOL-04`, `TOL-05`).
    """
    monkeypatch.chdir(tmp_path)
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert set(tools) == set(CALLS)
    for name, tool in tools.items():
        assert all((tool.title, tool.description, tool.output_schema, tool.annotations)), name
        hints = tool.annotations
        assert hints is not None
        assert (
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
            hints.open_world_hint,
        ) == (True, False, True, False)
        assert all(
            "description" in argument
            for argument in tool.input_schema.get("properties", {}).values()
        ), name
        assert await done(client, name, **CALLS[name]) == await done(client, name, **CALLS[name])
    assert os.listdir(tmp_path) == []


@pytest.mark.matrix
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("road", ["memory", "http"])
async def test_every_revision(server: Server, revision: str, road: str) -> None:
    """Telling, converting, refusing, reading and prompting, in memory and over HTTP, in all
    revisions.
    """
    async with over(road, server) as target, Client(target, revision=revision) as client:
        assert (
            await words(client, "get_current_time")
            == "Europe/Madrid: Saturday, 2024-06-15T15:30:00+02:00 (CEST, week 2024-W24)"
        )
        assert "+05:45" in await words(
            client, "convert_time", time="12:00", target_timezone=["UTC", "Asia/Kathmandu"]
        )
        assert "Did you mean Europe/Madrid" in await refusal(
            client, "get_current_time", timezone="Europe/Madird"
        )
        tokyo = json.loads(
            (await client.read_resource("time://now/Asia/Tokyo")).contents[0].text or ""
        )
        assert tokyo["datetime"] == "2024-06-15T22:30:00+09:00"
        assert "+07:00 ahead" in str(
            (await client.get_prompt("plan_meeting", {"zone": "Asia/Tokyo"})).messages[0].content
        )


@pytest.mark.parametrize("revision", ON_THE_COMMAND_LINE)
async def test_from_the_command_line(revision: str) -> None:
    """`interlock serve time` over stdio; the environment says where the person is, and an argument
    says it louder.
    """
    for arguments, zone in (([], "Asia/Tokyo"), (["Asia/Kathmandu"], "Asia/Kathmandu")):
        program = Stdio(serving("time", *arguments), env={"INTERLOCK_TIME_ZONE": "Asia/Tokyo"})
        async with Client(program, revision=revision) as client:
            assert (await words(client, "get_current_time")).startswith(f"{zone}: ")


def test_a_zone_that_is_none_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anybody asks what time it is."""
    monkeypatch.setenv("INTERLOCK_TIME_ZONE", "Europe/Atlantis")
    for arguments in ((), ("EDT",), ("Asia/Tokyo", "Asia/Seoul")):
        with pytest.raises(ValueError, match=r"There is no time zone|Name one zone"):
            server_of(*arguments)


# -- telling and converting ------------------------------------------------------------------------


async def test_all_that_is_told_of_a_moment(client: Client) -> None:
    """The fields that callers of the existing server know, and more."""
    assert await done(client, "get_current_time", timezone="America/New_York") == {
        "timezone": "America/New_York",
        "datetime": "2024-06-15T09:30:00-04:00",
        "day_of_week": "Saturday",
        "is_dst": True,
        "utc_offset": "-04:00",
        "abbreviation": "EDT",
        "week": "2024-W24",
        "day_of_year": 167,
        "unix_time": 1718458200.0,
    }


async def test_several_zones_at_once(client: Client) -> None:
    """In the order in which they were named, each with how far it is ahead of the source."""
    found = await done(
        client,
        "convert_time",
        time="10:00",
        source_timezone="America/New_York",
        target_timezone=["Asia/Kolkata", "+05:45", "utc"],
    )
    assert [
        (one["timezone"], one["datetime"], one["time_difference"]) for one in found["targets"]
    ] == [
        ("Asia/Kolkata", "2024-06-15T19:30:00+05:30", "+09:30"),
        ("UTC+05:45", "2024-06-15T19:45:00+05:45", "+09:45"),
        ("UTC", "2024-06-15T14:00:00+00:00", "+04:00"),
    ]
    assert found["source"]["datetime"] == "2024-06-15T10:00:00-04:00"
    assert (found["note"], found["other"]) == (None, None)
    assert "target_timezone" in await refusal(
        client, "convert_time", time="now", target_timezone=[]
    )


@pytest.mark.parametrize(
    "text, found",
    [
        ("now", "2024-06-15T15:30:00.987654+02:00"),
        (" NOW ", "2024-06-15T15:30:00.987654+02:00"),
        ("9:05", "2024-06-15T09:05:00+02:00"),
        ("23:59:59.5", "2024-06-15T23:59:59.500000+02:00"),
        ("23:59:59,5", "2024-06-15T23:59:59.500000+02:00"),
        ("2024-02-29", "2024-02-29T00:00:00+01:00"),
        ("2024-01-01 08:00", "2024-01-01T08:00:00+01:00"),
        ("2024-01-01t08:00z", "2024-01-01T09:00:00+01:00"),
        ("2024-01-01T08:00:00-0500", "2024-01-01T14:00:00+01:00"),
        ("2024-01-01T08:00 +05:30", "2024-01-01T03:30:00+01:00"),
        ("01:00+12:00", "2024-06-15T15:00:00+02:00"),  # where this offset is, it is the 16th by now
        ("@0", "1970-01-01T01:00:00+01:00"),
        ("@-1.5", "1970-01-01T00:59:58.500000+01:00"),
    ],
)
def test_times_that_are_understood(text: str, found: str) -> None:
    """Times, dates, both, with an offset and without, Unix time."""
    assert read_moment(text, zoneinfo.ZoneInfo("Europe/Madrid"), THEN).moment.isoformat() == found


@pytest.mark.parametrize(
    "text",
    ["", "noon", "24:00", "12:60", "12", "2024-02-30", "2024-13-01", "15.6.2024",
        "2024-06-15T25:00", "12:00:60", "2024-06-15T", "２０２４-06-15", "@", "@1e9",
     "2024-06-15T10:00+25:00", "2024-06-15Z", "0001-01-01", "9999-12-31T23:59-12:00",
     "@999999999999", "2024-W24-6", "12:00\n; rm", "0" * 60],
)  # fmt: skip
async def test_what_is_no_time_is_refused_in_words(client: Client, text: str) -> None:
    """And it is said how one is written, or how far one can go (`TOL-15`, `TOL-16`)."""
    said = await refusal(client, "convert_time", time=text, target_timezone="UTC")
    assert any(words in said for words in ("is not a time. Write 15:30", "is too far away", "time"))
    assert "failed" not in said


# zone, local time -> taken for, the other moment, words
ODD_TIMES = [
    (
        "Europe/Madrid",
        "2024-03-31T02:30",
        "2024-03-31T03:30:00+02:00",
        None,
        "There is no 02:30 on 2024-03-31 in Europe/Madrid: clocks go forward from 02:00 to 03:00.",
    ),
    (
        "Europe/Madrid",
        "2024-10-27T02:30",
        "2024-10-27T02:30:00+02:00",
        "2024-10-27T02:30:00+01:00",
        "02:30 occurs twice on 2024-10-27 in Europe/Madrid: clocks go back from 03:00 to 02:00. "
        "This is the first",
    ),
    (
        "Australia/Lord_Howe",
        "2024-10-06T02:15",
        "2024-10-06T02:45:00+11:00",
        None,
        "clocks go forward from 02:00 to 02:30",
    ),
    (
        "Australia/Lord_Howe",
        "2024-04-07T01:45",
        "2024-04-07T01:45:00+11:00",
        "2024-04-07T01:45:00+10:30",
        "clocks go back from 02:00 to 01:30",
    ),
    (
        "Pacific/Apia",
        "2011-12-30T12:00",
        "2011-12-31T12:00:00+14:00",
        None,
        "clocks go forward from 00:00 to 2011-12-31 00:00",
    ),
    (
        "Pacific/Apia",
        "2011-12-30",
        "2011-12-31T00:00:00+14:00",
        None,
        "There is no 00:00 on 2011-12-30",
    ),
    (
        "Pacific/Kwajalein",
        "1993-08-21T12:00",
        "1993-08-22T12:00:00+12:00",
        None,
        "There is no 12:00 on 1993-08-21",
    ),
    (
        "Africa/Casablanca",
        "2024-03-10T02:30",
        "2024-03-10T02:30:00+01:00",
        "2024-03-10T02:30:00+00:00",
        "clocks go back from 03:00 to 02:00",
    ),
    (
        "Africa/Casablanca",
        "2024-04-14T02:30",
        "2024-04-14T03:30:00+01:00",
        None,
        "clocks go forward from 02:00 to 03:00",
    ),
    (
        "America/Sao_Paulo",
        "2018-11-04",
        "2018-11-04T01:00:00-02:00",
        None,
        "clocks go forward from 00:00 to 01:00",
    ),
]


@pytest.mark.parametrize("zone, local, taken, other, words", ODD_TIMES)
async def test_times_at_changes_of_clocks(
    client: Client, zone: str, local: str, taken: str, other: str | None, words: str
) -> None:
    """What does not exist and what comes twice is said plainly, and the second can be asked for."""
    found = await done(
        client, "convert_time", time=local, source_timezone=zone, target_timezone="UTC"
    )
    assert (found["source"]["datetime"], found["other"]) == (taken, other)
    assert words in found["note"]
    second = await done(
        client,
        "convert_time",
        time=local,
        source_timezone=zone,
        target_timezone="UTC",
        which="second",
    )
    assert (second["source"]["datetime"], second["other"]) == (
        (other, taken) if other else (taken, None)
    )
    said = (
        await client.call_tool(
            "convert_time", {"time": local, "source_timezone": zone, "target_timezone": "UTC"}
        )
    ).text
    assert said.endswith(found["note"])


@pytest.mark.parametrize(
    "zone, moment, local",
    [
        ("Europe/Madrid", "1890-01-01T12:00:00Z", "1890-01-01T11:45:16-00:14:44"),  # by the sun
        ("Asia/Kathmandu", "2024-01-01T00:00:00Z", "2024-01-01T05:45:00+05:45"),
        ("Asia/Kathmandu", "1985-01-01T00:00:00Z", "1985-01-01T05:30:00+05:30"),
        ("America/St_Johns", "2024-07-01T00:00:00Z", "2024-06-30T21:30:00-02:30"),
        ("Pacific/Kiritimati", "2024-01-01T10:00:00Z", "2024-01-02T00:00:00+14:00"),
        ("Pacific/Chatham", "2024-01-01T00:00:00Z", "2024-01-01T13:45:00+13:45"),
        ("Africa/Monrovia", "1971-06-01T12:00:00Z", "1971-06-01T11:15:30-00:44:30"),
    ],
)
def test_unusual_offsets(zone: str, moment: str, local: str) -> None:
    """Quarters of hours, the far side of the date line, and seconds where clocks went by the
    sun.
    """
    assert moment_of(read_moment(moment, zoneinfo.ZoneInfo(zone), THEN).moment).datetime == local


@pytest.mark.parametrize(
    "zone, month, summer",
    [("Europe/Dublin", 7, True), ("Europe/Dublin", 1, False), ("Europe/Madrid", 7, True),
        ("Europe/Madrid", 1, False), ("Australia/Sydney", 1, True),
     ("Australia/Sydney", 7, False), ("Africa/Casablanca", 7, True), ("Asia/Tokyo", 7, False),
         ("UTC", 7, False)],
)  # fmt: skip
def test_summer_time_is_what_people_call_so(zone: str, month: int, summer: bool) -> None:
    """Also where the law, and so the data, calls winter the exception (Ireland, Morocco)."""
    assert is_summer_time(datetime(2024, month, 20, tzinfo=zoneinfo.ZoneInfo(zone))) is summer
    assert not is_summer_time(
        datetime(2024, 3, 20, tzinfo=zoneinfo.ZoneInfo("Africa/Casablanca"))
    )  # Ramadan


@given(zones, zones, moments)
def test_there_and_back_is_the_same_moment(one: tzinfo, other: tzinfo, moment: datetime) -> None:
    """Whatever the zones: what is told in one is read in the other as the moment that it was."""
    told = moment_of(read_moment(moment.isoformat(), one, THEN).moment)
    back = read_moment(told.datetime, other, THEN)
    assert back.note is None
    assert back.moment.astimezone(UTC) == moment
    assert back.moment.tzinfo is other


@given(zones, moments)
def test_what_a_clock_says_is_read_as_that_moment(zone: tzinfo, moment: datetime) -> None:
    """Without its offset too: it is that moment, or the other one of the two that the note speaks
    of.
    """
    local = moment.astimezone(zone)
    found = settled(local.replace(tzinfo=None, fold=0), zone)
    both = [one.astimezone(UTC) for one in (found.moment, found.other) if one is not None]
    assert moment in both
    assert (found.note is not None) == (len(both) == 2)
    assert sorted(both) == both  # the first is the first


@given(zones, st.datetimes(datetime(1900, 1, 1), datetime(2100, 12, 31)))
def test_every_local_time_is_settled(zone: tzinfo, local: datetime) -> None:
    """To a moment at which clocks say it, or, where there is none, to one as much later as clocks
    were set on, and a note says so.
    """
    found = settled(local, zone)
    says = found.moment.replace(tzinfo=None, fold=0)
    assert (says == local) == (found.note is None or found.other is not None)
    if says != local:
        assert found.note is not None
        assert found.note.startswith("There is no ")
        (change,) = changes_after(
            zone, found.moment.astimezone(UTC) - timedelta(days=1, hours=12), 1
        )
        assert says - local == change.after - change.before


# -- changes of clocks -----------------------------------------------------------------------------


async def test_the_next_changes(client: Client) -> None:
    """When, from what to what, by how much; after a time that is given."""
    found = await done(client, "next_clock_changes")
    assert (found["timezone"], found["utc_offset"]) == ("Europe/Madrid", "+02:00")
    assert found["changes"] == [
        {
            "at": "2024-10-27T01:00:00Z",
            "before": "2024-10-27T03:00:00+02:00",
            "after": "2024-10-27T02:00:00+01:00",
            "shift": "-01:00",
            "unix_time": 1729990800,
        },
        {
            "at": "2025-03-30T01:00:00Z",
            "before": "2025-03-30T02:00:00+01:00",
            "after": "2025-03-30T03:00:00+02:00",
            "shift": "+01:00",
            "unix_time": 1743296400,
        },
    ]
    apia = await done(
        client, "next_clock_changes", timezone="Pacific/Apia", after="2011-12-01", count=1
    )
    assert [(one["before"], one["after"], one["shift"]) for one in apia["changes"]] == [
        ("2011-12-30T00:00:00-10:00", "2011-12-31T00:00:00+14:00", "+24:00")
    ]
    none = await client.call_tool("next_clock_changes", {"timezone": "Asia/Tokyo"})
    assert none.text == "No change of clocks is known for Asia/Tokyo in the next twenty years."
    assert (await done(client, "next_clock_changes", timezone="UTC", after="9998-12-31"))[
        "changes"
    ] == []


def written(name: str) -> Iterator[tuple[int, int, int]]:
    """The changes of offset that a zone's file has (RFC 8536, section 3): Unix time, offset before,
    offset after, in seconds.
    """
    paths = [path for folder in zoneinfo.TZPATH if (path := Path(folder, name)).is_file()]
    data = (
        paths[0].read_bytes()
        if paths
        else (resources.files("tzdata") / "zoneinfo" / name).read_bytes()
    )
    head = data[44:]
    body = data
    utc, std, leap, times, types, chars = struct.unpack(">6l", data[20:44])
    body = head[times * 5 + types * 6 + chars + leap * 8 + std + utc :]  # the second, 64 bit part
    utc, std, leap, times, types, chars = struct.unpack(">6l", body[20:44])
    at = struct.unpack(f">{times}q", body[44 : 44 + times * 8])
    kinds = body[44 + times * 8 : 44 + times * 9]
    offsets = [struct.unpack(">lBB", body[44 + times * 9 + n * 6 :][:6])[0] for n in range(types)]
    before = offsets[0]
    for when, kind in zip(at, kinds, strict=True):
        if offsets[kind] != before:
            yield when, before, offsets[kind]
        before = offsets[kind]


@pytest.mark.parametrize("name", ["Europe/Madrid", "Africa/Casablanca", "Africa/Cairo",
    "Australia/Lord_Howe", "Pacific/Apia", "America/Argentina/San_Luis", "Asia/Gaza",
    "Antarctica/Troll", "Europe/Dublin", "America/Caracas"])  # fmt: skip
def test_no_change_is_missed(name: str) -> None:
    """All changes of ninety years are those that the zone's own file has."""
    begin = datetime(1946, 1, 1, tzinfo=UTC)
    end = datetime(2036, 1, 1, tzinfo=UTC)
    zone = zoneinfo.ZoneInfo(name)
    starts = (
        begin.replace(year=year) for year in range(begin.year, end.year, 15)
    )  # for no more than twenty years are looked at
    found = sorted({one for start in starts for one in changes_after(zone, start, 1000)})
    ours = [
        (int(one.at.timestamp()), one.before.total_seconds(), one.after.total_seconds())
        for one in found
        if one.at < end
    ]
    # What the rule at the file's end says of later years is not among its entries; ours begin with
    # those that are.
    theirs = [one for one in written(name) if begin.timestamp() < one[0] < end.timestamp()]
    assert len(theirs) >= 2
    assert ours[: len(theirs)] == theirs


# -- adding and counting ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "zone, start, duration, end, note",
    [
        ("Europe/Madrid", "2024-01-31", "P1M", "2024-02-29T00:00:00+01:00", "2024-02 has 29 days"),
        ("Europe/Madrid", "2024-02-29", "P1Y", "2025-02-28T00:00:00+01:00", "2025-02 has 28 days"),
        ("Europe/Madrid", "2024-03-31", "-P1M", "2024-02-29T00:00:00+01:00", "2024-02 has 29 days"),
        ("Europe/Madrid", "2024-03-30T12:00", "P1D", "2024-03-31T12:00:00+02:00", None),
        ("Europe/Madrid", "2024-03-30T12:00", "PT24H", "2024-03-31T13:00:00+02:00", None),
        (
            "Europe/Madrid",
            "2024-03-30T02:30",
            "P1D",
            "2024-03-31T03:30:00+02:00",
            "There is no 02:30",
        ),
        ("Europe/Madrid", "2024-10-26T02:30", "P1D", "2024-10-27T02:30:00+02:00", "occurs twice"),
        ("Europe/Madrid", "2024-10-27T02:30+02:00", "PT1H", "2024-10-27T02:30:00+01:00", None),
        (
            "Europe/Madrid",
            "2023-10-29T02:30+01:00",
            "P364D",
            "2024-10-27T02:30:00+01:00",
            "This is the second",
        ),  # as it was
        (
            "Pacific/Apia",
            "2011-12-29T08:00",
            "P1D",
            "2011-12-31T08:00:00+14:00",
            "There is no 08:00 on 2011-12-30",
        ),
        ("UTC", "2024-01-01", "P1Y2M3W4DT5H6M7.5S", "2025-03-26T05:06:07.500000+00:00", None),
        ("UTC", "2024-01-01", "+P2W", "2024-01-15T00:00:00+00:00", None),
        ("UTC", "2024-01-01", "-PT0,5S", "2023-12-31T23:59:59.500000+00:00", None),
    ],
)
async def test_adding(
    client: Client, zone: str, start: str, duration: str, end: str, note: str | None
) -> None:
    """Days by the calendar, hours as they pass; what months and clocks do to it is said."""
    found = await done(client, "add_to_time", time=start, duration=duration, timezone=zone)
    assert found["end"]["datetime"] == end
    assert (note or "") in (found["note"] or "")
    assert (found["note"] is None) == (note is None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "1D",
        "P1",
        "P1H",
        "PT1D",
        "P-1D",
        "P1.5D",
        "P1DT",
        "1 day",
        "--P1D",
        "P1M1Y",
        "P١D",
    ],
)
async def test_what_is_no_duration_is_refused(client: Client, text: str) -> None:
    """In words."""
    assert "duration" in await refusal(client, "add_to_time", time="now", duration=text)


@pytest.mark.parametrize(
    "text", ["P99999Y", "-P99999Y", "P99999999D", "-PT999999999H", "PT999999999999S"]
)
async def test_what_leads_too_far_is_refused(client: Client, text: str) -> None:
    """Out of what dates can hold."""
    assert "too far away" in await refusal(client, "add_to_time", time="now", duration=text)


@pytest.mark.parametrize(
    "zone, start, end, duration, seconds",
    [
        ("UTC", "2024-01-31", "2024-03-01", "P1M1D", 2592000),
        ("UTC", "2024-03-01", "2024-01-31", "-P1M1D", -2592000),
        ("UTC", "2024-06-15", "2024-06-15", "PT0S", 0),
        ("Europe/Madrid", "2024-03-30T12:00", "2024-03-31T12:00", "P1D", 23 * 3600),
        ("Europe/Madrid", "2024-10-26T12:00", "2024-10-27T12:00", "P1D", 25 * 3600),
        ("Europe/Madrid", "2024-10-27T02:30+02:00", "2024-10-27T02:30+01:00", "PT1H", 3600),
        (
            "Pacific/Apia",
            "2011-12-29",
            "2011-12-31",
            "P2D",
            86400,
        ),  # by the calendar, which has a 30th that never came
        ("UTC", "2023-02-28T23:59:59.25", "2024-02-29", "P1YT0.75S", 31536000.75),
    ],
)
async def test_counting(
    client: Client, zone: str, start: str, end: str, duration: str, seconds: float
) -> None:
    """By the calendar and exactly; a day is not always 24 hours."""
    found = await done(client, "time_between", start=start, end=end, timezone=zone)
    assert found["duration"] == duration
    assert found["total_seconds"] == seconds
    parts = [found[name] for name in ("years", "months", "days", "hours", "minutes", "seconds")]
    assert all(part >= 0 for part in parts) or all(part <= 0 for part in parts)
    assert sum(parts) == 0 or (sum(parts) > 0) == (seconds > 0)


@given(zones, moments, moments)
def test_what_lies_between_leads_from_one_to_the_other(
    zone: tzinfo, one: datetime, other: datetime
) -> None:
    """In every zone: the earlier one and the difference are the later one, to the microsecond, and
    the way back is as long.
    """
    first, last = sorted((one, other))
    span = between(first.astimezone(zone), last.astimezone(zone))
    assert min(span.months, span.days) >= 0
    assert timedelta() <= span.seconds < timedelta(days=2)
    assert added(first.astimezone(zone), span).moment.astimezone(UTC) == last
    back = between(last.astimezone(zone), first.astimezone(zone))
    assert back == CalendarSpan(-span.months, -span.days, -span.seconds)
    assert read_duration(str(span)) == span
    assert read_duration(str(back)) == back


@given(zones, moments, spans)
def test_adding_never_goes_back(zone: tzinfo, moment: datetime, span: CalendarSpan) -> None:
    """A positive duration leads on, in every zone."""
    assume(moment.year + span.months / 12 + span.days / 365 < 9000)
    assert added(moment.astimezone(zone), span).moment.astimezone(UTC) >= moment
    assert offset_at(zone, moment) == moment.astimezone(zone).utcoffset()


# -- zones -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, key", [("europe/madrid", "Europe/Madrid"),
    ("America/New York", "America/New_York"), ("utc", "UTC"), (" Z ", "UTC"),
        ("+05:30", "UTC+05:30"), ("UTC-3", "UTC-03:00"), ("gmt+0545", "UTC+05:45"),
            ("Etc/GMT+5", "Etc/GMT+5")])  # fmt: skip
def test_names_that_are_understood(name: str, key: str) -> None:
    """Whatever the case, with spaces, and offsets."""
    assert str(ZONES.zone(name)) == key


@pytest.mark.parametrize(
    "name, words",
    [
        ("CST", ("America/", "Asia/", "name the zone that you mean")),
        ("EDT", ("Clocks say EDT in America/",)),
        ("Madrd", ("Did you mean Europe/Madrid",)),
        ("San Francisco", ("Did you mean America/Los_Angeles",)),
        ("America/San_Francisco", ("America/Los_Angeles",)),
        ("+25:00", ("Names are like Europe/Madrid",)),
        ("../../../etc/passwd", ("Names are like",)),
        ("/etc/localtime", ("Names are like",)),
        ("Europe", ("Names are like",)),
        ("posix/Europe/Madrid", ("Did you mean Europe/Madrid",)),
        ("localtime", ("Names are like",)),
        ("zone.tab", ("Names are like",)),
        ("\0", ("Names are like",)),
    ],
)
async def test_names_of_no_zone(client: Client, name: str, words: tuple[str, ...]) -> None:
    """Nothing but a zone is ever opened, and the refusal says what is near (`TOL-15`)."""
    said = await refusal(client, "get_current_time", timezone=name)
    assert said.startswith("There is no time zone")
    assert all(one in said for one in words)


@pytest.mark.parametrize(
    "query, first, by",
    [
        ("madrid", "Europe/Madrid", "city"),
        ("Barcelona", "Europe/Madrid", "city"),
        ("são paulo", "America/Sao_Paulo", "city"),
        ("New Delhi", "Asia/Kolkata", "city"),
        ("nepal", "Asia/Kathmandu", "country"),
        ("NP", "Asia/Kathmandu", "country"),
        ("+05:45", "Asia/Kathmandu", "offset"),
        ("UTC+8:45", "Australia/Eucla", "offset"),
        ("IST", "Asia/Jerusalem", "abbreviation"),
        ("CEST", "Africa/Ceuta", "abbreviation"),
        ("kath", "Asia/Kathmandu", "city"),
    ],
)
async def test_finding(client: Client, query: str, first: str, by: str) -> None:
    """By city, country, abbreviation and offset, best first."""
    found = (await done(client, "find_timezones", query=query))["zones"]
    assert (found[0]["timezone"], found[0]["found_by"]) == (first, by)
    assert (
        found[0]["datetime"]
        == THEN.replace(microsecond=0).astimezone(zoneinfo.ZoneInfo(first)).isoformat()
    )


async def test_finding_nothing_and_too_much(client: Client) -> None:
    """Both are said."""
    assert await done(client, "find_timezones", query="Atlantis") == {"zones": [], "complete": True}
    assert await done(client, "find_timezones", query=" ") == {"zones": [], "complete": True}
    some = await done(client, "find_timezones", query="US", limit=3)
    assert (len(some["zones"]), some["complete"]) == (3, False)
    assert {one["country"] for one in some["zones"]} == {"United States"}
    clocks = (await done(client, "find_timezones", query="CET", limit=600))[
        "zones"
    ]  # in summer, when they say CEST
    assert {"Europe/Paris", "Africa/Algiers"} <= {
        one["timezone"] for one in clocks if one["found_by"] == "abbreviation"
    }


async def test_completion(client: Client) -> None:
    """Of templates and the prompt: what begins so, then what has a part that does (`CMP-02`,
    `CMP-05`).
    """
    for of in (NOW, CHANGES, "plan_meeting"):
        assert (await client.complete(of, "zone", "europe/mad")).values == ["Europe/Madrid"]
        assert "America/New_York" in (await client.complete(of, "zone", "new y")).values
        found = await client.complete(of, "zone", "")
        assert len(found.values) == 100
        assert found.has_more


async def test_reading(client: Client) -> None:
    """The time and the next changes of a zone, and the names of all (`RES-02`)."""
    (changes,) = (await client.read_resource("time://changes/Europe/Madrid")).contents
    assert [one["at"][:7] for one in json.loads(changes.text or "")["changes"]] == [
        "2024-10",
        "2025-03",
        "2025-10",
        "2026-03",
    ]
    (names,) = (await client.read_resource("time://zones")).contents
    assert json.loads(names.text or "") == NAMES
    for uri in ("time://now/Europe/Atlantis", "time://changes/CST"):
        with pytest.raises(McpError, match="There is no time zone"):
            await client.read_resource(uri)
    with pytest.raises(McpError, match="is not a time"):
        await client.get_prompt("plan_meeting", {"zone": "Asia/Tokyo", "day": "someday"})
    assert "2024-12-01" in str(
        (
            await client.get_prompt("plan_meeting", {"zone": "Asia/Tokyo", "day": "2024-12-01"})
        ).messages
    )


@pytest.mark.parametrize(
    "environment, link, written_, zone",
    [
        (
            {"INTERLOCK_TIME_ZONE": "Asia/Tokyo", "TZ": "Asia/Seoul"},
            "Europe/Madrid",
            None,
            "Asia/Tokyo",
        ),
        ({"TZ": "Asia/Seoul"}, "Europe/Madrid", None, "Asia/Seoul"),
        ({"TZ": ":Asia/Seoul"}, None, None, "Asia/Seoul"),
        ({"TZ": ":/usr/share/zoneinfo/Asia/Seoul"}, None, None, "Asia/Seoul"),
        ({"TZ": "CET-1CEST,M3.5.0,M10.5.0/3"}, "Europe/Madrid", None, "Europe/Madrid"),
        ({"TZ": "EDT"}, None, "Europe/Madrid\n", "Europe/Madrid"),
        ({"TZ": "../../etc/passwd"}, None, None, "UTC"),
        ({}, "Etc/UTC", None, "Etc/UTC"),
        ({}, None, "no zone", "UTC"),
        ({}, None, None, "UTC"),
    ],
)
def test_where_the_person_is(
    tmp_path: Path, environment: dict[str, str], link: str | None, written_: str | None, zone: str
) -> None:
    """What they say, else TZ where it is a name, else the link or the file of the system, else UTC;
    no machine is without an answer.
    """
    if link is not None:
        (tmp_path / "localtime").symlink_to(f"/usr/share/zoneinfo/{link}")
    if written_ is not None:
        (tmp_path / "timezone").write_text(written_)
    assert own_zone(environment, tmp_path) == zone


async def test_without_data_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the system nor tzdata has zones: UTC and offsets of a time still work, and all else
    says what to do.
    """
    monkeypatch.setitem(sys.modules, "tzdata", None)
    zoneinfo.reset_tzpath(to=[])
    try:
        async with Client(time_server("UTC", lambda: THEN)) as client:
            assert (await done(client, "get_current_time"))[
                "datetime"
            ] == "2024-06-15T13:30:00+00:00"
            assert "pip install tzdata" in await refusal(
                client, "get_current_time", timezone="Europe/Madrid"
            )
            assert "pip install tzdata" in await refusal(client, "find_timezones", query="Madrid")
        with pytest.raises(ValueError, match="pip install tzdata"):
            time_server("Europe/Madrid")
    finally:
        zoneinfo.reset_tzpath()
    with pytest.raises(ToolError, match="no time zone"):
        Zones().zone("Europe/Atlantis")
