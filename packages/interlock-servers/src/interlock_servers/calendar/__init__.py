"""Calendar server: reads iCalendar files, searches them for free days and changes events.

`interlock serve calendar` runs it. INTERLOCK_CALENDAR_FOLDER names the folder of the .ics files;
the default is a folder in the user's data directory. Each file is a calendar. Content written by
other programs stays unchanged.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import date
from typing import Annotated, Any

from msgspec import Meta

from interlock import (
    AnyResult,
    Context,
    Exchange,
    Handler,
    RunningServer,
    Server,
    ServerInfo,
    ServerLimits,
    ToolAnnotations,
    ToolError,
    ToolResult,
)

from .calendar_files import DEFAULT, Calendars
from .edits import EventDiff, add_event, change_event, find_event, remove_event
from .resources import add_reading, list_years, touched, years_with_events
from .results import CalendarEvent, EventList, FreeDays, event_of, events_in, free_days, line_of

Title = Annotated[str, Meta(min_length=1, max_length=500)]
When = Annotated[
    str,
    Meta(
        min_length=8,
        max_length=40,
        examples=["2024-06-15", "2024-06-15T10:00", "2024-06-15T10:00:00+02:00"],
    ),
]
Words = Annotated[str, Meta(max_length=500)]
Notes = Annotated[str, Meta(max_length=20_000)]
Name = Annotated[str, Meta(min_length=1, max_length=100, examples=[DEFAULT])]
Id = Annotated[str, Meta(min_length=1, max_length=500)]

_DAY = {"type": "string", "format": "date", "examples": ["2024-06-15"]}
_SPAN: dict[str, Any] = {
    "from": {**_DAY, "description": "the first day of the range"},
    "to": {**_DAY, "description": "the last day of the range"},
}
_CALENDAR = {
    "type": "string",
    "minLength": 1,
    "maxLength": 100,
    "description": "the calendar; all calendars by default",
}
# `from` cannot be the name of a Python parameter, so the schemas of these two tools are written by
# hand.
_LISTING = {
    "type": "object",
    "properties": {**_SPAN, "calendar": _CALENDAR},
    "required": ["from", "to"],
    "additionalProperties": False,
}
_FREE = {
    "type": "object",
    "properties": {
        **_SPAN,
        "length": {
            "type": "integer",
            "minimum": 1,
            "maximum": 366,
            "description": "the number of consecutive free days",
        },
        "calendar": _CALENDAR,
    },
    "required": ["from", "to", "length"],
    "additionalProperties": False,
}
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def calendar_server(
    folder: str | os.PathLike[str] | None = None, today: Callable[[], date] = date.today
) -> Server:
    """Return a server for the calendars of `folder`.

    Without `folder` it uses the environment's folder, or the default in the user's data directory.
    `today` returns the current date: the current year is always listed as a resource.
    """
    calendars = Calendars(folder, today)

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[Calendars]:
        await _list_years(server, calendars)
        yield calendars

    def years_kept(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method == "resources/list":
                await _list_years(made, calendars)  # another program may have changed a file
            return await handler(x)

        return handle

    made = Server(
        "calendar",
        "1.0.0",
        info=ServerInfo(title="Calendar", description="Calendars in iCalendar files."),
        instructions=(
            "Dates are ISO 8601, such as 2024-06-15. Call list_events or find_free_days "
            "before you create an event."
        ),
        lifespan=lifespan,
        middleware=[years_kept],
        limits=ServerLimits(page_size=200),
    )
    adds = ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    )
    alters = ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    )
    made.add_tool(create_event, title="Create an event", annotations=adds, timeout=60.0)
    made.add_tool(update_event, title="Change an event", annotations=alters, timeout=60.0)
    made.add_tool(delete_event, title="Delete an event", annotations=alters, timeout=60.0)
    made.add_tool(
        list_events, title="List events", annotations=_READS, input_schema=_LISTING, timeout=60.0
    )
    made.add_tool(
        find_free_days, title="Find free days", annotations=_READS, input_schema=_FREE, timeout=60.0
    )
    add_reading(made, calendars)
    return made


# -- the tools -------------------------------------------------------------------------------------


async def create_event(
    title: Title,
    start_date: When,
    ctx: Context[Calendars],
    end_date: When | None = None,
    location: Words | None = None,
    notes: Notes | None = None,
    time_zone: Words | None = None,
    calendar: Name = DEFAULT,
) -> ToolResult[CalendarEvent]:
    """Put an event into a calendar.

    Args:
        start_date: the first day (2024-06-15) of an event for whole days, or when it begins
            (2024-06-15T10:00).
        end_date: the last day, which belongs to it, or when it ends; without it one day, or one
            hour.
        time_zone: of times that say none themselves, such as Europe/Madrid; without it they are
            local wherever one is.
        calendar: the calendar's name.
    """
    changed = await asyncio.to_thread(
        add_event,
        ctx.lifespan_state,
        calendar,
        title,
        start_date,
        end_date,
        time_zone=time_zone,
        location=location,
        notes=notes,
    )
    return await _notified_result(ctx, changed, "Created")


async def update_event(
    event: Id,
    ctx: Context[Calendars],
    title: Title | None = None,
    start_date: When | None = None,
    end_date: When | None = None,
    location: Words | None = None,
    notes: Notes | None = None,
    time_zone: Words | None = None,
    calendar: Name | None = None,
) -> ToolResult[CalendarEvent]:
    """Change an event; what is not given stays as it is.

    An event that repeats is changed in all its repetitions; its dates cannot be changed here.

    Args:
        event: its id.
        start_date: when it begins; an event of which only this is given moves, and lasts as long as
            before.
        end_date: the last day, which belongs to it, or when it ends.
        location: where; empty for nowhere.
        notes: what else there is to say; empty for nothing.
        time_zone: of times that say none themselves.
        calendar: the calendar's name, where more than one has an event with this id.
    """
    if all(value is None for value in (title, start_date, end_date, location, notes)):
        raise ToolError(
            "There is nothing to change. Give a title, start_date, end_date, location or notes."
        )
    changed = await asyncio.to_thread(
        change_event,
        ctx.lifespan_state,
        event,
        calendar,
        title,
        start_date,
        end_date,
        time_zone=time_zone,
        location=location,
        notes=notes,
    )
    return await _notified_result(ctx, changed, "EventDiff")


async def delete_event(
    event: Id, ctx: Context[Calendars], calendar: Name | None = None
) -> ToolResult[CalendarEvent]:
    """Delete an event, once the user has agreed; of one that repeats all repetitions.

    Args:
        event: its id.
        calendar: the calendar's name, where more than one has an event with this id.
    """
    found = await asyncio.to_thread(find_event, ctx.lifespan_state, event, calendar)
    answer = await asyncio.to_thread(event_of, found[0])
    whole = " and all its repetitions" if answer.repeats else ""
    if not await ctx.confirm(
        f"Delete “{answer.headline}” ({answer.when}) from the calendar {answer.calendar}{whole}?"
    ):
        raise ToolError("The user did not agree, and nothing was deleted.")
    changed = await asyncio.to_thread(remove_event, ctx.lifespan_state, event, found[0].calendar)
    return await _notified_result(ctx, changed, "Deleted")


def list_events(arguments: dict[str, Any], ctx: Context[Calendars]) -> ToolResult[EventList]:
    """The events of some days, in order; repeated ones on each day on which they occur."""
    found = events_in(
        ctx.lifespan_state, arguments["from"], arguments["to"], arguments.get("calendar")
    )
    return ToolResult(found, found.words())


def find_free_days(arguments: dict[str, Any], ctx: Context[Calendars]) -> ToolResult[FreeDays]:
    """Where in a time there are enough days in a row on which there is nothing."""
    found = free_days(
        ctx.lifespan_state,
        arguments["from"],
        arguments["to"],
        arguments["length"],
        arguments.get("calendar"),
    )
    return ToolResult(found, found.words())


# -- shared helpers --------------------------------------------------------------------------------


async def _notified_result(
    ctx: Context[Calendars], changed: EventDiff, verb: str
) -> ToolResult[CalendarEvent]:
    """The result of a change, after clients were notified."""
    await _list_years(ctx.server, ctx.lifespan_state)
    for uri in await asyncio.to_thread(touched, ctx.lifespan_state, changed):
        ctx.updated(uri)
    answer = event_of((changed.after or changed.before)[0])
    return ToolResult(answer, f"{verb}: {line_of(answer)}")


async def _list_years(server: RunningServer, calendars: Calendars) -> None:
    """List a resource for each year that has events, and for the current year."""
    list_years(server, calendars, await asyncio.to_thread(years_with_events, calendars))


server = calendar_server()
