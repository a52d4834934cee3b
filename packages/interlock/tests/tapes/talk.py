"""The recorded scenarios of calls that tell of themselves, and of those that ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

import msgspec

from interlock import Client, Context, McpError, Progress, Server
from interlock import types as t
from interlock.testing import ScriptedAnswers
from interlock.wire.revisions import R3, R4, R5
from tests.tapes.scenarios import fresh, refused, scenario

# -- what a call tells -----------------------------------------------------------------------------


def telling_server(revision: str) -> Server:
    """Tools that tell of themselves."""
    server = fresh()

    @server.tool
    async def chatter(ctx: Context) -> str:
        """Write to the log."""
        ctx.log.debug("too much")
        ctx.log.info({"step": 1}, logger="chatter")
        ctx.log.error("too little")
        return "said"

    @server.tool
    async def climb(to: int) -> AsyncIterator[Progress | str]:
        """Yield progress."""
        for height in range(1, to + 1):
            yield Progress(height, to, f"{height} m")
        yield "up"

    @server.tool
    async def hang(ctx: Context) -> str:
        """Wait until cancelled."""
        ctx.progress(0.5)
        await asyncio.Event().wait()
        return "never"

    return server


@scenario("logging", "The log: unasked, from a level on, and from another.", telling_server)
async def logging(client: Client) -> None:
    """As each era has it."""
    await client.call_tool("chatter")
    await client.set_log_level("debug")
    await client.call_tool("chatter")
    await client.set_log_level("error")
    await client.call_tool("chatter")


@scenario("progress", "Progress for who wants it, and none for who does not.", telling_server)
async def progress(client: Client) -> None:
    """With a token and without."""
    received: list[float] = []
    await client.call_tool("climb", {"to": 2}, on_progress=lambda p: received.append(p.progress))
    await client.call_tool("climb", {"to": 2})
    assert received == [1, 2]


@scenario("cancellation", "A call that is given up is never answered.", telling_server)
async def cancellation(client: Client) -> None:
    """The call, its progress, the cancellation, and a sign of life in place of an answer."""
    running = asyncio.Event()
    task = asyncio.create_task(client.call_tool("hang", on_progress=lambda p: running.set()))
    await running.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await client.ping()


# -- questions -------------------------------------------------------------------------------------


class Seat(msgspec.Struct):
    """A seat."""

    row: Annotated[int, msgspec.Meta(ge=1)]
    letter: Literal["A", "B"] = "A"


def asking_server(revision: str) -> Server:
    """Tools that ask."""
    server = fresh()

    @server.tool
    async def book(day: str, ctx: Context) -> str:
        """Book a seat."""
        seat = await ctx.elicit("Which seat?", Seat)
        sure = await ctx.confirm(f"Book {seat.letter}{seat.row} for {day}?", key="sure")
        return f"{'Booked' if sure else 'Did not book'} {seat.letter}{seat.row} for {day}."

    @server.tool
    async def names(ctx: Context) -> str:
        """Ask two things at once."""
        first, last = await asyncio.gather(
            ctx.elicit("First name?", str, key="first"), ctx.elicit("Last name?", str, key="last")
        )
        return f"{first} {last}"

    @server.tool
    async def sign_in(ctx: Context) -> str:
        """Ask the person to visit a page."""
        await ctx.elicit_url("Please sign in.", "https://example.com/sign-in")
        return "signed in"

    @server.tool
    async def ponder(ctx: Context) -> str:
        """Ask the client's model."""
        answer = await ctx.sample(
            "Why?", max_tokens=50, system="Be brief.", temperature=0.5, stop=["\n"], key="why"
        )
        return f"{answer.model} says {answer.content.text}"  # type: ignore[union-attr]  # the scripted model answers in text

    @server.tool
    async def calculate(ctx: Context) -> str:
        """Ask the client's model, with a tool for it to use."""
        tool = t.Tool(
            name="add", input_schema={"type": "object", "properties": {"a": {"type": "integer"}}}
        )
        answer = await ctx.sample(
            "2 + 3?",
            max_tokens=50,
            tools=[tool],
            tool_choice=t.ToolChoice(mode="required"),
            key="sum",
        )
        return answer.stop_reason or "?"

    @server.tool
    async def folders(ctx: Context) -> str:
        """The client's roots."""
        return ", ".join(root.uri for root in await ctx.roots(key="folders"))

    return server


