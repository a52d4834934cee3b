"""A server with durable tasks over stdio: `python program.py STORE LOG [QUEUE]`. Each run of a tool
and each step is a line in the log. With the URL of a queue, workers run the tasks:
`interlock tasks run program.py:of_arguments -- STORE LOG QUEUE`.
"""

from __future__ import annotations

import asyncio
import sys

from interlock import Context, Docket, Server, Tasks, types


def build(store: str, log: str, queue: str = "") -> Server:
    """The server."""
    runner = Docket(queue) if queue else None
    server = Server("durable", extensions=[Tasks(store, runner=runner)])

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


def of_arguments() -> Server:
    """The server of the command line."""
    return build(*sys.argv[1:])


if __name__ == "__main__":
    of_arguments().run()
