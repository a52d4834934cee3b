"""The server of the legacy HTTP+SSE transport: an event stream at `/sse`, and `/messages` for posts
(2024-11-05, "HTTP with SSE").
"""

from __future__ import annotations

import asyncio
import os
import time
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock import types as t
from interlock.exchange import NO_CAPABILITIES, AnyResult, Exchange, HttpRequest, Principal
from interlock.protocol.events import Route
from interlock.protocol.handshake.server import ServerConnection
from interlock.protocol.http import JSON, error
from interlock.protocol.streams import PostResponse
from interlock.quotas import busy_error
from interlock.store.interface import Session, Store
from interlock.wire.jsonrpc import Frame
from interlock.wire.revisions import R1
from interlock.wire.sse import event

from ....store.worker_messages import WorkerMessages
from ...serve import ConnectionSession, Serving
from ..admission import Admission
from ..authorization import ExpiryTimer
from ..error_responses import busy
from ..request_bodies import BodyReader
from ..request_info import HttpTransport, http_request
from ..requests import EndpointRequest, gone
from ..responses import ResponseWriter
from ..running_calls import held_bytes, quota_holder
from ..services import Services
from .session_expiry import SessionExpiry

# The prefix of this transport's session IDs. Sessions of Streamable HTTP have no stream here.
_OURS = "sse-"
# Bytes that are queued for a client that does not read. Beyond them its stream is closed.
_MOST_QUEUED = 64 * 1024 * 1024

PATHS = frozenset({"/sse", "/messages"})


class _Posted(Struct, array_like=True, frozen=True):
    """A message and its sender, on the way to the worker that holds the stream."""

    frame: str
    principal: Principal | None = None
    request: HttpRequest | None = None


_decode = msgspec.json.Decoder(_Posted).decode


class SseConnection:
    """One client: its messages arrive by POST, and the server's messages are events of its
    stream.
    """

    def __init__(
        self,
        services: Services,
        reply: ResponseWriter,
        principal: Principal | None,
        holder: str,
    ) -> None:
        connection = ServerConnection(services.identity, principal=principal)
        self._services = services
        self._holder = holder
        self.serving = Serving(
            self._handle,
            connection,
            self._transmit,
            drain=reply.drain,
            queued=lambda: reply.queued,
            most_calls=services.limits.calls,
            session=ConnectionSession(connection),
        )
        self._reply = reply
        self._term = ExpiryTimer(principal, self.stop)

    async def _handle(self, x: Exchange) -> AnyResult:
        """Handle a request within the quotas of the client."""
        services = self._services
        if x.method == "subscriptions/listen":  # the stream counts for it
            return await services.handler(x)
        held = x.transport.held_bytes
        if full := await services.calls.acquire(self._holder, held):
            raise busy_error(full)
        try:
            return await services.handler(x)
        finally:
            services.calls.release(self._holder, held)

    def receive(
        self, frame: Frame, principal: Principal | None, request: HttpRequest | None
    ) -> None:
        """Process a posted message. The token of the POST counts, not the token that opened the
        stream.
        """
        connection = self.serving.connection
        if connection.principal != principal:
            connection.principal = principal
            if connection.remembered is not None:
                connection.remembered = replace(connection.remembered, principal=principal)
            self._term.renew(principal)
        self.serving.receive([frame], HttpTransport.of(request, held_bytes(len(frame))))

    def close(self) -> None:
        """Clean up after the client is gone."""
        self._term.over()

    def stop(self) -> None:
        """End the stream. Its client may open another one."""
        self._reply.close()

    def _transmit(self, out: list[tuple[Route, Frame]]) -> None:
        for _, frame in out:
            self._reply.push(event(frame, name="message"))
        if self._reply.queued > _MOST_QUEUED:
            self.stop()


