"""The small world as an ASGI app, for programs that come to it over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from interlock.http11.fetch import Request
from tests.auth.served import served
from tests.auth.world import World
from tests.ports import free_port


class Worldly:
    """Serves a world: what it answers to a `Fetch`,
    and the page at which a person agrees at once."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for word in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{word}.complete"})
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body = body + message.get("body", b"")
            more = message.get("more_body", False)
        world = self.world
        query = scope["query_string"].decode()
        url = f"{world.origin}{scope['path']}" + (f"?{query}" if query else "")
        if scope["path"] == "/authorize":
            await self._say(send, 302, {"location": f"/?{world.authorize(url)}"}, b"")
            return
        headers = tuple((name.decode(), value.decode()) for name, value in scope["headers"])
        answer = await world(Request(scope["method"], url, headers, body))
        await self._say(send, answer.status, answer.headers, await answer.read(1 << 20))

    @staticmethod
    async def _say(send: Any, status: int, headers: dict[str, str], body: bytes) -> None:
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [*pairs, (b"content-length", str(len(body)).encode())],
            }
        )
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def on_loopback(**options: Any) -> AsyncIterator[World]:
    """A world at a free port of this machine; `options` are attributes of it."""
    port = free_port()
    at = f"http://127.0.0.1:{port}"
    world = World(options.pop("clock", None), server=f"{at}/mcp", issuer=at)
    for name, value in options.items():
        setattr(world, name, value)
    async with served(Worldly(world), port):
        yield world
