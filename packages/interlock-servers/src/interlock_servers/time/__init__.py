"""Time server: the time anywhere, conversions, durations and clock changes.

`interlock serve time [ZONE]` runs it. ZONE is the user's own time zone; the default is from
INTERLOCK_TIME_ZONE, TZ or the system.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Literal

from msgspec import Meta

from interlock import (
    Context,
    McpError,
    Server,
    ServerInfo,
    ToolAnnotations,
    ToolError,
    ToolResult,
    types,
)

from .moments import added, name_of, offset_at, read_duration, read_moment, shown
from .results import (
    ClockChanges,
    Conversion,
    Difference,
    FoundZone,
    FoundZones,
    Moment,
    ShiftedTime,
    changes_of,
    difference_of,
    joined,
    moment_of,
    signed,
    target_of,
    words_of,
)
from .zones import MOST_LETTERS, VARIABLE, Zones, own_zone

Zone = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MOST_LETTERS,
        examples=["Europe/Madrid", "Asia/Kathmandu", "UTC", "+05:30"],
    ),
]
Time = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=60,
        examples=["15:30", "2024-06-15T15:30", "2024-06-15T15:30+02:00", "now"],
    ),
]
Duration = Annotated[
    str, Meta(min_length=2, max_length=60, examples=["P1M", "P1Y2M3DT4H", "PT90M", "-P1W"])
]
Which = Literal["first", "second"]
MOST_ZONES = 50  # in one conversion
NOW = "time://now/{+zone}"
CHANGES = "time://changes/{+zone}"
ZONES = "time://zones"
# A different result a moment later is not a side effect: reading a clock is idempotent.
_LOOKS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


@dataclass(frozen=True)
class TimeService:
    """The dependencies of each call: the clock, the zones, and the user's own zone."""

    clock: Callable[[], datetime]
    zones: Zones
    own: str

    def now(self) -> datetime:
        """The current second."""
        return self.clock().replace(microsecond=0)

    def zone(self, name: str | None) -> tzinfo:
        """A zone by its name; without a name the user's own. Raises ToolError."""
        return self.zones.zone(self.own if name is None else name)


# -- the tools -------------------------------------------------------------------------------------


def get_current_time(ctx: Context[TimeService], timezone: Zone | None = None) -> ToolResult[Moment]:
    """What time it is.

    Args:
        timezone: where, such as America/New_York; without it in the user's own zone.
    """
    found = moment_of(shown(ctx.lifespan_state.now(), ctx.lifespan_state.zone(timezone)))
    return ToolResult(found, words_of(found))


def convert_time(
    time: Time,
    target_timezone: Zone | Annotated[list[Zone], Meta(min_length=1, max_length=MOST_ZONES)],
    ctx: Context[TimeService],
    source_timezone: Zone | None = None,
    which: Which = "first",
) -> ToolResult[Conversion]:
    """Convert a time, or a date and time, from one zone to one or more others.

    Args:
        time: 15:30 is today in the source zone; dates, offsets, `now` and Unix seconds
            (@1718458200) are understood too.
        target_timezone: one zone, or a list of them.
        source_timezone: the zone in which `time` is meant, unless it has an offset; without it the
            person's own.
        which: of a time that comes twice, when clocks go back, the first or the second.
    """
    watch = ctx.lifespan_state
    read = read_moment(time, watch.zone(source_timezone), watch.now(), second=which == "second")
    names = [target_timezone] if isinstance(target_timezone, str) else target_timezone
    source = moment_of(read.moment)
    targets = [target_of(read.moment, watch.zone(name)) for name in names]
    found = Conversion(source, targets, read.note, read.other.isoformat() if read.other else None)
    lines = [
        words_of(source),
        *(f"{words_of(one)}, {one.time_difference}" for one in targets),
        *([read.note] if read.note else []),
    ]
    return ToolResult(found, "\n".join(lines))


