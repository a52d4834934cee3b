"""Pydantic AI's MCP toolset, as a client that does what the test says. Run by its own Python."""

from __future__ import annotations

from typing import Any

import anyio
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from pydantic_ai.mcp import MCPToolset
from steps import Steps

steps = Steps()


def road(first: dict[str, Any]) -> Any:
    """The way to the server: a command, or a URL."""
    if "command" in first:
        command, *arguments = first["command"]
        return StdioTransport(command, arguments, keep_alive=False)
    return (SSETransport if first["road"] == "sse" else StreamableHttpTransport)(first["url"])


async def main() -> None:
    first = await steps.first()
    toolset: MCPToolset[None] = MCPToolset(road(first), tool_error_behavior="error")
    async with toolset:

        async def do(what: str, given: dict[str, Any]) -> Any:
            match what:
                case "list_tools":
                    return {"tools": await toolset.list_tools()}
                case "read":
                    return {"contents": [{"text": await toolset.read_resource(given["uri"])}]}
                case "prompt":
                    prompt = await toolset.get_prompt(given["name"], given["arguments"])
                    return {"messages": [{"content": {"text": str(prompt.messages)}}]}
                case _:
                    try:
                        value = await toolset.direct_call_tool(given["name"], given["arguments"])
                    except ToolError as bad:
                        return {"content": [{"type": "text", "text": str(bad)}], "isError": True}
                    return {"content": [{"type": "text", "text": str(value)}], "isError": False}

        await steps.play(do)


anyio.run(main)
