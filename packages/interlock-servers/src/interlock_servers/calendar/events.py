"""Events and their occurrences, with recurrence rules expanded by icalendar (imported late)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Any

from dateutil.rrule import rrulestr  # type: ignore[import-untyped]  # dateutil says nothing of its types
from icalendar import Calendar, Event, Timezone, vRecur
from msgspec import Struct
from msgspec.structs import replace

from .ical_text import IcalComponent, IcalDocument, InvalidCalendar

Moment = date | datetime  # a datetime is a date too: ask `is_day`
ONE_DAY = timedelta(days=1)
MOST_STEPS = 50_000  # steps of one rule, from its start to the end of the requested period
_SECONDS = {
    "YEARLY": 31_536_000,
    "MONTHLY": 2_592_000,
    "WEEKLY": 604_800,
    "DAILY": 86_400,
    "HOURLY": 3600,
    "MINUTELY": 60,
    "SECONDLY": 1,
}


class RepeatsTooOften(Exception):
    """The event has more occurrences than this server expands."""


class CalendarEntry(Struct, frozen=True):
    """One VEVENT.

    `first` is its (first) start, `length` its duration: at least a day if it is all-day.
    """

    calendar: str
    id: str
    title: str
    first: Moment
    length: timedelta
    location: str | None
    notes: str | None
    rule: vRecur | None  # the recurrence rule (RFC 5545, section 3.3.10)
    left_out: frozenset[datetime]  # in local time of its zone, like the next two
    besides: tuple[datetime, ...]
    instead_of: datetime | None  # for a changed occurrence: its original time
    busy: bool
    cancelled: bool
    block: IcalComponent

    @property
    def all_day(self) -> bool:
        """Whether it is an all-day event."""
        return is_day(self.first)

    @property
    def repeats(self) -> str | None:
        """The recurrence rule as text."""
        if self.rule is not None:
            return _written(self.rule)
        if self.besides:
            return "RDATE"
        return None


class Occurrence(Struct, frozen=True):
    """One occurrence of an event. `end` is exclusive, also for an all-day event."""

    entry: CalendarEntry
    start: Moment
    end: Moment

    @property
    def first_day(self) -> date:
        """Its first day in its own time zone."""
        return day_of(self.start)

    @property
    def last_day(self) -> date:
        """The last day that it covers, at least partly."""
        if is_day(self.end):
            return max(self.end - ONE_DAY, self.first_day)
        last = day_of(self.end)
        ends_at_midnight = (
            isinstance(self.end, datetime) and self.end.time() == time() and last > self.first_day
        )
        return last - ONE_DAY if ends_at_midnight else last


def is_day(moment: Moment) -> bool:
    """Whether this is a date without a time."""
    return not isinstance(moment, datetime)


def day_of(moment: Moment) -> date:
    """The day of a moment."""
    return moment.date() if isinstance(moment, datetime) else moment


def entries_of(
    document: IcalDocument, calendar: str, known: dict[bytes, CalendarEntry | None]
) -> tuple[list[CalendarEntry], int]:
    """The events of a file, and the number of events without a readable time. Raises
    InvalidCalendar.

    `known` maps the bytes of components to events that were parsed before; new ones are added.
    """
    zones = document.of_kind("VTIMEZONE")
    if zones:
        try:  # icalendar caches the zones that files define
            Calendar.from_ical(
                b"BEGIN:VCALENDAR\r\n" + b"".join(zone.raw for zone in zones) + b"END:VCALENDAR\r\n"
            )
        except (ValueError, KeyError, IndexError, TypeError) as bad:
            raise InvalidCalendar(f"its time zones are invalid ({bad})") from None
    found: list[CalendarEntry] = []
    unread = 0
    for block in document.of_kind("VEVENT"):
        if block.raw not in known:
            known[block.raw] = _entry(block, calendar)
        entry = known[block.raw]
        if entry is None:
            unread += 1
        else:
            found.append(replace(entry, block=block))  # the same bytes may be at another offset now
    return found, unread


def _entry(block: IcalComponent, calendar: str) -> CalendarEntry | None:
    """The event of a component; None without an id or a readable time.

    Raises InvalidCalendar for an invalid component.
    """
    try:
        event = Event.from_ical(block.raw)
    except (ValueError, KeyError, IndexError) as bad:
        raise InvalidCalendar(
            f"the event in line {block.line} cannot be read ({_short(bad)})"
        ) from None
    try:
        return _read(event, block, calendar)
    except (
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
    ):  # icalendar's errors for invalid properties
        return None


def _read(event: Any, block: IcalComponent, calendar: str) -> CalendarEntry | None:
    first = event.DTSTART
    uid = str(event.get("UID", ""))
    if first is None or not uid:
        return None
    # Invalid rules are ignored.
    rules = [rule for rule in event.rrules if isinstance(rule, vRecur)]
    wall = _wall(first)
    instead = event.get("RECURRENCE-ID")
    return CalendarEntry(
        calendar=calendar,
        id=uid,
        title=str(event.get("SUMMARY", "")) or "(no title)",
        first=first,
        length=_length(event, first),
        location=_text(event, "LOCATION"),
        notes=_text(event, "DESCRIPTION"),
        rule=rules[0] if rules else None,
        left_out=frozenset(_wall_like(each, first) for each in event.exdates),
        besides=tuple(
            w for w in (_wall_like(start, first) for start, _ in event.rdates) if w != wall
        ),
        instead_of=_wall_like(instead.dt, first) if instead is not None else None,
        busy=str(event.get("TRANSP", "")).upper() != "TRANSPARENT",
        cancelled=str(event.get("STATUS", "")).upper() == "CANCELLED",
        block=block,
    )


def _text(event: Any, name: str) -> str | None:
    value = event.get(name)
    if isinstance(value, list):  # there should be only one; some programs write several
        value = value[0]
    return str(value) or None if value is not None else None


def _length(event: Any, first: Moment) -> timedelta:
    end = event.DTEND
    duration = event.DURATION
    if end is not None and is_day(end) == is_day(first):
        length = end - first if _aware(end) == _aware(first) else _wall(end) - _wall(first)
    elif duration is not None:
        length = duration
    else:
        length = ONE_DAY if is_day(first) else timedelta()
    return max(length, ONE_DAY if is_day(first) else timedelta())


def _aware(moment: Moment) -> bool:
    return isinstance(moment, datetime) and moment.tzinfo is not None


def _wall(moment: Moment) -> datetime:
    """Local wall-clock time, which recurrence follows across daylight saving time."""
    return (
        moment.replace(tzinfo=None)
        if isinstance(moment, datetime)
        else datetime.combine(moment, time())
    )


def _wall_like(moment: Moment, first: Moment) -> datetime:
    """A moment in wall-clock time of the zone in which an event starts; a date gets the event's
    time of day.
    """
    if isinstance(first, datetime):
        if not isinstance(moment, datetime):
            return datetime.combine(moment, first.time())
        if moment.tzinfo is not None and first.tzinfo is not None:
            return moment.astimezone(first.tzinfo).replace(tzinfo=None)
    return (
        _wall(moment) if isinstance(first, datetime) else datetime.combine(day_of(moment), time())
    )


def occurrences(
    entry: CalendarEntry, changed: frozenset[datetime], begin: date, end: date, most: int
) -> Iterator[Occurrence]:
    """The occurrences of an event on the days from `begin` to `end`, in order, at most `most`.

    `changed` are the occurrences that other components of the same event replace. Raises
    RepeatsTooOften.
    """
    for start in islice(_starts(entry, changed, begin, end), most):
        made = _occurrence(entry, start)
        if made is not None and made.first_day <= end and made.last_day >= begin:
            yield made


def only_occurrence(entry: CalendarEntry) -> Occurrence:
    """The event's own, or first, occurrence."""
    return _occurrence(entry, _wall(entry.first)) or Occurrence(entry, entry.first, entry.first)


