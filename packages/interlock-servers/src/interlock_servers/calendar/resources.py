"""Resources of the calendar server: years, months and single events, with completion."""

from __future__ import annotations

import calendar as almanac
from collections.abc import Callable, Iterable
from datetime import date
from typing import TYPE_CHECKING
from urllib.parse import quote

from interlock import File, RunningServer, Server, ToolError

from .calendar_files import DEFAULT, Calendars, load_days
from .edits import EventDiff, find_event
from .ical_text import IcalComponent, IcalDocument, empty
from .results import EventList, events_between

if TYPE_CHECKING:
    from .events import CalendarEntry

EVENTS = "calendar://events"
MOST_YEARS = 100  # listed years, the latest ones
_MOST_TOUCHED = 400
_JSON = "application/json"
_MONTHS = list(almanac.month_name)  # from 1
YEAR = "calendar://events/{year}"
MONTH = "calendar://events/{year}/{month}"
OF_CALENDAR = "calendar://{calendar}/{month}"
EVENT = "calendar://event/{id}"


def add_reading(made: Server, calendars: Calendars) -> None:
    """Add the resource templates and their completions."""

    @made.resource(YEAR, name="year", title="Events of a year", mime_type=_JSON)
    def year(year: str) -> EventList | None:
        """The events of all calendars in a year, such as 2024."""
        return _of_year(calendars, year) or calendar_month(
            "events", year
        )  # a calendar may have this name

    @made.resource(MONTH, name="month", title="Events of a month", mime_type=_JSON)
    def month(year: str, month: str) -> EventList | None:
        """The events of all calendars in a month: 06, 6 or June."""
        return _of_month(calendars, year, month)

    @made.resource(
        OF_CALENDAR, name="calendar-month", title="A month of one calendar", mime_type=_JSON
    )
    def calendar_month(calendar: str, month: str) -> EventList | None:
        """The events of one calendar in a month, such as June-2024."""
        name, _, year = month.partition("-")
        return _of_month(calendars, year, name, calendar) if name in _MONTHS[1:] else None

    @made.resource(EVENT, name="event", title="An event", mime_type="text/calendar")
    def event(id: str) -> File | None:
        """One event by its id, as an iCalendar file that other programs can open."""
        return _one(calendars, id)

    _add_completions(made, calendars)


def _add_completions(made: Server, calendars: Calendars) -> None:
    @made.completion(YEAR, "year")
    def complete_year(value: str) -> list[str]:
        return _beginning(value, map(str, sorted(years_with_events(calendars), reverse=True)))

    @made.completion(MONTH, "year")
    def complete_year_of_month(value: str) -> list[str]:
        return complete_year(value)

    @made.completion(MONTH, "month")
    def complete_month(value: str) -> list[str]:
        numbers = [f"{n:02}" for n in range(1, 13)]
        return _beginning(value, numbers if not value or value[0].isdigit() else _MONTHS[1:])

    @made.completion(OF_CALENDAR, "calendar")
    def complete_calendar(value: str) -> list[str]:
        return _beginning(value, calendars.names())

    @made.completion(OF_CALENDAR, "month")
    def complete_month_of_calendar(value: str, arguments: dict[str, str]) -> list[str]:
        name = arguments.get("calendar")
        if name is not None and name not in calendars.names():
            return []
        return _beginning(value, _months_with_events(calendars, name))

    @made.completion(EVENT, "id")
    def complete_id(value: str) -> list[str]:
        entries = calendars.entries()
        fitting = [entry.id for entry in entries if value.casefold() in entry.title.casefold()]
        return list(dict.fromkeys([*_beginning(value, (entry.id for entry in entries)), *fitting]))


def list_years(made: RunningServer, calendars: Calendars, years: set[int]) -> None:
    """List a resource for each of the years, and for no other year.

    Clients are notified if that changes the list.
    """
    wanted = set(sorted(years)[-MOST_YEARS:])
    for year in sorted(calendars.listed - wanted):
        made.remove_resource(f"{EVENTS}/{year}")
    for year in sorted(wanted - calendars.listed):
        made.add_resource(
            f"{EVENTS}/{year}",
            _reader(calendars, year),
            name=f"events-{year}",
            title=f"Events of {year}",
            mime_type=_JSON,
        )
    calendars.listed = wanted


