"""Results of the time server, as data and as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from msgspec import Struct, field

from .moments import (
    OffsetChange,
    ParsedMoment,
    between,
    changes_after,
    is_summer_time,
    name_of,
    offset_at,
    shown,
)

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Moment(Struct):
    """A moment by the clock of a zone.

    `datetime` is ISO 8601 with the offset from UTC, `unix_time` seconds since 1970.

    `is_dst` says whether clocks are ahead of what they are at other times of the year; `week` is
    that of ISO 8601.
    """

    timezone: str
    datetime: str
    day_of_week: str
    is_dst: bool
    utc_offset: str
    abbreviation: str
    week: str
    day_of_year: int
    unix_time: float


class ConvertedTime(Moment):
    """The time in another zone. `time_difference` is how far that zone is ahead of the source."""

    time_difference: str


class Conversion(Struct):
    """A moment in its zone and in others.

    `note` says what is odd about its time; `other` is the second moment that it could mean.
    """

    source: Moment
    targets: list[ConvertedTime]
    note: str | None = None
    other: str | None = None


class ShiftedTime(Struct):
    """A moment plus a duration. `note` says how the calendar or a clock change affected it."""

    start: Moment
    end: Moment
    duration: str
    note: str | None = None


class Difference(Struct):
    """Difference of two moments: by the calendar (`duration` and parts) and exactly
    (`total_seconds`).
    """

    start: Moment
    end: Moment
    duration: str
    years: int
    months: int
    days: int
    hours: int
    minutes: int
    seconds: float
    total_seconds: float
    note: str | None = None


class ClockChange(Struct):
    """A clock change: when it happens, the local time before and after, and the shift."""

    at: str
    before: str
    after: str
    shift: str
    unix_time: int


class ClockChanges(Struct):
    """The next clock changes of a zone; empty if none is known for the next twenty years."""

    timezone: str
    utc_offset: str
    changes: list[ClockChange]


class FoundZone(Struct):
    """A zone that was found, and by what. `datetime` is its local time now."""

    timezone: str
    country: str | None
    found_by: str
    utc_offset: str
    abbreviation: str
    datetime: str


class FoundZones(Struct):
    """Zones, best first; `complete` is false where there are more."""

    zones: list[FoundZone] = field(default_factory=list)
    complete: bool = True


# -- making them -----------------------------------------------------------------------------------


def moment_of(moment: datetime) -> Moment:
    """A moment as data."""
    year, week, _ = moment.isocalendar()
    return Moment(
        timezone=name_of(moment.tzinfo or UTC),
        datetime=moment.isoformat(),
        day_of_week=_DAYS[moment.weekday()],
        is_dst=is_summer_time(moment),
        utc_offset=signed(moment.utcoffset() or timedelta()),
        abbreviation=moment.tzname() or "",
        week=f"{year}-W{week:02d}",
        day_of_year=moment.timetuple().tm_yday,
        unix_time=moment.timestamp(),
    )


def words_of(moment: Moment) -> str:
    """A moment in one line."""
    return (
        f"{moment.timezone}: {moment.day_of_week}, {moment.datetime} ({moment.abbreviation}, week "
        f"{moment.week})"
    )


def difference_of(first: ParsedMoment, last: ParsedMoment) -> Difference:
    """The difference of two moments as data; all parts have the same sign."""
    start = first.moment
    end = last.moment
    span = between(start, end)
    sign = -1 if end.astimezone(UTC) < start.astimezone(UTC) else 1
    minutes, seconds = divmod(abs(span.seconds), timedelta(minutes=1))
    return Difference(
        start=moment_of(start),
        end=moment_of(end),
        duration=str(span),
        years=sign * (abs(span.months) // 12),
        months=sign * (abs(span.months) % 12),
        days=span.days,
        hours=sign * (minutes // 60),
        minutes=sign * (minutes % 60),
        seconds=sign * seconds.total_seconds(),
        total_seconds=(end.astimezone(UTC) - start.astimezone(UTC)).total_seconds(),
        note=joined(first, last),
    )


def changes_of(zone: tzinfo, moment: datetime, count: int) -> ClockChanges:
    """The next clock changes of a zone after a moment, as data."""
    listed = [_change(one) for one in changes_after(zone, moment, count)]
    return ClockChanges(name_of(zone), signed(offset_at(zone, moment)), listed)


def _change(change: OffsetChange) -> ClockChange:
    was, became = change.clocks
    shift = change.after - change.before
    return ClockChange(
        f"{change.at:%Y-%m-%dT%H:%M:%SZ}",
        f"{was.isoformat()}{signed(change.before)}",
        f"{became.isoformat()}{signed(change.after)}",
        signed(shift),
        int(change.at.timestamp()),
    )


def target_of(moment: datetime, zone: tzinfo) -> ConvertedTime:
    """A moment in another time zone, with the difference of the two offsets."""
    there = shown(moment, zone)
    ahead = (there.utcoffset() or timedelta()) - (moment.utcoffset() or timedelta())
    return ConvertedTime(**_fields(moment_of(there)), time_difference=signed(ahead))


def _fields(moment: Moment) -> dict[str, Any]:
    return {name: getattr(moment, name) for name in moment.__struct_fields__}


def signed(length: timedelta) -> str:
    """A duration as an offset: +05:45."""
    seconds = abs(length) // timedelta(seconds=1)
    more = f":{seconds % 60:02d}" if seconds % 60 else ""
    return (
        f"{'-' if length < timedelta() else '+'}{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
        f"{more}"
    )


def joined(*read: ParsedMoment) -> str | None:
    """The notes of the parsed times, without duplicates."""
    return " ".join(dict.fromkeys(one.note for one in read if one.note)) or None
