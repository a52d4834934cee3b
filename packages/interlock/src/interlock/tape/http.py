"""Recording over HTTP: an ASGI wrapper that records each exchange, and a reverse proxy to record a
server that somebody else runs.

Bodies pass as they come, also those of event streams. A body of JSON is recorded once it is whole,
and an event of a stream at once. Requests of one session are one connection of the recording;
requests without a session are one connection for each address and user agent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from ..caches import BoundedCache
from ..http11.fetch import Fetch, Request, Response
from ..protocol.http import EndpointRules
from ..quotas import QuotaUsage
from ..transport.http.limits import Limits
from ..types import Unreachable
from ..wire.jsonrpc import Malformed
from ..wire.lines import DEFAULT_LIMIT
from ..wire.sse import EventReader
from .format import Sender
from .writer import RecordedConnection, TapeWriter

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

_MOST_CONNECTIONS = 10_000
_EVENTS = "text/event-stream"
# Headers of one connection (RFC 9110, 7.6.1), and those that the proxy sets itself.
_HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "host",
        "content-length", "accept-encoding",
    }
)  # fmt: skip


class RecordedApp:
    """An ASGI app whose HTTP exchanges are recorded.

    Args:
        app: The app.
        recorder: The recorder.
    """

    def __init__(self, app: AsgiApp, recorder: TapeWriter) -> None:
        self._app = app
        self._recorder = recorder
        self._connections: BoundedCache[tuple[str, ...], RecordedConnection] = BoundedCache(
            _MOST_CONNECTIONS
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _RecordedExchange(self, scope)
        await self._app(scope, exchange.receiving(receive), exchange.sending(send))

    def connection_of(self, scope: Scope, headers: dict[str, str]) -> RecordedConnection:
        """The connection that a request belongs to."""
        key = self._key(scope, headers)
        connection = self._connections.get(key)
        if connection is None:
            connection = self._recorder.connection()
            self._connections.put(key, connection)
        return connection

    def next_exchange(self) -> int:
        """The number for another exchange."""
        return self._recorder.next_exchange()

    def assign(
        self, session: str, connection: RecordedConnection, scope: Scope, headers: dict[str, str]
    ) -> None:
        """Assign a new session to the connection of its first request. A later session of the same
        client is another connection.
        """
        self._connections.put(("session", session), connection)
        self._connections.pop(self._key(scope, headers))

    def _key(self, scope: Scope, headers: dict[str, str]) -> tuple[str, ...]:
        session = headers.get("mcp-session-id")
        if session is not None:
            return ("session", session)
        address = str((scope.get("client") or ("",))[0])
        return ("client", address, headers.get("user-agent", ""))


class Endpoint(Protocol):
    """An endpoint of this library: an ASGI app that its HTTP server opens, drains and closes."""

    limits: Limits
    connections: Callable[[], QuotaUsage] | None

    async def open(self) -> None:
        """Start the endpoint."""

    async def drain(self, grace: float) -> None:
        """Refuse new requests, and let running ones finish for `grace` seconds."""

    async def aclose(self) -> None:
        """Stop the endpoint."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""


class RecordedEndpoint(RecordedApp):
    """An endpoint of this library whose HTTP exchanges are recorded."""

    def __init__(self, endpoint: Endpoint, recorder: TapeWriter) -> None:
        super().__init__(endpoint, recorder)
        self._endpoint = endpoint

    @property
    def limits(self) -> Limits:
        """The limits of the endpoint."""
        return self._endpoint.limits

    @property
    def connections(self) -> Callable[[], QuotaUsage] | None:
        """Returns the number of connections of the HTTP server."""
        return self._endpoint.connections

    @connections.setter
    def connections(self, usage: Callable[[], QuotaUsage] | None) -> None:
        self._endpoint.connections = usage

    async def open(self) -> None:
        """Start the endpoint."""
        await self._endpoint.open()

    async def drain(self, grace: float) -> None:
        """Refuse new requests, and let running ones finish for `grace` seconds."""
        await self._endpoint.drain(grace)

    async def aclose(self) -> None:
        """Stop the endpoint."""
        await self._endpoint.aclose()


