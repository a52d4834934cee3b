"""One request on a connection, and its response.

An endpoint that knows this class reads the body and writes the response with single calls. For any
other app it is ASGI 3: `scope`, `receive` for the body, and `send` for the response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Protocol

from ....compact_event import CompactEvent
from ....exchange import Principal, ready
from ....protocol.http import JSON, EndpointHead
from ..requests import (
    CHALLENGE,
    EVENT_HEADERS,
    HOLD,
    PRINCIPAL,
    Challenge,
    PreparedHead,
    ResponseHolder,
    ResponseOwner,
)
from .request import RequestHead, split_target
from .response import LAST_CHUNK, Framing, make_head

App = Callable[[Any, Any, Any], Awaitable[None]]
Message = MutableMapping[str, Any]
LARGE = 64 * 1024
"""The size in bytes above which a piece is written separately instead of being copied."""
NO_TEMPLATE: dict[str, Any] = {}
_MOST_WAITING = 64 * 1024  # buffered bytes of a body above which receiving pauses


class ResponseStream(ResponseHolder, Protocol):
    """The members of a connection that a request and its response use."""

    async def drain(self) -> None:
        """Wait until the write buffer has room, or the client has disconnected."""
        ...

    def send_bytes(self, data: bytes) -> None:
        """Write bytes."""
        ...

    def soon(self, flush: Callable[[], None]) -> None:
        """Call a function at the end of this turn of the event loop."""
        ...

    def date(self) -> bytes:
        """Return the Date header."""
        ...

    def usual_head(self, kind: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        """Return the head of a 200 response with a body of this type, up to the number of its
        bytes. `headers` are always the same for the type.
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

    def response_completed(self, cycle: RequestCycle) -> None:
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


