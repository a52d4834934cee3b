"""The recorded scenarios of a connection's life, of tools, resources, prompts and completion."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from interlock import (
    Audio,
    CallToolResult,
    Client,
    Context,
    Icon,
    Image,
    McpError,
    ResourceContents,
    ResourceLink,
    Server,
    ServerInfo,
    ServerLimits,
    TextContent,
    ToolAnnotations,
    ToolError,
    assistant,
    user,
)
from interlock import types as t
from interlock.wire.revisions import R3
from tests.tapes.scenarios import fresh, refused, scenario

# -- the life of a connection ----------------------------------------------------------------------


def plain(revision: str) -> Server:
    """Nothing but a name."""
    return fresh(
        info=ServerInfo(title="The taped server", website_url="https://example.com"),
        instructions="Ask for nothing.",
    )


@scenario("life", "Open, make sure that the server is there, set a log level, close.", plain)
async def life(client: Client) -> None:
    """As each era has it."""
    await client.ping()
    await client.set_log_level("warning")
    await client.ping()


def of_one_revision(revision: str) -> Server:
    """A server that speaks one revision only."""
    return fresh(revisions=[revision])


@scenario(
    "probe",
    "A client that speaks everything meets a server that speaks one revision.",
    of_one_revision,
    options={"revision": None},
)
async def probe(client: Client) -> None:
    """`server/discover` first, and `initialize` where that leads nowhere."""
    await client.ping()


# -- tools -----------------------------------------------------------------------------------------


class Place(msgspec.Struct):
    """A place."""

    name: str
    north: float


def tool_server(revision: str) -> Server:
    """Tools of every kind of value."""
    server = fresh(limits=ServerLimits(page_size=3))

    @server.tool(
        title="Add",
        annotations=ToolAnnotations(read_only_hint=True),
        icons=[Icon(src="https://example.com/add.png")],
    )
    async def add(
        a: int, b: Annotated[int, msgspec.Meta(ge=0, description="what to add")] = 1
    ) -> int:
        """Add two numbers."""
        return a + b

    @server.tool(meta={"example.com/shelf": 3})
    async def show(
        kind: Literal["text", "image", "audio", "link", "embedded", "mixed", "result"],
    ) -> Any:
        """A value of a kind."""
        return {
            "text": "Grüße",
            "image": Image(data=b"png", format="png"),
            "audio": Audio(data=b"wav", format="wav"),
            "link": ResourceLink(
                uri="note://1", name="one", title="Note one", mime_type="text/plain"
            ),
            "embedded": ResourceContents(uri="note://1", mime_type="text/plain", text="Buy milk"),
            "mixed": ["one", Image(data=b"png", format="png"), None, "two"],
            "result": CallToolResult(
                content=[TextContent("by hand")], meta={"example.com/cost": 2}
            ),
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


@scenario(
    "tools-structured",
    "Structured content: an object, a number, and a list that only the newest revision can carry.",
    tool_server,
)
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


# -- resources and prompts -------------------------------------------------------------------------


def resource_server(revision: str) -> Server:
    """Resources of every kind."""
    server = fresh()
    server.add_resource(
        "note://static",
        "Nothing changes.",
        name="static",
        title="A note",
        annotations=t.Annotations(priority=0.5),
    )
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


@scenario(
    "resources",
    "Lists, templates, text, bytes, what may be kept, and what is not there.",
    resource_server,
)
async def resources(client: Client) -> None:
    """One after the other."""
    await client.list_resources()
    await client.list_resource_templates()
    for uri in (
        "note://static",
        "file:///pixel.png",
        "config://settings",
        "config://settings",
        "note://one",
    ):
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


@scenario(
    "completion",
    "Values for the arguments of a prompt, and for one that is not there.",
    prompt_server,
)
async def completion(client: Client) -> None:
    """By a function, with what is known besides, and by the type."""
    await client.complete("trip", "city", "os")
    await client.complete("trip", "city", "os", arguments={"season": "winter"})
    await client.complete("trip", "season", "w")
    await refused(client.complete("trip", "hotel", ""))
    await refused(client.complete("journey", "city", ""))