def add_to_time(
    time: Time,
    duration: Duration,
    ctx: Context[TimeService],
    timezone: Zone | None = None,
    which: Which = "first",
) -> ToolResult[ShiftedTime]:
    """What the time is some time after another.

    Years to days go by the calendar, hours to seconds pass.

    Args:
        time: a time, a date, or both, such as 2024-06-15T15:30; `now` is understood too.
        duration: ISO 8601, such as P1M or PT36H; with a minus in front it goes back.
        timezone: the zone in which `time` is meant and the answer is given; without it the user's
            own.
        which: of a time that comes twice, when clocks go back, the first or the second.
    """
    read = read_moment(
        time, ctx.lifespan_state.zone(timezone), ctx.lifespan_state.now(), second=which == "second"
    )
    span = read_duration(duration)
    later = added(read.moment, span)
    note = joined(read, later)
    found = ShiftedTime(moment_of(read.moment), moment_of(later.moment), str(span), note)
    return ToolResult(found, "\n".join([words_of(found.end), *([note] if note else [])]))


def time_between(
    start: Time, end: Time, ctx: Context[TimeService], timezone: Zone | None = None
) -> ToolResult[Difference]:
    """How long it is from one time to another: by the calendar, and exactly.

    Args:
        start: a time, a date, or both, such as 2024-06-15T15:30; `now` is understood too.
        end: the same; where it comes first, all of the answer is negative.
        timezone: the zone in which both are meant, and in which days are counted; without it the
            person's own.
    """
    zone = ctx.lifespan_state.zone(timezone)
    now = ctx.lifespan_state.now()
    first = read_moment(start, zone, now)
    last = read_moment(end, zone, now)
    found = difference_of(first, last)
    said = (
        f"{found.duration} by the calendar of {found.start.timezone}, exactly "
        f"{found.total_seconds:,.12g} seconds."
    )
    return ToolResult(found, "\n".join([said, *([found.note] if found.note else [])]))


def next_clock_changes(
    ctx: Context[TimeService],
    timezone: Zone | None = None,
    after: Time = "now",
    count: Annotated[int, Meta(ge=1, le=40)] = 2,
) -> ToolResult[ClockChanges]:
    """When the clocks of a zone are changed next, for summer time or for good.

    Args:
        timezone: the zone; without it the user's own.
        after: from when on to look.
        count: how many changes.
    """
    zone = ctx.lifespan_state.zone(timezone)
    moment = read_moment(after, zone, ctx.lifespan_state.now()).moment
    found = changes_of(zone, moment, count)
    lines = [f"{one.before} becomes {one.after} ({one.shift})" for one in found.changes]
    return ToolResult(
        found,
        "\n".join(lines)
        or f"No change of clocks is known for {found.timezone} in the next twenty years.",
    )


def find_timezones(
    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MOST_LETTERS,
            examples=["Barcelona", "Nepal", "CEST", "+05:45", "BR"],
        ),
    ],
    ctx: Context[TimeService],
    limit: Annotated[int, Meta(ge=1, le=600)] = 10,
) -> ToolResult[FoundZones]:
    """Find time zones by city, country, abbreviation or offset from UTC, best first.

    Args:
        query: a city, a country or its two letters, an abbreviation such as CEST, or an offset such
            as +05:45 (of now).
        limit: how many at most.
    """
    now = ctx.lifespan_state.now()
    names = ctx.lifespan_state.zones.search(query, now, limit + 1)
    listed: list[FoundZone] = []
    for one in names[:limit]:
        here = moment_of(now.astimezone(ctx.lifespan_state.zone(one.name)))
        listed.append(
            FoundZone(
                one.name, one.country, one.by, here.utc_offset, here.abbreviation, here.datetime
            )
        )
    found = FoundZones(listed, len(names) <= limit)
    lines = [
        f"{one.timezone}{f' ({one.country})' if one.country else ''}: {one.datetime}"
        for one in listed
    ]
    more = [] if found.complete else ["There are more: raise the limit, or search more precisely."]
    return ToolResult(
        found,
        "\n".join(
            [*(lines or ["No zone found. Try the country, or a larger city nearby."]), *more]
        ),
    )


# -- the server ------------------------------------------------------------------------------------