def _reader(calendars: Calendars, year: int) -> Callable[[], EventList | None]:
    def read() -> EventList | None:
        """What is in all calendars in this year."""
        return _of_year(calendars, str(year))

    return read


def years_with_events(calendars: Calendars) -> set[int]:
    """The years with events, and the current year; only the current one if a file cannot be read.

    Reading a resource then reports the error.
    """
    now = calendars.today().year
    try:
        return calendars.years(now + 1) | {now}
    except ToolError:
        return {now}


def touched(calendars: Calendars, changed: EventDiff) -> list[str]:
    """The URIs of the resources that show a changed event."""
    entries = [*changed.before, *changed.after]
    now = calendars.today().year
    found: dict[str, None] = {
        f"calendar://event/{quote(entry.id, safe='')}": None for entry in entries
    }
    for entry in entries:
        name = quote(entry.calendar, safe="")
        for year, month in _months_of(entry, now + 1):
            found |= dict.fromkeys(
                [
                    f"{EVENTS}/{year}",
                    *(
                        f"{EVENTS}/{year}/{written}"
                        for written in (f"{month:02}", str(month), _MONTHS[month])
                    ),
                    f"calendar://{name}/{_MONTHS[month]}-{year}",
                ]
            )
    return list(found)


def _months_of(entry: CalendarEntry, last_year: int) -> set[tuple[int, int]]:
    """The years and months in which an event occurs; for endless recurrence only up to a year."""
    days = load_days()
    own = days.only_occurrence(entry)
    end = own.last_day if entry.repeats is None else max(own.last_day, date(last_year, 12, 31))
    found, _ = days.between([entry], own.first_day, end, _MOST_TOUCHED)
    months: set[tuple[int, int]] = set()
    for one in [own, *found]:
        n = one.first_day.year * 12 + one.first_day.month - 1
        while n <= one.last_day.year * 12 + one.last_day.month - 1:
            months.add((n // 12, n % 12 + 1))
            n += 1
    return months


def _months_with_events(calendars: Calendars, calendar: str | None) -> list[str]:
    """Months such as June-2024, latest first, and the current month."""
    today = calendars.today()
    found = {(today.year, today.month)}
    for entry in calendars.entries(calendar):
        found |= _months_of(entry, today.year + 1)
    return [f"{_MONTHS[month]}-{year}" for year, month in sorted(found, reverse=True)]


def _of_year(calendars: Calendars, year: str) -> EventList | None:
    if len(year) != 4 or not _is_number(year) or year == "0000":
        return None
    return events_between(calendars, date(int(year), 1, 1), date(int(year), 12, 31))


def _of_month(
    calendars: Calendars, year: str, month: str, calendar: str | None = None
) -> EventList | None:
    if month in _MONTHS[1:]:
        number = _MONTHS.index(month)
    elif len(month) <= 2 and _is_number(month):
        number = int(month)
    else:
        number = 0
    if len(year) != 4 or not _is_number(year) or year == "0000" or not 1 <= number <= 12:
        return None
    if calendar is not None and calendar not in (*calendars.names(), DEFAULT):
        return None
    last = almanac.monthrange(int(year), number)[1]
    return events_between(
        calendars, date(int(year), number, 1), date(int(year), number, last), calendar
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _one(calendars: Calendars, id_: str) -> File | None:
    """A calendar with only the components of an event and the zones of its file."""
    if not any(entry.id == id_ for entry in calendars.entries()):
        return None
    own = find_event(calendars, id_, None)
    page = calendars.pages(own[0].calendar)[own[0].calendar]
    zones = [
        block.raw
        for block in page.of_kind("VTIMEZONE")
        if any(zone in entry.block.raw for entry in own for zone in _names(block))
    ]
    whole = IcalDocument(empty()).with_changes({}, [*zones, *(entry.block.raw for entry in own)])
    return File(data=whole, name="event.ics", mime_type="text/calendar")


def _names(zone: IcalComponent) -> list[bytes]:
    return [
        line.partition(b":")[2].strip()
        for line in zone.raw.splitlines()
        if line.upper().startswith(b"TZID:")
    ]


def _beginning(value: str, candidates: Iterable[str]) -> list[str]:
    return [one for one in candidates if one.casefold().startswith(value.casefold())]
