"""The matrix's tools that give and fail: every kind of value, every kind of misfortune."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import msgspec

from interlock import (
    Audio,
    CallToolResult,
    Context,
    File,
    Icon,
    Image,
    InputRequiredResult,
    McpError,
    ResourceContents,
    ResourceLink,
    Server,
    TextContent,
    ToolAnnotations,
    ToolError,
)
from tests.wired.state import PNG, WAV, Colour, State


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


def add_kinds(server: Server) -> None:
    """Tools of every kind of value."""

    @server.tool(
        title="Say hello",
        annotations=ToolAnnotations(read_only_hint=True),
        icons=[Icon(src="https://example.com/i.png")],
    )
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
            "result": CallToolResult(
                content=[TextContent("by hand")], meta={"example.com/made": "by hand"}
            ),
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
        """A list by a schema of the author's own: no object, which only the newest revision can
        say."""
        return text.split()

    @server.tool(
        input_schema={
            "type": "object",
            "properties": {"n": {"type": "integer", "minimum": 1}},
            "required": ["n"],
        },
        meta={"example.com/origin": "schema"},
    )
    async def by_schema(arguments: dict[str, Any]) -> str:
        """Arguments by a schema that Python does not know."""
        return f"{sorted(arguments)}"

    @server.tool
    async def state_is(ctx: Context[State]) -> bool:
        """Whether the lifespan has begun and not ended."""
        return ctx.lifespan_state.live

    @server.tool
    async def who(ctx: Context[State]) -> dict[str, Any]:
        """What is known of the caller."""
        info = ctx.caller.info
        return {
            "revision": ctx.caller.revision,
            "name": info.name if info else None,
            "level": ctx.caller.log_level,
        }


def add_failures(server: Server) -> None:
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
        raise ValueError("a secret of the server")

    @server.tool
    async def protest() -> str:
        """Fail with a JSON-RPC error."""
        raise McpError(4711, "Not like this.", {"why": "because"})

    @server.tool
    async def ask_in_vain() -> Any:
        """Ask for input without a Context to read it from."""
        return InputRequiredResult(request_state="?")

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
        await ctx.lifespan_state.end("released").wait()
        return "done"

    @server.tool
    async def release(ctx: Context[State]) -> str:
        """Let `alone` end, and begin anew."""
        ctx.lifespan_state.ended.pop("released", asyncio.Event()).set()
        return "released"
