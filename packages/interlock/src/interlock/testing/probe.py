"""A small server with known answers, for transport checks (`python -m interlock.testing.probe`)."""

from __future__ import annotations

import asyncio

from ..server.app import Server
from ..server.calls.context import Context


def probe_server() -> Server:
    """A new server with the tools that `check_client_transport` expects."""
    server = Server("interlock-probe", "1")
    cancelled: list[str] = []
    stirred = asyncio.Event()

    @server.tool
    async def echo(text: str) -> str:
        """Give the text back."""
        return text

    @server.tool
    async def count(to: int, ctx: Context) -> str:
        """Report progress up to a number."""
        for step in range(1, to + 1):
            ctx.progress(step, to)
            await ctx.drain()
        return f"counted to {to}"

    @server.tool
    async def say(text: str, ctx: Context) -> str:
        """Write to the log."""
        ctx.log.error(text)
        return "said"

    @server.tool
    async def ask(question: str, ctx: Context) -> str:
        """Ask for a name."""
        return f"Hello, {await ctx.elicit(question, str, key='name')}!"

    @server.tool
    async def hang(name: str, ctx: Context) -> str:
        """Wait until cancelled."""
        try:
            ctx.progress(1)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(name)
            stirred.set()
            raise
        return "this is never reached"

    @server.tool
    async def cancellations() -> list[str]:
        """The names of the hanging calls that were cancelled, once there is one."""
        await stirred.wait()
        return cancelled

    @server.tool
    async def large(size: int) -> str:
        """So many letters."""
        return "x" * size

    return server


if __name__ == "__main__":
    probe_server().run()
