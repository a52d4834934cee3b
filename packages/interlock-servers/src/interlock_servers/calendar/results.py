"""Results of the calendar server's tools and resources, as data and as text."""

from __future__ import annotations

from datetime import date, timedelta
from textwrap import shorten
from typing import TYPE_CHECKING

from msgspec import Struct, field

from interlock import ToolError

from .calendar_files import Calendars, load_days

if TYPE_CHECKING:
    from .events import CalendarEntry, Occurrence

MOST_EVENTS = 500
MOST_OF_TITLE = 120
MOST_OF_NOTES = 200  # characters in text; the data has all of them
MOST_DAYS = 1830  # the longest period that is examined: five years


class CalendarEvent(Struct, rename="camel", omit_defaults=True):
    """An event.

    `start` and `end` are ISO 8601: days of an all-day event (both inclusive), else times.
    """

    id: str
    title: str
    start: str
    end: str
    all_day: bool
    calendar: str
    location: str | None = None
    notes: str | None = None
    repeats: str | None = None
    cancelled: bool = False

    @property
    def headline(self) -> str:
        """The title in one short line: it may be foreign text, and is shown to a person for
        confirmation.
        """
        return shorten(self.title, MOST_OF_TITLE, placeholder=" ...")

    @property
    def when(self) -> str:
        """The time in words."""
        return self.start if self.start == self.end else f"{self.start} to {self.end}"


class EventList(Struct, rename={"first": "from", "last": "to"}):
    """The events of a period.

    `complete` is false if there are more, or if `problems` names missing ones.
    """

    first: str
    last: str
    events: list[CalendarEvent]
    complete: bool = True
    problems: list[str] = field(default_factory=list)

    def words(self) -> str:
        """One line for each event."""
        lines = [line_of(event) for event in self.events] or [
            f"There are no events from {self.first} to {self.last}."
        ]
        return "\n".join(
            [
                *lines,
                *self.problems,
                *(
                    []
                    if self.complete or self.problems
                    else [f"There are more than {MOST_EVENTS}."]
                ),
            ]
        )


class FreePeriod(Struct):
    """A period of free days, both ends inclusive."""

    first: str
    last: str
    days: int


class FreeDays(Struct):
    """Periods with enough free days.

    `problems` names events that repeat too often to be expanded.
    """

    free: list[FreePeriod]
    problems: list[str] = field(default_factory=list)

    def words(self) -> str:
        """One line for each period."""
        lines = [
            f"{one.first} to {one.last}: {one.days} days" if one.days > 1 else f"{one.first}: 1 day"
            for one in self.free
        ]
        return "\n".join(
            [*(lines or ["There are not that many consecutive free days."]), *self.problems]
        )


def line_of(event: CalendarEvent) -> str:
    """An event in one line."""
    where = (
        f", {shorten(event.location, MOST_OF_TITLE, placeholder=' ...')}" if event.location else ""
    )
    marks = [f"repeats: {event.repeats}"] * bool(event.repeats) + ["cancelled"] * event.cancelled
    notes = " - " + shorten(event.notes, MOST_OF_NOTES, placeholder=" ...") if event.notes else ""
    return (
        f"{event.when}: {event.headline}{where} "
        f"[{'; '.join([event.calendar, f'id {event.id}', *marks])}]{notes}"
    )


def event_of(entry: CalendarEntry, occurrence: Occurrence | None = None) -> CalendarEvent:
    """An event as data: at one of its occurrences, or else at its first."""
    if occurrence is None:
        occurrence = load_days().only_occurrence(entry)
    day = entry.all_day
    return CalendarEvent(
        id=entry.id,
        title=entry.title,
        start=occurrence.start.isoformat(),
        end=occurrence.last_day.isoformat() if day else occurrence.end.isoformat(),
        all_day=day,
        calendar=entry.calendar,
        location=entry.location,
        notes=entry.notes,
        repeats=entry.repeats,
        cancelled=entry.cancelled,
    )


def events_in(
    calendars: Calendars, first: str, last: str, calendar: str | None = None
) -> EventList:
    """The events on the days from `first` to `last`. Raises ToolError."""
    begin, end = span_of(first, last)
    return events_between(calendars, begin, end, calendar)


def events_between(
    calendars: Calendars, begin: date, end: date, calendar: str | None = None
) -> EventList:
    """The same with dates. Raises ToolError."""
    pages = calendars.pages(calendar)
    entries = [entry for page in pages.values() for entry in page.entries]
    found, lost = load_days().between(entries, begin, end, MOST_EVENTS + 1)
    problems = _problems(lost)
    for name, page in pages.items():
        if page.unread:
            problems.append(f"{page.unread} events of the calendar {name} have no readable time.")
    listed = [event_of(one.entry, one) for one in found[:MOST_EVENTS]]
    return EventList(
        begin.isoformat(),
        end.isoformat(),
        listed,
        len(found) <= MOST_EVENTS and not problems,
        problems,
    )


def free_days(
    calendars: Calendars, first: str, last: str, length: int, calendar: str | None = None
) -> FreeDays:
    """The periods of at least `length` free days in a row.

    Raises ToolError.
    """
    begin, end = span_of(first, last)
    entries = [entry for entry in calendars.entries(calendar) if entry.busy and not entry.cancelled]
    found, lost = load_days().between(entries, begin, end, MOST_DAYS + 1)
    taken = {place for one in found for place in _places(one, begin, end)}
    stretches: list[FreePeriod] = []
    start = 0
    for place in [
        *sorted(taken),
        (end - begin).days + 1,
    ]:  # a busy day after the period ends the last one
        if place - start >= length:
            free = begin + timedelta(start), begin + timedelta(place - 1)
            stretches.append(FreePeriod(free[0].isoformat(), free[1].isoformat(), place - start))
        start = place + 1
    return FreeDays(stretches, _problems(lost))


def _places(one: Occurrence, begin: date, end: date) -> range:
    """The days of an occurrence within the period, counted from `begin`."""
    return range(
        max((one.first_day - begin).days, 0),
        min((one.last_day - begin).days, (end - begin).days) + 1,
    )


def _problems(lost: list[CalendarEntry]) -> list[str]:
    return [f"“{entry.title}” (id {entry.id}) repeats too often and is left out." for entry in lost]


def span_of(first: str, last: str) -> tuple[date, date]:
    """Parse two dates. Raises ToolError for an invalid date, or a period that is too long."""
    begin = _day(first, "from")
    end = _day(last, "to")
    if end < begin:
        raise ToolError(f"The range ends ({last}) before it begins ({first}).")
    if (end - begin).days >= MOST_DAYS:
        raise ToolError(f"The range has more than {MOST_DAYS} days. Ask for a shorter one.")
    return begin, end


def _day(text: str, argument: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ToolError(f"{argument}: {text!r} is not a date. Write it like 2024-06-15.") from None
