"""LangChain's adapters for MCP, as a client that does what the test says.

Run by their own Python.
"""

from __future__ import annotations

from typing import Any

import anyio
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.prompts import load_mcp_prompt
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools
from steps import Steps

steps = Steps()
reported: list[Any] = []


def road(first: dict[str, Any]) -> Any:
    """The way to the server: a command, or a URL."""
    if "command" in first:
        command, *arguments = first["command"]
        return {"transport": "stdio", "command": command, "args": arguments}
    kind = "sse" if first["road"] == "sse" else "streamable_http"
    return {"transport": kind, "url": first["url"]}


async def report(done: float, total: float | None, message: str | None, context: Any) -> None:
    """Keep what a tool reports."""
    reported.append([done, total, message])


async def main() -> None:
    first = await steps.first()
    client = MultiServerMCPClient({"it": road(first)})
    async with client.session("it") as session:

        async def call(name: str, arguments: dict[str, Any], progress: bool = False) -> Any:
            tools = await load_mcp_tools(session, callbacks=Callbacks(on_progress=report))
            tool = next(one for one in tools if one.name == name)
            reported.clear()
            wanted = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
            message = await tool.ainvoke(wanted)
            blocks = message.content
            if isinstance(blocks, str):
                blocks = [{"type": "text", "text": blocks}]
            return {
                "content": blocks,
                "isError": message.status == "error",
                "reported": [*reported],
            }

        async def do(what: str, given: dict[str, Any]) -> Any:
            match what:
                case "list_tools":
                    tools = await load_mcp_tools(session)
                    return {"tools": [{"name": tool.name} for tool in tools]}
                case "read":
                    blobs = await load_mcp_resources(session, uris=given["uri"])
                    return {"contents": [{"text": blob.as_string()} for blob in blobs]}
                case "prompt":
                    messages = await load_mcp_prompt(session, **given)
                    return {"messages": [{"content": {"text": one.content}} for one in messages]}
                case _:
                    return await call(**given)

        await steps.play(do)


anyio.run(main)
