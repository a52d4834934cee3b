"""The HTTP app of a server, a single ASGI callable: CORS, access log, guard and routing, with the
MCP endpoint inside.

It needs no lifespan from the framework that it is mounted in, and keeps no state for the stateless
era.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, quote_from_bytes

from ... import types as t
from ...exchange import Handler
from ...protocol.events import CallId, SessionListen
from ...protocol.http import EndpointRules, read_head
from ...protocol.identity import Identity
from ...quotas import CountsUsage, Quota, QuotaUsage, holder_of_address
from ...store.errors import StoreError
from ...store.interface import Session, Store
from ...store.memory.store import MemoryStore
from ...store.worker_messages import WorkerMessages
from ..serve import DEFAULT_MOST_CALLS, Serving
from .access_log import AccessLog
from .admission import Admission
from .authorization import DrainedGuard, Guarding, ProtectedApp, is_direct_guard
from .background_tasks import BackgroundTasks
from .cors import Cors
from .endpoint import McpEndpoint
from .error_responses import CLOSE, ErrorResponder, store_away
from .health import DEFAULT_PATH, HealthChecks
from .legacy.session_expiry import SessionExpiry
from .legacy.sessions import SessionEndpoint, SessionOptions
from .legacy.sse_server import PATHS as SSE_PATHS
from .legacy.sse_server import SseServer
from .limits import Limits
from .notifications import NotificationRunner
from .request_bodies import BodyReader
from .requests import (
    EndpointRequest,
    PreparedHead,
    RawHead,
    Receive,
    Scope,
    Send,
    ServerRequest,
    send_body,
)
from .routes import Route, Routes, bounded
from .running_calls import RunningCalls
from .services import Services
from .shutdown import Shutdown
from .stateless import StatelessEndpoint
from .subscriptions import Subscriptions
from .ticker import Ticker

_QUERY = "!$%&'()*+,-./:;=?@_~"  # characters that are not escaped in the query of a redirect


class LifespanHooks(Protocol):
    """Entered before the first request and left at the end; the server implements it."""

    async def enter(self) -> None:
        """Start."""
        ...

    async def drain(self) -> None:
        """Give up what other workers continue. Called when a graceful shutdown begins."""
        ...

    async def leave(self) -> None:
        """Stop."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAppOptions:
    """The options of an HTTP app.

    Attributes:
        path: The path of the MCP endpoint.
        rules: The allowed hosts and origins, and whether there are sessions.
        limits: The limits of the endpoint.
        cors: Origins of web pages that may read the responses; "*" allows all.
        stream: Whether calls in sessions are answered with an event stream at once.
        retry_ms: The time after which a client should resume a broken stream, in milliseconds; None
            leaves it to the client.
        legacy_sse: Whether the HTTP+SSE transport of 2024-11-05 is served too.
        calls_per_session: The maximum number of running calls of one session.
        grace: The time that calls have to finish when the web server around the app shuts down, in
            seconds.
        guard: The authorization in front of the app.
        routes: ASGI apps of the author, by path.
        health: The path of the health checks; None for none.
        memory: The memory budget of the server, in bytes.
        quotas: The quotas of the server and its extensions, by the names of their counters.
        on_session_end: Called with the duration of each session that is ended, in seconds.
    """

    path: str
    rules: EndpointRules
    limits: Limits
    memory: Quota
    quotas: Mapping[str, CountsUsage]
    cors: Sequence[str] = ()
    stream: bool = False
    retry_ms: int | None = None
    legacy_sse: bool = False
    calls_per_session: int = DEFAULT_MOST_CALLS
    grace: float = 0.0
    guard: Guarding | None = None
    routes: Routes | None = None
    health: str | None = DEFAULT_PATH
    on_session_end: Callable[[float], object] = bool


