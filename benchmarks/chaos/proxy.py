"""A TCP proxy that cuts connections on demand (RST), also in the middle of a message."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct

_PIECE = 64 * 1024
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset


class CuttingProxy:
    """Relays every connection to one port of loopback.

    Attributes:
        port: The port on which it listens.
        cuts: How many connections it has cut.
    """

    def __init__(self, to: int) -> None:
        self.port = 0
        self.cuts = 0
        self._to = to
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        """Stop to listen, and cut what is open."""
        if self._server is not None:
            self._server.close()
        self.cut(1.0, random.Random(0))

    def cut(self, share: float, rng: random.Random) -> None:
        """Cut this share of the open connections."""
        for writer in sorted(self._open, key=id):
            if rng.random() < share:
                self.cuts += 1
                with contextlib.suppress(OSError):
                    writer.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, _RESET
                    )
                writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            theirs, out = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(reader, out))
                both.create_task(_copy(theirs, writer))
        except* OSError:
            pass  # one end has gone, and so does the other
        finally:
            self._open.discard(writer)
            writer.transport.abort()
            out.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_PIECE):
        writer.write(data)
        await writer.drain()
    raise ConnectionResetError  # its end closes both directions
