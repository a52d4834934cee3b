"""A small server, made with FastMCP as every version of the Python SDK 1.x and of FastMCP has it.

Run by the Python of that version: over stdio, or with `streamable-http PORT` or `sse PORT`.
"""

import sys
from typing import Any

try:
    from fastmcp import Context, FastMCP

    APART = True
except ImportError:
    from mcp.server.fastmcp import Context, FastMCP

    APART = False

server = FastMCP("small")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool()
def touch() -> str:
    """Take no arguments."""
    return "touched"


@server.tool()
def fail() -> str:
    """Fail, always."""
    raise ValueError("It is broken.")


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Count, and report progress."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to)
    return f"counted to {to}"


@server.resource("note://board")
def board() -> str:
    """A board."""
    return "Nothing new."


@server.resource("note://people/{name}")
def person(name: str) -> str:
    """A person by name."""
    return f"This is {name}."


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Greet {name}."


def main(kind: str = "stdio", port: str = "0") -> None:
    """Serve over a transport."""
    if APART:
        web: dict[str, Any] = {"host": "127.0.0.1", "port": int(port)} if kind != "stdio" else {}
        server.run(transport=kind, show_banner=False, **web)
        return
    server.settings.port = int(port)
    server.run(kind)


if __name__ == "__main__":
    main(*sys.argv[1:])
