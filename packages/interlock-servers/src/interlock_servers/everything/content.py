"""Content of results: text, data, images, audio, files, links, and several of them."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from interlock import (
    Audio,
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    File,
    Icon,
    Image,
    ImageContent,
    ResourceContents,
    ResourceLink,
    Server,
    TextContent,
    ToolError,
    ToolResult,
    types,
)

from .samples import DRAWN, PAINTED, png, wav
from .state import COUNTER, MADE_BY, PURE, Ctx

ICONS = [
    Icon(src=DRAWN["light"], mime_type="image/svg+xml", sizes=["any"], theme="light"),
    Icon(src=DRAWN["dark"], mime_type="image/svg+xml", sizes=["any"], theme="dark"),
    Icon(src=PAINTED, mime_type="image/png", sizes=["8x8"]),
]
BLOB = base64.b64encode(bytes(range(16))).decode()
NOTE = ResourceContents(
    uri="everything://note", mime_type="text/plain", text="An embedded note.", meta=MADE_BY
)
BYTES = ResourceContents(
    uri="everything://bytes", mime_type="application/octet-stream", blob=BLOB, meta=MADE_BY
)


async def echo(text: str) -> str:
    """Say the same again.

    Args:
        text: what to say.
    """
    return text


def add(a: Annotated[int, "The first number."], b: Annotated[int, "The second number."]) -> int:
    """Add two whole numbers; a plain function, which runs in a thread."""
    return a + b


async def divide(a: Annotated[float, "What is divided."], b: Annotated[float, "By what."]) -> float:
    """Divide, and fail in words where that cannot be done."""
    if b == 0:
        raise ToolError("Division by zero is not possible. Give another b.")
    return a / b


async def is_even(number: Annotated[int, "Any whole number."]) -> bool:
    """Whether a number is even."""
    return number % 2 == 0


async def nothing() -> None:
    """Return nothing at all."""


async def some_bytes(length: Annotated[int, Meta(ge=1, le=1000)] = 16) -> bytes:
    """Return bytes, which travel as a blob.

    Args:
        length: how many.
    """
    return bytes(n % 256 for n in range(length))


async def picture(
    red: Annotated[int, Meta(ge=0, le=255, description="How much red is in it.")] = 200,
) -> Image:
    """Return a small picture."""
    return Image(data=png(red))


async def sound() -> Audio:
    """Return a tenth of a second of sound."""
    return Audio(data=wav())


async def document() -> File:
    """Return a file, embedded in the result."""
    return File(data="# Everything\n\nA document that a tool made.\n", name="everything.md")


async def links() -> list[ResourceLink]:
    """Return links to resources, to be read or not: one that says all that a link can say, and one
    that says little.
    """
    hints = types.Annotations(
        audience=["user", "assistant"], priority=0.5, last_modified="2026-01-01T00:00:00Z"
    )
    full = ResourceLink(
        uri="everything://picture.png",
        name="picture",
        title="A picture",
        description="Eight by eight points.",
        mime_type="image/png",
        size=len(png(128)),
        annotations=hints,
        icons=ICONS,
        meta=MADE_BY,
    )
    return [ResourceLink(uri=COUNTER, name="counter"), full]


async def mixture() -> list[Any]:
    """Return text, a picture and an embedded resource in one result."""
    return ["Text first.", Image(data=png(0)), EmbeddedResource(resource=NOTE)]


async def annotated() -> list[Any]:
    """Return a block of each kind, each with annotations and `_meta`: for whom it is, how much it
    matters, since when it is so.
    """
    user = types.Annotations(audience=["user"], priority=1.0, last_modified="2026-01-01T00:00:00Z")
    model = types.Annotations(
        audience=["assistant"], priority=0.2, last_modified="2026-01-02T12:30:00Z"
    )
    return [
        TextContent("For the user.", annotations=user, meta=MADE_BY),
        TextContent("For the model.", annotations=model, meta=MADE_BY),
        ImageContent(
            data=base64.b64encode(png(60)).decode(),
            mime_type="image/png",
            annotations=user,
            meta=MADE_BY,
        ),
        AudioContent(
            data=base64.b64encode(wav()).decode(),
            mime_type="audio/wav",
            annotations=user,
            meta=MADE_BY,
        ),
        ResourceLink(uri=COUNTER, name="counter", annotations=model, meta=MADE_BY),
        EmbeddedResource(resource=NOTE, annotations=model, meta=MADE_BY),
        EmbeddedResource(resource=BYTES, annotations=user, meta=MADE_BY),
    ]


@dataclass
class Measurement:
    """A reading of a thermometer."""

    place: str
    celsius: float
    sky: Literal["clear", "cloudy", "rain"] = "clear"


async def measure(place: Annotated[str, "Where."]) -> ToolResult[Measurement]:
    """Return data under an output schema that comes from the type, and beside it words to be
    read.
    """
    reading = Measurement(place, float(len(place)), "cloudy")
    return ToolResult(reading, f"{place}: {reading.celsius:g} °C, {reading.sky}.")


async def measure_in_json(place: Annotated[str, "Where."]) -> Measurement:
    """Return the same data, and as the text its JSON: for clients that read no structured content,
    at twice the price.
    """
    return Measurement(place, float(len(place)), "cloudy")


async def count_words(
    text: Annotated[str, "Words, with spaces between them."],
) -> ToolResult[dict[str, int]]:
    """Return a mapping: how often each word of a text comes."""
    words = text.lower().split()
    found = {word: words.count(word) for word in sorted(set(words))}
    return ToolResult(found, ", ".join(f"{word}: {count}" for word, count in found.items()))


async def whole_result() -> CallToolResult:
    """Return the result object itself, for full control; it has a `_meta` of its own."""
    words = TextContent(
        "For the user's eyes.", annotations=types.Annotations(audience=["user"], priority=1.0)
    )
    return CallToolResult(content=[words], meta={"example.com/made-by": "hand"})


@dataclass
class CallerInfo:
    """What the server knows about the caller. `capabilities` are those that the client declared."""

    revision: str
    era: str
    client: str | None
    version: str | None
    log_level: str | None
    capabilities: dict[str, Any]


async def who_am_i(ctx: Ctx) -> ToolResult[CallerInfo]:
    """What the server knows of the one who asks."""
    caller = ctx.caller
    info = ctx.caller.info
    can = msgspec.to_builtins(caller.capabilities)
    name, version = (info.name, info.version) if info is not None else (None, None)
    known = CallerInfo(caller.revision, caller.era.value, name, version, caller.log_level, can)
    can_be_asked = ", ".join(sorted(can)) or "nothing"
    return ToolResult(
        known, f"{name or 'Somebody'} speaks {caller.revision} and has: {can_be_asked}."
    )


@dataclass
class RequestMeta:
    """The author's members of `_meta`, and the trace context."""

    meta: dict[str, Any]


