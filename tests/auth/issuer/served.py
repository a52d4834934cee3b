"""Apps on loopback, in the loop of the test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn


@asynccontextmanager
async def serving(make: Callable[[str], Any]) -> AsyncIterator[str]:
    """The address of an app that `make` makes of its address."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(make(url), log_level="warning", lifespan="on", timeout_graceful_shutdown=1))
    running = asyncio.ensure_future(server.serve(sockets=[sock]))
    try:
        sock.listen()  # so that whoever comes before it has started waits, and is not refused
        yield url
    finally:
        server.should_exit = True
        await running
        sock.close()


class Landing:
    """Where a client waits for its answer: an app that keeps what it was asked for."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Say that it has come."""
        if scope["type"] == "lifespan":
            for kind in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{kind}.complete"})
            return
        if scope["path"] == "/callback":
            self.came.put_nowait(scope["query_string"].decode())
        headers = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"<h1>It has arrived</h1>"})
