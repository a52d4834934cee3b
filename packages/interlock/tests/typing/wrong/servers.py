"""Programs of server authors that must not type-check: each marked line has the error that is named
beside it, and no other has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from interlock import (
    CallToolResult,
    Context,
    Exchange,
    Image,
    McpError,
    Progress,
    Server,
    ServerLimits,
    TextContent,
    ToolAnnotations,
)
from interlock.exchange import AnyResult


class Seat(msgspec.Struct):
    """What a tool asks for."""

    row: int
    letter: str = "A"


@dataclass
class State:
    """What the lifespan gives."""

    connections: int


server = Server("typed", 1)  # error: arg-type
server.run("http", wokers=2)  # error: call-arg
server.serve_http(prot=80)  # error: call-arg
server.http_app(grase=1)  # error: call-arg
server.add_tool(print, tittle="x")  # error: call-arg
server.add_prompt(print, tags=5)  # error: arg-type
server.add_resource("docs://a", "text", ttl=5)  # error: call-arg
Server("typed", limits=ServerLimits(concurency=2))  # error: call-arg
Server("typed", questions={"suspend": False})  # error: arg-type
Server()  # error: call-arg
Server("typed", pagesize=3)  # error: call-arg


@server.tool
async def add(a: int, b: int = 1) -> int:
    """A tool."""
    return a + b


@server.tool("subtract", tittle="Subtract")  # error: call-overload, untyped-decorator
def minus(a: int, b: int) -> int:
    """An option that there is not."""
    return a - b


@server.tool(timeout="two seconds")  # error: call-overload, untyped-decorator
def late() -> None:
    """An option of another type."""


async def calls() -> None:
    """The decorated function has kept its type."""
    await add("1")  # error: arg-type
    await add(1, c=2)  # error: call-arg
    text: str = await add(1)  # error: assignment
    print(text)
    add(1)  # error: unused-coroutine


@server.tool
async def book(day: str, ctx: Context[State]) -> str:
    """What a context does not give."""
    print(ctx.lifespan_state.conections)  # error: attr-defined
    seat = await ctx.elicit("Which seat?", Seat)
    print(seat.colum)  # error: attr-defined
    row: str = (await ctx.elicit("Which seat?", Seat)).row  # error: assignment
    if ctx.confirm("Sure?"):  # error: truthy-bool
        return row
    ctx.progress("half")  # error: arg-type
    ctx.require(["files:write"])  # error: arg-type
    print(ctx.principal.subject)  # error: union-attr
    ctx.log.write("loud", "x")  # error: arg-type
    ctx.elicit("A name?", str)  # error: unused-coroutine
    return await ctx.elicit("How many?", int)  # error: arg-type


def middleware(handler: Any) -> Any:
    """A middleware that is none."""

    async def handle(x: Exchange) -> AnyResult:
        return "done"  # error: return-value

    return handle


def results() -> None:
    """Types of the protocol take what they have, by name, and do not change."""
    Seat(rwo=3)  # error: call-arg
    ToolAnnotations(readonly=True)  # error: call-arg
    ToolAnnotations(read_only_hint="yes")  # error: arg-type
    CallToolResult([TextContent("x")])  # error: arg-type, call-arg
    CallToolResult()  # error: call-arg
    result = CallToolResult(content=[TextContent("x")])
    result.is_error = True  # error: misc
    Image(daat=b"")  # error: call-arg
    Progress()  # error: call-arg
    McpError("not found")  # error: arg-type, call-arg
