"""LlamaIndex's MCP tools, as a client that does what the test says. Run by their own Python.

It opens a conversation of its own for each step.
"""

from __future__ import annotations

from typing import Any

import anyio
from llama_index.tools.mcp import BasicMCPClient
from steps import Steps, plain

steps = Steps()


def road(first: dict[str, Any]) -> BasicMCPClient:
    """The way to the server: a command, or a URL."""
    if "command" in first:
        command, *arguments = first["command"]
        return BasicMCPClient(command, arguments)
    return BasicMCPClient(first["url"])


async def main() -> None:
    client = road(await steps.first())

    async def call(name: str, arguments: dict[str, Any], progress: bool = False) -> Any:
        reported: list[Any] = []

        async def report(done: float, total: float | None, message: str | None) -> None:
            reported.append([done, total, message])

        result = await client.call_tool(name, arguments, progress_callback=report)
        return {**plain(result), "reported": reported}

    async def do(what: str, given: dict[str, Any]) -> Any:
        match what:
            case "list_tools":
                return await client.list_tools()
            case "read":
                return await client.read_resource(given["uri"])
            case "prompt":
                messages = await client.get_prompt(given["name"], given["arguments"])
                return {"messages": [{"content": {"text": str(one.content)}} for one in messages]}
            case _:
                return await call(**given)

    await steps.play(do)


anyio.run(main)
