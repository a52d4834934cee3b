"""Days in a sentence: dates, months, ranges, weekends, words such as tomorrow, and durations."""

from __future__ import annotations

import calendar
import datetime as dt
import re

from msgspec import Struct

from .numbers import COUNT, number
from .sentence import ENDS, Sentence

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SATURDAY = 5
FRIDAY = 4

_SHORT = "jan feb mar apr may jun jul aug sept sep oct nov dec".split()  # noqa: SIM905 - a table of short names
_LONG = [
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
]  # fmt: skip
MONTHS = ("", *(name.title() for name in _LONG))
"""The names of the months, by number."""
_MONTH = rf"(?:{'|'.join(_LONG)}|(?:{'|'.join(_SHORT)})\b\.?)"
_YEAR = r"(?:,?\s+20\d\d\b)?"
_NTH = r"\d{1,2}(?:st|nd|rd|th)?"
_ISO = r"20\d\d-\d{1,2}-\d{1,2}"
_DAY_MONTH = rf"(?:the\s+)?{_NTH}\s+(?:of\s+)?{_MONTH}{_YEAR}"
_COUNTED = r"\s*(?:people|persons?|adults?|travell?ers?|of us|nights?|days?|weeks?)\b"
_MONTH_DAY = rf"{_MONTH}\s+(?:the\s+)?{_NTH}(?!\d)(?!{_COUNTED}){_YEAR}"
_SLASH = r"\d{1,2}/\d{1,2}/(?:20)?\d\d|\d{1,2}\.\d{1,2}\.20\d\d"
_RELATIVE = (
    r"(?:the )?day after tomorrow|tomorrow|today|"
    rf"(?:(?:this|next|coming|on)\s+)*(?:{'|'.join(WEEKDAYS)})|"
    rf"in {COUNT} (?:days?|weeks?|months?)"
)
_SINGLE = rf"\b(?:{_ISO}|{_DAY_MONTH}|{_MONTH_DAY}|{_SLASH}|{_RELATIVE})\b"
_TO = r"\s*(?:to|until|till|til|through|thru|and|-|–|—)\s*(?:the\s+)?"
_FROM = r"(?:\b(?:from|between|on|the)\s+)*"
_OUT = (
    r"(?:\b(?:leav(?:e|ing)|depart(?:ing)?|start(?:ing)?|beginning|going|from|on|by|the|date|"
    r"departure)\s*:?\s*)*"
)
_BACK = (
    r"\b(?:(?:com(?:e|ing) |be |get )?back(?: home)?|return(?:ing)?(?: date)?|until|till|home)"
    r":?(?:\s+(?:on|by|at))?\s+(?:the\s+)?"
)

