"""A server of the official Python SDK 2.x over stdio whose tool says which trace it runs in. Run by
its own Python."""

from mcp.server.mcpserver import MCPServer
from opentelemetry import trace

server = MCPServer("traced")


@server.tool()
async def current() -> str:
    """The ID of the current trace."""
    return format(trace.get_current_span().get_span_context().trace_id, "032x")


server.run()