class _RecordedExchange:
    """One request with its response."""

    def __init__(self, app: RecordedApp, scope: Scope) -> None:
        self._app = app
        self._scope = scope
        pairs = _decoded(scope["headers"])
        self._headers = {name.lower(): value for name, value in pairs}
        self._number = app.next_exchange()
        self._connection = app.connection_of(scope, self._headers)
        query = scope.get("query_string", b"").decode("latin-1")
        target = scope["path"] + (f"?{query}" if query else "")
        self._connection.http_request(self._number, scope["method"], target, pairs)
        self._request = bytearray()
        self._response = bytearray()
        self._is_message = False
        self._events: EventReader | None = None

    def receiving(self, receive: Receive) -> Receive:
        """A `receive` that records the body of the request."""

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                self._request += message.get("body", b"")
                if not message.get("more_body", False):
                    self._record("client", self._request)
            return message

        return received

    def sending(self, send: Send) -> Send:
        """A `send` that records the response before it is sent."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._start(message)
            elif message["type"] == "http.response.body":
                self._add(message.get("body", b""), is_last=not message.get("more_body", False))
            await send(message)

        return sent

    def _start(self, message: Message) -> None:
        pairs = _decoded(message.get("headers", ()))
        headers = {name.lower(): value for name, value in pairs}
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        self._is_message = kind == "application/json"
        self._events = EventReader(DEFAULT_LIMIT) if kind == _EVENTS else None
        session = headers.get("mcp-session-id")
        if session is not None and "mcp-session-id" not in self._headers:
            self._app.assign(session, self._connection, self._scope, self._headers)
        self._connection.http_response(self._number, message["status"], pairs)

    def _add(self, chunk: bytes, *, is_last: bool) -> None:
        if self._events is not None:
            with contextlib.suppress(Malformed):  # the client is told by its own reader
                frames = [event.data for event in self._events.feed(chunk) if event.data]
                if frames:
                    self._connection.frames("server", frames, self._number)
        elif self._is_message:
            self._response += chunk
            if is_last:
                self._record("server", self._response)

    def _record(self, sender: Sender, body: bytearray) -> None:
        if body:
            # JSON over HTTP may have line ends, which a line of the tape cannot have.
            frame = bytes(body).replace(b"\r", b" ").replace(b"\n", b" ")
            self._connection.frames(sender, [frame], self._number)
            body.clear()


class ReverseProxy:
    """An ASGI app that passes every request on to a server.

    Hazard: it checks the Host header, so that a web page cannot reach the server through DNS
    rebinding. It has no other access control: whoever reaches the proxy reaches the server.

    Args:
        url: Any URL of the server. Only its origin is used.
        fetch: Sends the requests.
        hosts: Accepted names in the Host header besides loopback names and IP addresses.
    """

    def __init__(self, url: str, fetch: Fetch, hosts: Iterable[str] = ()) -> None:
        parts = urlsplit(url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._fetch = fetch
        self._rules = EndpointRules(hosts=frozenset(hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            return
        pairs = _decoded(scope["headers"])
        headers = {name.lower(): value.encode("latin-1") for name, value in pairs}
        refused = self._rules.check_host_and_origin(headers.get("host"), headers.get("origin"))
        if refused:
            await _answer(send, 403, refused)
            return
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        query = scope.get("query_string", b"").decode("latin-1")
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        request = Request(
            scope["method"],
            f"{self._origin}{path.partition('?')[0]}{'?' if query else ''}{query}",
            (
                *((name, value) for name, value in pairs if name.lower() not in _HOP_BY_HOP),
                ("Accept-Encoding", "identity"),
            ),
            bytes(body),
        )
        passing = asyncio.ensure_future(self._pass_on(request, send))
        watching = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait({passing, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            if not passing.done():
                passing.cancel()
            await asyncio.gather(passing, watching, return_exceptions=True)
        if not passing.cancelled() and (error := passing.exception()) is not None:
            raise error

    async def _pass_on(self, request: Request, send: Send) -> None:
        try:
            response = await self._fetch(request)
        except Unreachable as bad:
            await _answer(send, 502, str(bad))
            return
        try:
            await _send_on(response, send)
        finally:
            await response.aclose()


async def _send_on(response: Response, send: Send) -> None:
    headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in response.headers.items()
        if name not in _HOP_BY_HOP or name == "content-length"
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    async for chunk in response.chunks():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _answer(send: Send, status: int, words: str) -> None:
    body = words.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _decoded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
