"""The MCP endpoint as one bare ASGI callable: both eras, the older transport of two endpoints, and a place for health checks.

It needs no lifespan from whatever it is mounted in, and keeps nothing of the stateless era.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any
from urllib.parse import quote, quote_from_bytes

from .. import types as t
from ..exchange import Handler, Principal
from ..protocol.events import (
    CallId,
    NotificationReceived,
    RequestReceived,
    ServerEvent,
    SessionListen,
)
from ..protocol.http import (
    EVENTS,
    Ending,
    Greeting,
    HttpRefusal,
    InSession,
    Listening,
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
from .authorized import PRINCIPAL, Front, Guarding, Scope, Term, challenge
from .bodies import CLOSE, Bodies, busy
from .chronicle import Chronicle
from .cross import Cross
from .errands import Errand
from .hosted import is_ending
from .limits import Limits
from .posts import Incoming, Sessions
from .pulse import Pulse
from .replies import HOLD, Pairs, Receive, Reply, Send, gone, send_body
from .requests import HttpTransport
from .routes import Route, Routes, bounded
from .serve import DEFAULT_MOST_CALLS, Serving, carry_out_notification
from .twoends import TwoEndpoints

_QUERY = "!$%&'()*+,-./:;=?@_~"  # what stays as it is in the query of a redirect
_MOST_GREETING = 256 * 1024  # bytes; what it says is kept for as long as the session


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
        grace: float = 0.0,
        guard: Guarding | None = None,
        routes: Routes | None = None,
    ) -> None:
        self.handler, self.identity, self.store, self.rules, self.limits = (
            handler,
            identity,
            store,
            rules,
            limits,
        )
        self.path, self.health = path, "/health"
        self.chronicle = Chronicle()
        self.pulse = Pulse(limits.keep_alive, self._look_around)
        self.running: set[Serving] = set()  # stateless calls that are more than light (`Errand`)
        self._listening: set[Serving] = set()  # stateless streams that listen
        self.ended: set[Serving] = (
            set()
        )  # those that were answered in place of their handlers, when the server was shut down
        self._hearing = 0  # POSTs whose notification is being carried out
        self._draining = False
        self._grace = grace
        self._ending: asyncio.Task[None] | None = None  # because the server around us is
        self._cross = Cross(cors) if cors else None
        self._enter, self._leave = enter, leave
        self._entered = False
        self._entering = asyncio.Lock()
        self.read_body = Bodies(limits, self.pulse, self.refuse, self.chronicle.refused).read
        self.sessions = Sessions(
            self, stream=stream, retry_ms=retry_ms, most_calls=calls_per_session
        )
        self._twoends = TwoEndpoints(self) if legacy_sse else None
        paths = (path, *(self._twoends.paths if self._twoends is not None else ()))
        self._redirects = dict(_slashed(known) for known in paths if known != "/")
        self._routes = routes or Routes()
        self._routes.check_free((*paths, self.health))
        bare = [route.path for route in self._routes if route.guarded and guard is None]
        if bare:
            raise ValueError(
                f"the routes {', '.join(bare)} want the guard of the endpoint, and there is none: give guard="
            )
        self._guarded = guard(self._front()) if guard is not None else None

    def _front(self) -> Front:
        """What a guard stands before."""
        others = self._twoends.paths if self._twoends is not None else ()
        return Front(
            self._let_in,
            self._serve_other,
            self.path,
            {self.health, *others},
            knows=lambda path: self._routes.find(path) is not None,
        )

    # -- ASGI ------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection: an HTTP request, or the lifespan where the app stands alone."""
        if scope["type"] != "http":
            await (self._guarded or self._serve_other)(scope, receive, send)
            return
        if self._cross is not None:
            if self._cross.is_preflight(scope):
                await self._cross.answer(scope, send)
                return
            send = self._cross.marking(scope, send)
        if self.chronicle.is_on:
            send = self.chronicle.watching(scope, send)
        if self._guarded is not None and self._location(scope) is None:
            await (self._let_in if self._is_open(scope) else self._guarded)(scope, receive, send)
        elif self._entered and scope["path"] == self.path and not scope.get("root_path"):
            try:
                await self._serve(
                    scope, receive, send
                )  # what nearly all requests are, by the shortest way
            except StoreError:
                await self._tell_trouble(send)
        else:
            await self._let_in(scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        """Whether a request is for a route of the author before which no guard stands."""
        if not self._routes:
            return False
        route = self._routes.find(self._beneath(scope))
        return route is not None and not route.guarded

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve an HTTP request that may come in."""
        try:
            await self._route(scope, receive, send)
        except StoreError:
            await self._tell_trouble(send)

    async def _tell_trouble(self, send: Send) -> None:
        """The store is away, which shows before anything is sent, and of which the store has told its operators."""
        words = "The server cannot reach its store. Try again later."
        await self.refuse(
            send,
            error(
                503, t.INTERNAL_ERROR, words, {"reason": "store"}, headers=[(b"retry-after", b"5")]
            ),
        )

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._entered:
            await self.open()
        root, path = scope.get("root_path", ""), self._beneath(scope)
        if path == self.path or (root and path in ("", "/")):
            await self._serve(scope, receive, send)
        elif (location := self._location(scope)) is not None:
            await self._redirect(location, scope, send)
        elif path == self.health and scope["method"] in ("GET", "HEAD"):
            await self._tell_health(scope, send)
        elif self._twoends is not None and path in self._twoends.paths:
            await self._twoends.serve(path, scope, receive, send)
        elif (route := self._routes.find(path)) is not None:
            await self._serve_route(route, root, scope, receive, send)
        else:
            await send_body(
                send,
                404,
                b"Not found: the MCP endpoint of this server is %b\n" % self.path.encode(),
                b"text/plain",
            )

    async def _serve_route(
        self, route: Route, root: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve a route of the author, within the bounds of the endpoint (`SEC-01`)."""
        headers = dict(scope["headers"])
        if await self._turned_away(headers, scope, send):
            return
        if route.methods is not None and scope["method"] not in route.methods:
            allowed = ", ".join(sorted(route.methods)).encode()
            await send_body(
                send, 405, b"Method not allowed\n", b"text/plain", headers=((b"allow", allowed),)
            )
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18 or int(length) > self.limits.body:
            words = f"Content too large: a body has at most {self.limits.body} bytes\n"
            await send_body(send, 413, words.encode(), b"text/plain", headers=CLOSE)
            return
        if route.is_prefix:
            scope = {**scope, "root_path": f"{root}{route.path[:-1]}"}
        await route.app(scope, bounded(receive, self.limits.body), send)

    @staticmethod
    def _beneath(scope: Scope) -> str:
        """The path of a request beneath the place where the app is mounted."""
        root: str = scope.get("root_path", "")
        path: str = scope["path"]
        return path[len(root) :] if root and f"{path}/".startswith(f"{root}/") else path

    def _location(self, scope: Scope) -> bytes | None:
        """Where a request with a slash too many or too few is redirected to; None where it has not."""
        path = self._beneath(scope)
        slash = not path.endswith("/") or (scope.get("raw_path") or b"/").endswith(b"/")
        return self._redirects.get(path) if slash else None  # an escaped slash is no slash

    async def _redirect(self, location: bytes, scope: Scope, send: Send) -> None:
        """Send a client that has a slash too many or too few where it wants to go."""
        headers = dict(scope["headers"])
        if why := self.rules.check_host_and_origin(headers.get(b"host"), headers.get(b"origin")):
            await self.refuse(send, error(403, t.INVALID_REQUEST, f"Forbidden: {why}"))
            return
        if query := scope.get("query_string", b""):
            location += b"?" + quote_from_bytes(query, safe=_QUERY).encode()
        await send_body(send, 307, b"", headers=((b"location", location),))

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

    @property
    def draining(self) -> bool:
        """Whether no more requests are taken."""
        if self._ending is not None and not is_ending():  # another server serves us now
            self._ending, self._draining = None, False
        return self._draining

    def _look_around(self) -> None:
        """Drain where the server around us is told to end, for it waits until our streams have ended."""
        if not self._draining and is_ending():
            self._ending = asyncio.get_running_loop().create_task(self.drain(self._grace))

    async def drain(self, grace: float) -> None:
        """Take no more requests, end what listens, let calls finish for `grace` seconds; what is left then is told and ended."""
        self._draining = True
        self.sessions.end_listening()
        for serving in list(self._listening):
            self._end_listening(serving)
        loop = asyncio.get_running_loop()
        until = loop.time() + grace
        while (tasks := self._calls()) and loop.time() < until:
            await asyncio.wait(tasks, timeout=until - loop.time())
        for serving in self._servings():
            self._answer_all(serving, _shut_down)
        if self._twoends is not None:
            self._twoends.close()
        await self.pulse.drain()

    def _end_listening(self, serving: Serving) -> None:
        """End a subscription of the stateless era in good order."""
        self._answer_all(
            serving,
            lambda serving, id: serving.connection.respond(id, t.SubscriptionsListenResult()),
        )

    def _answer_all(self, serving: Serving, answer: Callable[[Serving, CallId], None]) -> None:
        """Answer what runs in place of its handlers, which are cancelled."""
        running = dict(serving.running)
        for id in running:
            answer(serving, id)
        serving.flush()
        if (
            serving in self.running or serving in self._listening
        ):  # else whoever holds it cancels what is left
            self.ended.add(serving)
            for task in running.values():
                task.cancel()

    def _calls(self) -> list[asyncio.Task[None]]:
        """The calls that run; what sessions listen to is none."""
        return [
            task
            for serving in self._servings()
            for id, task in serving.running.items()
            if not isinstance(id, SessionListen)
        ]

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
        for errand in list(self.pulse.errands):
            errand.grow()
        return [
            *self.running,
            *self.sessions.servings(),
            *(() if self._twoends is None else self._twoends.servings()),
        ]

    @property
    def is_full(self) -> bool:
        """Whether as many requests run as may."""
        return (
            len(self.pulse.errands) + len(self.running) + self.sessions.calls + self._hearing
            >= self.limits.calls
        )

    async def _turned_away(self, headers: dict[bytes, bytes], scope: Scope, send: Send) -> bool:
        """Whether a request was refused for where it comes from, for when, or for its rate."""
        if why := self.rules.check_host_and_origin(headers.get(b"host"), headers.get(b"origin")):
            await self.refuse(send, error(403, t.INVALID_REQUEST, f"Forbidden: {why}"))
            return True
        if self._draining and self.draining:
            words, data = "The server is shutting down.", {"reason": "shutdown"}
            await self.refuse(send, error(503, t.INTERNAL_ERROR, words, data, headers=CLOSE))
            return True
        if self.limits.rate is not None and (late := await self.late(scope)):
            await self.refuse(send, late)
            return True
        return False

    # -- one request -------------------------------------------------------------------------------------

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge a request to the endpoint, and carry it out."""
        pairs: list[tuple[bytes, bytes]] = scope["headers"]
        headers = dict(pairs)
        twice = [] if len(headers) == len(pairs) else _doubled(pairs)
        if b"accept" in twice:  # a list on several lines is one list
            headers[b"accept"] = b", ".join(value for name, value in pairs if name == b"accept")
        if await self._turned_away(headers, scope, send):  # before a stranger's body is waited for
            return
        method = scope["method"]
        body = await self.read_body(headers, receive, send) if method == "POST" else b""
        if body is None:
            return
        verdict = judge(self.rules, self.identity, method, headers, twice, body)
        if isinstance(verdict, HttpRefusal):
            await self.refuse(send, verdict)
            return
        principal: Principal | None = scope.get(PRINCIPAL)
        if isinstance(verdict, Stateless):
            await self._answer(verdict, body, principal, headers, scope, receive, send)
            return
        if isinstance(verdict, Taken):
            await self._take_notification(body, principal, scope, send)
            return
        x = Incoming(body, headers, principal, scope, receive, send)
        match verdict:
            case InSession():
                await self.sessions.post(x, verdict)
            case Greeting():
                if len(body) > _MOST_GREETING:
                    words = f"Content too large: initialize has at most {_MOST_GREETING} bytes"
                    await self.refuse(send, error(413, t.INVALID_REQUEST, words))
                    return
                await self.sessions.greet(x)
            case Listening():
                await self.sessions.listen(x, verdict)
            case Ending():
                await self.sessions.end(x, verdict)

    async def _take_notification(
        self, body: bytes, principal: Principal | None, scope: Scope, send: Send
    ) -> None:
        """A notification of the stateless era; only extensions have any that a server acts on (`X-15`)."""
        if self.identity.extensions.notifications:
            connection = ServerConnection(self.identity, principal=principal, shared=False)
            if not await self.hear(connection.receive(body), scope):
                await self.refuse(send, busy(None))
                return
        await send_body(send, 202, b"")

    async def hear(self, events: Iterable[ServerEvent], scope: Scope) -> bool:
        """Carry out the notifications of extensions among some events, before they are acknowledged.

        Returns:
            False where the server is busy, and nothing was done.
        """
        heard = [event for event in events if isinstance(event, NotificationReceived)]
        if heard and self.is_full:
            return False
        self._hearing += 1
        try:
            for event in heard:
                if event.caller is not None:
                    transport = HttpTransport(scope)
                    await carry_out_notification(self.handler, event, event.caller, transport)
        finally:
            self._hearing -= 1
        return True

    async def _answer(
        self,
        verdict: Stateless,
        body: bytes,
        principal: Principal | None,
        headers: dict[bytes, bytes],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """A request of the stateless era."""
        request, connection = verdict.request, None
        caller = (
            None
            if request is None
            else self.identity.stateless_caller(request.method, verdict.meta, principal)
        )
        if caller is not None and request.method != "subscriptions/listen":
            event = RequestReceived(
                request.id,
                request.method,
                request.params,
                caller,
                verdict.meta.progress_token,
                body,
            )
        else:
            connection = ServerConnection(self.identity, principal=principal, shared=False)
            events = (
                connection.receive_read(request, verdict.meta, body)
                if request is not None
                else connection.receive(body)
            )
            if not events or type(events[0]) is not RequestReceived:
                code = connection.error
                await send_body(
                    send,
                    404 if code == t.METHOD_NOT_FOUND else 400,
                    b"".join(frame for _, frame in connection.outgoing()),
                )
                return
            event = events[0]
            if event.method == "subscriptions/listen":
                await self._listen(event, connection, headers, scope, receive, send)
                return
        if self.is_full:
            await self.refuse(send, busy(event.id))  # type: ignore[arg-type]  # a peer's request has a peer's id
            return
        await Errand(self, event, scope, headers, verdict.headers, receive, send, connection).run()

    async def _listen(
        self,
        event: RequestReceived,
        connection: ServerConnection,
        headers: dict[bytes, bytes],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """A subscription of the stateless era: its handler runs in a task of its own, and its stream rests where the server can do that."""
        id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request has a peer's id
        if not accepts(headers, EVENTS):
            words = "Not acceptable: a subscription is answered with text/event-stream"
            await self.refuse(send, error(406, t.INVALID_REQUEST, words, id=id))
            return
        if self.pulse.streams >= self.limits.streams:
            await self.refuse(send, busy(id))
            return
        reply = Reply(Answer(ids=(id,)), send, connection, cancels=False)
        serving = Serving(
            self.handler,
            connection,
            reply.transmit,
            drain=reply.drain,
            queued=lambda: reply.queued,
            transport=HttpTransport(scope),
        )
        loop = asyncio.get_running_loop()
        reply.first = loop.create_future()
        task = serving.running[event.id] = loop.create_task(serving.run(event))
        task.add_done_callback(lambda _: reply.end())
        self._listening.add(serving)
        self.pulse.add(reply, receive, listens=True)
        term = Term(connection.principal, lambda: self._end_listening(serving))

        def over() -> None:
            term.over()
            self._listening.discard(serving)
            self.ended.discard(serving)
            self.pulse.discard(reply)
            task.cancel()

        rests = False
        try:
            await reply.first
            reply.first = None
            if reply.answer.ended:
                await reply.finish(*self.verdict(scope, serving, 1, status_of(connection.error)))
            else:
                rests = await reply.rest(scope.get(HOLD), over)
                if not rests:
                    await gone(receive)
        finally:
            if not rests:
                reply.lose()
                over()

    async def late(self, scope: Scope) -> HttpRefusal | None:
        """A refusal where somebody asks too often; the pages of strangers, which are refused anyway, use up nobody's rate."""
        rate = self.limits.rate
        headers = dict(scope["headers"])
        if rate is None or self.rules.check_host_and_origin(
            headers.get(b"host"), headers.get(b"origin")
        ):
            return None
        principal: Principal | None = scope.get(PRINCIPAL)
        key = principal.key if principal is not None else f"address:{_network(scope.get('client'))}"
        wait = await self.store.rates.take(
            key, rate=rate.per_second, burst=rate.burst, now=time.time()
        )
        if wait <= 0:
            return None
        seconds = int(wait) + 1
        words = f"Too many requests: try again in {seconds} s"
        return error(
            429,
            t.INTERNAL_ERROR,
            words,
            {"reason": "rate", "retryAfter": seconds},
            headers=[(b"retry-after", b"%d" % seconds)],
        )

    async def refuse(self, send: Send, refused: HttpRefusal) -> None:
        """Send a refusal, and note it where it concerns the safety of the server."""
        self.chronicle.refused(refused)
        await send_body(send, refused.status, refused.body, headers=refused.headers[1:])

    def verdict(
        self, scope: Scope, serving: Serving, answers: int, status: int = 200
    ) -> tuple[int, Pairs]:
        """The status and the headers of a response that is JSON: `status` where nobody lacked a scope (`AUS-04`, `AUT-06`)."""
        if not serving.denied or len(serving.denied) < answers:
            return status, ()
        scopes, headers = challenge(scope, serving.denied)
        self.chronicle.refused(
            HttpRefusal(403, why=f"insufficient scope: this needs {' '.join(scopes)}")
        )
        return 403, headers

    def hear_old(self, session: str, note: str) -> None:
        """A frame for a client of the older transport was posted to another worker."""
        if self._twoends is not None:
            self._twoends.hear_note(session, note)

    def end_old(self, session: str) -> None:
        """A session of the older transport is over."""
        if self._twoends is not None:
            self._twoends.end(session)

    @property
    def old_sessions(self) -> set[str]:
        """The sessions of the older transport whose streams are open here."""
        return set() if self._twoends is None else self._twoends.sessions

    async def _tell_health(self, scope: Scope, send: Send) -> None:
        status, body = (
            (503, b'{"status":"draining"}') if self.draining else (200, b'{"status":"ok"}')
        )
        await send_body(send, status, b"" if scope["method"] == "HEAD" else body)


def _slashed(path: str) -> tuple[str, bytes]:
    """A path with a slash more or less at its end, and the way from there to the path.

    The way is relative: it leads to this server also behind a proxy that changes paths, and
    nothing a client says can make it lead elsewhere.
    """
    last = quote(path.rstrip("/").rpartition("/")[2])
    if path.endswith("/"):
        return path[:-1], f"./{last}/".encode()
    return f"{path}/", f"../{last}".encode()


def _shut_down(serving: Serving, id: CallId) -> None:
    serving.connection.fail(
        id, t.INTERNAL_ERROR, "The server is shutting down.", {"reason": "shutdown"}
    )


def _doubled(pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    seen: set[bytes] = set()
    return [name for name, _ in pairs if name in seen or seen.add(name)]  # type: ignore[func-returns-value]  # `add` notes the first


def _network(client: Sequence[Any] | None) -> str:
    """Who an address belongs to: whoever has one of version 6 has 2 to the 64th of them."""
    address = str(client[0])[:100] if client else ""  # a proxy may write anything
    if ":" not in address:
        return address
    try:
        known = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(known.ipv4_mapped or ipaddress.ip_network((known, 64), strict=False))
