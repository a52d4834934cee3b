"""The matrix's tools that tell of themselves, that can be cancelled, and that change what the
server offers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

from interlock import Context, Progress, Server
from tests.wired.state import State


def add_telling(server: Server) -> None:
    """Tools that tell of themselves while they run, and that can be cancelled."""

    @server.tool
    async def chatter(logger: str, ctx: Context[State]) -> str:
        """Write to the log at every level."""
        for level in (
            "debug",
            "info",
            "notice",
            "warning",
            "error",
            "critical",
            "alert",
            "emergency",
        ):
            getattr(ctx.log, level)({"level": level}, logger=logger)
        return "said"

    @server.tool
    async def received(ctx: Context[State]) -> dict[str, object]:
        """Say how this call arrived."""
        request = ctx.request
        trace = ctx.caller.trace
        return {
            "http": None if request is None else [request.method, request.path, request.client],
            "accept": None if request is None else "accept" in request.headers,
            "trace": None if trace is None else [trace.traceparent, trace.baggage],
            "meta": ctx.meta,
        }

    @server.tool
    async def steps(to: int) -> AsyncIterator[Progress | str]:
        """Yield progress and, last, the result."""
        for step in range(1, to + 1):
            yield Progress(step, to, f"step {step}")
        yield "arrived"

    @server.tool
    def climb(ctx: Context[State]) -> str:
        """Report progress from a thread; what does not grow is not sent."""
        for height in (1, 2, 2, 1, 3.5):
            ctx.progress(height)
        return "up"

    @server.tool
    async def hang(name: str, ctx: Context[State]) -> str:
        """Wait until cancelled."""
        ctx.progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            ctx.lifespan_state.end(name).set()
        return "never"

    @server.tool
    def spin(name: str, ctx: Context[State]) -> str:
        """Look until cancelled, in a thread."""
        over = ctx.lifespan_state.threads.setdefault(name, threading.Event())
        ctx.progress(1)
        deadline = time.monotonic() + 10
        while not ctx.cancelled and time.monotonic() < deadline:
            time.sleep(0.001)
        over.set()
        return "never"

    @server.tool
    async def ended(name: str, ctx: Context[State]) -> bool:
        """Wait until the call of a name has ended."""
        if name in ctx.lifespan_state.threads:
            return await asyncio.to_thread(ctx.lifespan_state.threads[name].wait, 10)
        await ctx.lifespan_state.end(name).wait()
        return True


def add_changing(server: Server) -> None:
    """Tools that change what there is."""

    @server.tool
    async def grow(what: str, ctx: Context[State]) -> str:
        """Add a tool, a resource or a prompt."""
        if what == "tool":
            server.add_tool(lambda: "new", name="grown", replace=True)
        elif what == "resource":
            server.add_resource("note://grown", "new", replace=True)
        else:
            server.add_prompt(lambda: "new", name="grown", replace=True)
        return what

    @server.tool
    async def shrink(what: str, ctx: Context[State]) -> str:
        """Take it away again."""
        if what == "tool":
            server.remove_tool("grown")
        elif what == "resource":
            server.remove_resource("note://grown")
        else:
            server.remove_prompt("grown")
        return what

    @server.tool
    async def touch(uri: str, ctx: Context[State]) -> str:
        """Say that a resource is not as it was."""
        ctx.updated(uri)
        return uri