def replaying_server(revision: str) -> Server:
    """The same, running again from the top instead of waiting."""
    server = asking_server(revision)
    server.suspended_calls.suspend = False
    return server


def booking() -> ScriptedAnswers:
    """Answers for three bookings: a yes, a decline, a dismissal."""
    return ScriptedAnswers(elicit=[{"row": 7, "letter": "B"}, {"confirm": True}, False, None])


async def book(client: Client) -> None:
    """Three bookings: accepted, declined, dismissed."""
    for day in ("Monday", "Tuesday", "Wednesday"):
        await client.call_tool("book", {"day": day})


scenario(
    "elicitation",
    "Forms: accepted, declined, dismissed; asked straight.",
    asking_server,
    answers=booking,
    since=R3,
    until=R4,
)(book)
scenario(
    "elicitation-suspended",
    "Forms in rounds, while the tool waits.",
    asking_server,
    answers=booking,
    since=R5,
)(book)
scenario(
    "elicitation-replayed",
    "Forms in rounds, the tool run again each time.",
    replaying_server,
    answers=booking,
    since=R5,
)(book)


@scenario(
    "elicitation-together",
    "Two forms at once.",
    asking_server,
    answers=lambda: ScriptedAnswers(
        elicit={"First": {"value": "Ada"}, "Last": {"value": "Lovelace"}}
    ),
    since=R3,
)
async def together(client: Client) -> None:
    """They travel together."""
    await client.call_tool("names")


@scenario(
    "elicitation-url",
    "A page to visit.",
    asking_server,
    answers=lambda: ScriptedAnswers(elicit=[True, False]),
    since=R4,
)
async def url(client: Client) -> None:
    """Agreed, and declined."""
    await client.call_tool("sign_in")
    await client.call_tool("sign_in")


@scenario(
    "sampling",
    "The client's model answers, and a person refuses.",
    asking_server,
    answers=lambda: ScriptedAnswers(sample=["Because.", McpError(t.USER_REJECTED, "Not today.")]),
)
async def sampling(client: Client) -> None:
    """An answer, and a refusal, which the newest revision has no word for."""
    await client.call_tool("ponder")
    if client.revision < R5:
        await client.call_tool("ponder")
    else:
        await refused(client.call_tool("ponder"))


USE = t.CreateMessageResult(
    role="assistant",
    content=[t.ToolUseContent(id="use-1", name="add", input={"a": 2})],
    model="small",
    stop_reason="toolUse",
)


@scenario(
    "sampling-tools",
    "The client's model wants a tool.",
    asking_server,
    answers=lambda: ScriptedAnswers(sample=[USE]),
    since=R4,
)
async def sampling_tools(client: Client) -> None:
    """One round."""
    await client.call_tool("calculate")


@scenario(
    "roots",
    "The client's folders, and that they have changed.",
    asking_server,
    answers=lambda: ScriptedAnswers(roots=["file:///home"]),
)
async def roots(client: Client) -> None:
    """Asked for, changed where the era has a word for that, and asked for again."""
    await client.call_tool("folders")
    client.roots_changed()
    await client.call_tool("folders")


@scenario("unanswerable", "A client with nobody to ask is asked nothing.", asking_server)
async def unanswerable(client: Client) -> None:
    """The calls fail closed."""
    for tool in ("sign_in", "ponder", "folders"):
        if client.revision < R5:
            await client.call_tool(tool)
        else:
            await refused(client.call_tool(tool))
