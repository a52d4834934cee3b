"""ASGI 3 for one request: its scope, `receive` for the request body, and `send` for the response.

A request whose body is complete when the app starts, and a response that is sent as a whole, need
no messages: see `RequestBody.take_whole` and `AsgiResponse.respond`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Protocol

from ....compact_event import CompactEvent
from .request import RequestHead, split_target
from .response import LAST_CHUNK, Framing, make_head

App = Callable[[Any, Any, Any], Awaitable[None]]
Message = MutableMapping[str, Any]
LARGE = 64 * 1024
"""The size in bytes above which a piece is written separately instead of being copied."""
_MOST_WAITING = 64 * 1024  # buffered bytes of a body above which receiving pauses


class ResponseStream(Protocol):
    """The members of a connection that a request and its response use."""

    @property
    def is_paused(self) -> bool:
        """Whether the write buffer is full."""
        ...

    async def drain(self) -> None:
        """Wait until the write buffer has room, or the client has disconnected."""
        ...

    def send_bytes(self, data: bytes) -> None:
        """Write bytes."""
        ...

    def soon(self, flush: Any) -> None:
        """Call a function at the end of this turn of the event loop."""
        ...

    def date(self) -> bytes:
        """Return the Date header."""
        ...

    def usual_head(self, kind: bytes) -> bytes:
        """Return the head of a 200 response with a body of this type, up to the number of its
        bytes.
        """
        ...

    def send_continue(self) -> None:
        """Send `100 Continue`, which tells the client to send the body."""
        ...

    def pause_body(self) -> None:
        """Pause receiving."""
        ...

    def resume_body(self) -> None:
        """Resume receiving."""
        ...

    def response_completed(self, response: AsgiResponse) -> None:
        """Process the end of a response, after its last byte."""
        ...

    def break_off(self) -> None:
        """Close the connection, because a response cannot be completed."""
        ...


class RequestBody:
    """The `receive` of one request.

    Attributes:
        is_complete: Whether the whole body has arrived.
        size: The number of bytes that have arrived.
    """

    __slots__ = (
        "_connection",
        "_event",
        "_expects_continue",
        "_is_gone",
        "_is_read",
        "_pieces",
        "_waiting",
        "is_complete",
        "size",
    )

    def __init__(self, connection: ResponseStream, *, expects_continue: bool) -> None:
        self._connection = connection
        self._expects_continue = expects_continue
        self._pieces: list[bytes] = []
        self._waiting = 0  # bytes of the buffered pieces
        self._event: CompactEvent | None = None
        self._is_read = False
        self._is_gone = False
        self.is_complete = False
        self.size = 0

    def take_whole(self) -> bytes | None:
        """Return the body, if it is complete and unread; otherwise None. An app reads a body either
        this way or with messages.
        """
        if not self.is_complete or self._is_read:
            return None
        self._is_read = True
        return self._take()

    async def __call__(self) -> Message:
        """Return the next message: a piece of the body, or the client's disconnect."""
        while True:
            if not self._is_read and (
                self.is_complete if self._is_gone else self._pieces or self.is_complete
            ):
                self._is_read = self.is_complete
                return {
                    "type": "http.request",
                    "body": self._take(),
                    "more_body": not self.is_complete,
                }
            if self._is_gone:
                return {"type": "http.disconnect"}
            if self._expects_continue and not self.is_complete:
                self._expects_continue = False
                self._connection.send_continue()
            if self._event is None:
                self._event = CompactEvent()
            self._event.clear()
            await self._event.wait()

    def _take(self) -> bytes:
        pieces = self._pieces
        if len(pieces) == 1:
            body = pieces[0]
        elif not pieces:
            return b""
        else:
            body = b"".join(pieces)
        self._pieces = []
        if self._waiting > _MOST_WAITING:
            self._connection.resume_body()
        self._waiting = 0
        return body

    # -- called by the connection ------------------------------------------------------------------

    def feed(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self.size += len(piece)
        if self._is_gone:
            return  # the response is complete, so the app does not read the rest
        self._expects_continue = False
        self._pieces.append(piece)
        self._waiting += len(piece)
        if self._waiting > _MOST_WAITING:
            self._connection.pause_body()
        if self._event is not None:
            self._event.set()

    def complete(self) -> None:
        """Mark the body as complete."""
        self.is_complete = True
        if self._event is not None:
            self._event.set()

    def close(self) -> None:
        """Close the body, because the client has disconnected or the response is complete."""
        self._is_gone = True
        if self._waiting > _MOST_WAITING:
            self._connection.resume_body()
        self._waiting = 0
        if not self.is_complete:
            self._pieces = []
        if self._event is not None:
            self._event.set()


class AsgiResponse:
    """The `send` of one request.

    Attributes:
        request: The head of the request.
        body: The body of the request.
        has_begun: Whether the status is decided.
        is_complete: Whether the last byte was written.
        keep_alive: Whether another response may follow on the connection.
        is_gone: Whether the client has disconnected. Then nothing is written.
        framing: How the end of the body is marked.
    """

    __slots__ = (
        "_connection",
        "_head",
        "_left",
        "_status",
        "body",
        "framing",
        "has_begun",
        "is_complete",
        "is_gone",
        "keep_alive",
        "request",
    )

    def __init__(self, connection: ResponseStream, request: RequestHead, body: RequestBody) -> None:
        self._connection = connection
        self._status: tuple[int, Sequence[tuple[bytes, bytes]]] | None = None  # not written yet
        self._head = b""  # not written yet
        self._left = 0  # bytes of the content-length that were not sent yet
        self.request = request
        self.body = body
        self.framing = Framing.NONE
        self.has_begun = False
        self.is_complete = False
        self.keep_alive = request.keep_alive
        self.is_gone = False

    @property
    def is_open(self) -> bool:
        """Whether the head was written."""
        return self.has_begun and self._status is None

    def respond(
        self, status: int, body: bytes, kind: bytes, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        """Send a whole response with a body of this type. Raises RuntimeError if a response has
        begun.
        """
        if self.is_gone:
            return
        if self.has_begun:
            raise RuntimeError("the response has begun already")
        is_usual = status == 200 and not headers and self.keep_alive
        if is_usual and 0 < len(body) <= LARGE and self.request.method != "HEAD":
            self.has_begun = self.is_complete = True
            start = self._connection.usual_head(kind)
            self._connection.send_bytes(b"%b%d\r\n\r\n%b" % (start, len(body), body))
            self._connection.response_completed(self)
            return
        pairs = [*headers, (b"content-type", kind)] if body else headers
        self._begin(status, pairs, len(body))
        self._write(body, is_last=True)

    async def __call__(self, message: Message) -> None:
        """Process an ASGI message.

        Raises:
            RuntimeError: The message is out of order.
            ValueError: A header cannot be sent.
        """
        if self._connection.is_paused and not self.is_gone:
            await self._connection.drain()
        if self.is_gone:
            return
        kind = message["type"]
        if not self.has_begun:
            if kind != "http.response.start":
                raise RuntimeError(f"a response begins with http.response.start, not {kind}")
            self._status = (message["status"], message.get("headers", ()))
            self.has_begun = True
            self._connection.soon(self._flush)
            return
        if kind != "http.response.body":
            raise RuntimeError(f"a response goes on with http.response.body, not {kind}")
        if self.is_complete:
            raise RuntimeError("the response is complete already")
        body = message.get("body", b"")
        more = message.get("more_body", False)
        if self._status is not None:
            status, headers = self._status
            self._begin(status, headers, None)
        self._write(body, is_last=not more)

    def _begin(
        self, status: int, headers: Sequence[tuple[bytes, bytes]], whole: int | None
    ) -> None:
        request = self.request
        self._status = None
        self.has_begun = True
        head = make_head(
            status,
            headers,
            self._connection.date(),
            method=request.method,
            is_old=request.is_old,
            keep_alive=self.keep_alive,
            whole=whole,
        )
        self.framing = head.framing
        self.keep_alive = head.keep_alive
        self._left = head.length
        self._head = head.data

    def _write(self, body: bytes, *, is_last: bool) -> None:
        framing = self.framing
        data = self._head
        self._head = b""
        if framing is Framing.CHUNKED:
            if body:
                data += b"%x\r\n%b\r\n" % (len(body), body)
            if is_last:
                data += LAST_CHUNK
        elif framing is not Framing.NONE:
            if framing is Framing.LENGTH:
                self._left -= len(body)
                if self._left < 0:
                    raise RuntimeError("the body is longer than its content-length")
            if len(body) > LARGE and data:
                self._connection.send_bytes(data)
                data = body
            else:
                data += body
        if data:
            self._connection.send_bytes(data)
        if is_last:
            self.is_complete = True
            if framing is Framing.LENGTH and self._left:
                self._connection.break_off()
                raise RuntimeError("the body is shorter than its content-length")
            self._connection.response_completed(self)

    def _flush(self) -> None:
        """Write the head of a response whose body has not begun by the end of this turn of the
        event loop.
        """
        if self._status is None or self.is_gone:
            return
        status, headers = self._status
        try:
            self._begin(status, headers, None)
        except ValueError:
            self._connection.break_off()
            raise
        self._connection.send_bytes(self._head)
        self._head = b""


def make_scope(
    template: dict[str, Any], request: RequestHead, origin: tuple[Any, str] | None
) -> dict[str, Any]:
    """Return the ASGI scope of a request.

    Args:
        template: The common part of all requests of the connection.
        request: The head of the request.
        origin: The client and the scheme, if a trusted proxy reports them.
    """
    scope = template.copy()
    path, raw_path, query = split_target(request.target)
    scope["method"] = request.method
    scope["path"] = path
    scope["raw_path"] = raw_path
    scope["query_string"] = query
    scope["headers"] = request.headers.copy()  # a copy, because an app may change it
    if request.is_old:
        scope["http_version"] = "1.0"
    if origin is not None:
        scope["client"], scope["scheme"] = origin
    return scope
