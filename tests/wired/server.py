"""The server of the matrix: every feature once, in this process or as a child (`python server.py [--replayed]`)."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec

from interlock import (
    Audio,
    CallToolResult,
    Context,
    File,
    Icon,
    Image,
    McpError,
    Progress,
    ResourceContents,
    ResourceLink,
    Server,
    TextContent,
    ToolAnnotations,
    ToolError,
    assistant,
    user,
)
from interlock.exchange import AnyResult, Exchange, Handler

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(20)
NOTES = {"one": "Buy milk", "two": "Call Ada"}


@dataclass
class State:
    """What the lifespan gives: whether the server is live, and what its tools have noted."""

    live: bool = True
    noted: dict[str, int] = field(default_factory=dict)
    ended: dict[str, asyncio.Event] = field(default_factory=dict)
    threads: dict[str, threading.Event] = field(default_factory=dict)

    def note(self, what: str) -> int:
        """Count that something happened."""
        self.noted[what] = self.noted.get(what, 0) + 1
        return self.noted[what]

    def end(self, name: str) -> asyncio.Event:
        """What is set once the call of this name has ended."""
        return self.ended.setdefault(name, asyncio.Event())


@asynccontextmanager
async def lifespan(server: Server) -> AsyncIterator[State]:
    """The state, live for as long as the server runs."""
    state = State()
    yield state
    state.live = False


def marking(handler: Handler) -> Handler:
    """Middleware: who sends `example.com/mark` gets it back in the result of a tool call."""

    async def handle(x: Exchange) -> AnyResult:
        result = await handler(x)
        mark = msgspec.json.decode(x.params.meta).get("example.com/mark") if x.method == "tools/call" else None
        if mark is not None and isinstance(result, CallToolResult):
            return msgspec.structs.replace(result, meta={**(result.meta or {}), "example.com/mark": mark})
        return result

    return handle


class Colour(Enum):
    """Some colours."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Place:
    """A place on the map."""

    name: str
    north: float
    tags: list[str] = field(default_factory=list)


class Forecast(TypedDict):
    """The weather to come."""

    days: int
    rain: bool


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


def make_server(*, park: bool = True) -> Server:
    """The server, fresh; `park` as for Server."""
    server = Server(
        "wired",
        "1.2.3",
        title="The wired server",
        instructions="Everything once.",
        lifespan=lifespan,
        middleware=[marking],
        park=park,
        page_size=7,
        asking_seconds=60,
        calls_per_peer=100,
        state_keys=[b"a key that every worker of the matrix has"],
    )
    for add in (_kinds, _failures, _telling, _questions, _changing, _resources, _prompts):
        add(server)
    return server


