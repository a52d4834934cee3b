"""The older transport of two endpoints: an event stream to listen to, and a place to post to (2024-11-05, "HTTP with SSE")."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import types as t
from ..exchange import NO_CAPABILITIES, HttpRequest, Principal
from ..protocol.events import Route
from ..protocol.http import EVENTS, JSON, accepts, error
from ..protocol.server import ServerConnection
from ..protocol.sessions import Session
from ..protocol.streams import Answer
from ..wire.jsonrpc import Frame
from ..wire.revisions import R1
from ..wire.sse import event
from .authorized import PRINCIPAL, Term
from .bodies import busy
from .replies import Receive, Reply, Send, gone, send_body
from .requests import HttpTransport, http_request
from .serve import ConnectionSession, Serving

if TYPE_CHECKING:
    from .asgi import HttpApp

_OURS = (
    "sse-"  # how ids of this transport's sessions begin: those of the other one have no stream here
)
_MOST_QUEUED = (
    64 * 1024 * 1024
)  # bytes that wait for a client that does not read, beyond which its stream is ended


class _Posted(Struct, array_like=True, frozen=True):
    """A frame on its way to the worker that holds the stream, and who posted it."""

    frame: str
    principal: Principal | None = None
    request: HttpRequest | None = None


_read = msgspec.json.Decoder(_Posted).decode


class Line:
    """One client: its frames come in by POST, and what it is sent goes out as events of its stream."""

    def __init__(self, app: HttpApp, reply: Reply, principal: Principal | None) -> None:
        connection = ServerConnection(app.identity, principal=principal)
        self.serving = Serving(
            app.handler,
            connection,
            self._transmit,
            drain=reply.drain,
            queued=lambda: reply.queued,
            most_calls=app.limits.calls,
            session=ConnectionSession(connection),
        )
        self._reply = reply
        self._term = Term(principal, self.end)

    def take(self, frame: Frame, principal: Principal | None, request: HttpRequest | None) -> None:
        """Take in what was posted; what it asks for is judged by the token that came with it, not by the one that opened the stream."""
        connection = self.serving.connection
        if connection.principal != principal:
            connection.principal = principal
            if connection.remembered is not None:
                connection.remembered = replace(connection.remembered, principal=principal)
            self._term.renew(principal)
        self.serving.receive([frame], HttpTransport.of(request))

    def over(self) -> None:
        """The client has gone."""
        self._term.over()

    def end(self) -> None:
        """End the stream; its client may open another one."""
        self._reply.end()

    def _transmit(self, out: list[tuple[Route, Frame]]) -> None:
        for _, frame in out:
            self._reply.push(event(frame, name="message"))
        if self._reply.queued > _MOST_QUEUED:
            self.end()


class TwoEndpoints:
    """The two endpoints, `/sse` and `/messages`; whichever worker a message is posted to, it reaches the one that holds the stream."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self.paths = frozenset({"/sse", "/messages"})
        self._lines: dict[str, Line] = {}

    async def serve(self, path: str, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve a request to one of the two."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        app = self._app
        if why := app.rules.check_host_and_origin(
            headers.get(b"host"), headers.get(b"origin")
        ):  # `HPS-05`
            await app.refuse(send, error(403, t.INVALID_REQUEST, f"Forbidden: {why}"))
        elif app.draining:
            await app.refuse(send, error(503, t.INTERNAL_ERROR, "The server is shutting down."))
        elif late := await app.late(scope):
            await app.refuse(send, late)
        elif path == "/sse" and scope["method"] == "GET":
            if accepts(headers, EVENTS):
                await self._listen(scope, receive, send)
            else:
                await app.refuse(
                    send,
                    error(
                        406, t.INVALID_REQUEST, "Not acceptable: the answer is text/event-stream"
                    ),
                )
        elif path == "/messages" and scope["method"] == "POST":
            await self._post(scope, headers, receive, send)
        else:
            allow = b"GET" if path == "/sse" else b"POST"
            await app.refuse(
                send,
                error(405, t.INVALID_REQUEST, "Method not allowed", headers=[(b"allow", allow)]),
            )

    def hear_note(self, session: str, note: str) -> None:
        """A frame was posted to another worker."""
        if session in self._lines:
            posted = _read(note)
            line = self._lines[session]
            line.take(posted.frame.encode(), posted.principal, posted.request)

    def servings(self) -> list[Serving]:
        """All that is running."""
        return [line.serving for line in self._lines.values()]

    @property
    def sessions(self) -> set[str]:
        """Those whose streams are open here."""
        return set(self._lines)

    def end(self, session: str) -> None:
        """A session is over."""
        if (line := self._lines.get(session)) is not None:
            line.end()

    def close(self) -> None:
        """End every stream; their clients come back, to another worker if there is one."""
        for line in self._lines.values():
            line.end()

    async def _listen(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        app = self._app
        if app.pulse.streams >= app.limits.streams:
            await app.refuse(send, busy(None))
            return
        principal = scope.get(PRINCIPAL)
        now = time.time()
        id = f"{_OURS}{os.urandom(24).hex()}"
        session = Session(
            id=id,
            revision=R1,
            capabilities=NO_CAPABILITIES,
            principal=None if principal is None else principal.key,
            created=now,
            until=app.sessions.until(now, now),
        )
        if not await app.store.sessions.create(session, most=app.limits.sessions, now=now):
            await app.refuse(send, busy(None))
            return
        reply = Reply(Answer(name=None), send, None, cancels=False)
        line = self._lines[id] = Line(app, reply, principal)
        app.pulse.add(reply, receive, listens=True)
        reply.push(
            event(f"{scope.get('root_path', '')}/messages?session={id}".encode(), name="endpoint")
        )  # `HPS-02`
        reply.begin()
        app.chronicle.session("opened", id, scope)
        try:
            await gone(receive)
        finally:
            del self._lines[id]
            line.over()
            app.pulse.discard(reply)
            reply.lose()
            app.chronicle.session("ended", id, scope)
            await asyncio.shield(
                asyncio.gather(
                    line.serving.aclose(), app.store.sessions.end(id), return_exceptions=True
                )
            )

    async def _post(
        self, scope: dict[str, Any], headers: dict[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        app = self._app
        body = await app.read_body(headers, receive, send)
        if body is None:
            return
        if headers.get(b"content-type", b"").split(b";", 1)[0].strip().lower() != JSON:
            await app.refuse(
                send,
                error(
                    415,
                    t.INVALID_REQUEST,
                    "Unsupported media type: the body must be sent as application/json",
                ),
            )
            return
        id = (parse_qs(scope.get("query_string", b"").decode("latin-1")).get("session") or [""])[0]
        session = (
            await app.store.sessions.load(id, now=time.time()) if id.startswith(_OURS) else None
        )
        principal = scope.get(PRINCIPAL)
        if session is None or session.principal != (None if principal is None else principal.key):
            if session is not None:
                app.chronicle.stolen(id, scope)
            await app.refuse(
                send,
                error(404, t.INVALID_REQUEST, "Session not found: open a stream at /sse first"),
            )
            return
        if (line := self._lines.get(id)) is not None:
            line.take(body, principal, http_request(scope))
        else:
            posted = _Posted(body.decode("utf-8", "replace"), principal, http_request(scope))
            app.sessions.tell("posted", id, msgspec.json.encode(posted).decode())
        await send_body(send, 202, b"")
