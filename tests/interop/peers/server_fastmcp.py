"""The catalogue, served by FastMCP 4 over stdio, or over HTTP (`streamable-http PORT`, `sse PORT`).

Run by FastMCP's own Python.
"""

import base64
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import anyio
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Message
from fastmcp.utilities.types import Audio, Image
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolListChangedNotification,
)

warnings.simplefilter("ignore")  # what 2026-07-28 deprecates is still part of the older revisions

server = FastMCP("catalogue", version="1.2.3", instructions="Try everything.")

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
INSIDE = EmbeddedResource(
    resource=TextResourceContents(uri="note://inside", mime_type="text/plain", text="inside")
)
GUEST = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
VISIT = "Please sign in"
PAGE = "https://example.com/sign-in"


@dataclass
class Weather:
    city: str
    celsius: float


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


@server.tool(output_schema=None)
async def media() -> list[Any]:
    """Give a picture and a sound."""
    return [
        Image(data=base64.b64decode(PIXEL), format="png"),
        Audio(data=base64.b64decode(WAV), format="wav"),
    ]


@server.tool(output_schema=None)
async def links() -> list[Any]:
    """Give a text, a link and a resource."""
    return [
        TextContent(text="Two of them:"),
        ResourceLink(uri="note://board", name="board"),
        INSIDE,
    ]


@server.tool
async def fail() -> str:
    """Fail, always."""
    raise ToolError("It is broken.")


@server.tool
async def chatter(ctx: Context) -> str:
    """Write to the log at three levels."""
    await ctx.debug("one")
    await ctx.info("two")
    await ctx.warning("three")
    return "said"


@server.tool
async def count(to: int, ctx: Context) -> str:
    """Count, and report progress."""
    for n in range(1, to + 1):
        await ctx.report_progress(n, to, f"at {n}")
    return f"counted to {to}"


def stateless(ctx: Context) -> bool:
    return ctx.request_context is not None and ctx.request_context.protocol_version == "2026-07-28"


@server.tool(output_schema=None)
async def ask_guest(ctx: Context) -> str | InputRequiredResult:
    """Ask the person for a name and an age."""
    if stateless(ctx):
        answer: Any = (ctx.input_responses or {}).get("guest")
        if answer is None:
            question = ElicitRequestFormParams(message="Who are you?", requested_schema=GUEST)
            return InputRequiredResult(input_requests={"guest": ElicitRequest(params=question)})
        answer = ElicitResult.model_validate(answer, from_attributes=True)
    else:
        answer = await ctx.session.elicit("Who are you?", GUEST, related_request_id=ctx.request_id)
    return (
        f"accept {answer.content['name']} {answer.content['age']}"
        if answer.action == "accept"
        else answer.action
    )


@server.tool(output_schema=None)
async def ask_visit(ctx: Context) -> str | InputRequiredResult:
    """Ask the person to visit a page."""
    if stateless(ctx):
        answer: Any = (ctx.input_responses or {}).get("visit")
        if answer is None:
            return InputRequiredResult(
                input_requests={
                    "visit": ElicitRequest(params=ElicitRequestURLParams(message=VISIT, url=PAGE))
                }
            )
        answer = ElicitResult.model_validate(answer, from_attributes=True)
    else:
        answer = await ctx.session.elicit_url(
            VISIT, PAGE, "sign-in-1", related_request_id=ctx.request_id
        )
    return "visited" if answer.action == "accept" else "not visited"


@server.tool(output_schema=None)
async def ask_model(prompt: str, ctx: Context) -> str | InputRequiredResult:
    """Ask the client's model."""
    messages = [SamplingMessage(role="user", content=TextContent(text=prompt))]
    if stateless(ctx):
        said: Any = (ctx.input_responses or {}).get("model")
        if said is None:
            question = CreateMessageRequestParams(messages=messages, max_tokens=50)
            return InputRequiredResult(
                input_requests={"model": CreateMessageRequest(params=question)}
            )
        said = CreateMessageResult.model_validate(said, from_attributes=True)
    else:
        said = await ctx.session.create_message(
            messages, max_tokens=50, related_request_id=ctx.request_id
        )
    return said.content.text if isinstance(said.content, TextContent) else "no text"


@server.tool(output_schema=None)
async def ask_roots(ctx: Context) -> str | InputRequiredResult:
    """Ask which folders may be used."""
    if stateless(ctx):
        found: Any = (ctx.input_responses or {}).get("roots")
        if found is None:
            return InputRequiredResult(input_requests={"roots": ListRootsRequest()})
        found = ListRootsResult.model_validate(found, from_attributes=True)
    else:
        found = await ctx.session.list_roots()
    return " ".join(str(root.uri) for root in found.roots)


cancelled = 0


@server.tool
async def wait(ctx: Context) -> str:
    """Wait until the call is cancelled."""
    global cancelled
    await ctx.report_progress(1, 2, "waiting")
    try:
        await anyio.sleep_forever()
    finally:
        cancelled += 1
    return "woken"


@server.tool
async def cancellations() -> int:
    """Say how many calls were cancelled."""
    return cancelled


@server.tool
async def grow(ctx: Context) -> str:
    """Add a tool."""
    server.tool(echo, name="extra")
    await ctx.send_notification(ToolListChangedNotification())
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


@server.prompt
async def greet(name: str) -> list[Message]:
    """Greet somebody."""
    return [Message(f"Greet {name}."), Message(f"Hello, {name}!", role="assistant")]


@server.prompt
async def picture() -> list[Message]:
    """Look at a picture and a note."""
    return [Message(ImageContent(data=PIXEL, mime_type="image/png")), Message(INSIDE)]


@server.completion
def complete(ref: Any, argument: Any, context: Any) -> list[str]:
    return [name for name in ("ada", "alan", "grace") if name.startswith(argument.value)]


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run(
            sys.argv[1],
            port=int(sys.argv[2]),
            host="127.0.0.1",
            show_banner=False,
            log_level="error",
        )
    else:
        server.run(show_banner=False)
