"""Graceful shutdown of the HTTP server: a client that was let in is answered, though the listener
has closed.
"""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from interlock import Server
from interlock.transport.http.server import serve
from interlock.transport.http.server.serve import listening_socket, serve_http

HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


async def is_closed(port: int) -> bool:
    """Whether nobody listens on a port."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return True
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return False


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Ask for the health of the server on a connection that is open; all that is answered."""
    writer.write(HEALTH)
    found = await reader.read()
    writer.close()
    return found


async def test_a_connection_that_has_not_asked_yet_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its client cannot know that the server is about to end, and would take the silence for a
    failure.
    """
    monkeypatch.setattr(serve, "_LINGER", 0.0)
    monkeypatch.setattr(serve, "_FIRST_REQUEST", 10.0)
    sock = listening_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    serving = asyncio.create_task(serve_http(Server("ends").http_app(), sock, grace=10.0))
    async with asyncio.timeout(20):
        early = await asyncio.open_connection("127.0.0.1", port)
        # Connections are accepted in turn: once a later one was answered, the early one is in.
        assert await asked(*await asyncio.open_connection("127.0.0.1", port))
        serving.cancel()
        while not await is_closed(port):  # noqa: ASYNC110 - only connecting shows it
            await asyncio.sleep(0)
        assert (await asked(*early)).startswith(b"HTTP/1.1 ")
        await serving


async def test_a_connection_that_never_asks_does_not_keep_the_server() -> None:
    """It is closed after the grace period."""
    sock = listening_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    serving = asyncio.create_task(serve_http(Server("ends").http_app(), sock, grace=0.05))
    async with asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asked(*await asyncio.open_connection("127.0.0.1", port))
        serving.cancel()
        await serving
        assert await reader.read() == b""
        writer.close()
