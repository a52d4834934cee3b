"""Tools that ask by requests of their own, served by the official Python SDK 2.x over stdio, or
over HTTP (PORT). Run by its own Python."""

import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("asker", log_level="ERROR")
ran = 0


class Answer(BaseModel):
    """The form."""

    size: str


async def ask(ctx: Context) -> str:
    """Ask for a size."""
    global ran
    ran += 1
    answer = await ctx.elicit("Which size?", Answer)
    return f"{answer.action} {getattr(answer, 'data', None)} {ran}"


server.add_tool(ask, name="order")
server.add_tool(ask, name="look", annotations=ToolAnnotations(read_only_hint=True))

if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