_RANGE = re.compile(rf"{_FROM}({_SINGLE}){_TO}({_SINGLE})", re.IGNORECASE)
_DAYS_IN_MONTH = re.compile(
    rf"{_FROM}\b({_NTH}){_TO}({_NTH})\s+(?:of\s+)?({_MONTH})({_YEAR})", re.IGNORECASE
)
_MONTH_DAYS = re.compile(
    rf"{_FROM}\b({_MONTH})\s+(?:the\s+)?({_NTH}){_TO}({_NTH})(?!\d)({_YEAR})", re.IGNORECASE
)
_RETURN = re.compile(rf"{_BACK}({_SINGLE})", re.IGNORECASE)
_DEPART = re.compile(rf"{_OUT}({_SINGLE})", re.IGNORECASE)
_AMBIGUOUS = re.compile(r"\b\d{1,2}/\d{1,2}\b(?!/)")
_WEEKEND = re.compile(
    r"(?:\b(?:on|over|for|the)\s+)*\b(?P<which>this|next|coming|the)\s+(?P<long>long\s+)?weekend\b",
    re.IGNORECASE,
)
_NEXT_WEEK = re.compile(r"\b(?:in\s+)?next week\b", re.IGNORECASE)
_NEXT_MONTH = re.compile(r"\b(?:(?:in|some ?time)\s+)*(?P<which>next|this) month\b", re.IGNORECASE)
_PART = (
    r"(?:(?P<part>early|mid(?:dle)?|late|(?:the\s+)?(?:start|beginning|middle|end)|"
    r"(?:the\s+)?(?:first|second|third|fourth|last)\s+(?:week|weekend))[ -](?:of\s+|in\s+)?)?"
)
_IN_MONTH = re.compile(
    rf"\b(?:some ?time\s+)?(?:in|during|for|around|by|at|over)\s+{_PART}"
    rf"(?:next\s+)?(?P<month>{_MONTH})(?P<year>{_YEAR})(?:\b|$)",
    re.IGNORECASE,
)
_PART_OF_MONTH = re.compile(
    rf"\b{_PART}(?:next\s+)?(?P<month>{_MONTH})(?P<year>{_YEAR}){ENDS}",
    re.IGNORECASE,
)
_NAMED_MONTH = re.compile(
    rf"(?<!^)\b(?:early |mid-?|late )?(?P<month>{'|'.join(name.title() for name in _LONG)})\b"
    rf"(?P<year>{_YEAR})"
)
_DURATION = re.compile(
    rf"(?:\bfor\s+)?\b(?P<count>{COUNT})[ -](?P<more>more\s+)?(?P<unit>days?|nights?|weeks?)\b"
    r"(?:[ -]long\b)?",
    re.IGNORECASE,
)
_MONTH_LONG = re.compile(r"\b(?:for\s+)?(?:a|one) (?:whole )?month\b(?! of)", re.IGNORECASE)
_FORTNIGHT = re.compile(r"\b(?:for\s+)?a fortnight\b", re.IGNORECASE)
_WEEK_LONG = re.compile(r"\b(?:a )?week-?long\b", re.IGNORECASE)
_A_WEEKEND = re.compile(
    r"\b(?:(?:for|over)\s+)?(?:a|one|the)?\s*(?P<long>long\s+)?weekend\b(?:\s+(?:trip|break))?",
    re.IGNORECASE,
)
_BARE_RANGE = re.compile(rf"{_FROM}\b({_NTH}){_TO}({_NTH})\b", re.IGNORECASE)
_BARE_DAY = re.compile(rf"{_OUT}(?<!for )\b(\d{{1,2}}(?:st|nd|rd|th)?)\b{ENDS}", re.IGNORECASE)
_ORDINAL = re.compile(rf"{_OUT}\b(\d{{1,2}}(?:st|nd|rd|th))\b", re.IGNORECASE)
_FREE = re.compile(
    r"\b(?:any ?(?:day|time|date|one)s?(?: is fine| will do| works)?|whenever|"
    r"flexible|(?:you|please) (?:choose|pick|decide)(?: a day| one)?|"
    r"(?:it )?does(?:n't| not) matter|i do(?:n't| not) (?:mind|care)|no preference|surprise me)\b",
    re.IGNORECASE,
)
_PARTS = {
    "early": (1, 10), "start": (1, 10), "beginning": (1, 10), "mid": (11, 20), "middle": (11, 20),
    "late": (21, 31), "end": (21, 31), "first": (1, 7), "second": (8, 14), "third": (15, 21),
    "fourth": (22, 28), "last": (22, 31),
}  # fmt: skip


class Days(Struct):
    """What a sentence says about days.

    Attributes:
        departure: The first day.
        back: The last day.
        month: The year and the month of the departure, where its day is not known.
        part: The days of the month that were meant, such as 1 to 10 for "early".
        nights: Days between departure and return.
        weekend: Whether it is a weekend, which begins on a Friday.
        free: Whether the planner may choose the day.
        notes: How words were read that can be read in two ways.
        problems: Words that name no day, and why.
    """

    departure: dt.date | None = None
    back: dt.date | None = None
    month: tuple[int, int] | None = None
    part: tuple[int, int] = (1, 31)
    nights: int = 0
    weekend: bool = False
    free: bool = False
    notes: list[str] = []
    problems: list[str] = []

    @property
    def known(self) -> bool:
        """Whether anything was said about days."""
        return bool(
            self.departure or self.back or self.month or self.nights or self.free or self.problems
        )


