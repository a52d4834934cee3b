"""The tools that every Python peer serves: the same functions, so that only the library around them
differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Tool = Callable[..., Any]


async def aadd(a: int, b: int) -> int:
    """Add two integers, as a coroutine."""
    return a + b


def add(a: int, b: int) -> int:
    """Add two integers, as a plain function."""
    return a + b


async def text(size: int) -> str:
    """Return a text of the given number of characters."""
    return "x" * size


async def length(text: str) -> int:
    """Return the number of characters of a text."""
    return len(text)


async def echo(words: str) -> str:
    """Return the words that were given."""
    return words


async def flip(value: bool) -> bool:
    """Return the opposite."""
    return not value


def numbered(number: int) -> Tool:
    """Return one of many small tools, named by its number."""

    async def tool(a: int, b: int) -> int:
        return a * b + number

    tool.__name__ = tool.__qualname__ = f"tool_{number:04}"
    tool.__doc__ = f"Multiply two integers and add {number}."
    return tool


def catalogue(name: str) -> list[Tool]:
    """Return the tools of a catalogue: `plain` (6), `in-place` (the same, where a library can run
    plain functions on the event loop if it is told to), `models` (6, one of them with pydantic
    arguments), `rows` (6, one of them with a long result), `many` (1000) or `very-many`
    (10,000)."""
    six: list[Tool] = [aadd, add, text, length, echo, flip]
    if name == "models":
        from records import (
            record,
        )  # imported here: a catalogue without pydantic models must not pay for the import

        return [*six[:5], record]
    if name == "rows":
        from rows import rows

        return [*six[:5], rows]
    if name in ("many", "very-many"):
        count = 1_000 if name == "many" else 10_000
        return [*six, *(numbered(number) for number in range(count - 6))]
    return six


def is_prose(tool: Tool) -> bool:
    """Whether the tool answers with text alone: peers that would repeat such text as structured
    content are configured not to."""
    return tool in (text, echo)


def serve_web(app: Any, port: int) -> None:
    """Serve an ASGI application as fast as uvicorn can: with uvloop and httptools, and without a
    request log."""
    import uvicorn  # only here: servers on standard input and output must not pay for it

    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
