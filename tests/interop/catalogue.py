"""The small server that each maker's library is asked to be, here with Interlock: one feature of
each kind, with fixed answers.

The others are `peers/server_*`. A client that finds the same in all of them can talk to all of
them.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from dataclasses import dataclass

from interlock import (
    REVISIONS,
    Audio,
    Cancelled,
    Context,
    Declined,
    EmbeddedResource,
    Image,
    ResourceContents,
    ResourceLink,
    Server,
    TextContent,
    ToolError,
    assistant,
    types,
    user,
)

words = (
    sys.argv[1:] if __name__ == "__main__" else []
)  # as a program it may be told to be a server of older days, or one on the web
port = int(words.pop(0)) if words and words[0].isdigit() else None
served = words
server = Server("catalogue", "1.2.3", instructions="Try everything.", revisions=served or REVISIONS)

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
)
WAV = base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=")
NAMES = ("ada", "alan", "grace")


@dataclass
class Weather:
    """What it is like in a city."""

    city: str
    celsius: float


@dataclass
class Guest:
    """Who is asked."""

    name: str
    age: int


@server.tool
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool
async def weather(city: str) -> Weather:
    """Say what it is like in a city."""
    return Weather(city, 21.5)


@server.tool
async def echo(text: str) -> str:
    """Say the same again."""
    return text


@server.tool
async def media() -> list[Image | Audio]:
    """Give a picture and a sound."""
    return [Image(data=PIXEL, format="png"), Audio(data=WAV, format="wav")]


@server.tool
async def links() -> list[TextContent | ResourceLink | EmbeddedResource]:
    """Give a text, a link and a resource."""
    return [
        TextContent("Two of them:"),
        ResourceLink(uri="note://board", name="board"),
        EmbeddedResource(
            resource=ResourceContents(uri="note://inside", mime_type="text/plain", text="inside")
        ),
    ]


@server.tool
async def fail() -> str:
    """Fail, always."""
    raise ToolError("It is broken.")


@server.tool
async def chatter(ctx: Context) -> str:
    """Write to the log at three levels."""
    ctx.log.debug("one")
    ctx.log.info("two")
    ctx.log.warning("three")
    return "said"


@server.tool
async def count(to: int, ctx: Context) -> str:
    """Count, and report progress."""
    for n in range(1, to + 1):
        ctx.progress(n, to, f"at {n}")
    return f"counted to {to}"


@server.tool
async def ask_guest(ctx: Context) -> str:
    """Ask the person for a name and an age."""
    try:
        guest = await ctx.elicit("Who are you?", Guest)
    except Declined:
        return "decline"
    except Cancelled:
        return "cancel"
    return f"accept {guest.name} {guest.age}"


@server.tool
async def ask_visit(ctx: Context) -> str:
    """Ask the person to visit a page."""
    try:
        await ctx.elicit_url("Please sign in", "https://example.com/sign-in")
    except (Declined, Cancelled):
        return "not visited"
    return "visited"


@server.tool
async def ask_model(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    said = (await ctx.sample(prompt, max_tokens=50)).content
    return said.text if isinstance(said, TextContent) else "no text"


@server.tool
async def ask_roots(ctx: Context) -> str:
    """Ask which folders may be used."""
    return " ".join(root.uri for root in await ctx.roots())


cancelled = 0


@server.tool
async def wait(ctx: Context) -> str:
    """Wait until the call is cancelled."""
    global cancelled
    ctx.progress(1, 2, "waiting")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancelled += 1
        raise
    return "woken"


@server.tool
async def cancellations() -> int:
    """Say how many calls were cancelled."""
    return cancelled


@server.tool
async def touch() -> str:
    """Tell whoever watches that the board has changed."""
    server.updated("note://board")
    return "touched"


@server.tool
async def grow() -> str:
    """Add a tool."""
    server.add_tool(echo, name="extra", replace=True)
    return "grown"


server.add_resource("note://board", "Nothing new.", name="board", mime_type="text/plain")
server.add_resource("note://pixel", PIXEL, name="pixel", mime_type="image/png")


@server.resource("note://people/{name}", name="person", mime_type="text/plain")
async def person(name: str) -> str:
    """A person by name."""
    return f"This is {name}."


@server.prompt
async def greet(name: str) -> list[types.PromptMessage]:
    """Greet somebody."""
    return [*user(f"Greet {name}."), *assistant(f"Hello, {name}!")]


@server.prompt
async def picture() -> list[types.PromptMessage]:
    """Look at a picture and a note."""
    inside = ResourceContents(uri="note://inside", mime_type="text/plain", text="inside")
    return user(Image(data=PIXEL, format="png"), EmbeddedResource(resource=inside))


@server.completion("greet", "name")
async def names(value: str) -> list[str]:
    """People to greet."""
    return [name for name in NAMES if name.startswith(value)]


@server.completion("note://people/{name}", "name")
async def people(value: str) -> list[str]:
    """People to look up."""
    return [name for name in NAMES if name.startswith(value)]


if __name__ == "__main__":
    if port is None:
        server.run()
    else:
        server.run("http", port=port, legacy_sse=True)
