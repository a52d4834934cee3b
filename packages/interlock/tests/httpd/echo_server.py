"""Serves an ASGI app by our HTTP server on loopback, and talks to it in bytes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from interlock.transport.http.server.serve import listening_socket, serve_http

PATIENCE = 20.0


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def say(self, data: bytes) -> None:
        """Send bytes."""
        self.writer.write(data)

    async def head(self) -> tuple[int, dict[str, str]]:
        """The status and the headers of the next response."""
        async with asyncio.timeout(PATIENCE):
            data = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = data[:-4].split("\r\n")
        pairs = [one.partition(": ")[::2] for one in rest]
        assert len(dict(pairs)) == len(pairs), pairs
        return int(line.split()[1]), dict(pairs)

    async def response(self, *, bodyless: bool = False) -> tuple[int, dict[str, str], bytes]:
        """The next response, whole."""
        status, headers = await self.head()
        body = b""
        async with asyncio.timeout(PATIENCE):
            if bodyless:
                pass
            elif headers.get("transfer-encoding") == "chunked":
                while size := int(await self.reader.readuntil(b"\r\n"), 16):
                    body += (await self.reader.readexactly(size + 2))[:-2]
                assert await self.reader.readexactly(2) == b"\r\n"
            elif "content-length" in headers:
                body = await self.reader.readexactly(int(headers["content-length"]))
            else:
                body = await self.reader.read()
        return status, headers, body

    async def rest(self) -> bytes:
        """All that comes until the server closes."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""

    def close(self) -> None:
        """Hang up."""
        self.writer.close()


class Place:
    """A server that runs."""

    def __init__(self, sock: socket.socket, task: asyncio.Task[None]) -> None:
        self.address = sock.getsockname()
        self.task = task
        self._wires: list[Wire] = []

    async def wire(self, **options: Any) -> Wire:
        """A new connection."""
        async with asyncio.timeout(PATIENCE):
            if isinstance(self.address, str):
                ends = await asyncio.open_unix_connection(self.address, **options)
            else:
                ends = await asyncio.open_connection(*self.address[:2], **options)
        self._wires.append(Wire(*ends))
        return self._wires[-1]

    async def ask(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own."""
        wire = await self.wire()
        wire.say(data)
        return await wire.response()

    def close(self) -> None:
        """Hang up everywhere."""
        for wire in self._wires:
            wire.close()


@asynccontextmanager
async def running(
    app: Any, sock: socket.socket | None = None, *, grace: float = 0.0, **options: Any
) -> AsyncIterator[Place]:
    """An app, served until the block is left."""
    sock = sock or listening_socket("127.0.0.1", 0)
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    place = Place(
        sock,
        asyncio.create_task(
            serve_http(app, sock, grace=grace, on_ready=ready.set_result, **options)
        ),
    )
    try:
        await asyncio.wait({place.task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            await place.task
        yield place
    finally:
        place.close()
        place.task.cancel()
        await asyncio.gather(place.task, return_exceptions=True)


def request(
    target: str = "/", *headers: str, method: str = "GET", body: bytes = b"", version: str = "1.1"
) -> bytes:
    """A request."""
    lines = [f"{method} {target} HTTP/{version}", "Host: a.example", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body
