"""Programs of server authors that must type-check, with the types that the checker must see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, assert_type

import msgspec

from interlock import (
    CallToolResult,
    Context,
    Exchange,
    Forbidden,
    Handler,
    Image,
    InputRequiredResult,
    Principal,
    Progress,
    QuestionSettings,
    ResourceContents,
    Server,
    TextContent,
    ToolAnnotations,
    assistant,
    user,
)
from interlock.exchange import AnyResult
from interlock.transport.http.app import HttpApp
from interlock.types import CreateMessageResult, PromptMessage, Root


class Seat(msgspec.Struct):
    """What a tool asks for."""

    row: int
    letter: str = "A"


@dataclass
class State:
    """What the lifespan gives."""

    connections: int


@asynccontextmanager
async def lifespan(server: Server) -> AsyncIterator[State]:
    """A lifespan."""
    yield State(connections=1)


def counting(handler: Handler) -> Handler:
    """A middleware."""

    async def handle(x: Exchange) -> AnyResult:
        return await handler(x)

    return handle


server = Server(
    "typed",
    "1.0",
    lifespan=lifespan,
    middleware=[counting],
    instructions="Be kind.",
    questions=QuestionSettings(suspend=False),
)


# -- decorators keep the type of what they decorate


@server.tool
async def add(a: int, b: int = 1) -> int:
    """With no parentheses."""
    return a + b


@server.tool(
    "subtract",
    title="Subtract",
    annotations=ToolAnnotations(read_only_hint=True),
    timeout=2.5,
    tags=["maths"],
)
def minus(a: int, b: int) -> int:
    """With parentheses."""
    return a - b


@server.tool()
async def picture() -> Image | list[TextContent]:
    """With empty ones."""
    return Image(data=b"")


@server.tool
async def count(to: int) -> AsyncIterator[Progress | str]:
    """A generator."""
    yield Progress(1, to)
    yield "done"


@server.resource("note://{name}", mime_type="text/plain")
async def note(name: str) -> ResourceContents | None:
    """A template."""
    return None


@server.prompt
def story(topic: str) -> list[list[PromptMessage]]:
    """A prompt."""
    return [user(f"Tell me of {topic}."), assistant("Once upon a time,")]


@server.completion("story", "topic")
def topics(value: str) -> list[str]:
    """A completion."""
    return [value]


assert_type(minus(3, 2), int)
assert_type(topics("x"), list[str])
assert_type(story("x"), list[list[PromptMessage]])


async def calls() -> None:
    """What was decorated is called as before."""
    assert_type(await add(1), int)
    assert_type(await note("x"), ResourceContents | None)
    assert_type(await picture(), Image | list[TextContent])


# -- the context


@server.tool
async def book(day: str, ctx: Context[State]) -> str:
    """Everything that a context gives."""
    assert_type(ctx.lifespan_state, State)
    assert_type(ctx.lifespan_state.connections, int)
    assert_type(await ctx.elicit("Which seat?", Seat), Seat)
    assert_type(await ctx.elicit("How many?", int), int)
    assert_type(
        await ctx.elicit("Which colours?", list[Literal["red", "blue"]]),
        list[Literal["red", "blue"]],
    )
    assert_type(await ctx.elicit("Which colour?", Literal["red", "blue"]), Any)
    perhaps: int | None = await ctx.elicit("How many, if any?", int | None)
    print(perhaps)
    assert_type(await ctx.elicit("A form?", {"properties": {"a": {"type": "string"}}}), Any)
    assert_type(await ctx.confirm("Sure?"), bool)
    assert_type(await ctx.elicit_url("Sign in.", "https://example.com"), None)
    assert_type(await ctx.sample("Why?", max_tokens=10), CreateMessageResult)
    assert_type(await ctx.sample("How many?", result_type=int, retries=1), int)
    assert_type(await ctx.roots(), list[Root])
    assert_type(await ctx.read_resource("note://x"), list[ResourceContents])
    ctx.progress(1, 2, "half")
    ctx.log.info({"any": ["json"]}, logger="books")
    return (await ctx.elicit("Which seat?", Seat)).letter


@server.tool
def blocking(ctx: Context[State]) -> str:
    """A plain function waits in its thread."""
    assert_type(ctx.wait(ctx.elicit("Which seat?", Seat)), Seat)
    return ctx.wait(ctx.elicit("A name?", str))


@server.tool
async def plain(ctx: Context) -> Any:
    """A context without a type for its state: anything."""
    assert_type(ctx.lifespan_state, Any)
    return (
        InputRequiredResult(request_state="x")
        if ctx.input_responses
        else CallToolResult(content=[TextContent("done")])
    )


@server.tool(scopes=["files:write"])
async def publish(ctx: Context) -> str:
    """Scopes, and who asks."""
    assert_type(ctx.principal, Principal | None)
    assert_type(ctx.require("files:write", "mail:send"), None)
    if ctx.principal is None or ctx.principal.actor:
        raise Forbidden("files:write", message="Only in person")
    return ctx.principal.subject


@server.resource("files://{name}", scopes={"files:read"})
async def file(name: str) -> str:
    """A family of resources for some."""
    return name


def guard(app: Any) -> Any:
    """A guard is any ASGI middleware."""
    return app


if __name__ == "__main__":
    server.run("http", guard=guard)
    assert_type(server.http_app(guard=guard), HttpApp)
    server.run()
    server.run(transport="stdio")
    server.run("tcp", host="127.0.0.1", port=4000)
