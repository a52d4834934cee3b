"""Creates, changes and deletes events. The rest of the file stays unchanged byte for byte."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Struct

from interlock import ToolError

from .calendar_files import CalendarFile, Calendars, load_days
from .ical_text import IcalComponent, edited, with_newline

if TYPE_CHECKING:
    from .events import CalendarEntry, Moment

MOST_DAYS = 1830  # the longest event: five years
_HOUR = timedelta(hours=1)
_ONE_DAY = timedelta(days=1)


class EventDiff(Struct, frozen=True):
    """The components of an event before and after a change."""

    before: list[Any]
    after: list[Any]


def find_event(calendars: Calendars, event: str, calendar: str | None) -> list[CalendarEntry]:
    """The components of an event: first the event itself, then its changed occurrences.

    Raises ToolError.
    """
    found = [entry for entry in calendars.entries(calendar) if entry.id == event]
    if not found:
        place = f" in the calendar {calendar}" if calendar is not None else ""
        raise ToolError(
            f"There is no event with the id {event!r}{place}. list_events shows the ids."
        )
    where = list(dict.fromkeys(entry.calendar for entry in found))
    if len(where) > 1:
        raise ToolError(
            f"More than one calendar has an event with the id {event!r}: {', '.join(where)}. Name "
            "the calendar."
        )
    return sorted(found, key=lambda entry: entry.instead_of is not None)


def add_event(
    calendars: Calendars,
    calendar: str,
    title: str,
    start: str,
    end: str | None,
    *,
    time_zone: str | None,
    location: str | None,
    notes: str | None,
) -> EventDiff:
    """Put a new event into a calendar. Raises ToolError."""
    first = _moment(start, "start_date", time_zone)
    last = _end(first, end, time_zone)
    id_ = str(uuid.uuid4())
    now = _now()
    made = load_days().properties(
        uid=id_,
        dtstamp=now,
        created=now,
        last_modified=now,
        summary=_plain(title, "title"),
        dtstart=first,
        dtend=last,
        location=_plain(location, "location") or None,
        description=_plain(notes, "notes") or None,
    )

    def work(page: CalendarFile) -> bytes:
        return page.with_changes(
            {}, [*_zone(page, first), with_newline(made.to_ical(sorted=False), page.newline)]
        )

    calendars.change(calendar, work)
    return EventDiff([], find_event(calendars, id_, calendar))


def change_event(
    calendars: Calendars,
    event: str,
    calendar: str | None,
    title: str | None,
    start: str | None,
    end: str | None,
    *,
    time_zone: str | None,
    location: str | None,
    notes: str | None,
) -> EventDiff:
    """Change an event; None leaves a property unchanged. Raises ToolError."""
    before = find_event(calendars, event, calendar)
    words = {
        "summary": _plain(title, "title"),
        "location": _plain(location, "location"),
        "description": _plain(notes, "notes"),
    }

    def change(page: CalendarFile, own: list[CalendarEntry]) -> bytes:
        main = own[0]
        moments: dict[str, Moment] = {}
        if start is not None or end is not None:
            if len(own) > 1 or main.repeats is not None or main.instead_of is not None:
                raise ToolError(
                    "The event repeats, so its dates cannot be changed. Delete it and "
                    "create a new one."
                )
            zone = time_zone or _zone_of(main.first)
            first = _moment(start, "start_date", zone) if start is not None else main.first
            moments = {"dtstart": first} if start is not None else {}
            moments["dtend"] = _end(first, end, zone, _length(main, first))
        changes: dict[IcalComponent, bytes | None] = {}
        for entry in own:
            # A changed occurrence keeps its own texts.
            new = {
                name: value
                for name, value in words.items()
                if value is not None and _said(entry, name) == _said(main, name)
            }
            changes[entry.block] = _rewritten(entry, {**new, **moments}, page.newline)
        return page.with_changes(changes, _zone(page, *moments.values()))

    where = before[0].calendar
    _with_event(calendars, event, where, change)
    return EventDiff(before, find_event(calendars, event, where))


def remove_event(calendars: Calendars, event: str, calendar: str) -> EventDiff:
    """Remove an event with all its occurrences. Raises ToolError."""
    before = find_event(calendars, event, calendar)

    def remove(page: CalendarFile, own: list[CalendarEntry]) -> bytes:
        return page.with_changes({entry.block: None for entry in own})

    _with_event(calendars, event, calendar, remove)
    return EventDiff(before, [])


def _with_event(
    calendars: Calendars,
    event: str,
    calendar: str,
    work: Callable[[CalendarFile, list[CalendarEntry]], bytes],
) -> None:
    """Change a calendar, based on the event's current content, which may have changed since it was
    read.
    """

    def change(page: CalendarFile) -> bytes:
        own = sorted(
            (entry for entry in page.entries if entry.id == event),
            key=lambda entry: entry.instead_of is not None,
        )
        if not own:
            raise ToolError(f"The event {event!r} is no longer in the calendar {calendar}.")
        return work(page, own)

    calendars.change(calendar, change)


def _rewritten(entry: CalendarEntry, new: dict[str, Any], newline: bytes) -> bytes:
    """A component with new values and updated change properties (RFC 5545, section 3.8.7)."""
    days = load_days()
    now = _now()
    stays = {name: value for name, value in new.items() if value != ""}
    made = days.properties(
        **stays, dtstamp=now, last_modified=now, sequence=days.sequence_of(entry.block.raw) + 1
    )
    drop = [name.upper() for name in new if name not in stays]
    if "dtend" in new:
        drop.append("DURATION")
    return edited(entry.block.raw, made, newline, drop)


def _said(entry: CalendarEntry, name: str) -> str | None:
    return {"summary": entry.title, "location": entry.location, "description": entry.notes}[name]


# -- times -----------------------------------------------------------------------------------------


def _moment(text: str, argument: str, time_zone: str | None) -> Moment:
    """Parse a date or a time.

    A time with an offset is converted to UTC if no zone is given, because RFC 5545 has no offsets.
    """
    try:
        if len(text) == len("2024-06-15"):
            return date.fromisoformat(text)
        moment = datetime.fromisoformat(text).replace(microsecond=0)
    except ValueError:
        raise ToolError(
            f"{argument}: {text!r} is not a date such as 2024-06-15 or a time such as "
            "2024-06-15T10:00."
        ) from None
    zone = _zone_called(time_zone) if time_zone is not None else None
    try:
        if moment.tzinfo is None:
            return moment.replace(tzinfo=zone)
        return moment.astimezone(zone or UTC)
    except OverflowError:
        raise ToolError(f"{argument}: {text!r} is out of the supported range of dates.") from None


def _zone_called(name: str) -> ZoneInfo:
    known = available_timezones()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ToolError(
            f"time_zone: unknown time zone {name!r}.{hint} Write it like Europe/Madrid."
        )
    return ZoneInfo(name)


def _length(entry: CalendarEntry, first: Moment) -> timedelta | None:
    """The duration of an event after it moves to `first`; None if it changes between a date and a
    time.
    """
    return entry.length if entry.all_day == (not isinstance(first, datetime)) else None


def _end(
    first: Moment, text: str | None, time_zone: str | None, length: timedelta | None = None
) -> Moment:
    """The end of an event in iCalendar form: for an all-day event the day after its last day.

    Raises ToolError.
    """
    timed = isinstance(first, datetime)
    try:
        if text is None:
            return first + (length or (_HOUR if timed else _ONE_DAY))
        last = _moment(text, "end_date", time_zone)
        if isinstance(last, datetime) != timed:
            raise ToolError("start_date and end_date must both be dates, or both be times.")
        if (
            isinstance(first, datetime)
            and isinstance(last, datetime)
            and (last.tzinfo is None) != (first.tzinfo is None)
        ):
            raise ToolError(
                "Only one of start_date and end_date has a time zone. Give both an "
                "offset, or give a time_zone."
            )
        wrong = last < first
        end = last if timed else last + _ONE_DAY
    except OverflowError:
        raise ToolError(
            f"The event would end after the supported range of dates ({text or first})."
        ) from None
    if wrong:
        raise ToolError(f"The event would end ({text}) before it begins ({first.isoformat()}).")
    if end - first > timedelta(MOST_DAYS):  # both are dates, or both are times
        raise ToolError(f"An event can last at most {MOST_DAYS} days.")
    return end


def _zone(page: CalendarFile, *moments: Moment) -> list[bytes]:
    """The zone definitions for some times that the file does not have yet."""
    named = {_zone_of(moment) for moment in moments} - {None, "UTC"}
    there = b"".join(block.raw for block in page.of_kind("VTIMEZONE")).splitlines()
    lacking = sorted(name for name in named if name and f"TZID:{name}".encode() not in there)
    return [with_newline(load_days().zone_text(name), page.newline) for name in lacking]


def _zone_of(moment: Moment) -> str | None:
    """The name of a time's zone, if it is a standard zone."""
    zone = moment.tzinfo if isinstance(moment, datetime) else None
    return zone.key if isinstance(zone, ZoneInfo) else None


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _plain(text: str | None, argument: str) -> str | None:
    """Text that is valid in a file: no control characters except line breaks and tabs."""
    if text is not None and any(ord(sign) < 32 and sign not in "\n\r\t" for sign in text):
        raise ToolError(f"{argument} has control characters, which a calendar cannot store.")
    return text.replace("\r\n", "\n").replace("\r", "\n") if text is not None else None
