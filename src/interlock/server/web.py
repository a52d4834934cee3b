"""A server over HTTP: the ASGI app with its options, and the program that serves it, in one process or in several."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..protocol.http import Rules
from ..protocol.sessions import Store
from ..store import open_store
from ..transport.asgi import HttpApp
from ..transport.limits import Limits
from .changes import BoardBus, MemoryBus

if TYPE_CHECKING:
    from .app import Server

_BACKOFF = 0.5  # seconds before a worker that died is replaced, doubled each time up to a limit
_MOST_BACKOFF = 10.0
_STEADY = 30.0  # seconds after which a worker counts as well again


def http_app(
    server: Server,
    path: str = "/mcp",
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
) -> HttpApp:
    """The server as an ASGI app; see `Server.http_app`."""
    if not path.startswith("/"):
        raise ValueError(f"a path begins with a slash; {path!r} does not")
    kept = open_store(store) if isinstance(store, str) else store if store is not None else open_store("memory:")
    if kept.shared and isinstance(server.bus, MemoryBus):
        server.bus = BoardBus(kept.changes)
    pages = (*_several(origins), *_several(cors))
    rules = Rules(
        hosts=frozenset(host.lower() for host in _several(hosts)),
        origins=frozenset(page.rstrip("/").lower() for page in pages),
        sessions=sessions,
        greets=server.identity.handshakes,
    )
    return HttpApp(
        server.handler,
        server.identity,
        store=kept,
        enter=server.enter,
        leave=server.leave,
        path=path,
        rules=rules,
        limits=limits or Limits(),
        cors=_several(cors),
        stream=stream,
        retry_ms=retry_ms,
        legacy_sse=legacy_sse,
        calls_per_session=server.calls_per_peer,
    )


def _several(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


async def serve_web(
    server: Server,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    sock: socket.socket | None = None,
    grace: float = 10.0,
    on_ready: Callable[[Any], None] | None = None,
    hosts: str | Sequence[str] = (),
    **options: Any,
) -> None:
    """Serve in this process until cancelled; `options` as for `http_app`."""
    from ..transport.webserver import listening_socket, serve_http  # late: only for programs that serve HTTP themselves

    app = http_app(server, hosts=(*_several(hosts), *_own_name(host)), **options)
    gc.collect()
    gc.freeze()  # what exists now stays for good, and the collector need never look at it again
    await serve_http(app, sock or listening_socket(host, port), grace=grace, on_ready=on_ready)


def _own_name(host: str) -> tuple[str, ...]:
    """The name under which a server was told to listen is one of its names."""
    return () if host in ("", "0.0.0.0", "::") else (host,)


class Workers:
    """Several processes that serve one socket, forked from this one and replaced where they die (Unix)."""

    def __init__(self, count: int, work: Callable[[socket.socket], None], sock: socket.socket) -> None:
        self._count, self._work, self._sock = count, work, sock
        self._pids: dict[int, float] = {}
        self._told = False
        self._backoff = _BACKOFF

    def run(self) -> None:
        """Fork the workers and watch over them until a signal ends this process; then they end in good order."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        for _ in range(self._count):
            self._fork()
        self._sock.setblocking(False)
        while self._pids:
            try:
                pid, status = os.wait()
            except InterruptedError:
                continue
            born = self._pids.pop(pid, None)
            if born is None or self._told:
                continue
            self._replace(pid, status, time.monotonic() - born)
        self._sock.close()

    def _replace(self, pid: int, status: int, lived: float) -> None:
        from ..transport.webserver import log  # late: as where it is served

        self._backoff = _BACKOFF if lived > _STEADY else min(self._backoff * 2, _MOST_BACKOFF)
        log.error("worker %d ended (%s); another one takes its place", pid, _ending(status))
        if lived < 1.0:
            time.sleep(self._backoff)  # one that cannot start would be started again and again
        if not self._told:
            self._fork()

    def _fork(self) -> None:
        pid = os.fork()
        if pid:
            self._pids[pid] = time.monotonic()
            return
        code = 1
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            self._work(self._sock)
            code = 0
        finally:
            os._exit(code)

    def _stop(self, number: int, frame: Any) -> None:
        self._told = True
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def _ending(status: int) -> str:
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"


def run_workers(server: Server, count: int, serve: Callable[[Any], None], options: dict[str, Any]) -> None:
    """Serve with `count` processes. Without a store of its own they share an SQLite file that is gone at the end."""
    from ..transport.webserver import listening_socket  # late: as where it is served

    if not hasattr(os, "fork"):
        raise ValueError("several workers need a system that can fork; start several servers behind a balancer, with one store")
    if options.get("store") in (None, "memory:"):
        folder = tempfile.TemporaryDirectory(prefix="interlock-")
        options["store"] = f"sqlite:///{Path(folder.name).resolve()}/store.db"
    else:
        folder = None
    sock = listening_socket(options.pop("host", "127.0.0.1"), options.pop("port", 8000))
    ready = options.pop("on_ready", None)
    if ready is not None:
        ready(sock.getsockname())

    def work(shared: socket.socket) -> None:
        serve(serve_web(server, sock=shared, **options))

    try:
        Workers(count, work, sock).run()
    finally:
        if folder is not None:
            folder.cleanup()