def time_server(
    zone: str | None = None, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Server:
    """Return a time server.

    `zone` is the user's own, by default from INTERLOCK_TIME_ZONE, TZ or the system; `now` is its
    clock.

    Raises ValueError for an unknown zone.
    """
    zones = Zones()
    if zone is not None:
        try:
            zones.zone(zone)
        except ToolError as bad:
            raise ValueError(str(bad)) from None

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[TimeService]:
        yield TimeService(now, zones, zone if zone is not None else own_zone())

    made = Server(
        "time",
        "1.0.0",
        info=ServerInfo(
            title="Time", description="Time zones, conversion, and the time between two moments."
        ),
        instructions=(
            "Zones are like Europe/Madrid; find_timezones finds them. Without a zone, "
            "the user's own is used."
        ),
        lifespan=lifespan,
    )
    made.add_tool(get_current_time, title="What time it is", annotations=_LOOKS)
    made.add_tool(convert_time, title="Convert a time", annotations=_LOOKS)
    made.add_tool(add_to_time, title="Add to a time", annotations=_LOOKS)
    made.add_tool(time_between, title="Time between two times", annotations=_LOOKS)
    made.add_tool(next_clock_changes, title="When clocks change", annotations=_LOOKS)
    made.add_tool(find_timezones, title="Find time zones", annotations=_LOOKS)
    _add_reading(made)
    return made


def _add_reading(made: Server) -> None:
    """Add resources, a prompt, and the completion of zones for both."""

    @made.resource(
        NOW, name="now", title="The time in a zone", mime_type="application/json", ttl_ms=0
    )
    def now(zone: str, ctx: Context[TimeService]) -> Moment:
        """What time it is there."""
        return moment_of(shown(ctx.lifespan_state.now(), _named(ctx, zone)))

    @made.resource(
        CHANGES,
        name="changes",
        title="The next clock changes of a zone",
        mime_type="application/json",
        ttl_ms=0,
    )
    def changes(zone: str, ctx: Context[TimeService]) -> ClockChanges:
        """When the clocks there are changed next."""
        return changes_of(_named(ctx, zone), ctx.lifespan_state.now(), 4)

    @made.resource(
        ZONES, name="zones", title="All time zones", mime_type="application/json", ttl_ms=86_400_000
    )
    def zones(ctx: Context[TimeService]) -> list[str]:
        """The names of all zones."""
        return list(ctx.lifespan_state.zones.names.values())

    @made.prompt(title="Plan a meeting")
    def plan_meeting(zone: str, ctx: Context[TimeService], day: str | None = None) -> str:
        """Find a time for a meeting with people in another zone.

        Args:
            zone: where they are.
            day: the day, such as 2024-06-15; without it today.
        """
        here = _named(ctx, ctx.lifespan_state.own)
        there = _named(ctx, zone)
        try:
            noon = read_moment(
                f"{day.strip()}T12:00" if day else "now", here, ctx.lifespan_state.now()
            ).moment
        except ToolError as bad:
            raise McpError(types.INVALID_PARAMS, str(bad)) from None
        ahead = signed(offset_at(there, noon) - offset_at(here, noon))
        return (
            f"Propose three times on {noon.date()} for a meeting of an hour between people in "
            f"{name_of(here)} and in {name_of(there)}, "
            f"where clocks are {ahead} ahead. Prefer 9:00 to 17:00 in both. Give each time in "
            "both zones; check them with convert_time."
        )

    for name in (NOW, CHANGES, "plan_meeting"):

        @made.completion(name, "zone")
        def zone(value: str, ctx: Context[TimeService]) -> list[str]:
            return ctx.lifespan_state.zones.completed(value)


def _named(ctx: Context[TimeService], name: str) -> tzinfo:
    """A zone by its name. Raises McpError."""
    try:
        return ctx.lifespan_state.zone(name)
    except ToolError as bad:
        raise McpError(types.INVALID_PARAMS, str(bad)) from None


def server_of(*arguments: str) -> Server:
    """Return the server for the command line: the user's zone, or nothing.

    Raises ValueError for more arguments, and for an unknown zone.
    """
    if len(arguments) > 1:
        raise ValueError("Name one zone, such as Europe/Madrid, or none.")
    return time_server(next(iter(arguments), os.environ.get(VARIABLE) or None))


server = time_server()
"""In the zone of the environment or the system."""

if __name__ == "__main__":
    server_of(*sys.argv[1:]).run()
