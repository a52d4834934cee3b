"""A server over HTTP: its ASGI app, and the program that serves it in one process or more."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...deprecation import warn_deprecated
from ...observe.meters import Gauge, Labels
from ...observe.quota_gauges import quota_gauges
from ...protocol.http import EndpointRules
from ...store import open_store
from ...store.interface import Store
from ...store.measured import measured_store
from ...transport.channel import MessageRecorder
from ...transport.http.app import HttpApp, HttpAppOptions
from ...transport.http.authorization import EndpointAware, Guarding
from ...transport.http.health import DEFAULT_PATH
from ...transport.http.limits import Limits
from ...transport.http.routes import Route, Routes
from ..catalogue.scopes import as_anonymous, with_anonymous_callers
from ..changes import MemoryBus, TopicBus
from .call_registry import CallRegistry
from .interface import ServedServer
from .observed import served_metrics
from .process_memory import keep_freed_memory, settle_memory

if TYPE_CHECKING:
    import ssl

    from ...transport.http.server.supervision import Supervision
    from .liveness import WorkerLimits
    from .metrics import MetricsServer

DEFAULT_GRACE = 10.0  # seconds


_LEGACY_SSE = (
    "The HTTP+SSE transport (legacy_sse=True) is deprecated since 2025-03-26 (SEP-2596) and may"
    " be removed three"
    " months after SEP-2596 is final: clients of today use Streamable HTTP."
)


def http_app(
    server: ServedServer,
    path: str = "/mcp",
    calls: CallRegistry | None = None,
    operator: Route | None = None,
    *,
    hosts: str | Sequence[str] = (),
    origins: str | Sequence[str] = (),
    cors: str | Sequence[str] = (),
    sessions: bool = True,
    store: Store | str | None = None,
    stream: bool = False,
    retry_ms: int | None = None,
    legacy_sse: bool = False,
    limits: Limits | None = None,
    grace: float = DEFAULT_GRACE,
    guard: Guarding | None = None,
    health: str | None = DEFAULT_PATH,
) -> HttpApp:
    """Return the server as an ASGI app; see `Server.http_app`. `calls` registers its calls.
    `operator` is the admin path.
    """
    if legacy_sse:
        warn_deprecated(_LEGACY_SSE, 3)
    if not path.startswith("/"):
        raise ValueError(f"a path begins with a slash; {path!r} does not")
    if health is not None and (not health.startswith("/") or len(health) == 1):
        raise ValueError(f"health is a path such as {DEFAULT_PATH!r}, or None, not {health!r}")
    if not isinstance(limits, Limits | None):
        raise TypeError(f"limits are Limits(...), not {limits!r}")
    if isinstance(store, str):
        kept = open_store(store)
    elif store is not None:
        kept = store
    else:
        kept = open_store("memory:")
    if kept.shared and server.observe is not None and server.observe.metrics is not None:
        kept = measured_store(kept, server.meters)
    if kept.shared and isinstance(server.bus, MemoryBus):
        server.bus = TopicBus(kept.changes)
    if isinstance(guard, EndpointAware):
        guard.learn(path, lambda: server.scopes)
    elif guard is not None and not callable(guard):
        raise TypeError(f"a guard takes an ASGI app and gives one; {guard!r} does not")
    pages = (*_several(origins), *_several(cors))
    rules = EndpointRules(
        hosts=frozenset(host.lower() for host in _several(hosts)),
        origins=frozenset(page.rstrip("/").lower() for page in pages),
        sessions=sessions,
        greets=server.identity.handshakes,
    )
    options = HttpAppOptions(
        path=path,
        rules=rules,
        limits=limits or Limits(),
        memory=server.memory,
        quotas=server.quotas,
        cors=_several(cors),
        stream=stream,
        retry_ms=retry_ms,
        legacy_sse=legacy_sse,
        calls_per_session=server.limits.calls_per_peer,
        grace=grace,
        guard=guard,
        routes=_with_route(server.take_routes(), operator),
        health=None if health is None else health.rstrip("/"),
        on_session_end=partial(server.session_ended, is_http=True),
    )
    handler = with_anonymous_callers(server.handler)
    app = HttpApp(
        handler if calls is None else calls.around(handler),
        server.identity.seen_by(as_anonymous),
        kept,
        server,
        options,
    )
    if kept.shared:
        server.share_calls(kept.records, app.messages)
    for gauge in (*quota_gauges(app.usage), *_traffic_gauges(app)):
        server.meters.add_gauge(gauge)
    return app


def _with_route(routes: Routes | None, added: Route | None) -> Routes | None:
    """Return the routes and one more. Those of the author do not change."""
    return routes if added is None else Routes((*(routes or ()), added))


def _traffic_gauges(app: HttpApp) -> Iterator[Gauge]:
    """The bytes of our own HTTP server as metrics."""
    names = (
        ("interlock_http_received_bytes_total", "Bytes that the HTTP server has received."),
        ("interlock_http_sent_bytes_total", "Bytes that the HTTP server has sent."),
    )

    def reader(number: int) -> Callable[[], dict[Labels, float]]:
        return lambda: {} if app.traffic is None else {(): app.traffic()[number]}

    for number, (name, help) in enumerate(names):
        yield Gauge(name, help, reader(number))


def _several(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


async def serve_web(
    server: ServedServer,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    sock: socket.socket | None = None,
    grace: float = DEFAULT_GRACE,
    on_ready: Callable[[Any], None] | None = None,
    supervision: Supervision | None = None,
    hosts: str | Sequence[str] = (),
    proxies: str | Sequence[str] = (),
    tls: ssl.SSLContext | None = None,
    is_program: bool = False,
    admin: str | os.PathLike[str] | None = None,
    admin_path: str | None = None,
    admin_secret: str | None = None,
    record: MessageRecorder | None = None,
    metrics: MetricsServer | None = None,
    **options: Any,
) -> None:
    """Serve in this process until cancelled. `options` are those of `http_app`.

    Hazard: `proxies` are the addresses or networks whose `X-Forwarded-For` is trusted. Without them
    it is always ignored. `tls` is the context of an HTTPS server. `is_program` says that the
    process does nothing else, so its memory may be tuned for the server. `supervision` is
    the process that supervises this one. `admin` is the folder of the admin sockets, `admin_path`
    the path of the endpoint that relays to them with `admin_secret`. `metrics` is the listener for
    metrics that all workers share.
    """
    # late: only for programs that serve HTTP themselves
    from ...transport.http.server.serve import (
        listening_socket,
        serve_http,
    )

    calls = None if admin is None else CallRegistry()
    operator = None
    if admin_path is not None:
        from .admin_path import admin_route  # late: only for servers that have such an operator

        if admin is None:
            raise ValueError("admin_path needs admin, the folder of the admin sockets")
        operator = admin_route(admin_path, admin, admin_secret)
    names = (*_several(hosts), *_own_name(host))
    app = http_app(server, calls=calls, operator=operator, hosts=names, **options)
    sockets = contextlib.AsyncExitStack()

    def ready(address: Any) -> None:
        if is_program:
            settle_memory()
        if on_ready is not None:
            on_ready(address)

    made = sock or listening_socket(host, port)
    try:
        if admin is not None and calls is not None:
            from .admin import AdminSocket  # late: only for servers that have an operator

            listening = AdminSocket(admin, app, server, calls, supervision)
            sockets.push_async_callback(listening.aclose)
            await listening.open()
        await sockets.enter_async_context(served_metrics(server, metrics))
        await serve_http(
            app if record is None else record.endpoint(app),
            made,
            grace=grace,
            proxies=_several(proxies),
            on_ready=ready,
            supervision=supervision,
            on_large=cache(keep_freed_memory) if is_program else bool,
            tls=tls,
        )
    finally:
        await sockets.aclose()
        close = getattr(options.get("guard"), "aclose", None)
        if close is not None:  # the guard closes what it opened to verify tokens
            await close()


def _own_name(host: str) -> tuple[str, ...]:
    """Return the host that a server listens on as a name of the server; none for a wildcard."""
    return () if host in ("", "0.0.0.0", "::") else (host,)


def run_workers(
    count: int,
    serve: Callable[[dict[str, Any], Supervision], None],
    options: dict[str, Any],
    on_ready: Callable[[Any], None] | None,
    limits: WorkerLimits,
) -> None:
    """Serve with `count` processes.

    Without a store of their own, the workers share an SQLite file, which is deleted at the end.
    """
    from ...transport.http.server.serve import listening_socket  # late: as where it is served
    from .supervisor import Supervisor  # late: only for several workers

    if not hasattr(os, "fork"):
        raise ValueError(
            "several workers need a system that can fork; start several servers behind a"
            " balancer, with one store"
        )
    if options.get("store") in (None, "memory:"):
        folder = tempfile.TemporaryDirectory(prefix="interlock-")
        options["store"] = f"sqlite:///{Path(folder.name).resolve()}/store.db"
    else:
        folder = None
    host = options.pop("host", "127.0.0.1")
    sock = listening_socket(host, options.pop("port", 8000))
    address = sock.getsockname()

    def work(supervision: Supervision) -> None:
        serve({**options, "host": host, "sock": sock}, supervision)

    try:
        Supervisor(
            count,
            work,
            grace=options.get("grace", DEFAULT_GRACE),
            limits=limits,
            on_ready=None if on_ready is None else lambda: on_ready(address),
            on_stop=sock.close,  # or the system would let clients in that no worker serves
        ).run()
    finally:
        sock.close()
        if folder is not None:
            folder.cleanup()
