"""What the person wishes, read out of the conversation: the lines of the prompt `plan-vacation`, and what lies beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from interlock.types import SamplingMessage, TextContent, ToolResultContent

_LINE = re.compile(r"^(Destination|Departure date|Return date|Budget|Travelers|Interests): (.+)$", re.MULTILINE)
_HOME = re.compile(r"^- Home airport: (.+)$", re.MULTILINE)
_FLIGHTS = re.compile(r"^- Flights: ([^;\n]+)", re.MULTILINE)
_NIGHT = re.compile(r"up to \$(\d+) a night")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_PLACE = re.compile(r"\b(?:in|to)\s+([A-Z][\w.'-]*(?:\s+[A-Z][\w.'-]*)*)")
HOME, FLIGHTS = "NYC", "morning departure, at most one stop"


class Wishes(Struct, frozen=True, kw_only=True):
    """A holiday as it is wished for; days are ISO 8601, `budget` and `night` are in US dollars, 0 for no limit."""

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
    """Where in the conversation the last holiday was asked for (-1: nowhere), and what is wished for; None where a part is missing."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role != "user":
            continue
        text = spoken(message)
        found = dict(_LINE.findall(text))
        if "Destination" in found:
            return index, _read(found, told(messages[: index + 1]))
        place, days = _PLACE.search(text), _DAY.findall(text)
        if place is not None and len(days) >= 2:
            plain = {"Destination": place[1], "Departure date": days[0], "Return date": days[1]}
            return index, _read(plain, told(messages[: index + 1]))
    return -1, None


def spoken(message: SamplingMessage) -> str:
    """The text of a message of the person; none where it has results of tools."""
    blocks = message.content if isinstance(message.content, list) else [message.content]
    if any(isinstance(block, ToolResultContent) for block in blocks):
        return ""
    return "\n".join(block.text for block in blocks if isinstance(block, TextContent))


def told(messages: Sequence[SamplingMessage]) -> str:
    """All that the person said, attachments included."""
    return "\n".join(spoken(message) for message in messages if message.role == "user")


def _read(found: dict[str, str], all_of_it: str) -> Wishes | None:
    days = [_DAY.search(found.get(name, "")) for name in ("Departure date", "Return date")]
    if days[0] is None or days[1] is None:
        return None
    home, flights, night = _HOME.search(all_of_it), _FLIGHTS.search(all_of_it), _NIGHT.search(all_of_it)
    return Wishes(
        destination=found["Destination"].strip(),
        departure=days[0][0],
        back=days[1][0],
        travelers=_number(found.get("Travelers", ""), 1),
        budget=_number(found.get("Budget", ""), 0),
        night=int(night[1]) if night else 0,
        home=home[1].strip() if home else HOME,
        flights=flights[1].strip() if flights else FLIGHTS,
        sea="by the sea" in all_of_it or "beach" in found.get("Interests", ""),
    )


def _number(text: str, otherwise: int) -> int:
    found = re.search(r"\d+", text.replace(",", ""))
    return int(found[0]) if found else otherwise