class RequestCycle:
    """One request, and its response.

    Attributes:
        raw: The head of the request.
        head: The same, as the endpoint reads it.
        principal: The principal that the guard has found, if it was not ASGI middleware.
        body: The body, once it was read as a whole.
        template: The common part of the ASGI scopes of the connection.
        origin: The client and the scheme, if a trusted proxy reports them.
        has_begun: Whether the status is decided.
        is_complete: Whether the last byte was written.
        keep_alive: Whether another response may follow on the connection.
        is_gone: Whether the client has disconnected. Then nothing is written.
        framing: How the end of the body is marked.
    """

    __slots__ = (
        "_connection",
        "_incoming",
        "_left",
        "_prepared",
        "_start",
        "_status",
        "_whole",
        "body",
        "framing",
        "has_begun",
        "head",
        "is_complete",
        "is_gone",
        "keep_alive",
        "origin",
        "principal",
        "raw",
        "template",
    )

    def __init__(
        self,
        connection: ResponseStream,
        raw: RequestHead,
        incoming: RequestBody | None = None,
        whole: bytes = b"",
    ) -> None:
        """`incoming` is the body if it is still arriving, otherwise `whole`."""
        self._connection = connection
        self._incoming = incoming
        self._whole = whole
        self._status: tuple[int, Sequence[tuple[bytes, bytes]]] | None = None  # not written yet
        self._start = b""  # the head of the response, if it is not written yet
        self._left = 0  # bytes of the content-length that were not sent yet
        self.raw = raw
        self.head: EndpointHead
        self.principal: Principal | None = None
        self._prepared: PreparedHead | None = None
        self.body = b""
        self.template = NO_TEMPLATE
        self.origin: tuple[Any, str] | None = None
        self.framing = Framing.NONE
        self.has_begun = False
        self.is_complete = False
        self.keep_alive = raw.keep_alive
        self.is_gone = False

    # -- the request -------------------------------------------------------------------------------

    def take_body(self) -> bytes | None:
        """Return the body, if it is complete and unread; otherwise None. An app reads a body either
        this way or with `receive`.
        """
        if self._incoming is not None:
            return None
        whole = self._whole
        self._whole = b""
        return whole

    @property
    def receive(self) -> RequestBody:
        """The ASGI `receive`."""
        incoming = self._incoming
        if incoming is None:
            incoming = RequestBody(self._connection, expects_continue=False)
            if self._whole:
                incoming.feed(self._whole)
            incoming.complete()
            if self.is_complete or self.is_gone:
                incoming.close()
            self._incoming = incoming
        return incoming

    @property
    def send(self) -> RequestCycle:
        """The ASGI `send`."""
        return self

    @property
    def scope(self) -> dict[str, Any]:
        """The ASGI scope. Each is a copy, because an app may change it."""
        raw = self.raw
        scope = self.template.copy()
        scope["method"] = raw.method
        scope["path"], scope["raw_path"], scope["query_string"] = split_target(raw.target)
        prepared = self._prepared
        if prepared is None:
            scope["headers"] = raw.headers.copy()
        else:
            scope["headers"] = prepared.shown.copy()
            if prepared.token is not None:
                scope[PRINCIPAL] = self.principal
                scope[CHALLENGE] = prepared.token.challenge
        scope[HOLD] = self._connection
        if raw.is_old:
            scope["http_version"] = "1.0"
        if self.origin is not None:
            scope["client"], scope["scheme"] = self.origin
        return scope

    def admit(self, prepared: PreparedHead, principal: Principal | None) -> None:
        """Set what the endpoint sees of this request."""
        self._prepared = prepared
        self.head = prepared.head
        self.principal = principal

    @property
    def challenge(self) -> Challenge | None:
        """Makes the headers of a 403 challenge from the missing scopes, if there is a guard."""
        prepared = self._prepared
        if prepared is None or prepared.token is None:
            return None
        return prepared.token.challenge

    @property
    def client(self) -> Sequence[Any] | None:
        """The address and the port of the client; None on a Unix socket."""
        client: Sequence[Any] | None = (
            self.template.get("client") if self.origin is None else self.origin[0]
        )
        return client

    @property
    def holder(self) -> ResponseHolder:
        """The connection, which can hold an open response."""
        return self._connection

    def reads(self, incoming: RequestBody) -> bool:
        """Whether a body that is arriving belongs to this request."""
        return self._incoming is incoming

    def close(self, *, is_gone: bool = False) -> None:
        """End the body of the request: the response is complete, or the client is gone."""
        self.is_gone = self.is_gone or is_gone
        if self._incoming is not None:
            self._incoming.close()

    def shrink(self) -> None:
        """Drop what only an app behind ASGI needs, because a handler may keep this request for as
        long as its response is open.
        """
        if self.origin is None:
            self.origin = (self.template["client"], self.template["scheme"])
        self.template = NO_TEMPLATE

    # -- the response ------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the head was written."""
        return self.has_begun and self._status is None

    def respond(
        self,
        status: int,
        body: bytes,
        kind: bytes = JSON,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> Awaitable[None]:
        """Send a whole response with a body of this type. Raises RuntimeError if a response has
        begun.
        """
        if self.is_gone:
            return ready()
        if self.has_begun:
            raise RuntimeError("the response has begun already")
        is_usual = status == 200 and self.keep_alive and (not headers or headers is EVENT_HEADERS)
        if is_usual and 0 < len(body) <= LARGE and self.raw.method != "HEAD":
            self.has_begun = self.is_complete = True
            start = self._connection.usual_head(kind, headers)
            self._connection.send_bytes(b"%b%d\r\n\r\n%b" % (start, len(body), body))
            self._connection.response_completed(self)
            return ready()
        pairs = [*headers, (b"content-type", kind)] if body else headers
        self._begin(status, pairs, len(body))
        self._write(body, is_last=True)
        return ready()

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
        raw = self.raw
        self._status = None
        self.has_begun = True
        head = make_head(
            status,
            headers,
            self._connection.date(),
            method=raw.method,
            is_old=raw.is_old,
            keep_alive=self.keep_alive,
            whole=whole,
        )
        self.framing = head.framing
        self.keep_alive = head.keep_alive
        self._left = head.length
        self._start = head.data

    def _write(self, body: bytes, *, is_last: bool) -> None:
        framing = self.framing
        data = self._start
        self._start = b""
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
        self._connection.send_bytes(self._start)
        self._start = b""


class HeldResponse:
    """An open response that its connection holds. It keeps nothing of the request.

    Attributes:
        owner: Writes the body.
        framing: How the end of the body is marked.
        keep_alive: Whether another response may follow on the connection.
        is_gone: Whether the client has disconnected.
    """

    __slots__ = ("framing", "is_gone", "keep_alive", "owner")

    has_begun = True

    def __init__(self, owner: ResponseOwner, framing: Framing, *, keep_alive: bool) -> None:
        self.owner = owner
        self.framing = framing
        self.keep_alive = keep_alive
        self.is_gone = False

    def reads(self, incoming: RequestBody) -> bool:
        """Return False: the request has arrived."""
        return False

    def close(self, *, is_gone: bool = False) -> None:
        """End the response."""
        self.is_gone = is_gone
