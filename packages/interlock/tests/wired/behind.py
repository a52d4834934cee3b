"""The server behind a gateway: a tool for each flow that has to come through it."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence

from interlock import Context, McpError, Progress, Server, ToolError
from interlock.wire.revisions import REVISIONS


def server_behind(revisions: str | Sequence[str] = REVISIONS) -> Server:
    """The server, fresh."""
    server = Server("behind", revisions=revisions, instructions="Everything that flows.")
    runs: Counter[str] = Counter()
    ended: dict[str, asyncio.Event] = {}

    @server.tool
    async def order(dish: str, ctx: Context) -> str:
        """Ask two questions; the result says how often this has run."""
        runs[dish] += 1
        size = await ctx.elicit(f"What size of {dish}?", str)
        sure = await ctx.confirm(f"A {size} {dish}, for sure?")
        return f"{size} {dish}: {sure} ({runs[dish]})"

    @server.tool
    async def ponder(about: str, ctx: Context) -> str:
        """Ask the client's model."""
        answer = await ctx.sample(f"Think about {about}.", max_tokens=50)
        return f"{answer.model}: {answer.content.text}"  # type: ignore[union-attr]  # the test's model answers in text

    @server.tool
    async def folders(ctx: Context) -> list[str]:
        """The client's roots."""
        return [root.uri for root in await ctx.roots()]

    @server.tool
    async def steps(to: int, ctx: Context) -> str:
        """Report progress."""
        for step in range(1, to + 1):
            ctx.progress(step, to, f"step {step}")
        return "arrived"

    @server.tool
    async def say(words: str, ctx: Context) -> str:
        """Write to the log."""
        ctx.log.debug(f"not {words}")
        ctx.log.info(words)
        return "said"

    @server.tool
    async def hang(name: str, ctx: Context) -> str:
        """Wait until cancelled."""
        ctx.progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            ended.setdefault(name, asyncio.Event()).set()
        return "never"

    @server.tool
    async def was_cancelled(name: str) -> bool:
        """Wait until the call of a name has ended."""
        await ended.setdefault(name, asyncio.Event()).wait()
        return True

    @server.tool
    async def touch(ctx: Context) -> str:
        """Say that the note is not as it was."""
        ctx.updated("note://one")
        return "touched"

    @server.tool
    async def grow() -> str:
        """Change the list of tools."""
        server.add_tool(lambda: "new", name="grown", replace=True)
        return "grown"

    @server.tool
    async def refuse() -> str:
        """Fail in words for the model."""
        raise ToolError("There are no seats left.")

    @server.tool
    async def protest() -> str:
        """Fail with a JSON-RPC error."""
        raise McpError(4711, "Not like this.", {"why": "because"})

    @server.tool
    async def count(number: int) -> AsyncIterator[Progress | str]:
        """Report progress, and give the number back."""
        yield Progress(number)
        yield f"{number}"

    server.add_resource("note://one", "Buy milk")

    @server.prompt
    async def greeting(name: str) -> str:
        """A greeting."""
        return f"Greet {name}."

    return server


if __name__ == "__main__":
    server_behind(sys.argv[1]).run()
