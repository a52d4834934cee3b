"""Form elicitation: one form, two in a row, a form that depends on an answer, with a timeout, as a
task of the client.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from interlock import (
    CallToolResult,
    Cancelled,
    Declined,
    InputRequiredResult,
    Server,
    TextContent,
    ToolError,
    ToolResult,
    types,
)

from .form_fields import form_of
from .sampling import words_of
from .state import ASKS, CHANGES, Ctx

SEVERAL_SINCE = "2025-11-25"
FORMS_SINCE = "2025-06-18"


@dataclass
class TableBooking:
    """The form for a table."""

    guests: Annotated[int, Meta(ge=1, le=12, title="Guests")]
    seat: Annotated[Literal["inside", "garden", "window"], Meta(title="Where")] = "inside"
    name: Annotated[str, Meta(title="Name", max_length=80)] = "Guest"


async def book_table(day: Annotated[str, "When."], ctx: Ctx) -> str:
    """Book a table: ask the user with a form, ask for a yes, and charge a deposit just once."""
    booking = await ctx.elicit(f"A table for {day}. How many of you?", TableBooking)
    if not await ctx.confirm(
        f"Book for {booking.guests} on {day} ({booking.seat}), with a deposit of 10?"
    ):
        return "Nothing was booked."

    def charge() -> int:
        ctx.lifespan_state.charged += 1
        return ctx.lifespan_state.charged

    number = await ctx.once("deposit", charge)
    return (
        f"Booked for {booking.name}: {booking.guests} on {day} ({booking.seat}), deposit number "
        f"{number}."
    )


@dataclass
class FormAnswer:
    """What the user did with a form, and its content if they accepted it."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] = field(default_factory=dict)


async def ask_form(
    ctx: Ctx, part: Literal["texts", "numbers", "switches", "choices", "several", "all"] = "all"
) -> ToolResult[FormAnswer]:
    """Show the user a form with each kind of field that a form may have, and give back what they
    did with it.

    Args:
        part: which kinds of fields.
    """
    several = ctx.caller.supports("multiple_choice")
    if part == "several" and not several:
        raise ToolError(
            f"Before {SEVERAL_SINCE} forms have no multiple-choice fields. Ask for another part."
        )
    try:
        content = await ctx.elicit(
            "Please check the values that are filled in.", form_of(part, several=several)
        )
    except Declined:
        return ToolResult(FormAnswer("decline"), "The user declined.")
    except Cancelled:
        return ToolResult(FormAnswer("cancel"), "The user closed the form.")
    return ToolResult(
        FormAnswer("accept", content), f"The user filled in {', '.join(content) or 'nothing'}."
    )


@dataclass
class Pizza:
    """The first form for a pizza."""

    kind: Annotated[Literal["margherita", "funghi", "your own"], Meta(title="Which one")] = (
        "margherita"
    )
    away: Annotated[bool, Meta(title="To take away")] = False


@dataclass
class Dough:
    """The form for a custom pizza."""

    topping: Annotated[str, Meta(title="What is on it", min_length=1, max_length=40)]


async def order_pizza(ctx: Ctx) -> str:
    """Ask with a form; whether there is a second and a third one depends on the answers.

    Nothing is really ordered.
    """
    pizza = await ctx.elicit("Which pizza?", Pizza)
    kind: str = pizza.kind
    if pizza.kind == "your own":
        kind = f"pizza with {(await ctx.elicit('What is on it?', Dough)).topping}"
    if pizza.away:
        minutes = await ctx.elicit(
            "In how many minutes will you be here?", Annotated[int, Meta(ge=1, le=120)]
        )
        return f"A {kind} to take away, in {minutes} minutes."
    return f"A {kind}, here."


@dataclass
class ThreeAnswers:
    """The answers to three questions that were asked at once."""

    name: str
    greeting: str
    folders: int


async def ask_together(ctx: Ctx) -> ToolResult[ThreeAnswers]:
    """Ask the user, the model and for the folders at once: in the stateless era the three
    questions travel in one result.
    """
    name, greeting, folders = await asyncio.gather(
        ctx.elicit("What is your name?", str, key="name"),
        ctx.sample("Greet somebody, in three words.", max_tokens=20, key="greeting"),
        ctx.roots(key="folders"),
    )
    found = ThreeAnswers(name, words_of(greeting), len(folders))
    return ToolResult(found, f"{found.greeting} {name} has {found.folders} folders.")


async def ask_as_tasks(ctx: Ctx, seconds: Annotated[float, Meta(ge=1, le=3600)] = 60.0) -> str:
    """Ask the user and the model at once. Under 2025-11-25 the client runs the questions as tasks.

    Args:
        seconds: how long the client keeps the tasks.
    """
    name, greeting = await asyncio.gather(
        ctx.elicit("What is your name?", str, key="name", task_ttl=seconds),
        ctx.sample("Greet somebody.", max_tokens=20, key="greeting", task_ttl=seconds),
    )
    return f"{words_of(greeting)} {name}"


async def ask_in_a_hurry(ctx: Ctx, seconds: Annotated[float, Meta(ge=0.01, le=60)] = 5.0) -> str:
    """Ask the user, and give up after a while: a client of the handshake era is told that the
    question is off.

    Args:
        seconds: how long the user has.
    """
    try:
        async with asyncio.timeout(seconds):
            return f"It is {await ctx.elicit('Quickly: which is your favourite number?', int)}."
    except TimeoutError:
        return "That took too long."


async def ask_by_hand(ctx: Ctx) -> CallToolResult | InputRequiredResult:
    """Ask with a result that is written by hand, and keep a state from one round to the next."""
    answer = ctx.input_responses.get("colour")
    if answer is None:
        schema = {
            "type": "object",
            "properties": {"colour": {"type": "string"}},
            "required": ["colour"],
        }
        params = types.ElicitRequestParams(
            message="Which colour?", mode="form", requested_schema=schema
        )
        return InputRequiredResult(
            input_requests={"colour": types.ElicitRequest(params)}, request_state="round 1"
        )
    colour = (
        (answer.get("content") or {}).get("colour", "none")
        if answer.get("action") == "accept"
        else "none"
    )
    return CallToolResult(
        content=[TextContent(f"The colour is {colour}, after {ctx.request_state}.")]
    )


async def list_roots(ctx: Ctx) -> ToolResult[list[str]]:
    """The folders that the client lets its servers work in, as they are now: they may change while
    it runs.
    """
    roots = await ctx.roots()
    words = "\n".join(f"{root.name}: {root.uri}" if root.name else root.uri for root in roots)
    return ToolResult([root.uri for root in roots], words or "There are none.")


def add_asking(server: Server) -> None:
    """Give a server the tools of this file."""
    server.tool(title="Book a table", annotations=CHANGES)(book_table)
    server.tool(title="Each kind of field", annotations=ASKS)(ask_form)
    server.tool(title="Order a pizza", annotations=ASKS)(order_pizza)
    server.tool(title="Ask all at once", annotations=ASKS)(ask_together)
    server.tool(title="Questions as tasks", annotations=ASKS)(ask_as_tasks)
    server.tool(title="Ask in a hurry", annotations=ASKS)(ask_in_a_hurry)
    server.tool(title="Ask by hand", annotations=ASKS)(ask_by_hand)
    server.tool(title="Folders", annotations=ASKS)(list_roots)
