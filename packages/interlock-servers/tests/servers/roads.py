"""The roads that lead to a server: in memory, over HTTP on loopback, and over stdio as a host
starts it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from interlock import Server, listening_socket
from interlock.transport.http.server.serve import serve_http


@asynccontextmanager
async def over_http(server: Server) -> AsyncIterator[str]:
    """The address at which a server is served as long as this lasts."""
    sock = listening_socket("127.0.0.1", 0)
    serving = asyncio.create_task(serve_http(server.http_app(), sock, grace=1.0))
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


@asynccontextmanager
async def over(road: str, server: Server, program: Sequence[str] = ()) -> AsyncIterator[Any]:
    """What a client is given to reach a server by a road: `memory`, `http`, or `stdio`, where
    `program` is the command that serves it.
    """
    if road == "http":
        async with over_http(server) as address:
            yield address
    else:
        yield server if road == "memory" else list(program)


def serving(name: str, *arguments: object) -> list[str]:
    """The command that serves one of the servers over stdio."""
    return [sys.executable, "-m", "interlock", "serve", name, *map(str, arguments)]
