"""One HTTP/1.1 connection and its responses, parsed by httptools as the bytes arrive (RFC 9112)."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
from collections.abc import Callable
from typing import Any

try:
    import httptools
except ImportError as missing:
    raise ImportError(
        "HTTP needs httptools, which comes with the extra `http`: pip install 'interlock[http]'"
    ) from missing

from .. import types as t
from .decompress import Inflater
from .fetch import ConnectionLost

_ROOM = 1 << 20  # bytes of a body that are buffered before reading from the socket is paused
_MOST_TALK = 256 * 1024  # bytes of a head, or of framing between pieces of a body
# a body up to this size is joined with its head: one copy is cheaper than a second write
_JOIN = 64 * 1024
_KEEP_ALIVE = {
    "TCP_KEEPIDLE": 60,
    "TCP_KEEPINTVL": 15,
    "TCP_KEEPCNT": 4,
}  # seconds, seconds, probes: a dead peer is detected after 2 minutes
_MOST_NAMES = 1000
_poll: Callable[[], Any] | None = getattr(select, "poll", None)  # missing on Windows

_names: dict[bytes, str] = {}  # a cache of header names, as text in lower case


class StaleConnection(Exception):
    """A reused connection turned out to be closed before a byte of the response arrived."""


class HttpConnection(asyncio.Protocol):
    """Carries one request at a time.

    `on_free` is called when the next request may be sent, `on_lost` when the connection has closed.
    """

    __slots__ = (
        "_complete",
        "_excess",
        "_feed",
        "_headers",
        "_keep",
        "_loop",
        "_parser",
        "_paused",
        "_silent",
        "_sized",
        "_skip",
        "_transport",
        "answer",
        "gone",
        "kept",
        "lost",
        "on_free",
        "on_lost",
        "turn",
        "where",
    )

    def __init__(
        self,
        where: str,
        on_free: Callable[[HttpConnection], None],
        on_lost: Callable[[HttpConnection], None],
    ) -> None:
        self.where = where
        self.on_free = on_free
        self.on_lost = on_lost
        self.answer: IncomingResponse | None = None  # the current response
        self.kept = False  # whether it has carried a request before
        self.lost = False
        self.turn = 0  # the sweep of the pool in which it was last used
        self.gone: asyncio.Future[None] | None = None  # set when the connection has closed
        self._transport: Any = None
        self._loop = asyncio.get_running_loop()
        self._paused = self._complete = self._excess = self._keep = self._skip = self._sized = False
        self._silent = 0
        self._headers: dict[str, str] = {}
        self._renew()

    def _renew(self) -> None:
        self._parser: Any = httptools.HttpResponseParser(self)
        self._feed: Any = self._parser.feed_data

    def abandon(self) -> None:
        """Close a connection that was never established, without calling `on_lost`. The event loop
        may or may not call `connection_lost` then.
        """
        self.lost = True
        self.on_lost = _ignore_loss
        self._parser = self._feed = None
        if self._transport is not None:
            self._transport.abort()

    def send(self, head: bytes, body: bytes, *, bodiless: bool = False) -> IncomingResponse:
        """Send a request, and return its response, which has not arrived yet. The response to a
        `bodiless` request (HEAD) has no body.
        """
        answer = self.answer = IncomingResponse(self, self._loop.create_future())
        self._complete = self._sized = False
        self._skip = bodiless
        self._silent = 0
        if len(body) <= _JOIN:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))
        return answer

    def is_spent(self) -> bool:
        """Whether the server has closed the connection or sent unexpected data, even if the event
        loop has not reported it yet.
        """
        sock = self._transport.get_extra_info("socket")
        fd = -1 if sock is None else sock.fileno()
        if fd < 0 or _poll is None:
            return False
        poller = _poll()
        poller.register(fd, select.POLLIN)
        return bool(poller.poll(0))

    def fail(self, error: Exception) -> None:
        """Close at once. A caller that waits for the response gets the error."""
        answer = self.answer
        self.answer = None
        if self._transport is not None:
            self._transport.abort()
        if answer is not None:
            answer.finish(error)

    def resume(self) -> None:
        """Resume reading."""
        if self._paused:
            self._paused = False
            if not self.lost:
                self._transport.resume_reading()

    def pause(self) -> None:
        """Pause reading."""
        if not self._paused and not self.lost:
            self._paused = True
            self._transport.pause_reading()

    # Called by the event loop.

    def connection_made(self, transport: Any) -> None:
        """Set up the transport."""
        self._transport = transport
        if self.lost:  # `abandon` was called meanwhile
            transport.abort()
            return
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != getattr(socket, "AF_UNIX", None):
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for name, value in _KEEP_ALIVE.items():
                    if (option := getattr(socket, name, None)) is not None:
                        sock.setsockopt(socket.IPPROTO_TCP, option, value)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes."""
        answer = self.answer
        if answer is None:  # no request was sent
            self._transport.abort()
            return
        self._silent += len(data)
        try:
            self._feed(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as bad:
            if not self._complete:
                self.fail(
                    t.Unreachable(f"What {self.where} answered is not HTTP/1.1: {_words(bad)}.")
                )
                return
            self._excess = True
        if self._complete:
            self._finish(answer)
        elif self._silent > _MOST_TALK:
            self.fail(
                t.Unreachable(
                    f"{self.where} answered with more than {_MOST_TALK} bytes of headers."
                )
            )
        elif answer.status:
            answer.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the response, because the connection has closed."""
        self.lost = True
        answer = self.answer
        self.answer = None
        self._parser = self._feed = (
            # the parser refers to methods of this object: a cycle that only the garbage collector
            # could free
            None
        )
        if answer is not None:
            if answer.status and not self._sized and exc is None:
                answer.finish(None)  # a body without a length ends with the connection
            elif self.kept and not self._silent:
                answer.finish(StaleConnection())
            else:
                how = "in the middle of its answer" if self._silent else "before it answered"
                cause = f": {exc}" if exc is not None else ""
                answer.finish(ConnectionLost(f"{self.where} closed the connection {how}{cause}."))
        if self.gone is not None and not self.gone.done():
            self.gone.set_result(None)
        self.on_lost(self)

    # Called by the parser.

    def on_message_begin(self) -> None:
        """Start a head."""
        if self._complete:
            self._excess = True
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Record a header, or a trailer after the body, which is ignored."""
        low = _names.get(name) or _name(name)
        headers = self._headers
        text = value.decode("latin-1").rstrip(" \t")
        headers[low] = f"{headers[low]}, {text}" if low in headers else text

    def on_headers_complete(self) -> None:
        """End a head."""
        status = self._parser.get_status_code()
        if self._complete or status < 200:
            return  # an unexpected response, or an interim one
        answer = self.answer
        headers = self._headers
        self._headers = {}
        self._keep = self._parser.should_keep_alive()
        self._sized = (
            "content-length" in headers
            or "chunked" in headers.get("transfer-encoding", "").lower()
            or status in (204, 304)
        )
        if answer is not None:
            answer.headers = headers
            answer.status = status
        if self._skip:
            self._complete = True

    def on_body(self, body: bytes) -> None:
        """Pass a piece of the body on."""
        answer = self.answer
        if self._complete or answer is None:
            self._excess = True
            return
        self._silent = 1
        answer.feed(body)

    def on_message_complete(self) -> None:
        """End a response."""
        answer = self.answer
        if answer is not None and answer.status:
            self._complete = True

    def _finish(self, answer: IncomingResponse) -> None:
        """Complete the response, and release the connection for the next request if it can be
        reused.
        """
        self.answer = None
        if self._keep and not self._excess and not self._transport.get_write_buffer_size():
            if self._skip:
                self._renew()
            self.resume()
            self.kept = True
            self.on_free(self)
        else:
            self._transport.abort()
        answer.finish(None)


class IncomingResponse:
    """The response to one request; it implements `Response`."""

    __slots__ = (
        "_connection",
        "_error",
        "_parts",
        "_room",
        "_size",
        "_taken",
        "_waiter",
        "ended",
        "headers",
        "status",
    )

    def __init__(self, connection: HttpConnection, waiter: asyncio.Future[None]) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = False
        self._connection = connection
        self._waiter: asyncio.Future[None] | None = waiter
        self._error: Exception | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._room = _ROOM
        self._taken = False

    async def arrive(self) -> None:
        """Wait for the head."""
        await self._wait()
        if not self.status:
            raise self._error or t.Unreachable("The answer never came.")

    async def read(self, limit: int) -> bytes:
        """Return the whole body.

        Raises:
            ConnectionLost: The connection broke.
            ProtocolError: The body has more than `limit` bytes.
        """
        inflater = self._take_up()
        if not self.ended:
            self._room = limit
            self._connection.resume()
        while not self.ended and self._size <= limit:
            self._waiter = self._connection._loop.create_future()
            await self._wait()
        if self._size > limit:
            await self.aclose()
            raise _too_long(limit)
        if self._error is not None:
            raise self._error
        parts = self._parts
        self._parts = []
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        return body if inflater is None else _inflated(inflater, body, limit)

    def chunks(self) -> BodyChunks:
        """Iterate over the body in pieces as they arrive. Raises ConnectionLost if the connection
        breaks before the end of the body.
        """
        return BodyChunks(self, self._take_up())

    async def aclose(self) -> None:
        """Stop reading. If the body was not read to its end, the connection is closed."""
        self._parts = []
        self._size = 0
        if not self.ended:
            self._connection.fail(t.Unreachable("The answer was closed."))

    def _take_up(self) -> Inflater | None:
        if self._taken:
            raise RuntimeError("the body was read before")
        self._taken = True
        encoding = self.headers.get("content-encoding", "").strip().lower()
        if encoding in ("", "identity"):
            return None
        try:
            return Inflater(encoding)
        except t.ProtocolError as bad:
            if not self.ended:
                self._connection.fail(bad)
            raise

    async def more(self) -> bytes:
        """The bytes of the body that have arrived since the last call; b"" at its end."""
        while not self._parts:
            if self._error is not None:
                raise self._error
            if self.ended:
                return b""
            self._waiter = self._connection._loop.create_future()
            await self._wait()
        parts = self._parts
        self._parts = []
        self._size = 0
        if not self.ended:
            self._connection.resume()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _wait(self) -> None:
        """Wait for data. Cancelling the wait closes the connection."""
        waiter = self._waiter
        assert waiter is not None
        try:
            await waiter
        except BaseException:
            if not self.ended:
                self._connection.fail(t.Unreachable("The request was abandoned."))
            raise
        finally:
            self._waiter = None

    # Called by the connection.

    def feed(self, body: bytes) -> None:
        """Add a piece of the body."""
        self._parts.append(body)
        self._size += len(body)
        if self._size > self._room:
            self._connection.pause()

    def wake(self) -> None:
        """Wake the waiting caller."""
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def finish(self, error: Exception | None) -> None:
        """End the response, with an error if it is incomplete."""
        self.ended = True
        self._error = error
        self.wake()


class BodyChunks:
    """A body as it arrives: an asynchronous iterator of non-empty bytes."""

    __slots__ = ("_answer", "_inflater", "_ready")

    def __init__(self, answer: IncomingResponse, inflater: Inflater | None) -> None:
        self._answer = answer
        self._inflater = inflater
        self._ready: Any = iter(())

    def __aiter__(self) -> BodyChunks:
        return self

    async def __anext__(self) -> bytes:
        if self._inflater is None:
            if piece := await self._answer.more():
                return piece
            raise StopAsyncIteration
        try:
            while (whole := next(self._ready, None)) is None:
                if piece := await self._answer.more():
                    self._ready = self._inflater.feed(piece)
                else:
                    self._inflater.finish()
                    raise StopAsyncIteration
        except t.ProtocolError:
            await self._answer.aclose()
            raise
        return bytes(whole)


def _ignore_loss(connection: HttpConnection) -> None:
    """Ignore the loss of an abandoned connection."""


def _inflated(inflater: Inflater, body: bytes, limit: int) -> bytes:
    parts = []
    size = 0
    for piece in inflater.feed(body):
        size += len(piece)
        if size > limit:
            raise _too_long(limit)
        parts.append(piece)
    inflater.finish()
    return b"".join(parts)


def _too_long(limit: int) -> t.ProtocolError:
    return t.ProtocolError(f"the answer has more than {limit} bytes")


def _name(name: bytes) -> str:
    """Cache a header name as text in lower case, and return it."""
    if len(_names) >= _MOST_NAMES:
        _names.clear()
    low = _names[name] = name.decode("latin-1").lower()
    return low


def _words(bad: Exception) -> str:
    if isinstance(bad, httptools.HttpParserUpgrade):
        return "it changes to another protocol without being asked"
    return str(bad)[:200] or type(bad).__name__
