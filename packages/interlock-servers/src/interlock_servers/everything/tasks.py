"""Tasks: calls that a client collects later, with questions, failures and a promotion.

The names are those of the tools that the public conformance suite calls.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from interlock import Context, McpError, Server, TaskLimits, Tasks, ToolError, types

from .state import ASKS, PURE

_POLL_SECONDS = 0.2
_PAUSE_SECONDS = 0.05  # so that a client can see the status "working"


def tasks_extension() -> Tasks:
    """The extension for the server. Its tasks end with the process."""
    return Tasks(limits=TaskLimits(poll=_POLL_SECONDS))


async def greet(name: str = "world") -> str:
    """Greet, and never as a task."""
    return f"Hello, {name}!"


async def slow_compute(
    ctx: Context, seconds: Annotated[float, Meta(ge=0, le=60)] = 1.0, label: str = ""
) -> str:
    """Work for a while, with progress, which is the status message of a task."""
    ctx.progress(0, 1, "computing")
    await asyncio.sleep(seconds)
    return f"done {label}".rstrip()


async def failing_job() -> str:
    """Fail, and always as a task."""
    await asyncio.sleep(_PAUSE_SECONDS)
    raise ToolError("The job failed.")


async def protocol_error_job() -> str:
    """End with a protocol error, which makes a task fail."""
    await asyncio.sleep(_PAUSE_SECONDS)
    raise McpError(types.INTERNAL_ERROR, "The job broke.")


async def confirm_delete(
    ctx: Context, filename: Annotated[str, Meta(max_length=80)] = "notes.txt"
) -> str:
    """Ask once, while it runs as a task. Nothing is deleted."""
    return "deleted" if await ctx.confirm(f"Delete {filename}?") else "kept"


async def multi_input(ctx: Context) -> str:
    """Ask two questions at once, while it runs as a task."""
    answers = await asyncio.gather(
        ctx.confirm("The first?", key="first"), ctx.confirm("The second?", key="second")
    )
    return f"{sum(answers)} of 2"


@dataclass
class UserName:
    """The form of the question that precedes the task."""

    name: str


async def test_tool_with_task(ctx: Context) -> str:
    """Ask in the call itself, and go on as a task."""
    person = await ctx.elicit("What is your name?", UserName)
    await ctx.as_task()
    await asyncio.sleep(_PAUSE_SECONDS)
    return f"Hello, {person.name}!"


def add_tasks(server: Server) -> None:
    """Give a server the tools of this file."""
    server.tool(title="Never a task", annotations=PURE)(greet)
    server.tool(title="Perhaps a task", annotations=PURE, task="optional")(slow_compute)
    server.tool(title="Always a task", annotations=PURE, task="required")(failing_job)
    server.tool(title="A task that fails", annotations=PURE, task="optional")(protocol_error_job)
    server.tool(title="A task that asks", annotations=ASKS, task="optional")(confirm_delete)
    server.tool(title="A task that asks twice", annotations=ASKS, task="optional")(multi_input)
    server.tool(title="Ask, then a task", annotations=ASKS, task="optional", after=math.inf)(
        test_tool_with_task
    )
