"""FastMCP as a peer: its roles are those of `Peer` in `roster.py`."""

from __future__ import annotations

import asyncio
import sys

from tools import catalogue, is_prose, serve_web


def build(name: str):
    from fastmcp import FastMCP

    server = FastMCP("bench")
    for tool in catalogue(name):
        if is_prose(tool):
            server.tool(output_schema=None)(tool)
        else:
            server.tool()(tool)
    return server


async def call_from(target, revision: str) -> None:
    from fastmcp import Client
    from orders import obey

    async with Client(target, mode=revision if revision >= "2026" else "legacy") as client:

        async def call() -> int:
            result = await client.call_tool("aadd", {"a": 1, "b": 2})
            return result.structured_content["result"]

        await obey(call)


def command(words: list[str]):
    from fastmcp.client.transports import StdioTransport

    return StdioTransport(words[0], words[1:])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["server", name]:
            build(name).run("stdio", show_banner=False)
        case ["web", _, name, port, mode]:
            serve_web(build(name).http_app(json_response=mode == "json"), int(port))
        case ["web-client", revision, url]:
            asyncio.run(call_from(url, revision))
        case ["client", revision, *words]:
            asyncio.run(call_from(command(words), revision))
        case ["memory", revision]:
            asyncio.run(call_from(build("plain"), revision))