class SseServer:
    """The two endpoints. Any worker accepts a message, and passes it to the worker that holds the
    stream.
    """

    def __init__(
        self,
        services: Services,
        store: Store,
        messages: WorkerMessages,
        expiry: SessionExpiry,
        admission: Admission,
        bodies: BodyReader,
    ) -> None:
        self._services = services
        self._store = store
        self._messages = messages
        self._expiry = expiry
        self._admission = admission
        self._bodies = bodies
        self._connections: dict[str, SseConnection] = {}
        messages.on("posted", self._receive_posted)
        messages.on("ended", self._end_session)
        expiry.add_active(lambda: self._connections)

    async def serve(self, path: str, x: EndpointRequest) -> None:
        """Serve a request to one of the two endpoints."""
        errors = self._services.errors
        method = x.head.method
        if await self._admission.has_refused(x):
            return
        if path == "/sse" and method == "GET":
            if x.head.takes_events:
                await self._listen(x)
                return
            words = "Not acceptable: the answer is text/event-stream"
            await errors.send(x, error(406, t.INVALID_REQUEST, words))
        elif path == "/messages" and method == "POST":
            await self._post(x)
        else:
            allow = [(b"allow", b"GET" if path == "/sse" else b"POST")]
            words = "Method not allowed"
            await errors.send(x, error(405, t.INVALID_REQUEST, words, headers=allow))

    def servings(self) -> list[Serving]:
        """Return all servings."""
        return [connection.serving for connection in self._connections.values()]

    def close(self) -> None:
        """End every stream. The clients reconnect, to another worker if there is one."""
        for connection in self._connections.values():
            connection.stop()

    def _receive_posted(self, session: str, payload: str) -> None:
        """Process a message that was posted to another worker."""
        if (connection := self._connections.get(session)) is not None:
            posted = _decode(payload)
            connection.receive(posted.frame.encode(), posted.principal, posted.request)

    def _end_session(self, session: str, payload: str = "") -> None:
        if (connection := self._connections.get(session)) is not None:
            connection.stop()

    async def _listen(self, x: EndpointRequest) -> None:
        services = self._services
        holder = quota_holder(x)
        if not services.ticker.streams.has_room(holder):
            await services.errors.send(x, busy(None, "streams", 5))
            return
        principal = x.principal
        now = time.time()
        id = f"{_OURS}{os.urandom(24).hex()}"
        session = Session(
            id=id,
            revision=R1,
            capabilities=NO_CAPABILITIES,
            principal=None if principal is None else principal.key,
            holder=holder,
            created=now,
            until=self._expiry.until(now, now),
        )
        most = services.limits.sessions
        rested = self._expiry.rested(now)
        if not await self._store.sessions.create(session, most=most, now=now, rested=rested):
            await services.errors.send(x, busy(None, "sessions", 30))
            return
        reply = ResponseWriter(PostResponse(name=None), x, None, cancels=False)
        connection = SseConnection(services, reply, principal, holder)
        self._connections[id] = connection
        services.ticker.add(reply, listener=holder)
        address = f"{x.scope.get('root_path', '')}/messages?session={id}"
        reply.push(event(address.encode(), name="endpoint"))  # `HPS-02`
        reply.start_stream()
        services.log.session("opened", id, x)
        try:
            await gone(x.receive)
        finally:
            del self._connections[id]
            connection.close()
            services.ticker.discard(reply)
            reply.lose()
            services.log.session("ended", id, x)
            ending = (connection.serving.aclose(), self._store.sessions.end(id))
            await asyncio.shield(asyncio.gather(*ending, return_exceptions=True))

    async def _post(self, x: EndpointRequest) -> None:
        services = self._services
        body = self._bodies.take(x)
        if body is None and (body := await self._bodies.read(x)) is None:
            return
        if x.head.headers.get(b"content-type", b"").split(b";", 1)[0].strip().lower() != JSON:
            words = "Unsupported media type: the body must be sent as application/json"
            await services.errors.send(x, error(415, t.INVALID_REQUEST, words))
            return
        query = parse_qs(x.scope.get("query_string", b"").decode("latin-1"))
        id = (query.get("session") or [""])[0]
        session = None
        if id.startswith(_OURS):
            session = await self._store.sessions.load(id, now=time.time())
        principal = x.principal
        if session is None or session.principal != (None if principal is None else principal.key):
            if session is not None:
                services.log.stolen(id, x)
            words = "Session not found: open a stream at /sse first"
            await services.errors.send(x, error(404, t.INVALID_REQUEST, words))
            return
        if (connection := self._connections.get(id)) is not None:
            connection.receive(body, principal, http_request(x.scope))
        else:
            posted = _Posted(body.decode("utf-8", "replace"), principal, http_request(x.scope))
            payload = msgspec.json.encode(posted).decode()
            await self._messages.publish_confirmed("posted", id, payload)
        await x.respond(202, b"")
