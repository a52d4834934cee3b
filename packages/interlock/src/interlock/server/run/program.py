"""A server as a program: an event loop, the chosen transport, signals, and a graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from ...keywords import check_keywords
from ...logs import limited
from ...observe.meters import Gauge
from ...transport.channel import Channel, MessageRecorder
from ...wire.lines import DEFAULT_LIMIT
from ..request_log import RequestLogFormat, request_log
from .interface import ServedServer
from .observed import exported_traces, served_metrics
from .process_memory import keep_freed_memory, settle_memory

if TYPE_CHECKING:
    from ...store.interface import Store
    from ...transport.http.server.supervision import Supervision
    from ...transport.pipes import PipeChannel
    from .options import RunOptions

log = limited("interlock.server")

TRANSPORTS: dict[str, tuple[str, ...]] = {
    "stdio": ("limit", "store", "log", "record"),
    "http": (),
    "unix": ("path", "limit", "on_ready", "log", "record"),
    "tcp": ("host", "port", "limit", "on_ready", "log", "record"),
}
"""The options of each transport. Those of HTTP are HttpOptions, `workers`, `worker_limits`, `log`
and `on_ready`.
"""
SPELLINGS = {"streamable-http": "http"}
"""The names of transports in other SDKs."""

LOG_VARIABLE = "INTERLOCK_LOG"
"""The environment variable with the format of the request log: "text", "json" or "off"."""
STORE_VARIABLE = "INTERLOCK_STORE"
"""The environment variable with the URL of the store of a server over stdio."""
_KILL_DELAY = 2.0  # seconds


def run(server: ServedServer, transport: str, options: RunOptions) -> None:
    """Serve over a transport until it closes or the program is interrupted.

    Raises:
        TypeError: The transport has no such option.
        ValueError: The transport is unknown, or an option is missing.
    """
    transport = SPELLINGS.get(transport, transport)
    if transport not in TRANSPORTS:
        raise ValueError(f"unknown transport {transport!r}; known are {', '.join(TRANSPORTS)}")
    if transport == "http":
        _http(server, options)
        return
    check_keywords(options, TRANSPORTS[transport], f"server.run({transport!r})")
    _log_requests(server, transport, options.get("log"))
    limit = options.get("limit", DEFAULT_LIMIT)
    on_ready = options.get("on_ready")
    record = options.get("record")
    if transport == "stdio":
        store = options.get("store") or os.environ.get(STORE_VARIABLE)
        work = _stdio(server, limit=limit, store=store, record=record)
    elif transport == "unix":
        if "path" not in options:
            raise ValueError(_MISSING.format("unix", "path"))
        from pathlib import Path  # late: only for this transport

        address: Any = Path(options["path"])
        work = _sockets(server, address=address, limit=limit, on_ready=on_ready, record=record)
    else:
        if "port" not in options:
            raise ValueError(_MISSING.format("tcp", "port"))
        address = (options.get("host", "127.0.0.1"), int(options["port"]))
        work = _sockets(server, address=address, limit=limit, on_ready=on_ready, record=record)
    # uvloop gains little on pipes, and each client starts its own stdio server: start-up time
    # counts more.
    runner = asyncio.Runner(loop_factory=None if transport == "stdio" else _loop_factory())
    with contextlib.suppress(KeyboardInterrupt), exported_traces(server):
        try:
            runner.run(_until_signalled(server, work))
        finally:
            _close(
                runner,
                must_end=transport == "stdio"
                and threading.current_thread() is threading.main_thread(),
            )


def _log_requests(server: ServedServer, transport: str, given: RequestLogFormat | None) -> None:
    """Turn the request log on, if it is wanted."""
    by_default = "text" if transport == "stdio" else "off"
    chosen = given or os.environ.get(LOG_VARIABLE) or by_default
    log_of_requests = request_log(chosen)
    if log_of_requests is not None:
        server.log_requests(log_of_requests)


_MISSING = "the transport {0} needs the option {1}: server.run('{0}', {1}=...)"


def _http(server: ServedServer, options: RunOptions) -> None:
    from ...transport.http.server.serve import lacking  # late: only for servers over HTTP
    from .http import run_workers  # late: as above
    from .http_server import HttpServer  # late: as above
    from .liveness import WorkerLimits  # late: as above
    from .options import HttpOptions  # late: as above

    known = (*HttpOptions.__annotations__, "workers", "worker_limits", "on_ready", "log")
    check_keywords(options, known, "server.run('http')")
    of_http: dict[str, Any] = {**options}
    _log_requests(server, "http", of_http.pop("log", None))
    workers = of_http.pop("workers", 1)
    limits = of_http.pop("worker_limits", None) or WorkerLimits()
    on_ready = of_http.pop("on_ready", None)
    if workers > 1 and "record" in of_http:
        raise ValueError("several workers cannot record to one file: record with one worker")
    if workers < 1:
        raise ValueError(f"workers must be 1 or more, not {workers}")
    if words := lacking():
        raise SystemExit(words)  # no traceback: the program itself is correct

    async def work(http: HttpServer) -> None:
        await http

    def serve(
        options: dict[str, Any],
        supervision: Supervision | None,
        on_ready: Callable[[Any], None] | None = None,
    ) -> None:
        http = HttpServer(
            server,
            options,
            on_ready=on_ready,
            supervision=supervision,
            is_program=True,
            metrics=metrics,
        )
        with (
            asyncio.Runner(loop_factory=_loop_factory()) as runner,
            contextlib.suppress(KeyboardInterrupt),
            exported_traces(server),
        ):
            is_watched = supervision is not None  # then the worker sends heartbeats already
            runner.run(_until_signalled(server, work(http), reports_blocks=not is_watched))

    metrics = None
    if workers == 1:
        serve(of_http, None, on_ready)
        return
    if server.dev:  # the author may look at a blocked worker
        limits = msgspec.structs.replace(limits, blocked_seconds=None)
    if server.observe is not None and server.observe.metrics is not None:
        from .metrics import MetricsServer  # late: only for servers whose metrics are read

        metrics = MetricsServer(server.observe, several=True)
        metrics.announce()
    try:
        run_workers(workers, serve, of_http, on_ready, limits)
    finally:
        if metrics is not None:
            metrics.close()


def _close(runner: asyncio.Runner, *, must_end: bool) -> None:
    """Close the event loop, and wait for the tasks and threads that still run in it.

    Nobody can stop a stdio server whose client is gone (`STD-09`). With `must_end`, a tool that
    blocks a thread or ignores its cancellation delays the end of the process by 2 seconds only.
    """
    late = threading.Timer(_KILL_DELAY, _leave)
    late.daemon = True
    if must_end:
        late.start()
    runner.close()
    late.cancel()


def _leave() -> None:
    log.error("the client has gone and a tool does not end: the process is killed")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(1)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's event loop if it is installed, otherwise asyncio's own."""
    try:
        import uvloop  # optional extra `speed`
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _until_signalled(
    server: ServedServer, work: Coroutine[Any, Any, None], *, reports_blocks: bool = True
) -> None:
    """Run until the work ends or a signal arrives. Then end subscriptions and suspended calls
    gracefully. In development mode, a blocked event loop is logged with its stack.
    """
    loop = asyncio.get_running_loop()
    if server.dev and reports_blocks:
        from .heartbeats import HeartbeatSender, HeartbeatTable  # late: only for authors

        HeartbeatSender(HeartbeatTable(1), 0).started(int)
    task = loop.create_task(work)
    signals = (signal.SIGINT, signal.SIGTERM) if sys.platform != "win32" else ()
    signalled: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        if signalled and number not in signalled:
            # At a terminal a worker gets the signal twice: as a member of the process group, and
            # from its parent.
            return
        signalled.append(number)
        loop.create_task(_stop(server, task))  # noqa: RUF006 - it is the last thing that this loop does

    for number in signals:
        loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not signalled:
            raise
    finally:
        await server.aclose()
        for number in signals:
            loop.remove_signal_handler(number)


