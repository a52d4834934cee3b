"""A client made with the Python SDK as it was from 1.2 to 1.9 that does what the test says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from steps import Steps, plain

steps = Steps()


def road(first: dict[str, Any]) -> Any:
    """The way to the server: a command, or a URL."""
    if "command" in first:
        command, *arguments = first["command"]
        return stdio_client(StdioServerParameters(command=command, args=arguments))
    if first["road"] == "sse":
        return sse_client(first["url"])
    from mcp.client.streamable_http import streamablehttp_client  # not in every version

    return streamablehttp_client(first["url"])


async def call(
    client: ClientSession,
    name: str,
    arguments: dict[str, Any] | None = None,
    progress: bool = False,
) -> Any:
    """Call a tool; with `progress`, return what it reported too, in versions that have that."""
    if not progress:
        return await client.call_tool(name, arguments)
    reported: list[Any] = []

    async def report(done: float, total: float | None, message: str | None) -> None:
        reported.append([done, total, message])

    limit = timedelta(seconds=20)
    result = await client.call_tool(name, arguments, limit, report)
    return {**plain(result), "reported": reported}


async def everything(client: ClientSession) -> Any:
    """The tools of every page, as far as this version can ask for another one."""
    try:
        return await client.list_tools(cursor=None)
    except TypeError:
        return await client.list_tools()


async def main() -> None:
    first = await steps.first()
    async with road(first) as (read, write, *_), ClientSession(read, write) as client:
        opened = await client.initialize()
        todo: dict[str, Any] = {
            "call": call,
            "list_tools": everything,
            "read": ClientSession.read_resource,
            "prompt": ClientSession.get_prompt,
        }

        async def do(what: str, given: dict[str, Any]) -> Any:
            return (
                {"revision": opened.protocolVersion}
                if what == "who"
                else await todo[what](client, **given)
            )

        await steps.play(do)


anyio.run(main)