def take_days(sentence: Sentence, today: dt.date, before: Days, *, answers: bool = False) -> Days:
    """Take what a sentence says about days.

    Args:
        sentence: The sentence.
        today: Days without a year are the next ones from this day.
        before: What was said earlier: "the 8th" is a day of the month that is already known.
        answers: Whether the name of a month alone is when the trip is.
    """
    found = Days()
    _take_ranges(sentence, today, found)
    if found.departure is None:
        _take_weekend(sentence, today, found)
    if match := sentence.take(_RETURN):
        found.back = _single(match[1], found.departure or before.departure or today, found)
    if found.departure is None and (match := sentence.take(_DEPART)):
        found.departure = _single(match[1], today, found)
    _take_duration(sentence, found)
    if found.departure is None:
        _take_month(sentence, today, found, answers)
    if found.departure is None and (match := sentence.take(_NEXT_WEEK)):
        found.departure = today + dt.timedelta(days=7 - today.weekday())
        found.notes.append(f"I take “next week” as from Monday, {found.departure}.")
    month = found.month or before.month
    if found.departure is None and month is not None and before.departure is None:
        _take_bare_days(sentence, month, found, answers=before.month is not None)
    if match := sentence.take(_AMBIGUOUS):
        found.problems.append(
            f"“{match[0]}” can be read in two ways; write the day as 2027-05-10 or 10 May."
        )
    found.free = sentence.take(_FREE) is not None
    return found


def chosen_day(days: Days, today: dt.date) -> dt.date | None:
    """The first Saturday, or Friday for a weekend, of a month or a part of it; None without one."""
    if days.month is None:
        return None
    year, month = days.month
    last = calendar.monthrange(year, month)[1]
    weekday = FRIDAY if days.weekend else SATURDAY
    for day in range(days.part[0], min(days.part[1], last) + 1):
        date = dt.date(year, month, day)
        if date.weekday() == weekday and date > today:
            return date
    return None


def month_words(days: Days) -> str:
    """The month that is known, as people write it."""
    if days.month is None:
        return ""
    year, month = days.month
    return f"{MONTHS[month]} {year}"


def _take_ranges(sentence: Sentence, today: dt.date, found: Days) -> None:
    if match := sentence.take(_RANGE):
        found.back = _single(match[2], today, found)
        year = _year_of(match[2])
        found.departure = _single(match[1], today, found, year)
        if found.departure and found.back and found.back <= found.departure:
            if _year_of(match[2]) is None:
                found.back = _single(match[2], found.departure, found)
            elif _year_of(match[1]) is None and year is not None:
                found.departure = _single(match[1], today, found, year - 1)
    elif match := sentence.take(_DAYS_IN_MONTH):
        _days_of(match[1], match[2], match[3], match[4], today, found)
    elif match := sentence.take(_MONTH_DAYS):
        _days_of(match[2], match[3], match[1], match[4], today, found)


def _days_of(first: str, last: str, month: str, year: str, today: dt.date, found: Days) -> None:
    """Two days of one month."""
    named = f"{month}{year}"
    found.departure = _single(f"{_digits(first)} {named}", today, found)
    if found.departure is not None:
        found.back = _day(found.departure.year, found.departure.month, _digits(last), found)


def _take_weekend(sentence: Sentence, today: dt.date, found: Days) -> None:
    match = sentence.take(_WEEKEND)
    if match is None:
        return
    # "a weekend" is a duration; "the weekend of", "this weekend" and "next weekend" are days
    friday = today + dt.timedelta(days=(FRIDAY - today.weekday()) % 7)
    if today.weekday() > FRIDAY:
        friday = today - dt.timedelta(days=today.weekday() - FRIDAY)
    if match["which"].lower() == "next" or friday < today:
        friday += dt.timedelta(days=7)
    found.departure = friday
    found.weekend = True
    found.nights = 3 if match["long"] else 2
    found.back = friday + dt.timedelta(days=found.nights)
    found.notes.append(f"I take “{match[0].strip()}” as {friday} to {found.back}.")


def _take_duration(sentence: Sentence, found: Days) -> None:
    if match := sentence.take(_DURATION):
        count = int(number(match["count"]) or 0)
        found.nights = count * (7 if match["unit"].lower().startswith("week") else 1)
    elif sentence.take(_FORTNIGHT):
        found.nights = 14
    elif sentence.take(_WEEK_LONG):
        found.nights = 7
    elif sentence.take(_MONTH_LONG):
        found.nights = 30
    elif match := sentence.take(_A_WEEKEND):
        found.weekend = True
        found.nights = 3 if match["long"] else 2


