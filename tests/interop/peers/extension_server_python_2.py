"""A server of the official Python SDK 2.x with an extension, over stdio, or over HTTP
(`streamable-http PORT`). Run by its own Python."""

import sys

from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import MCPServer, require_client_extension
from mcp_types import RequestParams, Result

ID = "com.example/search"
CATALOGS = {"books": ["Middlemarch", "Emma"], "bücher": ["Effi Briest"]}


class FindParams(RequestParams):
    """Params of `search/find`."""

    catalog: str
    query: str


class Hits(Result):
    """Its result."""

    hits: list[str]


class Search(Extension):
    """Searches catalogues, and answers the tool `slow` with a ticket."""

    identifier = ID

    def settings(self):
        """What is advertised."""
        return {"version": 1}

    def methods(self):
        """`search/find`."""
        return [MethodBinding("search/find", FindParams, self.find)]

    async def find(self, ctx, params):
        """Find entries of a catalogue."""
        require_client_extension(ctx, ID)
        return Hits(hits=[name for name in CATALOGS[params.catalog] if params.query in name])

    async def intercept_tool_call(self, params, ctx, call_next):
        """A ticket in place of an answer that takes long."""
        if params.name == "slow":
            return {"resultType": "com.example.ticket", "ticket": "t-1"}
        return await call_next(ctx)


server = MCPServer("catalogs", extensions=[Search()], log_level="ERROR")


@server.tool()
def slow() -> str:
    """Answers late."""
    return "at last"


if len(sys.argv) > 1:
    server.run(sys.argv[1], port=int(sys.argv[2]))
else:
    server.run()
