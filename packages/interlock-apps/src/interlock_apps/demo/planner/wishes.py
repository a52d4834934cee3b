"""What the person asks for, extracted from the conversation by rules."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence

from msgspec import Struct

from interlock import TextContent
from interlock.types import SamplingMessage, ToolResultContent

_LINE = re.compile(
    r"^(Destination|Departure date|Return date|Duration|Budget|Travelers|Interests): (.+)$",
    re.MULTILINE,
)
_HOME = re.compile(r"^- Home airport: (.+)$", re.MULTILINE)
_FLIGHTS = re.compile(r"^- Flights: ([^;\n]+)", re.MULTILINE)
_NIGHT = re.compile(r"up to \$(\d+) a night")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAME = r"([A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*)"
_PLACE = re.compile(rf"\b(?:in|to)\s+{_NAME}")
_FIRST = re.compile(rf"^{_NAME},")
_BUDGET = re.compile(r"\bbudget(?: of|:)? \$?(\d[\d,]*)", re.IGNORECASE)
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_MANY = re.compile(rf"\bfor ({'|'.join(_NUMBERS)}|[1-9])\b(?! (?:night|day|week))")
HOME = "NYC"
FLIGHTS = "morning departure, at most one stop"


class Wishes(Struct, frozen=True, kw_only=True):
    """A holiday request. Days are ISO 8601; `budget` and `night` are US dollars (0: no limit)."""

    destination: str
    departure: str
    back: str
    travelers: int = 1
    budget: int = 0
    night: int = 0
    home: str = HOME
    flights: str = FLIGHTS
    sea: bool = False


def wishes(messages: Sequence[SamplingMessage]) -> tuple[int, Wishes | None]:
    """The last holiday request, with the index of the last message that is part of it (or -1).

    The request is None if a day is missing. Later messages with other days or another budget change
    the request for the same place.
    """
    place = -1
    given: dict[str, str] = {}
    for index in range(len(messages) - 1, -1, -1):
        found = _found(messages[index])
        if not found:
            continue
        place = max(place, index)
        given = {**found, **given}
        if "Destination" in found:
            return place, _read(given, words_of_user(messages[: place + 1]))
    return -1, None


def _found(message: SamplingMessage) -> dict[str, str]:
    """What a message says about a holiday. The person's own words come last, after attachments."""
    texts = _texts(message) if message.role == "user" else []
    if not texts:
        return {}
    own = texts[-1]
    lines = dict(_LINE.findall(own))
    if "Destination" in lines:
        return lines
    days = _DAY.findall(own)
    budget = _BUDGET.search(own)
    many = _MANY.search(own)
    if len(days) < 2 and budget is None:
        return {}
    found = {}
    if len(days) >= 2:
        found = {"Departure date": days[0], "Return date": days[1]}
        if where := _PLACE.search(own) or _FIRST.search(own):
            found["Destination"] = where[1]
    if budget is not None:
        found["Budget"] = budget[1]
    if many is not None:
        found["Travelers"] = str(_NUMBERS.index(many[1]) + 1) if many[1] in _NUMBERS else many[1]
    return found


def spoken(message: SamplingMessage) -> str:
    """The text of a message of the person; empty for a message with tool results."""
    return "\n".join(_texts(message))


def words_of_user(messages: Sequence[SamplingMessage]) -> str:
    """All that the person said, including attachments."""
    return "\n".join(spoken(message) for message in messages if message.role == "user")


def _texts(message: SamplingMessage) -> list[str]:
    blocks = message.content if isinstance(message.content, list) else [message.content]
    if any(isinstance(block, ToolResultContent) for block in blocks):
        return []
    return [block.text for block in blocks if isinstance(block, TextContent)]


def _read(found: dict[str, str], all_of_it: str) -> Wishes | None:
    there = _day(found.get("Departure date", ""))
    back = _day(found.get("Return date", ""))
    if there is not None and back is None and (days := _number(found.get("Duration", ""), 0)):
        back = there + dt.timedelta(days=min(days, 366))
    if there is None or back is None or back <= there:
        return None
    home = _HOME.search(all_of_it)
    flights = _FLIGHTS.search(all_of_it)
    night = _NIGHT.search(all_of_it)
    return Wishes(
        destination=found["Destination"].strip(),
        departure=there.isoformat(),
        back=back.isoformat(),
        travelers=max(1, _number(found.get("Travelers", ""), 1)),
        budget=_number(found.get("Budget", ""), 0),
        night=int(night[1]) if night else 0,
        home=home[1].strip() if home else HOME,
        flights=flights[1].strip() if flights else FLIGHTS,
        sea="by the sea" in all_of_it or "beach" in found.get("Interests", ""),
    )


def _day(text: str) -> dt.date | None:
    found = _DAY.search(text)
    try:
        return dt.date.fromisoformat(found[0]) if found else None
    except ValueError:
        return None


def _number(text: str, otherwise: int) -> int:
    found = re.search(r"\d+", text.replace(",", ""))
    return int(found[0]) if found else otherwise
