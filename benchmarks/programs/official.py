"""The official Python SDK as a peer: its roles are those of `Peer` in `roster.py`."""

from __future__ import annotations

import asyncio
import sys

from tools import catalogue, is_prose, serve_web


def build(name: str):
    from mcp.server import MCPServer

    server = MCPServer("bench", log_level="WARNING")
    for tool in catalogue(name):
        server.tool(structured_output=False if is_prose(tool) else None)(tool)
    return server


async def call_from(target, revision: str) -> None:
    from mcp.client.client import Client
    from orders import obey

    async with Client(target, mode=revision if revision >= "2026" else "legacy") as client:

        async def call() -> int:
            result = await client.call_tool("aadd", {"a": 1, "b": 2})
            return result.structured_content["result"]

        await obey(call)


def command(words: list[str]):
    from mcp.client.stdio import StdioServerParameters, stdio_client

    return stdio_client(StdioServerParameters(command=words[0], args=words[1:]))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["server", name]:
            build(name).run("stdio")
        case ["web", _, name, port, mode]:
            serve_web(build(name).streamable_http_app(json_response=mode == "json"), int(port))
        case ["web-client", revision, url]:
            asyncio.run(call_from(url, revision))
        case ["client", revision, *words]:
            asyncio.run(call_from(command(words), revision))
        case ["memory", revision]:
            asyncio.run(call_from(build("plain"), revision))
