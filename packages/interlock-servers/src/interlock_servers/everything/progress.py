"""Progress, log messages, cancellation and long calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Annotated

from msgspec import Meta

from interlock import Progress, Server, ToolError, ToolResult, types

from .state import CHANGES, PURE, Ctx

Steps = Annotated[int, Meta(ge=1, le=100, description="How many.")]
Seconds = Annotated[float, Meta(ge=0, le=3600, description="How long it takes.")]


def within(ctx: Ctx, seconds: float) -> float:
    """A duration that this server allows for a call. Raises ToolError if it is longer."""
    most = ctx.lifespan_state.limits.seconds
    if seconds > most:
        raise ToolError(f"At most {most:g} seconds is the longest wait. Ask for less.")
    return seconds


async def work(ctx: Ctx, steps: Steps = 3) -> str:
    """Work in steps, with progress and a log message for each."""
    for step in range(1, steps + 1):
        ctx.progress(step, steps, f"step {step} of {steps}")
        ctx.log.info({"step": step}, logger="work")
        await asyncio.sleep(0)
    return f"Done in {steps} steps."


async def count_up(ctx: Ctx, to: Steps = 3) -> str:
    """Report progress towards nobody knows what: there is no total, and no message."""
    for number in range(1, to + 1):
        ctx.progress(number)
        await asyncio.sleep(0)
    return f"Counted to {to}."


async def count_down(start: Steps = 3) -> AsyncIterator[Progress | str]:
    """Yield progress and, last, the result: an async generator."""
    for number in range(start):
        yield Progress(number + 1, start, str(start - number))
    yield "Lift-off."


async def log_levels(ctx: Ctx) -> str:
    """Write one message at each level; the client says from which level on it wants them."""
    for level in types.LOGGING_LEVELS:
        ctx.log.write(level, f"A message at the level {level}.", logger="levels")
    return f"Wrote {len(types.LOGGING_LEVELS)} messages."


async def sleep(seconds: Seconds, ctx: Ctx) -> str:
    """Wait, until the call is cancelled or the time is over."""
    await asyncio.sleep(within(ctx, seconds))
    return f"Slept for {seconds:g} seconds."


def sleep_in_thread(seconds: Seconds, ctx: Ctx) -> str:
    """Wait in a thread, which looks now and then whether anybody still waits for it."""
    pause = threading.Event()
    for _ in range(int(within(ctx, seconds) * 100)):
        if ctx.cancelled:
            return "The call was cancelled."
        pause.wait(0.01)
    return f"Slept for {seconds:g} seconds."


def count_primes(ctx: Ctx, most: Annotated[int, Meta(ge=2, le=1_000_000)] = 50_000) -> int:
    """Count the primes up to a number: work for the processor in a thread, with progress, and given
    up with the call.

    Args:
        most: the last number that is looked at.
    """
    sieve = bytearray([1]) * (most + 1)
    sieve[0:2] = b"\0\0"
    last = int(most**0.5)
    for number in range(2, last + 1):
        if ctx.cancelled:
            return 0
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, most + 1, number)))
            ctx.progress(number, last)
    return sum(sieve)


async def side_by_side(
    ctx: Ctx, tasks: Annotated[int, Meta(ge=1, le=20)] = 4
) -> ToolResult[list[int]]:
    """Do several things at once, with progress as each is done.

    Args:
        tasks: how many.
    """
    done: list[int] = []

    async def one(number: int) -> None:
        await asyncio.sleep(0.001 * (number % 3))
        done.append(number)
        ctx.progress(len(done), tasks, f"task {number} is done")

    async with asyncio.TaskGroup() as group:
        for number in range(1, tasks + 1):
            group.create_task(one(number))
    return ToolResult(done, f"Done, in this order: {', '.join(map(str, done))}.")


async def come_back_later(ctx: Ctx, seconds: Seconds = 0.1) -> str:
    """Let the client go while the work goes on, where it can come back for the rest: HTTP in
    2025-11-25.

    Elsewhere it stays.
    """
    ctx.log.info("The stream is about to be closed.", logger="come_back_later")
    gone = await ctx.disconnect(retry_ms=50)
    await asyncio.sleep(within(ctx, seconds))
    ctx.log.info("The work is done.", logger="come_back_later")
    return "You came back." if gone else "You have never been away."


async def wait_for_cancel(ctx: Ctx) -> str:
    """Wait to be cancelled; `cancellations` says how often that happened."""
    ctx.progress(1, message="Cancel me.")
    try:
        await asyncio.sleep(ctx.lifespan_state.limits.seconds)
    except asyncio.CancelledError:
        ctx.lifespan_state.cancelled += 1
        raise
    return "The call was not cancelled."


async def cancellations(ctx: Ctx) -> int:
    """How many calls of wait_for_cancel were cancelled."""
    return ctx.lifespan_state.cancelled


def add_telling(server: Server) -> None:
    """Give a server the tools of this file."""
    server.tool(title="Work in steps", annotations=PURE)(work)
    server.tool(title="Count up", annotations=PURE)(count_up)
    server.tool(title="Count down", annotations=PURE)(count_down)
    server.tool(title="Each level of the log", annotations=PURE)(log_levels)
    server.tool(title="Sleep", annotations=PURE)(sleep)
    server.tool(title="Sleep in a thread", annotations=PURE)(sleep_in_thread)
    server.tool(title="Count primes", annotations=PURE)(count_primes)
    server.tool(title="Side by side", annotations=PURE)(side_by_side)
    server.tool(title="Come back later", annotations=PURE)(come_back_later)
    server.tool(title="Wait to be cancelled", annotations=CHANGES)(wait_for_cancel)
    server.tool(title="Cancellations", annotations=PURE)(cancellations)