def _starts(
    entry: CalendarEntry, changed: frozenset[datetime], begin: date, end: date
) -> Iterator[datetime]:
    first = _wall(entry.first)
    if entry.repeats is None:
        yield first
        return
    last = datetime.combine(end, time.max)
    try:
        earliest = datetime.combine(begin, time()) - entry.length
    except OverflowError:
        earliest = datetime.min
    starts = {first, *entry.besides}
    starts.update(_repeated(entry, first, last))
    yield from (
        start
        for start in sorted(starts)
        if earliest <= start <= last and start not in entry.left_out | changed
    )


def _repeated(entry: CalendarEntry, first: datetime, last: datetime) -> Iterator[datetime]:
    """The times of the rule up to `last`.

    Every rule gets an end: one that never matches would be searched for ages.
    """
    if entry.rule is None or last < first:
        return
    parts = dict(entry.rule)
    frequency = str(parts.get("FREQ", ["DAILY"])[0]).upper()
    if (last - first).total_seconds() / _SECONDS.get(frequency, 1) > MOST_STEPS:
        raise RepeatsTooOften
    until = parts.pop("UNTIL", None)
    count = parts.pop("COUNT", None)
    if until:
        given = until[0]
        stop = _wall_like(given, entry.first)
        last = min(last, datetime.combine(stop.date(), time.max) if is_day(given) else stop)
    try:
        rule = rrulestr(_written(vRecur(parts)), dtstart=first).replace(until=last)
    except (ValueError, TypeError, KeyError, AttributeError):
        return  # an invalid rule: the event occurs once
    yield from islice(rule, int(count[0]) if count else None)


