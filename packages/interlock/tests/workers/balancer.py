"""A plain balancer: each request goes to the next server in turn, whoever asks; what is not there
is passed over, streams go through."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections import Counter
from collections.abc import Sequence

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CONNECTION = re.compile(rb"\r\nconnection:[^\r]*", re.IGNORECASE)
_PIECE = 64 * 1024


class Balancer:
    """Runs in a thread of its own.

    `ports` may change while it runs; `served` counts the requests that each of them got.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self.ports = list(ports)
        self.served: Counter[int] = Counter()
        self.port = 0
        self._turn = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Balancer:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *why: object) -> None:
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def url(self) -> str:
        """The endpoint behind this balancer."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._carry(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request and its answer; the connection ends with it, so that the next request may go
        elsewhere."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            body = await reader.readexactly(int(length[1])) if length else b""
            there = await self._next()
            if there is None:
                writer.write(
                    b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                )
                return
            theirs, out = there
            try:
                out.write(_CONNECTION.sub(b"", head[:-4]) + b"\r\nconnection: close\r\n\r\n" + body)
                await self._pass_back(reader, theirs, writer)
            finally:
                out.transport.abort()
        except (OSError, asyncio.IncompleteReadError):
            pass  # one of the two has gone, and so does the other
        finally:
            with contextlib.suppress(OSError):
                writer.close()
                await writer.wait_closed()

    async def _next(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        first = self._turn
        self._turn = self._turn + 1
        for further in range(len(self.ports)):
            port = self.ports[(first + further) % len(self.ports)]
            with contextlib.suppress(OSError):
                found = await asyncio.open_connection("127.0.0.1", port)
                self.served[port] += 1
                return found
        return None

    async def _pass_back(
        self,
        client: asyncio.StreamReader,
        theirs: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """The answer as it comes, until either end has gone."""
        gone = asyncio.ensure_future(client.read(1))
        begun = False
        try:
            while True:
                piece = asyncio.ensure_future(theirs.read(_PIECE))
                await asyncio.wait({gone, piece}, return_when=asyncio.FIRST_COMPLETED)
                if not piece.done():
                    piece.cancel()
                    await asyncio.gather(piece, return_exceptions=True)
                    return
                data = b"" if piece.exception() else piece.result()
                if not data:
                    if not begun:
                        writer.write(
                            b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: "
                            b"close\r\n\r\n"
                        )
                    return
                begun = True
                writer.write(data)
                await writer.drain()
        finally:
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