class HttpApp:
    """One server over HTTP; see `Server.http_app` for the options."""

    def __init__(
        self,
        handler: Handler,
        identity: Identity,
        store: Store,
        lifespan: LifespanHooks,
        options: HttpAppOptions,
    ) -> None:
        """Compose the parts of the app.

        Raises:
            ValueError: A route needs a guard, and there is none; or it conflicts with the endpoint.
        """
        limits = options.limits
        self._rules = options.rules
        self._store = store
        self._lifespan = lifespan
        self.path = options.path
        self._grace = options.grace
        self.limits = limits
        # Set by our own HTTP server: the connections, and the bytes that it received and sent.
        self.connections: Callable[[], QuotaUsage] | None = None
        self.traffic: Callable[[], tuple[int, int]] | None = None
        self._on_session_end = options.on_session_end
        self._entered = False
        self._entering = asyncio.Lock()
        self._log = AccessLog()
        self._shutdown = Shutdown(lambda: self.drain(self._grace))
        streams = Quota(limits.streams, limits.share)
        self.ticker = Ticker(limits.keep_alive, streams, self._shutdown.check)
        self._server_quotas = options.quotas
        self.calls = RunningCalls(limits, options.memory, self.ticker)
        self._errors = ErrorResponder(self._log)
        self._admission = Admission(
            options.rules, limits, self.calls, store, self._shutdown, self._errors
        )
        self.messages = WorkerMessages(store)
        self._health = HealthChecks(
            options.health, store, self.messages, self._shutdown, self.calls
        )
        self._expiry = SessionExpiry(store, limits, self.messages)
        self._tasks = BackgroundTasks()
        services = Services(
            handler,
            identity,
            limits,
            self._log,
            self._errors,
            self.ticker,
            self.calls,
            self._shutdown,
        )
        bodies = self._bodies = BodyReader(limits, self.ticker, self._errors, self._log)
        notifications = NotificationRunner(services)
        self._subscriptions = Subscriptions(services)
        self._sessions = SessionEndpoint(
            services,
            store,
            self.messages,
            self._expiry,
            self._tasks,
            notifications,
            SessionOptions(
                are_kept=options.rules.sessions,
                stream=options.stream,
                retry_ms=options.retry_ms,
                most_calls=options.calls_per_session,
                on_end=options.on_session_end,
            ),
        )
        self._sse = None
        if options.legacy_sse:
            self._sse = SseServer(
                services, store, self.messages, self._expiry, self._admission, bodies
            )
        stateless = StatelessEndpoint(services, self._subscriptions, notifications)
        self._serve = McpEndpoint(
            services, options.rules, self._admission, bodies, stateless, self._sessions
        ).serve
        self._cors = Cors(options.cors) if options.cors else None
        self._routes = options.routes or Routes()
        paths = (options.path, *(SSE_PATHS if self._sse is not None else ()))
        self._redirects = dict(_slashed(known) for known in paths if known != "/")
        self._routes.check_free((*paths, *self._health.paths))
        bare = [route.path for route in self._routes if route.guarded and options.guard is None]
        if bare:
            raise ValueError(
                f"the routes {', '.join(bare)} want the guard of the endpoint, and there is none: "
                "give guard="
            )
        self._guarded = None
        self._guard = options.guard
        if options.guard is not None:
            self._guarded = options.guard(self._front(paths[1:]))

    def _front(self, others: Sequence[str]) -> ProtectedApp:
        """Return the app as its guard sees it."""
        return ProtectedApp(
            self._handle,
            self._serve_other,
            self.path,
            {*self._health.paths, *others},
            knows=lambda path: self._routes.find(path) is not None,
        )

    def usage(self) -> dict[str, QuotaUsage]:
        """Return the counters of the quotas of this process.

        They are `calls`, `queue` (waiting calls), `suspended` calls, `streams`, `memory` and
        `bodies` (both in bytes), `events` (of a memory store, in bytes), `connections` (of
        Interlock's own HTTP server), `tasks` and `polls` (with the extension).
        """
        usage = {
            "calls": self.calls.slots.usage(),
            "queue": self.calls.queue_usage(),
            "streams": self.ticker.streams.usage(),
            "bodies": self._bodies.arriving.usage(),
            **{name: quota.usage() for name, quota in self._server_quotas.items()},
        }
        if isinstance(self._store, MemoryStore):
            usage["events"] = self._store.events.usage()
        if self.connections is not None:
            usage["connections"] = self.connections()
        return usage

    # -- requests ----------------------------------------------------------------------------------

    def serve(self, request: ServerRequest) -> Awaitable[None]:
        """Serve a request of Interlock's own server: without ASGI if it is for the endpoint, and if
        nothing stands before that.
        """
        raw = request.raw
        prepared = raw.prepared or self._prepare(raw)
        if prepared is None or not self._entered or self._cors is not None or self._log.is_on:
            return self(request.scope, request.receive, request.send)
        principal = None
        if prepared.token is not None:
            principal = request.principal or prepared.token.principal()
            if principal is None:
                return self(request.scope, request.receive, request.send)
        request.admit(prepared, principal)
        return self._serve(request)

    @property
    def has_principals(self) -> bool:
        """Whether a guard finds the principals of requests. One that finds none says so by
        `has_principals`.
        """
        return self._guarded is not None and getattr(self._guarded, "has_principals", True)

    def holder_of(self, request: ServerRequest) -> str:
        """Return the holder that a request counts for, as far as it is known before it starts: its
        principal if the guard has verified the token lately, otherwise its address.
        """
        prepared = request.raw.prepared or self._prepare(request.raw)
        if prepared is not None and prepared.token is not None:
            principal = prepared.token.principal()
            if principal is not None:
                request.principal = principal  # it starts in a moment
                return principal.key
        client = request.client
        return holder_of_address(client[0] if client else None)

    def _prepare(self, raw: RawHead) -> PreparedHead | None:
        """Read a head; None if its requests cannot be served without ASGI."""
        if raw.path != self.path:
            return None
        token = None
        shown = raw.headers
        if self._guarded is not None:
            if not is_direct_guard(self._guarded) or raw.method == "OPTIONS":
                return None
            found = self._guarded.read_token(raw.path, raw.query, raw.headers)
            if found is None:
                return None
            token, shown = found
        head = read_head(self._rules, raw.method, shown)
        raw.prepared = PreparedHead(head, shown, token)
        return raw.prepared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection: an HTTP request, or the lifespan if the app is not mounted."""
        if scope["type"] != "http":
            await (self._guarded or self._serve_other)(scope, receive, send)
            return
        if self._cors is not None:
            if self._cors.is_preflight(scope):
                await self._cors.answer(scope, send)
                return
            send = self._cors.marking(scope, send)
        if self._log.is_on:
            send = self._log.watching(scope, send)
        if self._guarded is not None and self._location(scope) is None:
            await (self._handle if self._is_open(scope) else self._guarded)(scope, receive, send)
        elif self._entered and scope["path"] == self.path and not scope.get("root_path"):
            await self._serve(self._admission.asgi_request(scope, receive, send))
        else:
            await self._handle(scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        """Whether a request is for a route that the guard does not protect."""
        if not self._routes:
            return False
        route = self._routes.find(self._beneath(scope))
        return route is not None and not route.guarded

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve an HTTP request that the guard has admitted."""
        try:
            await self._route(scope, receive, send)
        except StoreError:
            request = self._admission.asgi_request(scope, receive, send)
            await self._errors.send(request, store_away())

    # -- routing -----------------------------------------------------------------------------------

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._entered:
            await self.open()
        root = scope.get("root_path", "")
        path = self._beneath(scope)
        if path == self.path or (root and path in ("", "/")):
            await self._serve(self._admission.asgi_request(scope, receive, send))
        elif (location := self._location(scope)) is not None:
            await self._redirect(location, self._admission.asgi_request(scope, receive, send))
        elif path in self._health.paths and scope["method"] in ("GET", "HEAD"):
            await self._health.answer(path, scope, send)
        elif self._sse is not None and path in SSE_PATHS:
            await self._sse.serve(path, self._admission.asgi_request(scope, receive, send))
        elif (route := self._routes.find(path)) is not None:
            await self._serve_route(route, root, scope, receive, send)
        else:
            words = f"Not found: the MCP endpoint of this server is {self.path}\n"
            await send_body(send, 404, words.encode(), b"text/plain")

    async def _serve_route(
        self, route: Route, root: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve a route of the author, within the limits of the endpoint (`SEC-01`)."""
        request = self._admission.asgi_request(scope, receive, send)
        if await self._admission.has_refused(request):
            return
        headers = request.head.headers
        if route.methods is not None and scope["method"] not in route.methods:
            allowed = ((b"allow", ", ".join(sorted(route.methods)).encode()),)
            await send_body(send, 405, b"Method not allowed\n", b"text/plain", headers=allowed)
            return
        most = self.limits.body
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18 or int(length) > most:
            words = f"Content too large: a body has at most {most} bytes\n"
            await send_body(send, 413, words.encode(), b"text/plain", headers=CLOSE)
            return
        if route.is_prefix:
            scope = {**scope, "root_path": f"{root}{route.path[:-1]}"}
        await route.app(scope, bounded(receive, most), send)

    @staticmethod
    def _beneath(scope: Scope) -> str:
        """Return the path of a request below the mount point of the app."""
        root: str = scope.get("root_path", "")
        path: str = scope["path"]
        return path[len(root) :] if root and f"{path}/".startswith(f"{root}/") else path

    def _location(self, scope: Scope) -> bytes | None:
        """Return the target of the redirect for a path with a missing or an extra slash; None for
        any other path.
        """
        path = self._beneath(scope)
        slash = not path.endswith("/") or (scope.get("raw_path") or b"/").endswith(b"/")
        return self._redirects.get(path) if slash else None  # an escaped slash is not a slash

    async def _redirect(self, location: bytes, request: EndpointRequest) -> None:
        """Redirect a client whose path has a missing or an extra slash."""
        if refusal := self._admission.check_source(request):
            await self._errors.send(request, refusal)
            return
        if query := request.scope.get("query_string", b""):
            location += b"?" + quote_from_bytes(query, safe=_QUERY).encode()
        await request.respond(307, b"", headers=((b"location", location),))

    # -- lifespan ----------------------------------------------------------------------------------

    async def _live(self, receive: Receive, send: Send) -> None:
        """Serve the ASGI lifespan: enter the server's own lifespan before the first request."""
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
        """Open the store and enter the server's lifespan. Without an ASGI lifespan the first
        request does it.
        """
        async with self._entering:
            if self._entered:
                return
            await self._store.open()
            try:
                await self._lifespan.enter()
            except BaseException:
                await self._store.aclose()
                raise
            self.messages.open()
            if self.messages.is_shared:
                self._tasks.start(self.messages.beat())
            self._tasks.start(self._expiry.run())
            self._entered = True

    async def drain(self, grace: float) -> None:
        """Refuse new requests, end notification streams, and let calls finish for `grace` seconds.

        Calls that still run then are answered with an error and cancelled.
        """
        self._shutdown.start()
        if self._entered:
            self._tasks.start(self._lifespan.drain())
        self.calls.close_queue()
        self._sessions.end_listening()
        self._subscriptions.end_all()
        loop = asyncio.get_running_loop()
        until = loop.time() + grace
        beside = None
        if isinstance(self._guard, DrainedGuard):
            beside = loop.create_task(self._guard.drain(grace))
        while (tasks := self._running_tasks()) and loop.time() < until:
            await asyncio.wait(tasks, timeout=until - loop.time())
        for serving in self._servings():
            self.calls.answer(serving, _fail_for_shutdown)
        if self._sse is not None:
            self._sse.close()
        if beside is not None:
            await beside
        await self.ticker.drain()

    @property
    def is_draining(self) -> bool:
        """Whether new requests are refused."""
        return self._shutdown.is_draining

    async def recent_sessions(self, most: int) -> list[Session]:
        """Return at most so many sessions, those that end last first. Raises StoreError."""
        return await self._store.sessions.recent(most=most, now=time.time())

    async def end_session(self, id: str) -> bool:
        """End a session as its client would. Returns False if it does not exist. Raises
        StoreError.
        """
        session = await self._store.sessions.load(id, now=time.time())
        if session is None or not await self._store.sessions.end(id):
            return False
        self.messages.announce("ended", id)
        self._on_session_end(time.time() - session.created)
        return True

    async def aclose(self) -> None:
        """End everything: streams, calls, the store, the server's lifespan. You can call it
        twice.
        """
        if not self._entered:
            return
        self._entered = False
        self.ticker.close()
        self.messages.close()
        await self._sessions.aclose()
        await self._tasks.aclose()
        await self._lifespan.leave()
        await self.messages.withdraw()  # last: what this worker has begun is over and recorded
        await self._store.aclose()

    def _running_tasks(self) -> list[asyncio.Task[None]]:
        """Return the tasks of running calls, without the subscriptions of sessions."""
        return [
            task
            for serving in self._servings()
            for id, task in serving.running.items()
            if not isinstance(id, SessionListen)
        ]

    def _servings(self) -> list[Serving]:
        """Return everything that runs, except for stateless subscriptions."""
        servings = [*self.calls.all(), *self._sessions.servings()]
        if self._sse is not None:
            servings += self._sse.servings()
        return servings


def _slashed(path: str) -> tuple[str, bytes]:
    """Return a path with its final slash added or removed, and the redirect from there to the path.

    The redirect is relative: it leads to this server even behind a proxy that changes paths, and a
    client cannot make it lead elsewhere.
    """
    last = quote(path.rstrip("/").rpartition("/")[2])
    if path.endswith("/"):
        return path[:-1], f"./{last}/".encode()
    return f"{path}/", f"../{last}".encode()


def _fail_for_shutdown(serving: Serving, id: CallId) -> None:
    words = "The server is shutting down."
    serving.connection.fail(id, t.INTERNAL_ERROR, words, {"reason": "shutdown"})