async def show_meta(ctx: Ctx) -> ToolResult[RequestMeta]:
    """Show the `_meta` of this very request: the client's own keys, and the trace context."""
    trace = ctx.caller.trace
    sent = {} if trace is None else {"traceparent": trace.traceparent}
    shown = {**ctx.meta, **sent}
    return ToolResult(RequestMeta(shown), ", ".join(sorted(shown)) or "The request has no _meta.")


def add_giving(server: Server) -> None:
    """Add the tools of this file to a server."""
    server.tool(title="Echo", annotations=PURE, icons=ICONS, meta=MADE_BY)(echo)
    server.tool(title="Add", annotations=replace(PURE, title="Add two numbers"))(
        add
    )  # the place of titles before 2025-06-18
    server.tool(title="Divide", annotations=PURE)(divide)
    server.tool(title="Even or odd", annotations=PURE)(is_even)
    server.tool(title="Nothing", annotations=PURE)(nothing)
    server.tool(title="Bytes", annotations=PURE)(some_bytes)
    server.tool(title="A picture", annotations=PURE)(picture)
    server.tool(title="A sound", annotations=PURE)(sound)
    server.tool(title="A document", annotations=PURE)(document)
    server.tool(title="Links", annotations=PURE)(links)
    server.tool(title="A mixture", annotations=PURE)(mixture)
    server.tool(title="Each kind, annotated", annotations=PURE)(annotated)
    server.tool(title="A measurement", annotations=PURE)(measure)
    server.tool(title="A measurement, twice", annotations=PURE)(measure_in_json)
    server.tool(title="Count words", annotations=PURE)(count_words)
    server.tool(title="A result by hand", annotations=PURE)(whole_result)
    server.tool(title="Who asks", annotations=PURE)(who_am_i)
    server.tool(title="The request's _meta", annotations=PURE)(show_meta)
