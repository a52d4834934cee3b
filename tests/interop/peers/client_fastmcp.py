"""A client made with FastMCP 2, 3 or 4 that does what the test says.

Run by that version's own Python.
"""

from __future__ import annotations

from typing import Any

import anyio
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from steps import Steps, plain

steps = Steps()


def road(first: dict[str, Any]) -> Any:
    """The way to the server: a command, or a URL."""
    if "command" in first:
        command, *arguments = first["command"]
        return StdioTransport(command, arguments, keep_alive=False)
    return (SSETransport if first["road"] == "sse" else StreamableHttpTransport)(first["url"])


async def main() -> None:
    first = await steps.first()
    async with Client(road(first)) as client:

        async def call(name: str, arguments: dict[str, Any], progress: bool = False) -> Any:
            reported: list[Any] = []

            async def report(done: float, total: float | None, message: str | None) -> None:
                reported.append([done, total, message])

            result = await client.call_tool(
                name, arguments, progress_handler=report, raise_on_error=False
            )
            said = {"content": plain(result.content), "isError": result.is_error}
            return {**said, "reported": reported}

        async def do(what: str, given: dict[str, Any]) -> Any:
            match what:
                case "list_tools":
                    return {"tools": await client.list_tools()}
                case "read":
                    return {"contents": await client.read_resource(given["uri"])}
                case "prompt":
                    return await client.get_prompt(given["name"], given["arguments"])
                case _:
                    return await call(**given)

        await steps.play(do)


anyio.run(main)
