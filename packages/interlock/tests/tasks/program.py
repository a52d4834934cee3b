"""A server with durable tasks over stdio: `python program.py STORE LOG`. Each run of a tool and
each step is a line in the log.
"""

from __future__ import annotations

import asyncio
import sys

from interlock import Context, Server, Tasks, types


def build(store: str, log: str) -> Server:
    """The server."""
    server = Server("durable", extensions=[Tasks(store)])

    def write(line: str) -> str:
        with open(log, "a", encoding="utf-8") as file:
            file.write(line + "\n")
        return line

    async def step(name: str) -> str:
        return write(name)

    @server.tool(task="optional")
    async def report(ctx: Context, steps: int = 2) -> str:
        """Does its steps once, asks, and ends."""
        write("run")
        for n in range(steps):
            await ctx.once(f"step {n}", lambda n=n: step(f"step {n}"))
        confirmed = await ctx.confirm("Publish?", key="publish")
        return f"published: {confirmed}"

    @server.tool(task="optional")
    async def doubtful(ctx: Context) -> str:
        """Stays within a step that is not idempotent."""
        write("run")

        async def forever() -> str:
            write("begun")
            await asyncio.Event().wait()
            return ""

        result: str = await ctx.once("charge", forever)
        return result

    @server.tool(task="optional", annotations=types.ToolAnnotations(destructive_hint=True))
    async def destroy() -> str:
        """Is destructive, and uses no steps."""
        write("run")
        await asyncio.Event().wait()
        return ""

    return server


if __name__ == "__main__":
    build(sys.argv[1], sys.argv[2]).run()
