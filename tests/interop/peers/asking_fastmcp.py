"""Tools that ask by requests of their own, served by FastMCP 4 over stdio, or over HTTP (PORT).

Run by FastMCP's own Python.
"""

import sys

from fastmcp import Context, FastMCP

server = FastMCP("asker")
ran = 0


async def ask(ctx: Context) -> str:
    """Ask for a size."""
    global ran
    ran += 1
    answer = await ctx.elicit("Which size?", str)
    return f"{answer.action} size={getattr(answer, 'data', None)!r} {ran}"


server.tool(ask, name="order")
server.tool(ask, name="look", annotations={"readOnlyHint": True})

if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("http", port=int(sys.argv[1]), show_banner=False, log_level="ERROR")
    else:
        server.run(show_banner=False, log_level="ERROR")
