"""Every feature once, to look at and to test clients with; `interlock serve everything` runs it over stdio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta

from interlock import (
    Audio,
    CallToolResult,
    Context,
    EmbeddedResource,
    File,
    Icon,
    Image,
    InputRequiredResult,
    Progress,
    ResourceContents,
    ResourceLink,
    Server,
    TextContent,
    ToolAnnotations,
    ToolError,
    assistant,
    types,
    user,
)

from . import dice
from .samples import png, wav

GREETINGS = {"english": "Hello", "french": "Bonjour", "german": "Guten Tag", "japanese": "Konnichiwa", "spanish": "Hola"}
CITIES = {"france": ["Lyon", "Nantes", "Paris"], "japan": ["Kyoto", "Osaka", "Tokyo"], "spain": ["Barcelona", "Bilbao", "Madrid"]}
COUNTER = "everything://counter"
PURE = ToolAnnotations(read_only_hint=True, open_world_hint=False)


@dataclass
class Board:
    """What the server remembers while it runs: the state that the lifespan gives to every call."""

    count: int = 0
    charged: int = 0
    extras: int = 0


@asynccontextmanager
async def lifespan(_: Server) -> AsyncIterator[Board]:
    """One board from the first peer to the last."""
    yield Board()


server = Server(
    "everything",
    "1.0.0",
    title="Everything",
    description="Shows each feature of the protocol once.",
    instructions="A server to try clients with. Nothing that it does has any effect outside of it.",
    icons=[Icon(src="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E", mime_type="image/svg+xml", sizes=["any"])],
    lifespan=lifespan,
    page_size=10,
)


# -- what a tool may return ---------------------------------------------------------------------------------------


@server.tool(title="Echo", annotations=PURE)
async def echo(text: str) -> str:
    """Say the same again."""
    return text


@server.tool(annotations=PURE)
def add(a: int, b: int) -> int:
    """Add two whole numbers; a plain function, which runs in a thread."""
    return a + b


@server.tool(annotations=PURE)
async def divide(a: float, b: float) -> float:
    """Divide, and fail in words where that cannot be done."""
    if b == 0:
        raise ToolError("Nothing can be divided by zero. Give another b.")
    return a / b


@server.tool(annotations=PURE)
async def is_even(number: int) -> bool:
    """Whether a number is even."""
    return number % 2 == 0


@server.tool(annotations=PURE)
async def nothing() -> None:
    """Return nothing at all."""


@server.tool(annotations=PURE)
async def some_bytes(length: Annotated[int, Meta(ge=1, le=1000)] = 16) -> bytes:
    """Return bytes, which travel as a blob.

    Args:
        length: how many.
    """
    return bytes(n % 256 for n in range(length))


@server.tool(annotations=PURE)
async def picture(red: Annotated[int, Meta(ge=0, le=255)] = 200) -> Image:
    """Return a small picture."""
    return Image(data=png(red))


@server.tool(annotations=PURE)
async def sound() -> Audio:
    """Return a tenth of a second of sound."""
    return Audio(data=wav())


@server.tool(annotations=PURE)
async def document() -> File:
    """Return a file, embedded in the result."""
    return File(data="# Everything\n\nA document that a tool made.\n", name="everything.md")


@server.tool(annotations=PURE)
async def links() -> list[ResourceLink]:
    """Return links to resources, to be read or not."""
    return [ResourceLink(uri=COUNTER, name="counter"), ResourceLink(uri="everything://picture.png", name="picture", mime_type="image/png")]


@server.tool(annotations=PURE)
async def mixture() -> list[Any]:
    """Return text, a picture and an embedded resource in one result."""
    resource = ResourceContents(uri="everything://note", mime_type="text/plain", text="An embedded note.")
    return ["Text first.", Image(data=png(0)), EmbeddedResource(resource=resource)]


@dataclass
class Reading:
    """What a thermometer says."""

    place: str
    celsius: float
    sky: Literal["clear", "cloudy", "rain"] = "clear"


@server.tool(annotations=PURE)
async def measure(place: str) -> Reading:
    """Return structured data, with an output schema that comes from the type."""
    return Reading(place, float(len(place)), "cloudy")


@server.tool(annotations=PURE)
async def count_words(text: str) -> dict[str, int]:
    """Return a mapping: how often each word of a text comes."""
    words = text.lower().split()
    return {word: words.count(word) for word in sorted(set(words))}


@server.tool(annotations=PURE)
async def whole_result() -> CallToolResult:
    """Return the result object itself, for full control."""
    said = TextContent("For the user's eyes.", annotations=types.Annotations(audience=["user"], priority=1.0))
    return CallToolResult(content=[said], meta={"example.com/made-by": "hand"})


@server.tool(
    annotations=PURE,
    input_schema={
        "type": "object",
        "properties": {"celsius": {"type": "number"}, "fahrenheit": {"type": "number"}},
        "oneOf": [{"required": ["celsius"]}, {"required": ["fahrenheit"]}],
        "additionalProperties": False,
    },
)
async def convert(arguments: dict[str, float]) -> str:
    """Convert a temperature; its schema says what Python's types cannot: one of the two, not both."""
    if "celsius" in arguments:
        return f"{arguments['celsius'] * 9 / 5 + 32:g} °F"
    return f"{(arguments['fahrenheit'] - 32) * 5 / 9:g} °C"


