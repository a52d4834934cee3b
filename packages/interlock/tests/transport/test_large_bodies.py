"""A web server is told when much comes or goes, so that its process can keep the memory of it."""

from __future__ import annotations

import asyncio

import pytest

from interlock import Server
from interlock.transport.http.server.serve import listening_socket, serve_http
from tests.transport.raw_web import Web, call

MUCH = 300_000


@pytest.mark.parametrize(
    "name, arguments, told",
    [
        ("length", {"text": "x" * MUCH}, True),
        ("text", {"size": MUCH}, True),
        ("length", {"text": "x"}, False),
        ("text", {"size": 1}, False),
    ],
)
async def test_large_bodies_are_told_of(name: str, arguments: dict[str, object], told: bool):
    """An argument that is large, a result that is; and no other."""
    server = Server("large")

    @server.tool
    async def length(text: str) -> int:
        return len(text)

    @server.tool
    async def text(size: int) -> str:
        return "x" * size

    received: list[bool] = []
    sock = listening_socket("127.0.0.1", 0)
    app = server.http_app()
    web = Web(sock.getsockname()[1], app)
    task = asyncio.create_task(
        serve_http(app, sock, grace=0.2, on_large=lambda: received.append(True))
    )
    try:
        reply = await web.ask(call(name, arguments))
        assert reply.status == 200
        assert bool(received) is told
    finally:
        await web.aclose()
        task.cancel()
        await task
