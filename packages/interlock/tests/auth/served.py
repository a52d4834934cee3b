"""Serves ASGI apps, and guarded MCP servers, on loopback for as long as a block lasts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import uvicorn

from interlock import Server
from interlock.server.run.http import serve_web


class Web(uvicorn.Server):
    """A server that tells when it has begun."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.began = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin, and tell."""
        await super().startup(sockets)
        self.began.set()


@asynccontextmanager
async def served(app: Any, port: int) -> AsyncIterator[str]:
    """An ASGI app with its lifespan; gives its origin."""
    async with serving(lambda url: app, port) as url:
        yield url


@asynccontextmanager
async def serving(make: Callable[[str], Any], port: int = 0) -> AsyncIterator[str]:
    """The same for an app that is made of its origin, which is what it gives.

    The port is any that is free, unless one is named.
    """
    with socket.socket() as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind(("127.0.0.1", port))
        url = f"http://127.0.0.1:{own.getsockname()[1]}"
        server = Web(
            uvicorn.Config(
                make(url), log_config=None, lifespan="on", ws="none", timeout_graceful_shutdown=1
            )
        )
        server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]  # the test's own handlers are to stay
        work = asyncio.create_task(server.serve(sockets=[own]))
        try:
            began = asyncio.create_task(server.began.wait())
            await asyncio.wait({work, began}, return_when=asyncio.FIRST_COMPLETED)
            began.cancel()
            if work.done():
                await work
            yield url
        finally:
            server.should_exit = True
            await asyncio.wait({work})


@asynccontextmanager
async def guarded(server: Server, guard: Any, port: int, **options: Any) -> AsyncIterator[str]:
    """An MCP server behind a guard; gives its URL."""
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    work = asyncio.create_task(
        serve_web(server, port=port, guard=guard, grace=0.1, on_ready=ready.set_result, **options)
    )
    try:
        await asyncio.wait({work, ready}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            await work
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
