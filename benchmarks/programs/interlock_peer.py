"""Interlock as a peer: its roles are those of `Peer` in `roster.py`."""

from __future__ import annotations

import asyncio
import sys

from tools import catalogue


def build(name: str):
    from interlock import Server

    server = Server("bench")
    for tool in catalogue(name):
        server.tool(tool)
    return server


async def call_from(target, revision: str) -> None:
    from orders import obey

    from interlock import Client

    async with Client(target, revision=revision) as client:

        async def call() -> int:
            result = await client.call_tool("aadd", {"a": 1, "b": 2})
            return result.structured_content["result"]

        await obey(call)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["server", name]:
            build(name).run()
        case ["web", _, name, port, mode]:
            build(name).run("http", host="127.0.0.1", port=int(port), stream=mode == "events")
        case ["web-client", revision, url]:
            asyncio.run(call_from(url, revision))
        case ["client", revision, *words]:
            asyncio.run(call_from(words, revision))
        case ["memory", revision]:
            asyncio.run(call_from(build("plain"), revision))
