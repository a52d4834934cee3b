"""A tool of Interlock that asks, for `python -m benchmarks.asking`: `REVISION`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass

from call_figures import Opened, measure

from interlock import Answers, Client, Context, Server
from interlock.types import ElicitResult


@dataclass
class Guest:
    """The answer of the person."""

    name: str


@asynccontextmanager
async def front(revision: str) -> Opened:
    """Open a client whose person answers at once."""
    server = Server("asking")

    @server.tool
    async def greet(ctx: Context) -> str:
        """Greet whoever answers."""
        guest = await ctx.elicit("Who are you?", Guest)
        return f"Hello, {guest.name}!"

    def answer(_: object) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "Ann"})

    async with Client(server, revision=revision, answers=Answers(elicit=answer)) as client:
        assert (await client.call_tool("greet")).text == "Hello, Ann!"
        yield lambda: client.call_tool("greet")


if __name__ == "__main__":
    measure(front)