def _kinds(server: Server) -> None:
    """Tools of every kind of value."""

    @server.tool(title="Say hello", annotations=ToolAnnotations(read_only_hint=True), icons=[Icon(src="https://example.com/i.png")])
    async def hello(name: str) -> str:
        """Greet somebody.

        Args:
            name: whom to greet
        """
        return f"Hello, {name}!"

    @server.tool
    def add(a: int, b: int = 1) -> int:
        """Add, in a thread."""
        return a + b

    @server.tool("value")
    async def value(kind: str) -> Any:
        """A value of the kind that is asked for."""
        values: dict[str, Any] = {
            "none": None,
            "text": "äöü \u0000 \U0001f600",
            "mapping": {"a": [1, 2.5, None, True]},
            "image": Image(data=PNG, format="png"),
            "audio": Audio(data=WAV, format="wav"),
            "file": File(data=b"a,b\n1,2\n", name="table.csv"),
            "bytes": PNG,
            "link": ResourceLink(uri="note://one", name="one", mime_type="text/plain"),
            "embedded": ResourceContents(uri="note://one", text="Buy milk"),
            "mixed": ["first", Image(data=PNG, format="png"), TextContent("last")],
            "result": CallToolResult(content=[TextContent("by hand")], meta={"example.com/made": "by hand"}),
        }
        return values[kind]

    @server.tool
    async def place(name: str, colour: Colour = Colour.RED) -> Place:
        """A dataclass."""
        return Place(name, 48.4, [colour.value])

    @server.tool
    async def forecast(days: Annotated[int, msgspec.Meta(ge=1, le=14)]) -> Forecast:
        """A dict of known members."""
        return {"days": days, "rain": days > 3}

    @server.tool
    async def numbers(count: int) -> list[int]:
        """A list of numbers."""
        return list(range(count))

    @server.tool(output_schema={"type": "array", "items": {"type": "string"}})
    async def words(text: str) -> Any:
        """A list by a schema of the author's own: no object, which only the newest revision can say."""
        return text.split()

    @server.tool(
        input_schema={"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]},
        meta={"example.com/origin": "schema"},
    )
    async def by_schema(arguments: dict[str, Any]) -> str:
        """Arguments by a schema that Python does not know."""
        return f"{sorted(arguments)}"

    @server.tool
    async def state_is(ctx: Context[State]) -> bool:
        """Whether the lifespan has begun and not ended."""
        return ctx.state.live

    @server.tool
    async def who(ctx: Context[State]) -> dict[str, Any]:
        """What is known of the caller."""
        info = ctx.caller.info
        return {"revision": ctx.caller.revision, "name": info.name if info else None, "level": ctx.caller.log_level}


def _failures(server: Server) -> None:
    """Tools that fail."""

    @server.tool
    async def refuse() -> str:
        """Fail in words for the model."""
        raise ToolError("There are no seats left.")

    @server.tool
    async def crash(how: str) -> int:
        """Fail in ways that nobody foresaw."""
        if how == "exit":
            sys.exit(3)
        if how == "group":
            raise ExceptionGroup("several", [ToolError("one thing"), ToolError("another thing")])
        raise ValueError("a secret of the house")

    @server.tool
    async def protest() -> str:
        """Fail with a JSON-RPC error."""
        raise McpError(4711, "Not like this.", {"why": "because"})

    @server.tool
    async def lie() -> int:
        """Return something else than is declared."""
        return "many"  # type: ignore[return-value]  # that is the point of it

    @server.tool(timeout=0.05)
    async def late() -> str:
        """Take longer than is allowed."""
        await asyncio.Event().wait()
        return "never"

    @server.tool(concurrency=1, queue=1)
    async def alone(ctx: Context[State]) -> str:
        """Run one at a time, with one more waiting, until `release` is called."""
        ctx.progress(1)
        await ctx.state.end("released").wait()
        return "done"

    @server.tool
    async def release(ctx: Context[State]) -> str:
        """Let `alone` end, and begin anew."""
        ctx.state.ended.pop("released", asyncio.Event()).set()
        return "released"


def _telling(server: Server) -> None:
    """Tools that tell of themselves while they run, and that can be cancelled."""

    @server.tool
    async def chatter(logger: str, ctx: Context[State]) -> str:
        """Write to the log at every level."""
        for level in ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"):
            getattr(ctx.log, level)({"level": level}, logger=logger)
        return "said"

    @server.tool
    async def steps(to: int) -> AsyncIterator[Progress | str]:
        """Yield progress and, last, the result."""
        for step in range(1, to + 1):
            yield Progress(step, to, f"step {step}")
        yield "arrived"

    @server.tool
    def climb(ctx: Context[State]) -> str:
        """Report progress from a thread; what does not grow is not sent."""
        for height in (1, 2, 2, 1, 3.5):
            ctx.progress(height)
        return "up"

    @server.tool
    async def hang(name: str, ctx: Context[State]) -> str:
        """Wait until cancelled."""
        ctx.progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            ctx.state.end(name).set()
        return "never"

    @server.tool
    def spin(name: str, ctx: Context[State]) -> str:
        """Look until cancelled, in a thread."""
        over = ctx.state.threads.setdefault(name, threading.Event())
        ctx.progress(1)
        deadline = time.monotonic() + 10
        while not ctx.cancelled and time.monotonic() < deadline:
            time.sleep(0.001)
        over.set()
        return "never"

    @server.tool
    async def ended(name: str, ctx: Context[State]) -> bool:
        """Wait until the call of a name has ended."""
        if name in ctx.state.threads:
            return await asyncio.to_thread(ctx.state.threads[name].wait, 10)
        await ctx.state.end(name).wait()
        return True


def _questions(server: Server) -> None:
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
            return list(await asyncio.gather(ctx.elicit("First name?", str, key="first"), ctx.elicit("Last name?", str, key="last")))
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
        runs = ctx.state.note(f"{name} runs")
        first = await ctx.once("first", ctx.state.note, f"{name} first")
        await ctx.elicit("Go on?", bool)
        second = await ctx.once("second", ctx.state.note, f"{name} second")
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
        answer = await ctx.sample("What is 2 + 3?", max_tokens=50, tools=[listing.listing] if listing else [])
        blocks = answer.content if isinstance(answer.content, list) else [answer.content]
        return f"{answer.stop_reason}: {[type(block).__name__ for block in blocks]}"

    @server.tool
    async def folders(ctx: Context[State]) -> list[str]:
        """The client's roots."""
        return [root.uri for root in await ctx.roots()]

    @server.tool
    async def by_hand(ctx: Context[State]) -> Any:
        """Questions without await: the result says what is needed, and the next round brings it."""
        from interlock import types as t  # the long way, as few authors go it

        answers, state = ctx.input_responses, ctx.request_state
        if "name" not in answers and state is None:
            question = t.ElicitRequest(t.ElicitRequestParams(message="Your name?", requested_schema=NAME_FORM))
            return t.InputRequiredResult(input_requests={"name": question}, request_state="asked once")
        return f"{answers['name']['content']['name']} ({state})"


NAME_FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def _changing(server: Server) -> None:
    """Tools that change what there is."""

    @server.tool
    async def grow(what: str, ctx: Context[State]) -> str:
        """Add a tool, a resource or a prompt."""
        if what == "tool":
            server.add_tool(lambda: "new", name="grown", replace=True)
        elif what == "resource":
            server.add_resource("note://grown", "new", replace=True)
        else:
            server.add_prompt(lambda: "new", name="grown", replace=True)
        return what

    @server.tool
    async def shrink(what: str, ctx: Context[State]) -> str:
        """Take it away again."""
        if what == "tool":
            server.remove_tool("grown")
        elif what == "resource":
            server.remove_resource("note://grown")
        else:
            server.remove_prompt("grown")
        return what

    @server.tool
    async def touch(uri: str, ctx: Context[State]) -> str:
        """Say that a resource is not as it was."""
        ctx.updated(uri)
        return uri


def _resources(server: Server) -> None:
    """Resources of every kind."""

    server.add_resource("note://static", "Nothing changes here.", name="static", title="A note", size=21)
    server.add_resource("file:///pixel.png", PNG, mime_type="image/png")
    server.add_resource("file:///server.py", Path(__file__))

    @server.resource("config://settings", ttl_ms=60_000, cache_scope="public")
    async def settings() -> dict[str, Any]:
        """Data that becomes JSON, and that may be kept for a minute."""
        return {"dark": True, "version": 3}

    @server.resource("count://reads")
    async def reads(ctx: Context[State]) -> str:
        """How often it was read, so never the same."""
        return str(ctx.state.note("reads"))

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
        raise ValueError("a secret of the house")

    @server.tool
    async def read_inside(uri: str, ctx: Context[State]) -> str:
        """Read a resource of this server from a tool."""
        return (await ctx.read_resource(uri))[0].text or ""


def _prompts(server: Server) -> None:
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
        raise ValueError("a secret of the house")

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


if __name__ == "__main__":
    make_server(park="--replayed" not in sys.argv).run()
