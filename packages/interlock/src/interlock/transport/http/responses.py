"""One HTTP response: JSON at once, or an event stream that is written as events
arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from ...exchange import ready
from ...protocol.handshake.server import ServerConnection
from ...protocol.http import EVENTS, JSON
from ...protocol.streams import PostResponse
from ...wire.jsonrpc import Frame
from .requests import EVENT_HEADERS, EndpointRequest, Message, Pairs, Receive, ResponseHolder

# queued bytes above which senders should wait
_PATIENCE = 256 * 1024
_STALLED = 60.0  # seconds without any read after which a client counts as gone


class Closable(Protocol):
    """The stream that a response belongs to."""

    def close(self) -> None:
        """Clean up after the response has ended."""
        ...


class ResponseWriter:
    """One response. `answer` determines its form. `cancels` says whether the client's disconnect
    cancels the request (stateless era).
    """

    __slots__ = (
        "_flushing",
        "_holder",
        "_loop",
        "_open",
        "_owner",
        "_request",
        "_room",
        "age",
        "answer",
        "cancels",
        "connection",
        "first",
        "headers",
        "over",
        "watch",
    )

    def __init__(
        self,
        answer: PostResponse,
        request: EndpointRequest,
        connection: ServerConnection | None,
        *,
        headers: Pairs = (),
        cancels: bool,
    ) -> None:
        self.answer = answer
        self._request: EndpointRequest | None = request  # None once nothing more is sent there
        self.connection = connection
        self.headers = headers
        self.cancels = cancels
        self.first: asyncio.Future[None] | None = None  # done once its form is decided
        self.age = 0
        self.watch: asyncio.Task[None] | None = None
        self.over: Callable[[], None] | None = None  # called once nothing more will be sent
        self._flushing: asyncio.Task[None] | None = None
        self._open = False  # whether the head of the event stream was sent
        self._room: asyncio.Event | None = None
        self._holder: ResponseHolder | None = None
        self._owner: Closable | None = None
        self._loop = asyncio.get_running_loop()

    def transmit(self, out: list[tuple[Any, Frame]]) -> None:
        """Queue frames of the connection."""
        assert self.connection is not None
        if not self.answer.ended:
            self.answer.put([frame for _, frame in out], left=self.connection.unanswered)
            self._schedule_write()

    def send_last(self, frame: Frame) -> None:
        """Queue the response to the only request."""
        self.answer.put([frame], left=0)
        self._schedule_write()

    def push(self, piece: bytes) -> None:
        """Queue an encoded event, or write it at once to a held response."""
        holder = self._holder
        if holder is not None and not self.answer.waiting and not holder.is_paused:
            holder.write(piece)
            return
        self.answer.push(piece)
        self._schedule_write()

    def close(self) -> None:
        """End the response."""
        if not self.answer.ended:
            self.answer.close()
            self._schedule_write()

    def start_stream(self, *, comment: bool = False) -> None:
        """Start the event stream now."""
        self.answer.start_stream(comment=comment)
        self._schedule_write()

    def keep_alive(self) -> None:
        """Send a keep-alive comment to the client and all proxies on the way."""
        if self.answer.begun:
            self.answer.keep_alive()
        else:
            self.answer.start_stream(comment=True)
        self._schedule_write()

    def release(self, retry: int | None = None) -> bool:
        """Close the client's stream. The client resumes it later. False if it could not resume."""
        let_go = self.answer.detach(retry)
        self._schedule_write()
        return let_go

    def lose(self) -> None:
        """Stop writing, because the client has left this connection."""
        self.answer.lose()
        self._schedule_write()
        if self._room is not None:
            self._room.set()

    @property
    def queued(self) -> int:
        """The number of bytes that are queued for writing."""
        return self.answer.waiting

    def drain(self) -> Awaitable[None]:
        """Wait until the queue is short."""
        return ready() if self.answer.waiting <= _PATIENCE else self._drain()

    async def _drain(self) -> None:
        while self.answer.waiting > _PATIENCE:
            if self._room is None:
                self._room = asyncio.Event()
            self._room.clear()
            await self._room.wait()

    @property
    def receive(self) -> Receive:
        """The ASGI `receive` of the request."""
        assert self._request is not None
        return self._request.receive

    async def rest(self, owner: Closable) -> bool:
        """Leave an open event stream to its connection. Then the task that sends it may end.

        `owner` is closed once the stream has ended. False, and nothing is changed, if the server
        does not support this.
        """
        holder = None if self._request is None else self._request.holder
        if holder is None:
            return False
        if self._flushing is not None:
            await self._flushing
        if not self._open or self.answer.ended or self.answer.detached or not holder.hold(self):
            return False
        self._holder = holder
        self._owner = owner
        self._request = None
        self.continue_writing()
        return True

    def continue_writing(self) -> None:
        """Write queued data to a held response."""
        holder = self._holder
        answer = self.answer
        if holder is None:
            return
        while not holder.is_paused and (piece := answer.next_piece()):
            holder.write(piece)
        if self._room is not None:
            self._room.set()
        if (answer.ended or answer.detached) and not answer.waiting:
            self._holder = None
            holder.finish()
            self._over()

    def client_gone(self) -> None:
        """Clean up after the client of a held response is gone."""
        self._holder = None
        self.answer.lose()
        if self._room is not None:
            self._room.set()
        self._over()

    def _over(self) -> None:
        owner = self._owner
        self._owner = None
        if owner is not None:
            owner.close()

    def _schedule_write(self) -> None:
        answer = self.answer
        if self._holder is not None:
            self.continue_writing()
            return
        if self.first is not None and (answer.begun or answer.ended) and not self.first.done():
            self.first.set_result(None)
        if (
            answer.begun and self._flushing is None and (self._open or not answer.ended)
        ):  # otherwise `finish` writes everything
            self._flushing = self._loop.create_task(self._flush())
        if answer.ended and self.over is not None:
            over = self.over
            self.over = None
            over()

    async def _flush(self) -> None:
        """Write queued data. End the response if nothing more will follow."""
        answer = self.answer
        send = _nowhere if self._request is None else self._request.send
        try:
            async with asyncio.timeout(None) as stall:
                if not self._open:
                    self._open = True
                    await send(
                        {
                            "type": "http.response.start",
                            "status": 200,
                            "headers": [(b"content-type", EVENTS), *EVENT_HEADERS, *self.headers],
                        }
                    )
                while piece := answer.next_piece():
                    stall.reschedule(self._loop.time() + _STALLED)
                    if answer.ended and not answer.waiting:
                        await send(
                            {"type": "http.response.body", "body": piece, "more_body": False}
                        )
                        return
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    if self._room is not None:
                        self._room.set()
                if answer.ended or answer.detached:
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    return
        except (OSError, TimeoutError):
            self.lose()  # the connection is gone or stalled
            return
        finally:
            if self._room is not None:
                self._room.set()
        self._flushing = None

    async def finish(self, status: int = 200, headers: Pairs = ()) -> None:
        """Send the rest of the response: the JSON body, unless an event stream has started. Call it
        once the answer has ended.
        """
        request = self._request
        assert request is not None
        if not self.answer.begun:
            await request.respond(status, self.answer.body(), JSON, (*self.headers, *headers))
            return
        if not self._open and self._flushing is None and self.answer.waiting:
            self._open = True  # a short stream, which is complete already
            piece = self.answer.next_piece()
            more = (*EVENT_HEADERS, *self.headers) if self.headers else EVENT_HEADERS
            await request.respond(200, piece, EVENTS, more)
        else:
            # Hazard: `respond` sends no content type without a body, so an empty stream comes here.
            await (self._flush() if self._flushing is None else self._flushing)
        self._request = None  # the response is complete: ignore later messages


async def _nowhere(message: Message) -> None:
    """The `send` of a response that is held or complete: ignores every message."""
