"""The travel server that tutorials sketch, written as an author would: templates, a prompt, and
questions to person, model and folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta

from interlock import Context, Server, TextContent, types

AIRPORTS = ["Barbados (BGI)", "Barcelona (BCN)", "New York (JFK)", "Paris (CDG)"]
CITIES = ["Barcelona", "Paris", "Park City"]
MUSEUMS = {("barcelona", "museums"): ["Museu Picasso", "MNAC"]}

server = Server("travel", "1.0.0")


@server.resource("calendar://events/2024", mime_type="application/json")
async def calendar() -> list[dict[str, str]]:
    """What is planned already."""
    return [{"day": "2024-06-15", "what": "fly"}]


@server.resource("travel://activities/{city}/{category}", name="activities")
async def activities(city: str, category: str) -> list[str] | None:
    """What there is to do in a city, of one kind."""
    return MUSEUMS.get((city, category))


@server.resource(
    "weather://forecast/{city}/{date}", name="weather-forecast", mime_type="application/json"
)
async def forecast(city: str, date: str) -> dict[str, str]:
    """The weather of any city on any day."""
    return {"city": city, "date": date, "sky": "clear"}


@server.resource(
    "travel://flights/{origin}/{destination}", name="flight-search", mime_type="application/json"
)
async def flights(origin: str, destination: str) -> dict[str, str]:
    """Flights between two airports."""
    return {"from": origin, "to": destination}


@server.completion("weather://forecast/{city}/{date}", "city")
async def complete_city(value: str) -> list[str]:
    """Cities that begin like this."""
    return [city for city in CITIES if city.lower().startswith(value.lower())]


@server.completion("travel://flights/{origin}/{destination}", "destination")
async def complete_destination(value: str, arguments: dict[str, str]) -> list[str]:
    """Airports that begin like this, but for the one that the flight starts from."""
    return [
        name
        for name in AIRPORTS
        if name.startswith(value) and f"({arguments.get('origin')})" not in name
    ]


@server.prompt("plan-vacation", title="Plan a holiday")
async def plan_vacation(
    destination: str,
    duration: int = 7,
    budget: float | None = None,
    interests: list[str] | None = None,
) -> str:
    """Step by step from a wish to a plan.

    Args:
        duration: days
    """
    return (
        f"Plan {duration} days in {destination} for {budget or 'any price'}, with "
        f"{' and '.join(interests or ['rest'])}."
    )


@dataclass
class Confirmation:
    """What is asked before a trip is booked."""

    confirmBooking: Annotated[bool, Meta(description="Flights and hotel, 2,750 in all")]  # noqa: N815 - the form's own name for it
    seatPreference: Literal["window", "aisle", "any"] = "any"  # noqa: N815 - the form's own name for it
    roomType: Literal["sea", "city", "garden"] = "city"  # noqa: N815 - the form's own name for it
    travelInsurance: bool = False  # noqa: N815 - the form's own name for it


@server.tool("bookVacation")
async def book(ctx: Context) -> str:
    """Book a trip, once the person has confirmed it."""
    answer = await ctx.elicit("Please confirm the trip to Barcelona.", Confirmation)
    if not answer.confirmBooking:
        return "Nothing was booked."
    return f"Booked: {answer.seatPreference}, {answer.roomType}, insurance {answer.travelInsurance}"


@server.tool("findBestFlight")
async def find_best_flight(ctx: Context) -> str:
    """Have the client's model choose among many flights."""
    answer = await ctx.sample(
        (
            "Choose one of these flights:\n[31 flights]\n"
            "The traveller gets up early, and dislikes changing planes."
        ),
        system="You know how to travel.",
        max_tokens=1200,
        preferences=types.ModelPreferences(
            hints=[types.ModelHint(name="any")],
            cost_priority=0.25,
            speed_priority=0.1,
            intelligence_priority=0.95,
        ),
    )
    return answer.content.text if isinstance(answer.content, TextContent) else "No words."


@server.tool("listDocuments")
async def list_documents(ctx: Context) -> list[dict[str, Any]]:
    """The folders that the client lets us look into."""
    return [{"uri": root.uri, "name": root.name} for root in await ctx.roots()]


if __name__ == "__main__":
    server.run()
