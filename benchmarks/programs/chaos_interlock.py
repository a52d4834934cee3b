"""The tools of the chaos test, served by Interlock.

Arguments: the folder of the marks, and the options of `server.run("http", ...)` as JSON.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from interlock import Context, Server

folder = Path(sys.argv[1])
options = json.loads(sys.argv[2])
server = Server("chaos")
MARKS = os.open(folder / "marks", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def mark(what: str) -> None:
    """Note what a tool did; one write, so that lines of several processes do not mix."""
    os.write(MARKS, f"{what}\n".encode())


@server.tool
async def add(a: int, b: int) -> int:
    return a + b


@server.tool
async def length(text: str) -> int:
    return len(text)


@server.tool
async def act(name: str, ctx: Context, padding: str = "") -> str:
    """Act once after a confirmation."""
    if not await ctx.confirm(f"{name}?"):
        return "no"
    mark(f"acts {name}")
    await asyncio.sleep(0.01)  # time for a fault between the action and its outcome
    return f"did {name}"


@server.tool
async def charge(name: str) -> str:
    """Act once for each idempotency key."""
    mark(f"acts {name}")
    await asyncio.sleep(0.01)
    return f"did {name}"


@server.tool
async def count(to: int, ctx: Context) -> str:
    """Report progress in small steps."""
    for n in range(1, to + 1):
        ctx.progress(n, to)
        await asyncio.sleep(0.05)
    return f"counted to {to}"


@server.tool
async def wait(name: str) -> str:
    """Wait to be cancelled."""
    mark(f"waits {name}")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        mark(f"stopped {name}")
        raise
    return "never cancelled"


if __name__ == "__main__":
    server.run("http", host="127.0.0.1", proxies="127.0.0.1", **options)
