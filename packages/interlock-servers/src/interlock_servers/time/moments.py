"""Parses moments and durations, and calculates with them across clock changes."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple

from interlock import ToolError

YEARS = (2, 9998)  # so that no offset leads beyond the range of dates
HORIZON = timedelta(days=366 * 20)  # how far ahead clock changes are searched
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
_TIME = r"(?P<hour>[01]?\d|2[0-3]):(?P<rest>[0-5]\d(?::[0-5]\d(?:[.,]\d{1,6})?)?)"
_OFFSET = r"\s?(?P<offset>[Zz]|[+-](?:[01]\d|2[0-3]):?[0-5]\d(?::?[0-5]\d)?)"
_MOMENT = re.compile(rf"(?:(?P<date>\d{{4}}-\d\d-\d\d)(?:[Tt ]+{_TIME}(?:{_OFFSET})?)?)", re.ASCII)
_CLOCK = re.compile(rf"{_TIME}(?:{_OFFSET})?", re.ASCII)
_UNIX = re.compile(r"@(-?\d{1,12}(?:\.\d{1,6})?)", re.ASCII)
_DURATION = re.compile(
    r"(?P<sign>[+-])?P(?=\d|T\d)(?:(?P<years>\d{1,5})Y)?(?:(?P<months>\d{1,6})M)?(?:(?P<weeks>\d{1,7})W)?(?:(?P<days>\d{1,8})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,11})M)?(?:(?P<seconds>\d{1,12}(?:[.,]\d{1,6})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)


class ParsedMoment(NamedTuple):
    """A moment in its zone.

    `note` explains anything unusual; `other` is the second possible reading.
    """

    moment: datetime
    note: str | None = None
    other: datetime | None = None


class OffsetChange(NamedTuple):
    """A clock change: when it happens, and the UTC offset before and after."""

    at: datetime  # UTC
    before: timedelta
    after: timedelta

    @property
    def clocks(self) -> tuple[datetime, datetime]:
        """The local times at that moment, before and after the change."""
        naive = self.at.replace(tzinfo=None)
        return naive + self.before, naive + self.after


class CalendarSpan(NamedTuple):
    """A duration in months, days and seconds, all of the same sign."""

    months: int
    days: int
    seconds: timedelta

    def __str__(self) -> str:
        """ISO 8601, such as P1Y2M3DT4H."""
        negative = (self.months, self.days, self.seconds) < (0, 0, timedelta())
        months = abs(self.months)
        days = abs(self.days)
        rest = abs(self.seconds)
        minutes, seconds = divmod(rest, timedelta(minutes=1))
        fraction = (
            f"{seconds.seconds}.{seconds.microseconds:06d}".rstrip("0").rstrip(".")
            if seconds.microseconds
            else f"{seconds.seconds}"
        )
        dates = [(months // 12, "Y"), (months % 12, "M"), (days, "D")]
        times = [(str(minutes // 60), "H"), (str(minutes % 60), "M"), (fraction, "S")]
        day = "".join(f"{count}{unit}" for count, unit in dates if count)
        clock = "".join(f"{count}{unit}" for count, unit in times if count != "0")
        return (
            f"{'-' if negative else ''}P{day}{'T' + clock if clock else ''}"
            if day or clock
            else "PT0S"
        )


# -- reading ---------------------------------------------------------------------------------------


def read_moment(text: str, zone: tzinfo, now: datetime, *, second: bool = False) -> ParsedMoment:
    """Parse a moment, and show it in a zone.

    A text is `now`, a date (its first moment), a time (of today in that zone), both, with or
    without an offset, or Unix seconds after an @. Of an ambiguous local time this is the first, or
    the `second`. Raises ToolError.
    """
    text = text.strip()
    if text.lower() == "now":
        return ParsedMoment(now.astimezone(zone))
    try:
        if found := _UNIX.fullmatch(text):
            return ParsedMoment(
                shown(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=float(found[1])), zone)
            )
        found = _MOMENT.fullmatch(text) or _CLOCK.fullmatch(text)
        if found is None:
            raise ValueError
        parts = found.groupdict()
        clock = (
            f"{int(parts['hour']):02d}:{parts['rest'].replace(',', '.')}"
            if parts["hour"]
            else "00:00"
        )
        offset = (parts["offset"] or "").upper()
        # Today in the offset of the text if it has one, else in the zone.
        day = (
            parts.get("date")
            or now.astimezone(datetime.fromisoformat(f"2000-01-01T00:00{offset}").tzinfo or zone)
            .date()
            .isoformat()
        )
        local = datetime.fromisoformat(f"{day}T{clock}{offset}")
    except (ValueError, OverflowError):
        raise ToolError(
            f"{text[:60]!r} is not a time. Write 15:30, 2024-06-15, 2024-06-15T15:30, "
            "2024-06-15T15:30+02:00, now, or @ and Unix seconds."
        ) from None
    return (
        settled(local, zone, second=second)
        if local.tzinfo is None
        else ParsedMoment(shown(local, zone))
    )


def shown(moment: datetime, zone: tzinfo) -> datetime:
    """A moment in a zone. Raises ToolError if it is too far away."""
    if not YEARS[0] <= moment.year <= YEARS[1]:
        raise ToolError(
            f"The year {moment.year} is too far away. The supported years are {YEARS[0]} "
            f"to {YEARS[1]}."
        )
    return moment.astimezone(zone)


def settled(local: datetime, zone: tzinfo, *, second: bool = False) -> ParsedMoment:
    """The moment of a local time in a zone; for a missing or ambiguous time a note says which was
    taken.

    Raises ToolError.
    """
    if not YEARS[0] <= local.year <= YEARS[1]:
        raise ToolError(
            f"The year {local.year} is too far away. The supported years are {YEARS[0]} "
            f"to {YEARS[1]}."
        )
    first, last = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first == last:
        return ParsedMoment(first.astimezone(zone))
    one, two = sorted((first, last))
    change = _change_between(zone, one, two)
    was, became = (_clock(clock, local) for clock in change.clocks)
    said = f"{local:%H:%M:%S}".removesuffix(":00")
    where = f"on {local.date()} in {name_of(zone)}"
    if first < last:
        taken = (
            f"the {'second' if second else 'first'} "
            f"({(last if second else first).astimezone(zone).isoformat()})"
        )
        note = (
            f"{said} occurs twice {where}: clocks go back from {was} to {became}. This is {taken}."
        )
        return ParsedMoment(
            (last if second else first).astimezone(zone),
            note,
            (first if second else last).astimezone(zone),
        )
    moved = first.astimezone(zone)
    note = (
        f"There is no {said} {where}: clocks go forward from {was} to {became}. It was taken for "
        f"{moved.isoformat()}."
    )
    return ParsedMoment(moved, note)


def _clock(clock: datetime, local: datetime) -> str:
    short = f"{clock:%H:%M:%S}".removesuffix(":00")
    return short if clock.date() == local.date() else f"{clock.date()} {short}"


def name_of(zone: tzinfo) -> str:
    """The name of a zone; for an offset, UTC and the offset."""
    return getattr(zone, "key", None) or str(zone)


def read_duration(text: str) -> CalendarSpan:
    """Parse an ISO 8601 duration, such as P1M, -P2D or PT1H30M; a sign applies to all of it.

    Raises ToolError.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ToolError(
            f"{text[:60]!r} is not a duration. Write it like P1Y2M3D, P2W, PT1H30M, or -P1D to go "
            "back."
        )
    given = found.groupdict()
    sign = -1 if given.pop("sign") == "-" else 1
    n = {
        unit: float((value or "0").replace(",", ".")) if unit == "seconds" else int(value or 0)
        for unit, value in given.items()
    }
    rest = timedelta(hours=n["hours"], minutes=n["minutes"], seconds=n["seconds"])
    return CalendarSpan(
        sign * int(n["years"] * 12 + n["months"]),
        sign * int(n["weeks"] * 7 + n["days"]),
        sign * rest,
    )


