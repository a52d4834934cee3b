"""Resources of each kind, and templates with each operator of RFC 6570. Some change over time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta

from interlock import McpError, ResourceContents, RunningServer, Server, ToolError, types

from .content import BYTES, ICONS, NOTE
from .samples import png, wav
from .state import CHANGES, CLOCK, COUNTER, MADE_BY, PURE, Ctx, ServerState

GREETINGS = {
    "english": "Hello",
    "french": "Bonjour",
    "german": "Guten Tag",
    "japanese": "Konnichiwa",
    "spanish": "Hola",
}
NUMBERS = [f"{number:03}" for number in range(250)]
BOTH = types.Annotations(
    audience=["user", "assistant"], priority=0.8, last_modified="2026-01-01T00:00:00Z"
)
HOUR = 3_600_000  # in milliseconds
README = "# Everything\n\nA text that never changes.\n"


async def stored_picture() -> bytes:
    """A picture, as bytes."""
    return png(128)


async def stored_sound() -> bytes:
    """A tenth of a second of sound."""
    return wav()


async def counter(ctx: Ctx) -> dict[str, int]:
    """A number that changes with each call of `tick`; subscribe to hear of it."""
    return {"count": ctx.lifespan_state.count}


async def clock(ctx: Ctx) -> dict[str, int]:
    """A number that changes by itself for a while, once `start_clock` was called."""
    return {"ticks": ctx.lifespan_state.clock}


async def shelf() -> list[ResourceContents]:
    """Several contents behind one address: a text and bytes, each with an address of its own and
    `_meta`.
    """
    return [NOTE, BYTES]


async def stamped() -> types.ReadResourceResult:
    """A result by hand: it says itself for how long it may be kept and for whom, and has
    `_meta`.
    """
    contents = ResourceContents(
        uri="everything://stamped",
        mime_type="text/plain",
        text="Keep me for a minute.",
        meta=MADE_BY,
    )
    return types.ReadResourceResult(
        contents=[contents], ttl_ms=60_000, cache_scope="public", meta=MADE_BY
    )


async def asking(ctx: Ctx) -> str:
    """A text that the user is asked for when it is read; only 2025-06-18 and later can."""
    return f"It says: {await ctx.elicit('What shall stand here?', str)}"


async def refused() -> str:
    """What cannot be read: an error with a code and data."""
    raise McpError(
        types.INTERNAL_ERROR, "This resource is never to be had.", {"why": "to show an error"}
    )


async def greeting(language: str, name: str) -> str | None:
    """A greeting in one of a few languages; there is none in the others."""
    words = GREETINGS.get(language)
    return f"{words}, {name}!" if words is not None else None


async def number(number: Annotated[int, Meta(ge=0, le=249)]) -> dict[str, int]:
    """A number and its square; so many that a completion cannot name them all at once."""
    return {"number": number, "square": number * number}


async def path(path: str) -> str:
    """Whatever stands there, with slashes: reserved expansion."""
    return f"The path is {path}."


async def part(part: str) -> str:
    """What stands behind the `#`: fragment expansion."""
    return f"The part is {part}."


async def suffix(suffix: str) -> str:
    """What stands behind the dot: label expansion."""
    return f"The suffix is {suffix}."


async def segments(segments: list[str]) -> list[str]:
    """Any number of segments: path expansion, exploded."""
    return segments


async def place(x: float, y: float) -> dict[str, float]:
    """A point, by parameters with names: path-style expansion."""
    return {"x": x, "y": y}


async def search(q: str, limit: int = 10) -> dict[str, str | int]:
    """A query, whose second part may be left out: form-style expansion."""
    return {"q": q, "limit": limit}


async def more(kind: str, page: int = 1) -> dict[str, str | int]:
    """A query that goes on: form-style continuation."""
    return {"kind": kind, "page": page}


async def initial(letter: str, word: str) -> dict[str, str]:
    """A word behind its first letter: a prefix."""
    return {"letter": letter, "word": word}


TEMPLATES: dict[str, tuple[Callable[..., Any], str]] = {
    "everything://greetings/{language}/{name}": (greeting, "A greeting"),
    "everything://numbers/{number}": (number, "A number"),
    "everything://paths/{+path}": (path, "A path"),
    "everything://page{#part}": (part, "A part of a page"),
    "everything://file{.suffix}": (suffix, "A file of some kind"),
    "everything://segments{/segments*}": (segments, "Segments"),
    "everything://points{;x,y}": (place, "A point"),
    "everything://search{?q,limit}": (search, "A search"),
    "everything://list?kind={kind}{&page}": (more, "A list in pages"),
    "everything://words/{letter:1}/{word}": (initial, "A word"),
}
"""One template for each operator of RFC 6570."""


async def complete_language(value: str) -> list[str]:
    """The languages that begin like this."""
    return [language for language in GREETINGS if language.startswith(value.lower())]


async def complete_number(value: str) -> list[str]:
    """The numbers that begin like this: more than a hundred, of which a hundred are sent, with how
    many there are.
    """
    return [number for number in NUMBERS if number.startswith(value)]


async def tick(ctx: Ctx) -> int:
    """Count one up, and tell whoever watches the counter."""
    ctx.lifespan_state.count += 1
    ctx.updated(COUNTER)
    return ctx.lifespan_state.count


async def read_counter(ctx: Ctx) -> str:
    """Read a resource of this server from within a tool."""
    (contents,) = await ctx.read_resource(COUNTER)
    return contents.text or ""


async def start_clock(
    ctx: Ctx,
    ticks: Annotated[int, Meta(ge=1, le=100)] = 3,
    seconds: Annotated[float, Meta(ge=0.001, le=5)] = 0.1,
) -> str:
    """Let the clock tick by itself for a while: whoever watches it is told each time, though nobody
    calls anything.

    Args:
        ticks: how often.
        seconds: how long it is from one to the next.
    """
    state = ctx.lifespan_state
    if ticks * seconds > state.limits.seconds:
        raise ToolError(
            f"The clock may run for {state.limits.seconds:g} seconds at most. Ask for less."
        )
    if state.ticking is not None and not state.ticking.done():
        raise ToolError("The clock is running already. Wait until it has stopped.")
    state.ticking = asyncio.create_task(_tick(ctx.server, state, ticks, seconds))
    return f"The clock ticks {ticks} times, every {seconds:g} seconds."


async def _tick(server: RunningServer, state: ServerState, ticks: int, seconds: float) -> None:
    for _ in range(ticks):
        await asyncio.sleep(seconds)
        state.clock += 1
        server.updated(CLOCK)


def add_storing(server: Server) -> None:
    """Give a server the resources, templates and tools of this file."""
    server.add_resource(
        "everything://docs/readme.md",
        README,
        title="Read me",
        annotations=BOTH,
        icons=ICONS,
        meta=MADE_BY,
        ttl_ms=HOUR,
        cache_scope="public",
    )
    server.add_resource(
        "everything://docs/data.bin",
        bytes(range(256)),
        title="Bytes",
        description="All of them.",
        annotations=BOTH,
    )
    server.resource(
        "everything://picture.png", title="A picture", mime_type="image/png", size=len(png(128))
    )(stored_picture)
    server.resource(
        "everything://sound.wav", title="A sound", mime_type="audio/wav", size=len(wav())
    )(stored_sound)
    server.resource(COUNTER, name="counter", title="A counter", mime_type="application/json")(
        counter
    )
    server.resource(CLOCK, name="clock", title="A clock", mime_type="application/json")(clock)
    server.resource("everything://shelf", title="Several at once")(shelf)
    server.resource("everything://stamped", title="By hand")(stamped)
    server.resource("everything://asking", title="Asks who reads it")(asking)
    server.resource("everything://refused", title="Never to be had")(refused)
    for uri, (function, title) in TEMPLATES.items():
        first = uri == "everything://greetings/{language}/{name}"
        hints: dict[str, Any] = (
            {"annotations": BOTH, "icons": ICONS, "meta": MADE_BY, "mime_type": "text/plain"}
            if first
            else {}
        )
        server.resource(uri, title=title, **hints)(function)
    server.completion("everything://greetings/{language}/{name}", "language")(complete_language)
    server.completion("everything://numbers/{number}", "number")(complete_number)
    server.tool(title="Tick", annotations=CHANGES)(tick)
    server.tool(title="Read the counter", annotations=PURE)(read_counter)
    server.tool(title="Start the clock", annotations=CHANGES)(start_clock)
