"""Servers for the page of the host: what a traveller needs, small enough to be read at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from interlock import Context, Image, ResourceLink, Server, ServerInfo, ToolAnnotations, ToolError
from interlock_servers.everything.samples import png

CITIES = ["Barcelona", "Barbados", "Bari", "Lisbon", "Paris", "Park City"]


@dataclass
class Choices:
    """What a booking needs to know."""

    name: Annotated[str, Meta(min_length=2, description="As in the passport")]
    seat: Annotated[Literal["window", "aisle"], Meta(title="Seat")]
    nights: Annotated[int, Meta(ge=1, le=30, title="Nights")] = 7
    insurance: Annotated[bool, Meta(title="Travel insurance")] = False


def travel() -> Server:
    """Flights, a hotel that asks before it books, a model that is asked for the best flight;
    prompts and resources.
    """
    server = Server(
        "travel",
        "1.0.0",
        info=ServerInfo(title="Travel"),
        instructions="Search before you book. Prices are in euros.",
    )
    server.gate = asyncio.Event()  # type: ignore[attr-defined]  # a test lets slow work go on
    server.likes = "Window seat. No early flights."  # type: ignore[attr-defined]  # and changes what a resource says

    @server.tool(
        title="Search flights",
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=True),
    )
    async def search_flights(
        origin: str, destination: str, date: str, seats: int = 1
    ) -> list[dict[str, str | float]]:
        """Search all airlines for flights on a day."""
        return [
            {
                "flight": "VY 8301",
                "from": origin,
                "to": destination,
                "departs": f"{date} 08:15",
                "price": 129.5 * seats,
            },
            {
                "flight": "IB 6252",
                "from": origin,
                "to": destination,
                "departs": f"{date} 17:40",
                "price": 164.0 * seats,
            },
        ]

    @server.tool(title="Book a hotel", annotations=ToolAnnotations(destructive_hint=True))
    async def book_hotel(city: str, ctx: Context) -> str:
        """Book a room; you are asked for the details."""
        choices = await ctx.elicit(f"Who sleeps in {city}, and how?", Choices)
        return f"Booked {choices.nights} nights in {city} for {choices.name}, {choices.seat} side."

    @server.tool(title="Find the best flight")
    async def find_best_flight(destination: str, ctx: Context) -> str:
        """Let a model choose among the flights."""
        said = await ctx.sample(
            f"Which flight to {destination} is best: VY 8301 at 129 or IB 6252 at 164?",
            max_tokens=200,
            system="Answer in one line.",
        )
        answer = said.content[0] if isinstance(said.content, list) else said.content
        return f"The model says: {getattr(answer, 'text', answer)}"

    @server.tool(title="Compare many offers")
    async def compare(ctx: Context) -> str:
        """Takes long, and says how far it is."""
        ctx.progress(3, 8, "Offers of the third airline")
        await server.gate.wait()  # type: ignore[attr-defined]  # see above
        return "All compared."

    @server.tool(title="Picture of the hotel")
    async def picture() -> list[Image | ResourceLink | str]:
        """A picture, and where more is."""
        return [
            Image(data=png(120)),
            ResourceLink(
                uri="trips://history/barcelona-2023", name="barcelona-2023", title="Barcelona 2023"
            ),
            "Taken in May.",
        ]

    @server.tool(title="Cancel a booking")
    async def cancel(booking: int) -> str:
        """Never works."""
        raise ToolError(f"There is no booking {booking}.")

    @server.prompt("plan-vacation", title="Plan a vacation")
    def plan(destination: str, duration: str = "7", interests: str = "") -> str:
        """Guide through planning a vacation, from flights to mail."""
        return f"Plan {duration} days in {destination}. Interests: {interests or 'none'}."

    @server.completion("plan-vacation", "destination")
    async def places(value: str) -> list[str]:
        return [city for city in CITIES if city.lower().startswith(value.lower())]

    @server.resource(
        "trips://history/barcelona-2023", title="Barcelona 2023", mime_type="application/json"
    )
    def barcelona() -> dict[str, object]:
        """What was booked then."""
        return {"hotel": "Casa Gràcia", "nights": 6, "liked": ["beaches", "architecture", "food"]}

    @server.resource("trips://history/lisbon-2022", title="Lisbon 2022", mime_type="text/markdown")
    def lisbon() -> str:
        """Notes of a trip."""
        return "# Lisbon\n\n- tram **28**\n- [notes](https://example.com/lisbon)\n"

    @server.resource("trips://preferences", title="Preferences", mime_type="text/plain")
    def preferences() -> str:
        """What the traveller likes."""
        return str(server.likes)  # type: ignore[attr-defined]  # see above

    return server


def weather() -> Server:
    """A template whose city completes."""
    server = Server("weather", info=ServerInfo(title="Weather"))

    @server.resource(
        "weather://forecast/{city}/{date}", title="Weather forecast", mime_type="application/json"
    )
    def forecast(city: str, date: str) -> dict[str, object]:
        """The weather of a city on a day."""
        return {"city": city, "date": date, "high": 27, "sky": "clear"}

    @server.completion("weather://forecast/{city}/{date}", "city")
    async def cities(value: str) -> list[str]:
        return [city for city in CITIES if city.lower().startswith(value.lower())]

    @server.tool(title="Weather alerts", annotations=ToolAnnotations(read_only_hint=True))
    def alerts(state: str) -> str:
        """Warnings of a state."""
        return f"No alerts in {state}."

    return server


__all__ = ["CITIES", "Choices", "travel", "weather"]
