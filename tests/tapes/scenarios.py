"""The scenarios of the recorded tapes: a small server each, and what a client does with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec

from interlock import (
    Audio,
    CallToolResult,
    Client,
    Context,
    Icon,
    Image,
    InterlockError,
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
from interlock import types as t
from interlock.testing import ScriptedAnswers
from interlock.wire.revisions import R3, R4, R5, REVISIONS

Drive = Callable[[Client], Awaitable[None]]
Make = Callable[..., Server]


@dataclass(frozen=True)
class Scenario:
    """One conversation: what it shows, the server, what the client does, and the revisions that it is recorded under."""

    name: str
    title: str
    server: Make
    drive: Drive
    since: str = REVISIONS[0]
    until: str = REVISIONS[-1]
    park: bool = True
    answers: Callable[[], ScriptedAnswers | None] = lambda: None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def revisions(self) -> list[str]:
        """The revisions that it is recorded under."""
        return [revision for revision in REVISIONS if self.since <= revision <= self.until]

    def make_server(self, revision: str) -> Server:
        """Its server; the one that shows a fallback speaks one revision only."""
        return self.server(revision)

    def client_options(self, revision: str) -> dict[str, Any]:
        """The options of its client, which speaks one revision unless it is to find out by itself."""
        answers = self.answers()
        return {"revision": revision, **({"answers": answers} if answers is not None else {}), **self.options}


SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str, title: str, server: Make, **more: Any) -> Callable[[Drive], Drive]:
    """Add a scenario whose client does what the decorated function does."""

    def add(drive: Drive) -> Drive:
        SCENARIOS[name] = Scenario(name, title, server, drive, **more)
        return drive

    return add


def fresh(**options: Any) -> Server:
    """A server without features."""
    return Server("taped", "1.0", **options)


async def refused(work: Awaitable[Any]) -> None:
    """Something that must fail at the client."""
    try:
        await work
    except InterlockError:
        return
    raise AssertionError("it did not fail")


# -- the life of a connection ------------------------------------------------------------------------------------------


def plain(revision: str) -> Server:
    """Nothing but a name."""
    return fresh(title="The taped server", instructions="Ask for nothing.", website_url="https://example.com")


@scenario("life", "Open, make sure that the server is there, set a log level, close.", plain)
async def life(client: Client) -> None:
    """As each era has it."""
    await client.ping()
    await client.set_log_level("warning")
    await client.ping()


def of_one_revision(revision: str) -> Server:
    """A server that speaks one revision only."""
    return fresh(revisions=[revision])


@scenario("probe", "A client that speaks everything meets a server that speaks one revision.", of_one_revision, options={"revision": None})
async def probe(client: Client) -> None:
    """`server/discover` first, and `initialize` where that leads nowhere."""
    await client.ping()


# -- tools -----------------------------------------------------------------------------------------------------------


class Place(msgspec.Struct):
    """A place."""

    name: str
    north: float


def tool_server(revision: str) -> Server:
    """Tools of every kind of value."""
    server = fresh(page_size=3)

    @server.tool(title="Add", annotations=ToolAnnotations(read_only_hint=True), icons=[Icon(src="https://example.com/add.png")])
    async def add(a: int, b: Annotated[int, msgspec.Meta(ge=0, description="what to add")] = 1) -> int:
        """Add two numbers."""
        return a + b

    @server.tool(meta={"example.com/shelf": 3})
    async def show(kind: Literal["text", "image", "audio", "link", "embedded", "mixed", "result"]) -> Any:
        """A value of a kind."""
        return {
            "text": "Grüße",
            "image": Image(data=b"png", format="png"),
            "audio": Audio(data=b"wav", format="wav"),
            "link": ResourceLink(uri="note://1", name="one", title="Note one", mime_type="text/plain"),
            "embedded": ResourceContents(uri="note://1", mime_type="text/plain", text="Buy milk"),
            "mixed": ["one", Image(data=b"png", format="png"), None, "two"],
            "result": CallToolResult(content=[TextContent("by hand")], meta={"example.com/cost": 2}),
        }[kind]

    @server.tool
    async def locate(name: str) -> Place:
        """Find a place."""
        return Place(name, 48.4)

    @server.tool(output_schema={"type": "array", "items": {"type": "integer"}})
    async def dice() -> Any:
        """Numbers, in a list."""
        return [3, 5]

    return server


@scenario("tools-list", "The tools, in pages of three.", tool_server)
async def tools_list(client: Client) -> None:
    """Both pages."""
    await client.list_tools()


@scenario("tools-call", "Results of every kind of content.", tool_server)
async def tools_call(client: Client) -> None:
    """One after the other."""
    for kind in ("text", "image", "audio", "link", "embedded", "mixed", "result"):
        await client.call_tool("show", {"kind": kind})


@scenario("tools-structured", "Structured content: an object, a number, and a list that only the newest revision can carry.", tool_server)
async def tools_structured(client: Client) -> None:
    """One after the other."""
    await client.call_tool("locate", {"name": "Ulm"})
    await client.call_tool("add", {"a": 2, "b": 3})
    await client.call_tool("dice")


def failing_server(revision: str) -> Server:
    """Tools that fail."""
    server = fresh()

    @server.tool
    async def fail(how: str) -> str:
        """Fail in a way."""
        if how == "words":
            raise ToolError("There are no seats left.")
        if how == "code":
            raise McpError(4711, "Not like this.", {"why": "because"})
        raise ValueError("a secret of the house")

    return server


@scenario("tools-errors", "Every way in which a call can fail.", failing_server)
async def tools_errors(client: Client) -> None:
    """Words for the model, a crash, a JSON-RPC error, bad arguments, an unknown tool."""
    await client.call_tool("fail", {"how": "words"})
    await client.call_tool("fail", {"how": "crash"})
    await refused(client.call_tool("fail", {"how": "code"}))
    for arguments in ({"how": 7}, {}):
        if client.revision <= R3:
            await refused(client.call_tool("fail", arguments))
        else:
            await client.call_tool("fail", arguments)
    await refused(client.call_tool("succeed"))


# -- resources and prompts ---------------------------------------------------------------------------------------------


def resource_server(revision: str) -> Server:
    """Resources of every kind."""
    server = fresh()
    server.add_resource("note://static", "Nothing changes.", name="static", title="A note", annotations=t.Annotations(priority=0.5))
    server.add_resource("file:///pixel.png", b"png", mime_type="image/png")

    @server.resource("config://settings", ttl_ms=60_000, cache_scope="public")
    async def settings() -> dict[str, bool]:
        """Data that may be kept for a minute."""
        return {"dark": True}

    @server.resource("note://{name}", mime_type="text/markdown")
    async def note(name: str) -> str | None:
        """A note by name."""
        return {"one": "# One"}.get(name)

    @server.tool
    async def touch(uri: str, ctx: Context) -> str:
        """Say that a resource has changed."""
        ctx.updated(uri)
        return "touched"

    return server


@scenario("resources", "Lists, templates, text, bytes, what may be kept, and what is not there.", resource_server)
async def resources(client: Client) -> None:
    """One after the other."""
    await client.list_resources()
    await client.list_resource_templates()
    for uri in ("note://static", "file:///pixel.png", "config://settings", "config://settings", "note://one"):
        await client.read_resource(uri)
    await refused(client.read_resource("note://nobody"))
    await refused(client.read_resource("nothing://here"))


@scenario("subscriptions", "Watching two resources, of which one is not there.", resource_server)
async def subscriptions(client: Client) -> None:
    """The first notice comes, the one for another resource does not, and none after the end."""
    async with client.watch(resources=["note://one", "nothing://here"]) as changes:
        await client.call_tool("touch", {"uri": "note://static"})
        await client.call_tool("touch", {"uri": "note://one"})
        await anext(changes)
    await client.call_tool("touch", {"uri": "note://one"})
    await client.ping()


def growing_server(revision: str) -> Server:
    """A server that grows."""
    server = fresh()

    @server.tool
    async def grow() -> str:
        """Add a tool."""
        server.add_tool(lambda: "new", name="grown")
        return "grown"

    return server


@scenario("list-changes", "A tool comes while somebody listens.", growing_server)
async def list_changes(client: Client) -> None:
    """The notice, and the new list."""
    async with client.watch(tools=True) as changes:
        await client.call_tool("grow")
        await anext(changes)
        await client.list_tools()
    await client.ping()


def prompt_server(revision: str) -> Server:
    """Prompts, and what completes their arguments."""
    server = fresh()

    @server.prompt(title="Plan a trip")
    async def trip(city: str, season: Literal["summer", "winter"] = "summer") -> list[Any]:
        """Plan a trip.

        Args:
            city: where to
        """
        return [
            user(f"Plan a {season} in {city}."),
            assistant("With pleasure."),
            Image(data=b"png", format="png"),
            ResourceContents(uri="note://1", text="Buy milk"),
        ]

    @server.completion("trip", "city")
    async def cities(value: str, arguments: dict[str, str]) -> list[str]:
        """Cities by their first letters."""
        known = ["Oslo"] if arguments.get("season") == "winter" else ["Oslo", "Ostend", "Rome"]
        return [city for city in known if city.lower().startswith(value.lower())]

    return server


@scenario("prompts", "A list, a prompt with everything, and what is wrong.", prompt_server)
async def prompts(client: Client) -> None:
    """One after the other."""
    await client.list_prompts()
    await client.get_prompt("trip", {"city": "Rome", "season": "winter"})
    await refused(client.get_prompt("trip"))
    await refused(client.get_prompt("trip", {"city": "Rome", "season": "spring"}))
    await refused(client.get_prompt("journey"))


@scenario("completion", "Values for the arguments of a prompt, and for one that is not there.", prompt_server)
async def completion(client: Client) -> None:
    """By a function, with what is known besides, and by the type."""
    await client.complete("trip", "city", "os")
    await client.complete("trip", "city", "os", arguments={"season": "winter"})
    await client.complete("trip", "season", "w")
    await refused(client.complete("trip", "hotel", ""))
    await refused(client.complete("journey", "city", ""))


# -- what a call tells ---------------------------------------------------------------------------------------------------


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
    heard: list[float] = []
    await client.call_tool("climb", {"to": 2}, on_progress=lambda p: heard.append(p.progress))
    await client.call_tool("climb", {"to": 2})
    assert heard == [1, 2]


@scenario("cancellation", "A call that is given up is never answered.", telling_server)
async def cancellation(client: Client) -> None:
    """The call, its progress, the cancellation, and a sign of life in place of an answer."""
    running = asyncio.Event()
    task = asyncio.create_task(client.call_tool("hang", on_progress=lambda p: running.set()))
    await running.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await client.ping()


# -- questions ------------------------------------------------------------------------------------------------------------


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
        first, last = await asyncio.gather(ctx.elicit("First name?", str, key="first"), ctx.elicit("Last name?", str, key="last"))
        return f"{first} {last}"

    @server.tool
    async def sign_in(ctx: Context) -> str:
        """Ask the person to visit a page."""
        await ctx.elicit_url("Please sign in.", "https://example.com/sign-in")
        return "signed in"

    @server.tool
    async def ponder(ctx: Context) -> str:
        """Ask the client's model."""
        answer = await ctx.sample("Why?", max_tokens=50, system="Be brief.", temperature=0.5, stop=["\n"], key="why")
        return f"{answer.model} says {answer.content.text}"  # type: ignore[union-attr]  # the scripted model answers in text

    @server.tool
    async def calculate(ctx: Context) -> str:
        """Ask the client's model, with a tool for it to use."""
        tool = t.Tool(name="add", input_schema={"type": "object", "properties": {"a": {"type": "integer"}}})
        answer = await ctx.sample("2 + 3?", max_tokens=50, tools=[tool], tool_choice=t.ToolChoice(mode="required"), key="sum")
        return answer.stop_reason or "?"

    @server.tool
    async def folders(ctx: Context) -> str:
        """The client's roots."""
        return ", ".join(root.uri for root in await ctx.roots(key="folders"))

    return server