@server.tool(annotations=PURE)
async def broken() -> str:
    """Fail in a way that nobody foresaw: the client gets a plain sentence and a reference, the log all the rest."""
    raise RuntimeError("this text is for the server's log only")


dice.offer(server)  # a tool with an app


# -- telling: progress, logs, cancellation, limits -----------------------------------------------------------------


@server.tool(annotations=PURE)
async def work(ctx: Context, steps: Annotated[int, Meta(ge=1, le=100)] = 3) -> str:
    """Work in steps, with progress and a log message for each."""
    for step in range(1, steps + 1):
        ctx.progress(step, steps, f"step {step} of {steps}")
        ctx.log.info({"step": step}, logger="work")
        await asyncio.sleep(0)
    return f"Done in {steps} steps."


@server.tool(annotations=PURE)
async def count_down(start: Annotated[int, Meta(ge=1, le=100)] = 3) -> AsyncIterator[Progress | str]:
    """Yield progress and, last, the result: an async generator."""
    for number in range(start):
        yield Progress(number + 1, start, str(start - number))
    yield "Lift-off."


@server.tool(annotations=PURE)
async def log_levels(ctx: Context) -> str:
    """Write one message at each level; the client says from which level on it wants them."""
    for level in types.LOGGING_LEVELS:
        ctx.log.write(level, f"A message at the level {level}.")
    return f"Wrote {len(types.LOGGING_LEVELS)} messages."


@server.tool(annotations=PURE)
async def sleep(seconds: Annotated[float, Meta(ge=0, le=60)]) -> str:
    """Wait, until the call is cancelled or the time is over."""
    await asyncio.sleep(seconds)
    return f"Slept for {seconds:g} seconds."


@server.tool(annotations=PURE)
def sleep_in_thread(seconds: Annotated[float, Meta(ge=0, le=60)], ctx: Context) -> str:
    """Wait in a thread, which looks now and then whether anybody still waits for it."""
    pause = threading.Event()
    for _ in range(int(seconds * 100)):
        if ctx.cancelled:
            return "Nobody waits for this any more."
        pause.wait(0.01)
    return f"Slept for {seconds:g} seconds."


@server.tool(annotations=PURE, timeout=0.1)
async def too_slow() -> str:
    """Take longer than this tool is allowed to."""
    await asyncio.sleep(60)
    return "This is never seen."


@server.tool(annotations=PURE, concurrency=1, queue=1)
async def one_at_a_time(seconds: Annotated[float, Meta(ge=0, le=5)] = 0.05) -> str:
    """Let one call run and one wait; a third is refused at once."""
    await asyncio.sleep(seconds)
    return "My turn is over."


@server.tool(annotations=PURE)
async def who_am_i(ctx: Context) -> dict[str, Any]:
    """What the server knows of the one who asks."""
    info = ctx.caller.info
    return {"revision": ctx.caller.revision, "era": ctx.caller.era.value, "client": info.name if info is not None else None}


# -- asking: the person, the model, the folders --------------------------------------------------------------------


@dataclass
class Booking:
    """The form for a table."""

    guests: Annotated[int, Meta(ge=1, le=12, title="Guests")]
    seat: Annotated[Literal["inside", "garden", "window"], Meta(title="Where")] = "inside"
    name: Annotated[str, Meta(title="Name", max_length=80)] = "Guest"


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False))
async def book_table(day: str, ctx: Context[Board]) -> str:
    """Book a table: ask the person with a form, ask for a yes, and charge a deposit just once."""
    booking = await ctx.elicit(f"A table for {day}. How many of you?", Booking)
    if not await ctx.confirm(f"Book for {booking.guests} on {day} ({booking.seat}), with a deposit of 10?"):
        return "Nothing was booked."

    def charge() -> int:
        ctx.state.charged += 1
        return ctx.state.charged

    number = await ctx.once("deposit", charge)
    return f"Booked for {booking.name}: {booking.guests} on {day} ({booking.seat}), deposit number {number}."


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=True))
async def sign_in(ctx: Context) -> str:
    """Send the person to a page, as for signing in."""
    await ctx.elicit_url("Please sign in on this page.", "https://example.com/sign-in")
    return "The person went to the page."


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=True))
async def ask_model(question: str, ctx: Context) -> str:
    """Ask the client's own model."""
    answer = await ctx.sample(question, system="Answer in one sentence.", max_tokens=200)
    blocks = answer.content if isinstance(answer.content, list) else [answer.content]
    return "\n".join(block.text for block in blocks if isinstance(block, TextContent))


