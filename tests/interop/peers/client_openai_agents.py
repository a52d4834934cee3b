"""The OpenAI Agents SDK, as a client that does what the test says. Run by its own Python."""

from __future__ import annotations

from typing import Any

import anyio
from agents.mcp import MCPServerSse, MCPServerStdio, MCPServerStreamableHttp
from steps import Steps

steps = Steps()


def road(first: dict[str, Any]) -> Any:
    """The way to the server: a command, or a URL."""
    if "command" in first:
        command, *arguments = first["command"]
        return MCPServerStdio(
            {"command": command, "args": arguments}, client_session_timeout_seconds=20
        )
    kind = MCPServerSse if first["road"] == "sse" else MCPServerStreamableHttp
    return kind({"url": first["url"]}, client_session_timeout_seconds=20)


async def main() -> None:
    first = await steps.first()
    async with road(first) as server:

        async def do(what: str, given: dict[str, Any]) -> Any:
            match what:
                case "list_tools":
                    return {"tools": await server.list_tools()}
                case "read":
                    return await server.read_resource(given["uri"])
                case "prompt":
                    return await server.get_prompt(given["name"], given["arguments"])
                case _:
                    return await server.call_tool(given["name"], given["arguments"])

        await steps.play(do)


anyio.run(main)