def replaying_server(revision: str) -> Server:
    """The same, running again from the top instead of waiting."""
    server = asking_server(revision)
    server.rounds.park = False
    return server


def booking() -> ScriptedAnswers:
    """Answers for three bookings: a yes, a decline, a dismissal."""
    return ScriptedAnswers(elicit=[{"row": 7, "letter": "B"}, {"confirm": True}, False, None])


async def book(client: Client) -> None:
    """Three bookings: accepted, declined, dismissed."""
    for day in ("Monday", "Tuesday", "Wednesday"):
        await client.call_tool("book", {"day": day})


scenario("elicitation", "Forms: accepted, declined, dismissed; asked straight.", asking_server, answers=booking, since=R3, until=R4)(book)
scenario("elicitation-parked", "Forms in rounds, while the tool waits.", asking_server, answers=booking, since=R5)(book)
scenario("elicitation-replayed", "Forms in rounds, the tool run again each time.", replaying_server, answers=booking, since=R5)(book)


@scenario(
    "elicitation-together",
    "Two forms at once.",
    asking_server,
    answers=lambda: ScriptedAnswers(elicit={"First": {"value": "Ada"}, "Last": {"value": "Lovelace"}}),
    since=R3,
)
async def together(client: Client) -> None:
    """They travel together."""
    await client.call_tool("names")


@scenario("elicitation-url", "A page to visit.", asking_server, answers=lambda: ScriptedAnswers(elicit=[True, False]), since=R4)
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


@scenario("sampling-tools", "The client's model wants a tool.", asking_server, answers=lambda: ScriptedAnswers(sample=[USE]), since=R4)
async def sampling_tools(client: Client) -> None:
    """One round."""
    await client.call_tool("calculate")


@scenario(
    "roots", "The client's folders, and that they have changed.", asking_server, answers=lambda: ScriptedAnswers(roots=["file:///home"])
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
