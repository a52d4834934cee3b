"""The MCP endpoint as one bare ASGI callable: both eras, the older transport of two endpoints, and a place for health checks.

It needs no lifespan from whatever it is mounted in, and keeps nothing of the stateless era.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from .. import types as t
from ..exchange import Handler, Principal
from ..protocol.events import RequestReceived
from ..protocol.http import (
    EVENTS,
    Ending,
    Greeting,
    InSession,
    Listening,
    Refused,
    Rules,
    Stateless,
    Taken,
    accepts,
    error,
    judge,
    status_of,
)
from ..protocol.identity import Identity
from ..protocol.server import ServerConnection
from ..protocol.sessions import Store, StoreError
from ..protocol.streams import Answer
from ..wire.jsonrpc import Frame
from .chronicle import Chronicle
from .cross import Cross
from .limits import Limits
from .posts import Incoming, Sessions
from .pulse import Pulse
from .replies import Receive, Reply, Send, send_body
from .serve import DEFAULT_MOST_CALLS, Serving
from .twoends import TwoEndpoints

Scope = dict[str, Any]
PRINCIPAL = "interlock.principal"
"""The key of the ASGI scope under which authorization in front of the endpoint leaves the Principal."""


class HttpApp:
    """One server over HTTP; see `Server.http_app` for the parameters."""

    def __init__(
        self,
        handler: Handler,
        identity: Identity,
        *,
        store: Store,
        enter: Callable[[], Awaitable[None]],
        leave: Callable[[], Awaitable[None]],
        path: str,
        rules: Rules,
        limits: Limits,
        cors: Sequence[str] = (),
        stream: bool = False,
        legacy_sse: bool = False,
        retry_ms: int | None = None,
        calls_per_session: int = DEFAULT_MOST_CALLS,
    ) -> None:
        self.handler, self.identity, self.store, self.rules, self.limits = handler, identity, store, rules, limits
        self.path, self.health = path, "/health"
        self.chronicle = Chronicle()
        self.pulse = Pulse(limits.keep_alive)
        self.running: set[Serving] = set()  # stateless calls
        self.draining = False
        self._cross = Cross(cors) if cors else None
        self._enter, self._leave = enter, leave
        self._entered = False
        self._entering = asyncio.Lock()
        self._arriving = 0  # bytes of bodies that have not come whole
        self.sessions = Sessions(self, stream=stream, retry_ms=retry_ms, most_calls=calls_per_session)
        self._twoends = TwoEndpoints(self) if legacy_sse else None

    # -- ASGI ------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection: an HTTP request, or the lifespan where the app stands alone."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        if self._cross is not None:
            if self._cross.is_preflight(scope):
                await self._cross.answer(scope, send)
                return
            send = self._cross.marking(scope, send)
        if self.chronicle.is_on:
            send = self.chronicle.watching(scope, send)
        try:
            await self._route(scope, receive, send)
        except StoreError:  # which comes before anything is sent, and of which the store has told its operators
            words = "The server cannot reach its store. Try again later."
            await self.refuse(send, error(503, t.INTERNAL_ERROR, words, {"reason": "store"}, headers=[(b"retry-after", b"5")]))

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._entered:
            await self.open()
        root, path = scope.get("root_path", ""), scope["path"]
        if root and path.startswith(root):
            path = path[len(root) :]
        if path == self.path or (root and path in ("", "/")):
            await self._serve(scope, receive, send)
        elif path == self.health and scope["method"] in ("GET", "HEAD"):
            await self._tell_health(scope, send)
        elif self._twoends is not None and path in self._twoends.paths:
            await self._twoends.serve(path, scope, receive, send)
        else:
            await send_body(send, 404, b"Not found: the MCP endpoint of this server is %b\n" % self.path.encode(), b"text/plain")

    async def _live(self, receive: Receive, send: Send) -> None:
        """The ASGI lifespan: the server's own is entered before the first request."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.open()
                except Exception as bad:
                    await send({"type": "lifespan.startup.failed", "message": str(bad)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def open(self) -> None:
        """Enter the server's lifespan and open the store; done at the first request where no ASGI lifespan did it."""
        async with self._entering:
            if self._entered:
                return
            await self.store.open()
            try:
                await self._enter()
            except BaseException:
                await self.store.aclose()
                raise
            self.sessions.open()
            self._entered = True

    async def drain(self, grace: float) -> None:
        """Take no more requests, end what listens, let calls finish for `grace` seconds; what is left then is told and ended."""
        self.draining = True
        self.sessions.end_listening()
        loop = asyncio.get_running_loop()
        until = loop.time() + grace
        while (tasks := [task for serving in self._servings() for task in serving.running.values()]) and loop.time() < until:
            await asyncio.wait(tasks, timeout=until - loop.time())
        for serving in self._servings():
            for id in list(serving.running):
                serving.connection.fail(id, t.INTERNAL_ERROR, "The server is shutting down.", {"reason": "shutdown"})
            serving.flush()
        await self.pulse.drain()

    async def aclose(self) -> None:
        """End everything: streams, calls, the store, the server's lifespan. May be called twice."""
        if not self._entered:
            return
        self._entered = False
        self.pulse.close()
        await self.sessions.aclose()
        await self._leave()
        await self.store.aclose()

    def _servings(self) -> list[Serving]:
        return [*self.running, *self.sessions.servings()]

    # -- one request -------------------------------------------------------------------------------------

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge a request to the endpoint, and carry it out."""
        pairs: list[tuple[bytes, bytes]] = scope["headers"]
        headers = dict(pairs)
        twice = [] if len(headers) == len(pairs) else _doubled(pairs)
        if self.draining:
            await self.refuse(send, error(503, t.INTERNAL_ERROR, "The server is shutting down.", {"reason": "shutdown"}, headers=_CLOSE))
            return
        method = scope["method"]
        body = await self.read_body(headers, receive, send) if method == "POST" else b""
        if body is None:
            return
        verdict = judge(self.rules, self.identity, method, headers, twice, body)
        kind = type(verdict)
        if kind is Refused:
            await self.refuse(send, verdict)  # type: ignore[arg-type]  # it is one
            return
        principal: Principal | None = scope.get(PRINCIPAL)
        if self.limits.rate is not None and (late := await self._late(principal, scope)):
            await self.refuse(send, late)
            return
        if kind is Stateless:
            await self._answer(verdict, body, principal, headers, receive, send)  # type: ignore[arg-type]  # it is one
            return
        if kind is Taken:
            await send_body(send, 202, b"")
            return
        x = Incoming(body, headers, principal, scope, receive, send)
        match verdict:
            case InSession():
                await self.sessions.post(x, verdict)
            case Greeting():
                await self.sessions.greet(x)
            case Listening():
                await self.sessions.listen(x, verdict)
            case Ending():
                await self.sessions.end(x, verdict)

    async def _answer(
        self, verdict: Stateless, body: bytes, principal: Principal | None, headers: dict[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        """A request of the stateless era: carried out in this task, and cancelled by the client's going away (`HTM-14`)."""
        connection = ServerConnection(self.identity, principal=principal, shared=False)
        events = connection.receive_read(verdict.request, verdict.meta) if verdict.request is not None else connection.receive(body)
        if not events or type(events[0]) is not RequestReceived:
            code = connection.error
            await send_body(send, 404 if code == t.METHOD_NOT_FOUND else 400, b"".join(frame for _, frame in connection.outgoing()))
            return
        event = events[0]
        listens = event.method == "subscriptions/listen"
        if len(self.running) >= self.limits.calls or (listens and self.pulse.streams >= self.limits.streams):
            await self.refuse(send, busy(event.id))  # type: ignore[arg-type]  # a peer's request has a peer's id
            return
        answer = Answer(ids=(event.id,), events=accepts(headers, EVENTS))  # type: ignore[arg-type]  # a request has an id of a peer
        reply = Reply(answer, send, connection, cancels=True)
        serving = Serving(self.handler, connection, reply.transmit, drain=reply.drain, queued=lambda: reply.queued, headers=verdict.headers)
        self.running.add(serving)
        self.pulse.add(reply, receive, listens=listens)
        try:
            await serving.run(event)
            if answer.ended:
                await reply.finish(status_of(connection.error) if connection.error else 200)
        except asyncio.CancelledError:
            if not self.pulse.was_cancelled(reply):
                raise
        finally:
            self.running.discard(serving)
            self.pulse.discard(reply)

    async def read_body(self, headers: dict[bytes, bytes], receive: Receive, send: Send) -> bytes | None:
        """The body of a request; None where it was refused, as too large or too slow, or where the client has gone."""
        length = headers.get(b"content-length")
        if length is not None and (not length.isdigit() or len(length) > 18 or int(length) > self.limits.body):
            await self._turn_away(self._too_large(), receive, send)
            return None
        me = asyncio.current_task()
        assert me is not None
        ticket = self.pulse.guard(me, self.limits.body_seconds)
        try:
            message = await receive()
            if message.get("more_body", False):
                body = await self._read_rest(message.get("body", b""), receive)
            elif message["type"] == "http.disconnect":
                return None
            else:
                body = message.get("body", b"")
                if len(body) > self.limits.body:
                    body = self._too_large()
        except asyncio.CancelledError:
            if not self.pulse.is_late(ticket):
                raise
            me.uncancel()
            words = f"Request timeout: the body did not arrive within {self.limits.body_seconds:g} seconds"
            await self.refuse(send, error(408, t.INVALID_REQUEST, words, headers=_CLOSE))
            return None
        finally:
            self.pulse.release(ticket)
        if isinstance(body, Refused):
            await self._turn_away(body, receive, send)
            return None
        return body

    async def _read_rest(self, first: bytes, receive: Receive) -> bytes | Refused | None:
        """A body that comes in several pieces, the first of which is there."""
        pieces, size = [first], len(first)
        self._arriving += size
        try:
            while True:
                if size > self.limits.body:
                    return self._too_large()
                if self._arriving > self.limits.bodies:
                    return busy(None, headers=_CLOSE)
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                piece = message.get("body", b"")
                size += len(piece)
                self._arriving += len(piece)
                pieces.append(piece)
                if not message.get("more_body", False):
                    return b"".join(pieces) if size <= self.limits.body else self._too_large()
        finally:
            self._arriving -= size

    async def _turn_away(self, refused: Refused, receive: Receive, send: Send) -> None:
        """Refuse a body that is still coming. It is read for a moment: a reset would take the answer from a client that is sending."""
        self.chronicle.refused(refused)
        head = [(b"content-length", b"%d" % len(refused.body)), *refused.headers]
        await send({"type": "http.response.start", "status": refused.status, "headers": head})
        await send({"type": "http.response.body", "body": refused.body, "more_body": True})
        me = asyncio.current_task()
        assert me is not None
        ticket = self.pulse.guard(me, _LINGER)
        try:
            while (await receive()).get("more_body", False):
                pass
        except asyncio.CancelledError:
            if not self.pulse.is_late(ticket):
                raise
            me.uncancel()
        finally:
            self.pulse.release(ticket)
        await send({"type": "http.response.body", "body": b""})

    def _too_large(self) -> Refused:
        words = f"Content too large: a body has at most {self.limits.body} bytes"
        return error(413, t.INVALID_REQUEST, words, headers=_CLOSE)

    async def _late(self, principal: Principal | None, scope: Scope) -> Refused | None:
        """A refusal where somebody asks too often."""
        rate = self.limits.rate
        assert rate is not None
        client = scope.get("client")
        key = principal.key if principal is not None else f"address:{client[0] if client else ''}"
        wait = await self.store.rates.take(key, rate=rate.per_second, burst=rate.burst, now=time.time())
        if wait <= 0:
            return None
        seconds = int(wait) + 1
        words = f"Too many requests: try again in {seconds} s"
        return error(429, t.INTERNAL_ERROR, words, {"reason": "rate", "retryAfter": seconds}, headers=[(b"retry-after", b"%d" % seconds)])

    async def refuse(self, send: Send, refused: Refused) -> None:
        """Send a refusal, and note it where it concerns the safety of the server."""
        self.chronicle.refused(refused)
        await send_body(send, refused.status, refused.body, headers=refused.headers[1:])

    def hear_old(self, session: str, frame: Frame) -> None:
        """A frame for a client of the older transport was posted to another worker."""
        if self._twoends is not None:
            self._twoends.hear(session, frame)

    def end_old(self, session: str) -> None:
        """A session of the older transport is over."""
        if self._twoends is not None:
            self._twoends.end(session)

    @property
    def old_sessions(self) -> set[str]:
        """The sessions of the older transport whose streams are open here."""
        return set() if self._twoends is None else self._twoends.sessions

    async def _tell_health(self, scope: Scope, send: Send) -> None:
        status, body = (503, b'{"status":"draining"}') if self.draining else (200, b'{"status":"ok"}')
        await send_body(send, status, b"" if scope["method"] == "HEAD" else body)


_CLOSE = ((b"connection", b"close"),)
_LINGER = 2.0  # seconds for which a body that was refused may go on


def busy(id: t.RequestId | None, headers: Sequence[tuple[bytes, bytes]] = ()) -> Refused:
    """The refusal of one request too many."""
    headers = [(b"retry-after", b"1"), *headers]
    return error(503, t.INTERNAL_ERROR, "The server is busy. Try again later.", {"reason": "busy"}, id=id, headers=headers)


def _doubled(pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    seen: set[bytes] = set()
    return [name for name, _ in pairs if name in seen or seen.add(name)]  # type: ignore[func-returns-value]  # `add` notes the first
