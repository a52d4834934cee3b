"""The prompt that plans a holiday, from the wishes to booking, calendar and mail."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import msgspec
from msgspec import Meta

from interlock import Context, McpError, Server, ToolError, types

from .database import TravelDatabase

PROMPT = "plan-vacation"
HOME = "New York (NYC)"

STEPS = f"""Work through these steps, one after the other:
1. Read the resources that are attached: when I am free, what I prefer, what I liked before.
2. Check the weather at the destination for those days, and say so if it speaks against them.
3. Search the flights there and back with search_flights. I leave from {HOME}, \
unless my preferences name another home airport.
4. Let find_best_flight choose for each way; give it my preferences.
5. Search hotels with search_hotels, and choose one that fits what I prefer. \
Flights and hotel together stay within the budget.
6. Book flights and hotel in one with book_trip. It asks me to confirm; \
where I do not, stop and ask what to change.
7. Create an event in my calendar for the whole journey, with the booking's id.
8. Send me a mail that confirms the journey, to the address I gave with the booking: \
flights with times, hotel, total, and the booking's id.
Say at the end in a few sentences what was booked and what it costs. \
Where a step cannot be done, say so and go on."""


def plan_vacation(
    ctx: Context[TravelDatabase],
    destination: str,
    departure_date: dt.date | None = None,
    return_date: dt.date | None = None,
    duration: Annotated[int, Meta(ge=1, le=60)] | None = None,
    budget: Annotated[float, Meta(gt=0)] | None = None,
    travelers: Annotated[int, Meta(ge=1, le=9)] | None = None,
    interests: str = "",
) -> str:
    """Guide through vacation planning process

    Args:
        destination: the city to go to
        departure_date: the first day, such as 2024-06-15
        return_date: the last day
        duration: days
        budget: for everything, in US dollars
        travelers: how many people
        interests: a JSON list, or words with commas between them
    """
    atlas = ctx.lifespan_state.atlas
    try:
        place = atlas.find(destination)
    except ToolError as bad:
        raise McpError(types.INVALID_PARAMS, str(bad)) from None
    if departure_date is not None and return_date is not None and return_date <= departure_date:
        raise McpError(
            types.INVALID_PARAMS,
            f"Argument return_date does not fit: {return_date} is not after {departure_date}.",
        )
    wishes = ", ".join(_listed(interests))
    given = {
        "Destination": place.name,
        "Departure date": departure_date,
        "Return date": return_date,
        "Duration": duration,
        "Budget": int(budget) if budget is not None and budget.is_integer() else budget,
        "Travelers": travelers,
        "Interests": wishes or None,
    }
    block = "\n".join(f"{name}: {value}" for name, value in given.items() if value is not None)
    return f"Please plan my vacation in {place.name}.\n\n{block}\n\n{STEPS}"


def _listed(interests: str) -> list[str]:
    """Parse a JSON list or words separated by commas, each without line breaks."""
    text = interests.strip()
    if text.startswith("["):
        try:
            found = msgspec.json.decode(text, type=list[str])
        except (msgspec.DecodeError, UnicodeDecodeError) as bad:
            raise McpError(
                types.INVALID_PARAMS, f"Argument interests does not fit: {bad}"
            ) from None
    else:
        found = text.split(",")
    return [words for one in found if (words := " ".join(one.split()))]


def add_prompt(made: Server) -> None:
    """Add the prompt and the completion of its destination."""
    made.add_prompt(plan_vacation, name=PROMPT, title="Plan a vacation")

    @made.completion(PROMPT, "destination")
    def complete_destination(value: str, ctx: Context[TravelDatabase]) -> list[str]:
        """Cities by name."""
        return [place.name for place in ctx.lifespan_state.atlas.cities(value)]

    @made.completion(PROMPT, "interests")
    def complete_interests(value: str, ctx: Context[TravelDatabase]) -> list[str]:
        """Completes the last of several interests: those that have activities."""
        before, comma, last = value.rpartition(",")
        rows = ctx.lifespan_state.rows("SELECT DISTINCT category FROM activities ORDER BY 1")
        return [
            f"{before}{comma}{' ' * bool(comma)}{name}"
            for (name,) in rows
            if name.startswith(last.strip().lower())
        ]
