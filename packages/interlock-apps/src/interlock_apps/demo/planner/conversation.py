"""The trip that a conversation is about: from the filled form, or from the person's sentences."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence

import msgspec

from interlock import TextContent
from interlock.types import SamplingMessage, ToolResultContent

from .trips import Trip, read_trip, trip_of_form, wishes_of
from .wishes import FLIGHTS, HOME, Wishes

_LINE = re.compile(
    r"^(Destination|Departure date|Return date|Duration|Budget|Travelers|Interests): (.+)$",
    re.MULTILINE,
)
_HOME = re.compile(r"^- Home airport: (.+)$", re.MULTILINE)
_FLIGHTS = re.compile(r"^- Flights: ([^;\n]+)", re.MULTILINE)
_NIGHT = re.compile(r"up to \$(\d+) a night")


def trip_in(messages: Sequence[SamplingMessage], today: dt.date) -> tuple[int, Trip | None]:
    """The last trip that was asked for, with the index of the last message that is part of it.

    Args:
        messages: The conversation.
        today: Days without a year are the next ones from this day.

    Returns:
        The index is -1, and the trip None, if nobody asked for a trip.
    """
    place = -1
    trip: Trip | None = None
    for index, message in enumerate(messages):
        texts = _texts(message) if message.role == "user" else []
        if not texts:
            continue
        own = texts[-1]  # the person's own words come last, after attachments
        fields = dict(_LINE.findall(own))
        found = trip_of_form(fields) if "Destination" in fields else read_trip(own, today, trip)
        if found is not None:
            trip = found
            place = index
    return place, trip


def wishes(messages: Sequence[SamplingMessage], trip: Trip) -> Wishes | None:
    """The trip as a request, with the preferences of all that the person said and attached."""
    found = wishes_of(trip)
    if found is None:
        return None
    all_of_it = words_of_user(messages)
    home = _HOME.search(all_of_it)
    flights = _FLIGHTS.search(all_of_it)
    night = _NIGHT.search(all_of_it)
    return msgspec.structs.replace(
        found,
        night=found.night or (int(night[1]) if night else 0),
        home=home[1].strip() if home and found.home == HOME else found.home,
        flights=flights[1].strip() if flights and found.flights == FLIGHTS else found.flights,
        sea=found.sea or "by the sea" in all_of_it,
    )


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