def _take_month(sentence: Sentence, today: dt.date, found: Days, answers: bool) -> None:
    if match := sentence.take(_NEXT_MONTH):
        first = today.replace(day=1)
        if match["which"].lower() == "next":
            first = (first + dt.timedelta(days=32)).replace(day=1)
        found.month = (first.year, first.month)
        return
    match = sentence.take(_IN_MONTH) or sentence.take(_NAMED_MONTH)
    if match is None and answers:
        match = sentence.take(_PART_OF_MONTH)
    if match is None:
        return
    month = _month(match["month"])
    year = _year_of(match["year"] or "")
    found.month = (year or (today.year if month >= today.month else today.year + 1), month)
    part = re.findall("|".join(_PARTS), match[0].lower())
    if part:
        found.part = _PARTS[part[0]]


def _take_bare_days(
    sentence: Sentence, month: tuple[int, int], found: Days, *, answers: bool
) -> None:
    """Days of a month that is already known; a number alone is a day if it `answers`."""
    if match := sentence.take(_BARE_RANGE):
        found.departure = _day(*month, _digits(match[1]), found)
        found.back = _day(*month, _digits(match[2]), found)
    elif match := sentence.take(_BARE_DAY if answers else _ORDINAL):
        found.departure = _day(*month, _digits(match[1]), found)


def _single(text: str, after: dt.date, found: Days, year: int | None = None) -> dt.date | None:
    """One day; without a year it is the next one from `after`, or the one in `year`."""
    words = text.lower().replace(",", " ")
    if re.fullmatch(_ISO, words):
        year_number, month_number, day = (int(part) for part in words.split("-"))
        return _day(year_number, month_number, day, found)
    if re.fullmatch(_SLASH, words):
        return _numeric(words, found)
    relative = _relative(words, after)
    if relative is not None:
        return relative
    month = next((_month(word) for word in words.split() if _is_month(word)), 0)
    digits = re.search(r"\b\d{1,2}(?!\d)", words)
    if not month or digits is None:
        return None
    year = _year_of(text) or year
    if year is not None:
        return _day(year, month, int(digits[0]), found)
    for each in range(after.year, after.year + 9):  # 29 February is up to 8 years away
        if int(digits[0]) > calendar.monthrange(each, month)[1] and (
            month != 2 or int(digits[0]) > 29
        ):
            return _day(each, month, int(digits[0]), found)
        if int(digits[0]) <= calendar.monthrange(each, month)[1]:
            date = dt.date(each, month, int(digits[0]) or 1)
            if date >= after:
                return _day(each, month, int(digits[0]), found)
    return None


def _relative(words: str, today: dt.date) -> dt.date | None:
    if "after tomorrow" in words:
        return today + dt.timedelta(days=2)
    if words == "tomorrow":
        return today + dt.timedelta(days=1)
    if words == "today":
        return today
    weekday = next((at for at, name in enumerate(WEEKDAYS) if name in words), None)
    if weekday is not None:
        ahead = (weekday - today.weekday()) % 7 or 7
        if "next" in words and today.weekday() < weekday:
            ahead += 7  # "next Friday", said on a Monday, is not the one of this week
        return today + dt.timedelta(days=ahead)
    match = re.fullmatch(rf"in ({COUNT}) (day|week|month)s?", words)
    if match is None:
        return None
    count = int(number(match[1]) or 0)
    return today + dt.timedelta(days=count * {"day": 1, "week": 7, "month": 30}[match[2]])


def _numeric(words: str, found: Days) -> dt.date | None:
    first, second, year = (int(part) for part in re.split(r"[/.]", words))
    year += 2000 if year < 100 else 0
    if "." in words or first > 12:
        return _day(year, second, first, found)
    if second > 12 or first == second:
        return _day(year, first, second, found)
    found.problems.append(
        f"“{words}” can be read in two ways; write the day as {year}-05-10 or 10 May {year}."
    )
    return None


def _day(year: int, month: int, day: int, found: Days) -> dt.date | None:
    try:
        return dt.date(year, month, day)
    except ValueError:
        named = MONTHS[month] if month < len(MONTHS) else f"in month {month} of"
        found.problems.append(f"There is no {day} {named} {year}.")
        return None


def _digits(text: str) -> int:
    found = re.search(r"\d+", text)
    return int(found[0]) if found else 0


def _year_of(text: str) -> int | None:
    found = re.search(r"\b20\d\d\b", text)
    return int(found[0]) if found else None


def _is_month(word: str) -> bool:
    return word.strip(".") in _LONG or word.strip(".") in _SHORT


def _month(word: str) -> int:
    plain = word.lower().strip(".")
    return next(at for at, name in enumerate(_LONG, 1) if name.startswith(plain[:3]))
