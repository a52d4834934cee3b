"""A client of the official Python SDK 2.x that calls a tool within a trace; prints the ID of the
trace and the text of the result. Run by its own Python.

Arguments: the command of a server.
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from opentelemetry import trace

TRACE = 0x0123456789ABCDEF0123456789ABCDEF
SPAN = trace.NonRecordingSpan(
    trace.SpanContext(TRACE, 0x0123456789ABCDEF, True, trace.TraceFlags(1))
)


async def main() -> None:
    """Call the tool `current`."""
    command, *arguments = sys.argv[1:]
    parameters = StdioServerParameters(command=command, args=arguments)
    with trace.use_span(SPAN):
        async with Client(stdio_client(parameters)) as client:
            result = await client.call_tool("current", {})
    print(format(TRACE, "032x"), result.content[0].text)


asyncio.run(main())
