"""What the functions of a tool may raise and return, by name: whatever it is, its call has to be
answered."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

from interlock import CallToolResult, Context, InputRequiredResult, McpError, Server, TextContent


class Bare(BaseException):
    """No Exception."""


class Unspeakable(Exception):
    """One that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Odd:
    """A value that nothing can be made of."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


def deep(levels: int) -> Any:
    """A list in a list in a list."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def endless() -> Any:
    """A list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


NAME = os.fsdecode(
    b"caf\xe9.txt"
)  # a name of a file that is not UTF-8: it has half a surrogate pair

RAISED: dict[str, Callable[[], BaseException]] = {
    "an exception": lambda: ValueError("no"),
    "a bare one": lambda: Bare("no"),
    "BaseException": lambda: BaseException(),
    "the end of the program": lambda: SystemExit(3),
    "the end of a generator": lambda: GeneratorExit(),
    "the end of an iteration": lambda: StopIteration(5),
    "the end of an async iteration": lambda: StopAsyncIteration(),
    "a cancellation of its own": lambda: asyncio.CancelledError(),
    "a group": lambda: ExceptionGroup("no", [ValueError("a"), TypeError("b")]),
    "a bare group": lambda: BaseExceptionGroup("no", [Bare("a"), SystemExit(1)]),
    "one without words": lambda: Unspeakable(),
    "one with half a pair": lambda: ValueError(NAME),
    "an error with half a pair": lambda: McpError(-32000, NAME, {"name": NAME}),
    "an error with odd data": lambda: McpError(-32000, "no", Odd()),
    "too deep": lambda: RecursionError(),
    "too large": lambda: MemoryError(),
    "a timeout": lambda: TimeoutError("no"),
    "a broken pipe": lambda: BrokenPipeError(),
}

RETURNED: dict[str, Callable[[], Any]] = {
    "half a pair": lambda: NAME,
    "half a pair in a list": lambda: [NAME, {"name": NAME}],
    "half a pair as a name": lambda: {NAME: 1},
    "half a pair in content": lambda: TextContent(NAME),
    "half a pair in a result": lambda: CallToolResult(
        content=[TextContent(NAME)], structured_content={"a": [NAME]}, meta={"a/b": NAME}
    ),
    "a result of odd content": lambda: CallToolResult(content=[Odd()]),  # type: ignore[list-item]  # on purpose
    "a result without content": lambda: CallToolResult(content=None),  # type: ignore[arg-type]  # on purpose
    "a result of odd data": lambda: CallToolResult(content=[], structured_content=Odd()),
    "a result of odd meta": lambda: CallToolResult(content=[], meta={"a": Odd()}),
    "a question of nothing": lambda: InputRequiredResult(input_requests=Odd()),  # type: ignore[arg-type]  # on purpose
    "an odd thing": lambda: Odd(),
    "a class": lambda: Odd,
    "a function": lambda: len,
    "an exception": lambda: ValueError("no"),
    "a set": lambda: {1, 2},
    "NaN": lambda: float("nan"),
    "NaN in a dict": lambda: {"a": float("inf")},
    "a number of many digits": lambda: 10**5000,
    "keys that are no names": lambda: {(1, 2): 3, None: 4},
    "a deep list": lambda: deep(100_000),
    "an endless list": endless,
    "an iterator": lambda: iter([1, 2]),
    "bytes": lambda: b"\xff\xfe",
    "an open file": lambda: sys.__stderr__,
    "nothing": lambda: None,
    "not implemented": lambda: NotImplemented,
    "an ellipsis": lambda: ...,
}

server = Server("raises")


def outcome(kind: str, name: str) -> Any:
    """Raise, or give what to return."""
    if kind == "raise":
        raise RAISED[name]()
    return RETURNED[name]()


@server.tool
async def later(kind: str, name: str) -> Any:
    """In the loop."""
    await asyncio.sleep(0)
    return outcome(kind, name)


@server.tool
async def asking(kind: str, name: str, ctx: Context) -> Any:
    """In the loop, with what can ask."""
    return outcome(kind, name)


@server.tool
def threaded(kind: str, name: str) -> Any:
    """In a thread."""
    return outcome(kind, name)


@server.tool
async def fine() -> str:
    """Another call."""
    return "fine"


CASES = [("raise", name) for name in RAISED] + [("return", name) for name in RETURNED]
TOOLS = ["later", "asking", "threaded"]

if __name__ == "__main__":
    server.run()
