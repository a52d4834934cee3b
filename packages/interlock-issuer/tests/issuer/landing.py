"""Where a client waits for its answer: an app that keeps what it was asked for."""

from __future__ import annotations

import asyncio
from typing import Any


class RedirectListener:
    """The app; `came` are the query strings with which browsers came back."""

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