# -- clock changes ---------------------------------------------------------------------------------


def offset_at(zone: tzinfo, moment: datetime) -> timedelta:
    """The UTC offset of a zone at a moment."""
    return moment.astimezone(zone).utcoffset() or timedelta()


def changes_after(zone: tzinfo, moment: datetime, count: int) -> list[OffsetChange]:
    """The next clock changes of a zone after a moment, at most `count`, within the next twenty
    years.
    """
    found: list[OffsetChange] = []
    here = moment.astimezone(UTC).replace(microsecond=0)
    end = (
        min(here + HORIZON, datetime(YEARS[1], 12, 31, tzinfo=UTC))
        if here.year < YEARS[1]
        else here
    )
    # One day at a time: no zone has changed its clocks and changed them back within a day.
    while here < end and len(found) < count:
        there = here + _DAY
        if offset_at(zone, here) != offset_at(zone, there):
            change = _change_between(zone, here, there)
            found.append(change)
            there = change.at
        here = there
    return found


def _change_between(zone: tzinfo, low: datetime, high: datetime) -> OffsetChange:
    """The clock change after `low` and not after `high`, by bisection."""
    low, high = (
        low.replace(microsecond=0),
        high.replace(microsecond=0),
    )  # clocks change at whole seconds
    before = offset_at(zone, low)
    while high - low > _SECOND:
        middle = low + timedelta(seconds=(high - low) // _SECOND // 2)
        if offset_at(zone, middle) == before:
            low = middle
        else:
            high = middle
    return OffsetChange(high, before, offset_at(zone, high))


def is_summer_time(moment: datetime) -> bool:
    """Whether clocks are ahead of another time of the year, even if the law calls that standard
    time (Ireland).
    """
    ahead = moment.dst() or timedelta()
    if ahead or moment.tzinfo is None:
        return ahead > timedelta()
    near = (moment.astimezone(UTC) + timedelta(days=days) for days in range(-180, 181, 15))
    return any((one.astimezone(moment.tzinfo).dst() or timedelta()) < timedelta() for one in near)


# -- arithmetic ------------------------------------------------------------------------------------


def added(moment: datetime, span: CalendarSpan) -> ParsedMoment:
    """Add a span to a moment: months and days by the calendar of its zone, the rest as elapsed
    time.

    Raises ToolError.

    A day that the month does not have becomes its last day.
    """
    zone = moment.tzinfo or UTC
    notes: list[str] = []
    try:
        if span.months or span.days:
            local, note = _by_calendar(moment, span)
            found = settled(local, zone, second=bool(moment.fold))
            notes = [one for one in (note, found.note) if one]
            moment = found.moment
        later = shown(moment.astimezone(UTC) + span.seconds, zone)
    except (OverflowError, ValueError):
        raise ToolError(
            f"That is too far away. The supported years are {YEARS[0]} to {YEARS[1]}."
        ) from None
    return ParsedMoment(later, " ".join(notes) or None)


def _by_calendar(moment: datetime, span: CalendarSpan) -> tuple[datetime, str | None]:
    """The local time after months and days, and a note if the month is too short.

    Raises ValueError, OverflowError.
    """
    year, month = divmod(moment.year * 12 + moment.month - 1 + span.months, 12)
    last = monthrange(year, month + 1)[1]
    note = (
        f"{year:04d}-{month + 1:02d} has {last} days, and day {moment.day} became its last."
        if moment.day > last
        else None
    )
    day = date(year, month + 1, min(moment.day, last)) + timedelta(days=span.days)
    return datetime.combine(day, moment.timetz().replace(tzinfo=None, fold=0)), note


def between(start: datetime, end: datetime) -> CalendarSpan:
    """The span between two moments by the calendar of the first one's zone: whole months, whole
    days, and the elapsed rest.

    It is counted from the earlier moment, and negative if the end comes first: the earlier moment
    plus the span is the later one.
    """
    first, last = sorted((start.astimezone(UTC), end.astimezone(UTC)))
    sign = 1 if first == start.astimezone(UTC) else -1
    zone = start.tzinfo or UTC
    here = first.astimezone(zone)
    there = last.astimezone(zone)

    def reaches(months: int, days: int) -> bool:
        return added(here, CalendarSpan(months, days, timedelta())).moment.astimezone(UTC) <= last

    months = (there.year - here.year) * 12 + there.month - here.month
    while months and not reaches(months, 0):
        months -= 1
    begun = added(here, CalendarSpan(months, 0, timedelta())).moment
    days = max((there.date() - begun.date()).days, 0)
    while days and not reaches(months, days):
        days -= 1
    rest = last - added(here, CalendarSpan(months, days, timedelta())).moment.astimezone(UTC)
    return CalendarSpan(sign * months, sign * days, sign * rest)
