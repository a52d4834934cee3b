"""The catalogue, served by the official Python SDK 1.x over stdio, or over HTTP (`streamable-http
PORT`, `sse PORT`). Run by its own Python."""

from __future__ import annotations

import base64
import sys
from dataclasses import dataclass

import anyio
from mcp.server.fastmcp import Context, FastMCP, Image
from mcp.server.fastmcp.exceptions import ToolError
from mcp.server.fastmcp.prompts.base import AssistantMessage, Message, UserMessage
from mcp.types import (
    AudioContent,
    Completion,
    CompletionArgument,
    CompletionContext,
    EmbeddedResource,
    ImageContent,
    PromptReference,
    ResourceLink,
    ResourceTemplateReference,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import AnyUrl, BaseModel

server = FastMCP("catalogue", instructions="Try everything.", log_level="ERROR")
server._mcp_server.version = "1.2.3"

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
INSIDE = EmbeddedResource(
    type="resource",
    resource=TextResourceContents(
        uri=AnyUrl("note://inside"), mimeType="text/plain", text="inside"
    ),
)


@dataclass
class Weather:
    city: str
    celsius: float


class Guest(BaseModel):
    name: str
    age: int


@server.tool()
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool()
async def weather(city: str) -> Weather:
    """Say what it is like in a city."""
    return Weather(city, 21.5)


@server.tool()
async def echo(text: str) -> str:
    """Say the same again."""
    return text


@server.tool(structured_output=False)
async def media() -> list[Image | AudioContent]:
    """Give a picture and a sound."""
    return [
        Image(data=base64.b64decode(PIXEL), format="png"),
        AudioContent(type="audio", data=WAV, mimeType="audio/wav"),
    ]


@server.tool(structured_output=False)
async def links() -> list[TextContent | ResourceLink | EmbeddedResource]:
    """Give a text, a link and a resource."""
    link = ResourceLink(type="resource_link", uri=AnyUrl("note://board"), name="board")
    return [TextContent(type="text", text="Two of them:"), link, INSIDE]


@server.tool()
async def fail() -> str:
    """Fail, always."""
    raise ToolError("It is broken.")


@server.tool()
async def chatter(ctx: Context) -> str:
    """Write to the log at three levels."""
    await ctx.debug("one")
    await ctx.info("two")
    await ctx.warning("three")
    return "said"


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Count, and report progress."""
    for n in range(1, to + 1):
        await ctx.report_progress(n, to, f"at {n}")
    return f"counted to {to}"


@server.tool()
async def ask_guest(ctx: Context) -> str:
    """Ask the person for a name and an age."""
    answer = await ctx.elicit("Who are you?", Guest)
    return (
        f"accept {answer.data.name} {answer.data.age}"
        if answer.action == "accept"
        else answer.action
    )


@server.tool()
async def ask_visit(ctx: Context) -> str:
    """Ask the person to visit a page."""
    answer = await ctx.elicit_url("Please sign in", "https://example.com/sign-in", "sign-in-1")
    return "visited" if answer.action == "accept" else "not visited"


@server.tool()
async def ask_model(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    said = await ctx.session.create_message(
        [message], max_tokens=50, related_request_id=ctx.request_id
    )
    return said.content.text if isinstance(said.content, TextContent) else "no text"


@server.tool()
async def ask_roots(ctx: Context) -> str:
    """Ask which folders may be used."""
    return " ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


cancelled = 0


@server.tool()
async def wait(ctx: Context) -> str:
    """Wait until the call is cancelled."""
    global cancelled
    await ctx.report_progress(1, 2, "waiting")
    try:
        await anyio.sleep_forever()
    finally:
        cancelled += 1
    return "woken"


@server.tool()
async def cancellations() -> int:
    """Say how many calls were cancelled."""
    return cancelled


@server.tool()
async def touch(ctx: Context) -> str:
    """Tell whoever watches that the board has changed."""
    if "note://board" in watched:
        await ctx.session.send_resource_updated(AnyUrl("note://board"))
    return "touched"


@server.tool()
async def grow(ctx: Context) -> str:
    """Add a tool."""
    server.add_tool(echo, name="extra")
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.resource("note://board", name="board", mime_type="text/plain")
async def board() -> str:
    return "Nothing new."


@server.resource("note://pixel", name="pixel", mime_type="image/png")
async def pixel() -> bytes:
    return base64.b64decode(PIXEL)


@server.resource("note://people/{name}", name="person", mime_type="text/plain")
async def person(name: str) -> str:
    """A person by name."""
    return f"This is {name}."


@server.prompt()
async def greet(name: str) -> list[Message]:
    """Greet somebody."""
    return [UserMessage(f"Greet {name}."), AssistantMessage(f"Hello, {name}!")]


@server.prompt()
async def picture() -> list[Message]:
    """Look at a picture and a note."""
    return [
        UserMessage(ImageContent(type="image", data=PIXEL, mimeType="image/png")),
        UserMessage(INSIDE),
    ]


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion:
    found = [name for name in ("ada", "alan", "grace") if name.startswith(argument.value)]
    return Completion(values=found, total=len(found), hasMore=False)


watched: set[str] = set()
low = server._mcp_server


@low.subscribe_resource()
async def subscribe(uri: AnyUrl) -> None:
    watched.add(str(uri))


@low.unsubscribe_resource()
async def unsubscribe(uri: AnyUrl) -> None:
    watched.discard(str(uri))


@low.set_logging_level()
async def set_level(level: str) -> None:
    """Taken note of and not acted upon: the SDK leaves filtering to the author."""


if __name__ == "__main__":
    kind, port = sys.argv[1:] or ("stdio", 0)
    server.settings.port = int(port)
    server.settings.log_level = "ERROR"
    server.run(kind)
