"""Parses dates and times in the forms that people and git use."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from msgspec import Meta

from interlock import ToolError
from interlock.untrusted.invisible import one_line as line

When = Annotated[
    str,
    Meta(
        min_length=3,
        max_length=60,
        examples=["2026-01-31", "2026-01-31T10:00:00+02:00", "yesterday", "2 weeks ago"],
    ),
]

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SPANS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
_SPAN = re.compile(r"(\d{1,6}|an?|one|last) (second|minute|hour|day|week|month|year)s?")


def moment(text: str, *, end: bool = False, now: datetime | None = None) -> int:
    """A day or time in seconds since 1970; of a day its beginning or its end, in UTC without a
    zone.

    It is ISO 8601, or one of: now, today, yesterday, monday, last monday, 2 weeks ago, 1 year 2
    months ago, last month. Git silently reads an unknown text as now; here it raises ToolError.
    """
    now = (now or datetime.now(UTC)).astimezone(UTC)
    try:
        found = _day(text, now) or _ago(text, now) or datetime.fromisoformat(text)
        if not isinstance(found, datetime):
            found = datetime.combine(found, time.max if end else time.min)
        return max(0, int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()))
    except (ValueError, OverflowError):
        raise ToolError(
            f"{line(text)} is not a date. Write 2026-01-31 or 2026-01-31T10:00:00+02:00, "
            "or a phrase such as yesterday, last monday or 2 weeks ago."
        ) from None


def _day(text: str, now: datetime) -> date | None:
    """A whole day, or None."""
    words = text.lower().removeprefix("last ").strip()
    if words in _DAYS:  # the last one that has passed
        return now.date() - timedelta((now.weekday() - _DAYS.index(words) - 1) % 7 + 1)
    if text.lower() in ("today", "yesterday"):
        return now.date() - timedelta(text.lower() == "yesterday")
    return date.fromisoformat(text) if len(text) == 10 and text[4] == "-" else None


def _ago(text: str, now: datetime) -> datetime | None:
    """A relative time in the past. As in git, dots may separate the words, and `ago` is
    optional.
    """
    words = " ".join(text.lower().replace(".", " ").replace(",", " ").split())
    if words == "now":
        return now
    spans = words.removesuffix(" ago")
    if not re.fullmatch(rf"{_SPAN.pattern}(?: {_SPAN.pattern})*", spans):
        return None
    for count, unit in _SPAN.findall(spans):
        number = int(count) if count.isdecimal() else 1
        now = (
            now - timedelta(seconds=number * _SPANS[unit])
            if unit in _SPANS
            else _months(now, number * (12 if unit == "year" else 1))
        )
    return now


def _months(now: datetime, count: int) -> datetime:
    """The date so many months ago; the last day if the month is shorter."""
    year, month = divmod(now.year * 12 + now.month - 1 - count, 12)
    return now.replace(year=year, month=month + 1, day=min(now.day, monthrange(year, month + 1)[1]))
