"""The matrix's resources and prompts, and what completes their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from interlock import Context, Image, ResourceContents, Server, assistant, user
from tests.wired.state import NOTES, PNG, Colour, State


def add_resources(server: Server) -> None:
    """Resources of every kind."""

    server.add_resource(
        "note://static", "Nothing changes here.", name="static", title="A note", size=21
    )
    server.add_resource("file:///pixel.png", PNG, mime_type="image/png")
    server.add_resource("file:///offers.py", Path(__file__))

    @server.resource("config://settings", ttl_ms=60_000, cache_scope="public")
    async def settings() -> dict[str, Any]:
        """Data that becomes JSON, and that may be kept for a minute."""
        return {"dark": True, "version": 3}

    @server.resource("count://reads")
    async def reads(ctx: Context[State]) -> str:
        """How often it was read, so never the same."""
        return str(ctx.lifespan_state.note("reads"))

    @server.resource("note://{name}", mime_type="text/markdown")
    async def note(name: str) -> str | None:
        """A note by name."""
        return NOTES.get(name)

    @server.resource("travel://activities/{city}/{category}")
    def activities(city: str, category: Literal["museums", "parks"]) -> list[str]:
        """What to do in a city."""
        return [f"{category} of {city}"]

    @server.resource("book://{page}/ask")
    async def ask_page(page: int, ctx: Context[State]) -> str:
        """A page that wants to know who reads."""
        return f"{await ctx.elicit('Who reads?', str)} reads page {page}"

    @server.resource("broken://resource")
    async def broken() -> str:
        """Cannot be read."""
        raise ValueError("a secret of the server")

    @server.tool
    async def read_inside(uri: str, ctx: Context[State]) -> str:
        """Read a resource of this server from a tool."""
        return (await ctx.read_resource(uri))[0].text or ""


def add_prompts(server: Server) -> None:
    """Prompts of every kind, and what completes their arguments."""

    @server.prompt(title="Plan a trip")
    async def trip(city: str, days: int = 2, colour: Colour = Colour.RED) -> list[Any]:
        """Plan a trip.

        Args:
            city: where to
        """
        return [
            user(f"Plan {days} days in {city}."),
            assistant("With pleasure."),
            Image(data=PNG, format="png"),
            ResourceContents(uri="note://one", text="Buy milk"),
            colour.value,
        ]

    @server.prompt
    def plain() -> str:
        """One message."""
        return "Tell me a story."

    @server.prompt
    async def curious(ctx: Context[State]) -> str:
        """A prompt that asks."""
        return f"Explain {await ctx.elicit('Which subject?', str)}."

    @server.prompt
    async def broken_prompt() -> str:
        """Cannot be written."""
        raise ValueError("a secret of the server")

    cities = ["Ulm", "Urbino", "Utrecht", "Berlin"]

    @server.completion("trip", "city")
    async def complete_city(value: str, arguments: dict[str, str]) -> list[str]:
        """Cities, of a country where one is known."""
        if arguments.get("days") == "1":
            return ["Ulm"]
        return [city for city in cities if city.lower().startswith(value.lower())]

    @server.completion("travel://activities/{city}/{category}", "city")
    def complete_any(value: str) -> list[str]:
        """More than may be sent."""
        return [f"{value}{n}" for n in range(150)]