@server.tool(annotations=PURE)
async def list_roots(ctx: Context) -> list[str]:
    """The folders that the client lets its servers work in."""
    return [root.uri for root in await ctx.roots()]


@server.tool(annotations=PURE)
async def ask_by_hand(ctx: Context) -> CallToolResult | InputRequiredResult:
    """Ask with a result that is written by hand, and keep a state from one round to the next."""
    answer = ctx.input_responses.get("colour")
    if answer is None:
        schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
        params = types.ElicitRequestParams(message="Which colour?", mode="form", requested_schema=schema)
        return InputRequiredResult(input_requests={"colour": types.ElicitRequest(params)}, request_state="round 1")
    colour = (answer.get("content") or {}).get("colour", "none") if answer.get("action") == "accept" else "none"
    return CallToolResult(content=[TextContent(f"The colour is {colour}, after {ctx.request_state}.")])


# -- resources -----------------------------------------------------------------------------------------------------

server.add_resource(
    "everything://docs/readme.md",
    "# Everything\n\nA text that never changes.\n",
    title="Read me",
    annotations=types.Annotations(audience=["user", "assistant"], priority=0.8),
    ttl_ms=3_600_000,
    cache_scope="public",
)


@server.resource("everything://picture.png", title="A picture", mime_type="image/png")
async def stored_picture() -> bytes:
    """A picture, as bytes."""
    return png(128)


@server.resource("everything://greetings/{language}/{name}", title="A greeting")
async def greeting(language: str, name: str) -> str | None:
    """A greeting in one of a few languages; there is none in the others."""
    words = GREETINGS.get(language)
    return f"{words}, {name}!" if words is not None else None


@server.completion("everything://greetings/{language}/{name}", "language")
async def complete_language(value: str) -> list[str]:
    """The languages that begin like this."""
    return [language for language in GREETINGS if language.startswith(value.lower())]


@server.resource(COUNTER, name="counter", title="A counter", mime_type="application/json")
async def counter(ctx: Context[Board]) -> dict[str, int]:
    """A number that changes with each call of `tick`; subscribe to hear of it."""
    return {"count": ctx.state.count}


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False))
async def tick(ctx: Context[Board]) -> int:
    """Count one up, and tell whoever watches the counter."""
    ctx.state.count += 1
    ctx.updated(COUNTER)
    return ctx.state.count


@server.tool(annotations=PURE)
async def read_counter(ctx: Context) -> str:
    """Read a resource of this server from within a tool."""
    (contents,) = await ctx.read_resource(COUNTER)
    return contents.text or ""


# -- features that come and go -------------------------------------------------------------------------------------


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False))
async def grow(ctx: Context[Board]) -> str:
    """Add a tool and a prompt while the server runs; whoever listens is told that the lists are not as they were."""
    ctx.state.extras += 1
    number = ctx.state.extras

    async def extra() -> str:
        return f"I am extra {number}."

    server.add_tool(extra, name=f"extra_{number}", description="A tool that came later.", annotations=PURE)
    server.add_prompt(extra, name=f"extra_{number}", description="A prompt that came later.")
    return f"extra_{number}"


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False))
async def shrink(ctx: Context[Board]) -> str:
    """Take the latest extra tool and prompt away again."""
    if ctx.state.extras == 0:
        raise ToolError("There is no extra tool. Call grow first.")
    name = f"extra_{ctx.state.extras}"
    ctx.state.extras -= 1
    server.remove_tool(name)
    server.remove_prompt(name)
    return name


# -- prompts -------------------------------------------------------------------------------------------------------


@server.prompt(title="Review code")
async def review(code: str, language: Literal["python", "rust", "typescript"] = "python") -> str:
    """Ask for a review.

    Args:
        code: what to review.
        language: what it is written in; a Literal completes by itself.
    """
    return f"Please review this {language} code:\n\n{code}"


@server.prompt(title="Plan a trip")
async def trip(country: str, city: str) -> list[Any]:
    """A conversation with a picture and an embedded resource, in several messages."""
    notes = ResourceContents(uri=f"everything://notes/{city}", mime_type="text/plain", text=f"{city} is in {country.title()}.")
    return [
        user(f"I would like to see {city}. This is how I imagine it:", Image(data=png(90))),
        assistant("A fine choice. What do you know of it?"),
        user(notes),
    ]


@server.completion("trip", "country")
async def complete_country(value: str) -> list[str]:
    """The countries that begin like this."""
    return [country for country in CITIES if country.startswith(value.lower())]


@server.completion("trip", "city")
async def complete_city(value: str, arguments: dict[str, str]) -> list[str]:
    """The cities of the country that was given before."""
    return [city for city in CITIES.get(arguments.get("country", ""), []) if city.lower().startswith(value.lower())]


if __name__ == "__main__":
    server.run()