def _written(rule: Any) -> str:
    return str(rule.to_ical().decode())


def _occurrence(entry: CalendarEntry, start: datetime) -> Occurrence | None:
    try:
        if not isinstance(entry.first, datetime):
            return Occurrence(entry, start.date(), start.date() + entry.length)
        zone = entry.first.tzinfo
        if zone is None:
            return Occurrence(entry, start, start + entry.length)
        begins = start.replace(tzinfo=zone)
        # The duration is elapsed time, which differs from wall-clock time across clock changes.
        ends = (begins.astimezone(UTC) + entry.length).astimezone(zone)
    except OverflowError:
        return None  # beyond the last representable year
    return Occurrence(entry, begins, ends)


def between(
    entries: Iterable[CalendarEntry], begin: date, end: date, most: int
) -> tuple[list[Occurrence], list[CalendarEntry]]:
    """The occurrences on the days from `begin` to `end`, in order, and the events that repeat too
    often to expand.
    """
    entries = list(entries)
    changed: dict[tuple[str, str], set[datetime]] = {}
    for entry in entries:
        if entry.instead_of is not None:
            changed.setdefault((entry.calendar, entry.id), set()).add(entry.instead_of)
    found: list[Occurrence] = []
    lost: list[CalendarEntry] = []
    for entry in entries:
        gone = (
            frozenset(changed.get((entry.calendar, entry.id), ()))
            if entry.instead_of is None
            else frozenset()
        )
        try:
            found += occurrences(entry, gone, begin, end, most)
        except RepeatsTooOften:
            lost.append(entry)
    found.sort(key=lambda one: (_wall(one.start), one.entry.title))
    return found, lost


def zone_text(name: str) -> bytes:
    """The VTIMEZONE of a zone, required in a file that uses it (RFC 5545, section 3.6.5)."""
    return bytes(Timezone.from_tzid(name).to_ical())


def properties(**given: Any) -> Event:
    """An event with the given properties only. Names are in lower case, with `_` for `-`.

    None leaves a property out.
    """
    made = Event()
    for name, value in given.items():
        if value is not None:
            made.add(name.replace("_", "-"), value)
    return made


def sequence_of(raw: bytes) -> int:
    """The event's SEQUENCE: how often it was changed."""
    try:
        return int(Event.from_ical(raw).get("SEQUENCE", 0))
    except (ValueError, TypeError):
        return 0


def years_of(entries: Iterable[CalendarEntry], last: int) -> set[int]:
    """The years up to `last` with occurrences; only the first if it repeats too often."""
    years: set[int] = set()
    for entry in entries:
        own = only_occurrence(entry)
        spread = own.last_day.year - own.first_day.year
        starts = {own.first_day.year}
        if entry.repeats is not None:
            with suppress(RepeatsTooOften):
                starts = {
                    start.year
                    for start in _starts(entry, frozenset(), own.first_day, date(last, 12, 31))
                } or starts
        years.update(
            year + n
            for year in starts
            for n in range(spread + 1)
            if year + n <= last or entry.repeats is None
        )
    return years


def _short(bad: Exception) -> str:
    return " ".join(str(bad).split())[:200]