async def _stop(server: ServedServer, task: asyncio.Task[None]) -> None:
    """End subscriptions, which would never end by themselves, and give running calls a moment to
    finish.
    """
    server.close_subscriptions()
    await asyncio.sleep(0)
    task.cancel()


async def _stdio(
    server: ServedServer, *, limit: int, store: Store | str | None, record: MessageRecorder | None
) -> None:
    from ...transport.own_streams import own_streams  # late: as above
    from ...transport.pipes import PipeChannel  # late: only for servers that run as programs

    settle_memory(collect=False)  # a tenth of the time of a start, and most find nothing
    async with own_streams(limit) as channel:
        if isinstance(channel, PipeChannel):
            channel.on_large = keep_freed_memory
            for gauge in _stdio_gauges(channel):
                server.meters.add_gauge(gauge)
        async with _shared_calls(server, store), served_metrics(server):
            await server.serve(channel if record is None else record.channel(channel))


def _stdio_gauges(channel: PipeChannel) -> Iterator[Gauge]:
    """The bytes of stdio as metrics."""
    yield Gauge(
        "interlock_stdio_received_bytes_total",
        "Bytes that the server has read from stdin.",
        lambda: {(): channel.received_bytes},
    )
    yield Gauge(
        "interlock_stdio_sent_bytes_total",
        "Bytes that the server has written to stdout.",
        lambda: {(): channel.sent_bytes},
    )


@contextlib.asynccontextmanager
async def _shared_calls(server: ServedServer, store: Store | str | None) -> AsyncIterator[None]:
    """Record the outcomes of calls in a store that outlives this process, where there is one."""
    if store is None:
        yield
        return
    from ...idempotency import NoPeers  # late: only for servers that have a store
    from ...store import open_store  # late: as above

    kept = open_store(store) if isinstance(store, str) else store
    await kept.open()
    try:
        server.share_calls(kept.records, NoPeers())
        yield
    finally:
        await kept.aclose()


async def _sockets(
    server: ServedServer,
    *,
    address: Any,
    limit: int,
    on_ready: Callable[[Any], None] | None = None,
    record: MessageRecorder | None = None,
) -> None:
    from ...transport.sockets import listen  # late: only for servers that listen

    settle_memory()

    def talk(channel: Channel) -> Awaitable[None]:
        # Only the owner can open the file of a Unix socket. Anyone may connect to a TCP port.
        recorded = channel if record is None else record.channel(channel)
        return server.serve(recorded, anonymous=isinstance(address, tuple))

    async with served_metrics(server):
        await listen(address, talk, limit=limit, on_ready=on_ready)
