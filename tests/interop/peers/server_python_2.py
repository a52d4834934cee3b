"""The catalogue, served by the official Python SDK 2.x over stdio, or over HTTP (`streamable-http
PORT`, `sse PORT`). Run by its own Python."""

import base64
import sys
import warnings
from dataclasses import dataclass
from typing import Annotated

import anyio
from mcp.server.mcpserver import (
    AcceptedElicitation,
    AssistantMessage,
    Audio,
    CancelledElicitation,
    Context,
    DeclinedElicitation,
    Elicit,
    Image,
    ListRoots,
    MCPServer,
    Message,
    Resolve,
    Sample,
    UserMessage,
)
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    ListRootsResult,
    PromptReference,
    ResourceLink,
    ResourceTemplateReference,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel

warnings.simplefilter("ignore")  # what 2026-07-28 deprecates is still part of the older revisions

server = MCPServer("catalogue", version="1.2.3", instructions="Try everything.", log_level="ERROR")

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
INSIDE = EmbeddedResource(
    resource=TextResourceContents(uri="note://inside", mime_type="text/plain", text="inside")
)
VISIT = "Please sign in"
PAGE = "https://example.com/sign-in"


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
async def media() -> list[Image | Audio]:
    """Give a picture and a sound."""
    return [
        Image(data=base64.b64decode(PIXEL), format="png"),
        Audio(data=base64.b64decode(WAV), format="wav"),
    ]


@server.tool(structured_output=False)
async def links() -> list[TextContent | ResourceLink | EmbeddedResource]:
    """Give a text, a link and a resource."""
    return [
        TextContent(text="Two of them:"),
        ResourceLink(uri="note://board", name="board"),
        INSIDE,
    ]


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


async def guest() -> Elicit[Guest]:
    return Elicit("Who are you?", Guest)


@server.tool()
async def ask_guest(
    answer: Annotated[
        AcceptedElicitation[Guest] | DeclinedElicitation | CancelledElicitation, Resolve(guest)
    ],
) -> str:
    """Ask the person for a name and an age."""
    return (
        f"accept {answer.data.name} {answer.data.age}"
        if isinstance(answer, AcceptedElicitation)
        else answer.action
    )


@server.tool(structured_output=False)
async def ask_visit(ctx: Context) -> str | InputRequiredResult:
    """Ask the person to visit a page."""
    if ctx.protocol_version != "2026-07-28":
        answer = await ctx.elicit_url(VISIT, PAGE, "sign-in-1")
    else:
        answer = (ctx.input_responses or {}).get("visit")
        if answer is None:
            return InputRequiredResult(
                input_requests={
                    "visit": ElicitRequest(params=ElicitRequestURLParams(message=VISIT, url=PAGE))
                }
            )
        answer = ElicitResult.model_validate(answer, from_attributes=True)
    return "visited" if answer.action == "accept" else "not visited"


async def model(prompt: str) -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text=prompt))], max_tokens=50)


@server.tool()
async def ask_model(prompt: str, said: Annotated[CreateMessageResult, Resolve(model)]) -> str:
    """Ask the client's model."""
    return said.content.text if isinstance(said.content, TextContent) else "no text"


async def folders() -> ListRoots:
    return ListRoots()


@server.tool()
async def ask_roots(found: Annotated[ListRootsResult, Resolve(folders)]) -> str:
    """Ask which folders may be used."""
    return " ".join(str(root.uri) for root in found.roots)


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
    await ctx.notify_resource_updated("note://board")
    if "note://board" in watched:
        await ctx.session.send_resource_updated("note://board")
    return "touched"


@server.tool()
async def grow(ctx: Context) -> str:
    """Add a tool."""
    server.add_tool(echo, name="extra")
    await ctx.notify_tools_changed()
    if ctx.protocol_version != "2026-07-28":
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
    return [UserMessage(ImageContent(data=PIXEL, mime_type="image/png")), UserMessage(INSIDE)]


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion:
    found = [name for name in ("ada", "alan", "grace") if name.startswith(argument.value)]
    return Completion(values=found, total=len(found), has_more=False)


watched: set[str] = set()


async def subscribe(ctx: object, params: SubscribeRequestParams) -> EmptyResult:
    watched.add(str(params.uri))
    return EmptyResult()


async def unsubscribe(ctx: object, params: UnsubscribeRequestParams) -> EmptyResult:
    watched.discard(str(params.uri))
    return EmptyResult()


async def set_level(ctx: object, params: SetLevelRequestParams) -> EmptyResult:
    """Taken note of and not acted upon: the SDK leaves filtering to the author."""
    return EmptyResult()


low = server._lowlevel_server  # the high face has no words for what 2026-07-28 has no more
low.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)
low.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)

if __name__ == "__main__":
    if sys.argv[1:]:
        server.run(sys.argv[1], port=int(sys.argv[2]))
    else:
        server.run()
