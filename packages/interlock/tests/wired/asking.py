"""The matrix's tools that ask: people, models and for folders."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from interlock import Context, Server
from interlock import types as t
from tests.wired.state import State

NAME_FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class Seat(NamedTuple):
    """A seat in a hall."""

    row: int
    letter: Literal["A", "B", "C"] = "A"


class Person(msgspec.Struct):
    """Somebody."""

    name: str
    age: Annotated[int, msgspec.Meta(ge=0, le=150)] = 30


class Survey(msgspec.Struct):
    """A form with every kind of field."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80, title="Your name")]
    mail: Annotated[str, msgspec.Meta(extra_json_schema={"format": "email"})]
    stars: Annotated[int, msgspec.Meta(ge=1, le=5)]
    weight: float
    colour: Literal["red", "blue"]
    again: bool = False
    size: Literal["S", "M", "L"] = "M"


def add_questions(server: Server) -> None:
    """Tools that ask."""

    @server.tool
    async def book(day: str, ctx: Context[State]) -> str:
        """Ask for a seat, then for a yes."""
        seat = await ctx.elicit("Which seat?", Seat)
        if not await ctx.confirm(f"Book {seat.letter}{seat.row} for {day}?"):
            return "Nothing was booked."
        return f"Booked {seat.letter}{seat.row} for {day}."

    @server.tool
    def book_in_thread(ctx: Context[State]) -> str:
        """The same from a thread."""
        person = ctx.wait(ctx.elicit("Who are you?", Person, key="who"))
        return f"{person.name}, {person.age}"

    @server.tool
    async def several(how: str, ctx: Context[State]) -> list[str]:
        """Ask two things at once."""
        if how == "gather":
            return list(
                await asyncio.gather(
                    ctx.elicit("First name?", str, key="first"),
                    ctx.elicit("Last name?", str, key="last"),
                )
            )
        async with asyncio.TaskGroup() as group:
            first = group.create_task(ctx.elicit("First name?", str, key="first"))
            last = group.create_task(ctx.elicit("Last name?", str, key="last"))
        return [first.result(), last.result()]

    @server.tool
    async def visit(ctx: Context[State]) -> str:
        """Ask the person to visit a page."""
        await ctx.elicit_url("Please sign in.", "https://example.com/sign-in")
        return "visited"

    @server.tool
    async def survey(ctx: Context[State]) -> str:
        """Ask for every kind of field."""
        a = await ctx.elicit("Please fill in.", Survey)
        return f"{a.name} {a.mail} {a.stars} {a.weight} {a.again} {a.colour} {a.size}"

    @server.tool
    async def colours(ctx: Context[State]) -> str:
        """Ask for several of several."""
        chosen = await ctx.elicit("Which colours?", list[Literal["red", "green", "blue"]])
        return " and ".join(chosen)

    @server.tool
    async def charge(name: str, ctx: Context[State]) -> list[int]:
        """Do something that must not happen twice, ask, and do another such thing."""
        runs = ctx.lifespan_state.note(f"{name} runs")
        first = await ctx.once("first", ctx.lifespan_state.note, f"{name} first")
        await ctx.elicit("Go on?", bool)
        second = await ctx.once("second", ctx.lifespan_state.note, f"{name} second")
        await ctx.elicit("And now?", bool)
        return [first, second, runs]

    @server.tool
    async def ponder(question: str, ctx: Context[State]) -> str:
        """Ask the client's model."""
        answer = await ctx.sample(question, max_tokens=50, system="Be brief.", temperature=0.5)
        return f"{answer.model}: {answer.content.text}"  # type: ignore[union-attr]  # the test's model answers in text

    @server.tool
    async def ponder_with_tools(ctx: Context[State]) -> str:
        """Ask the client's model, which may want a tool."""
        listing = server.tools.get("add")
        answer = await ctx.sample(
            "What is 2 + 3?", max_tokens=50, tools=[listing.listing] if listing else []
        )
        blocks = answer.content if isinstance(answer.content, list) else [answer.content]
        return f"{answer.stop_reason}: {[type(block).__name__ for block in blocks]}"

    @server.tool
    async def folders(ctx: Context[State]) -> list[str]:
        """The client's roots."""
        return [root.uri for root in await ctx.roots()]

    @server.tool
    async def climb_after(name: str, ctx: Context[State]) -> str:
        """Tell of itself before and after a question."""
        ctx.progress(1)
        ctx.log.error("before")
        try:
            await ctx.elicit("How high?", int)
        except asyncio.CancelledError:
            ctx.lifespan_state.end(name).set()
            raise
        ctx.progress(2)
        ctx.log.error("after")
        return "up"

    @server.tool
    async def by_hand(ctx: Context[State]) -> Any:
        """Questions without await: the result says what is needed, and the next round brings it."""
        answers = ctx.input_responses
        state = ctx.request_state
        if "name" not in answers and state is None:
            question = t.ElicitRequest(
                t.ElicitRequestParams(message="Your name?", requested_schema=NAME_FORM)
            )
            return t.InputRequiredResult(
                input_requests={"name": question}, request_state="asked once"
            )
        return f"{answers['name']['content']['name']} ({state})"
