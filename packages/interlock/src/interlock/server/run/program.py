"""Starting a server as a program: an event loop, the transport that was asked for, and an end in good order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...logs import limited
from ...transport.channel import Channel
from ...wire.lines import DEFAULT_LIMIT

if TYPE_CHECKING:
    from ..app import Server

log = limited("interlock.server")

TRANSPORTS = ("stdio", "http", "unix", "tcp")
_STUBBORN = 2.0  # seconds
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # as malloc.h of glibc numbers them


def run(server: Server, transport: str, **options: Any) -> None:
    """Serve over a transport until its end or an interrupt. Raises ValueError for one that there is not, or that is told too little."""
    if transport == "http":
        _http(server, **options)
        return
    options = {"limit": DEFAULT_LIMIT, **options}
    if transport == "stdio":
        work = _stdio(server, **options)
    elif transport == "unix":
        work = _sockets(server, address=Path(_needed("path", transport, options)), **options)
    elif transport == "tcp":
        port = int(_needed("port", transport, options))
        work = _sockets(server, address=(options.pop("host", "127.0.0.1"), port), **options)
    else:
        raise ValueError(f"there is no transport {transport!r}; there are {', '.join(TRANSPORTS)}")
    # On pipes uvloop gains little, and a stdio server is started for each of its peers: its start-up counts more.
    runner = asyncio.Runner(loop_factory=None if transport == "stdio" else _loop_factory())
    with contextlib.suppress(KeyboardInterrupt):
        try:
            runner.run(_until_told(server, work))
        finally:
            _close(
                runner,
                must_end=transport == "stdio"
                and threading.current_thread() is threading.main_thread(),
            )


def _http(
    server: Server,
    *,
    workers: int = 1,
    on_ready: Callable[[Any], None] | None = None,
    **options: Any,
) -> None:
    from ...transport.http.uvicorn_server import lacking  # late: only for servers that speak HTTP
    from .http import run_workers  # late: as above
    from .http_server import HttpServer  # late: as above

    if workers < 1:
        raise ValueError(f"there is at least one worker, and cannot be {workers}")
    if words := lacking():
        raise SystemExit(words)  # one line, and no traceback: nothing is wrong with the program

    async def work(http: HttpServer) -> None:
        await http

    def serve(options: dict[str, Any], told: Callable[[Any], None] | None) -> None:
        http = HttpServer(server, options, on_ready=told, is_program=True)
        with (
            asyncio.Runner(loop_factory=_loop_factory()) as runner,
            contextlib.suppress(KeyboardInterrupt),
        ):
            runner.run(_until_told(server, work(http)))

    if workers > 1:
        run_workers(workers, serve, options, on_ready)
    else:
        serve(options, on_ready)


def _close(runner: asyncio.Runner, *, must_end: bool) -> None:
    """Close the loop, which waits for all that still runs in it.

    A stdio server whose client has gone serves nobody and has nobody who could end it (`STD-09`): with `must_end`, a tool that
    blocks a thread or does not let itself be cancelled holds the process for a moment only.
    """
    late = threading.Timer(_STUBBORN, _leave)
    late.daemon = True
    if must_end:
        late.start()
    runner.close()
    late.cancel()


def _leave() -> None:
    log.error("the client has gone, and a tool does not end: the server ends without it")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(1)


def _needed(name: str, transport: str, options: dict[str, Any]) -> Any:
    if name not in options:
        raise ValueError(
            f"the transport {transport} needs to be told the {name}: server.run({transport!r}, {name}=...)"
        )
    return options.pop(name)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop where it is installed, else asyncio's own."""
    try:
        import uvloop  # optional extra `speed`
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _until_told(server: Server, work: Coroutine[Any, Any, None]) -> None:
    """Do the work until it ends or a signal says so; then end subscriptions and suspended calls in good order."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    signals = (signal.SIGINT, signal.SIGTERM) if sys.platform != "win32" else ()
    told: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        if told and number not in told:
            return  # at a terminal both the whole group and, through its parent, a worker are told, each in another way
        told.append(number)
        loop.create_task(_stop(server, task))  # noqa: RUF006 - it is the last thing that this loop does

    for number in signals:
        loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not told:
            raise
    finally:
        await server.aclose()
        for number in signals:
            loop.remove_signal_handler(number)


async def _stop(server: Server, task: asyncio.Task[None]) -> None:
    """Subscriptions would never end by themselves; calls that run have a moment to finish, as at any other end."""
    for listener in list(server.listeners):
        listener.close()
    await asyncio.sleep(0)
    task.cancel()


async def _stdio(server: Server, *, limit: int) -> None:
    from ...transport.pipes import PipeChannel  # late: only for servers that are programs
    from ...transport.stdio import own_streams  # late: as above

    settle_memory()
    async with own_streams(limit) as channel:
        if isinstance(channel, PipeChannel):
            channel.on_large = keep_freed_memory
        await server.serve(channel)


async def _sockets(
    server: Server, *, address: Any, limit: int, on_ready: Callable[[Any], None] | None = None
) -> None:
    from ...transport.sockets import listen  # late: only for servers that listen

    settle_memory()

    def talk(channel: Channel) -> Awaitable[None]:
        # The file of a Unix socket lets its owner in and nobody else; at a TCP port there may be anybody.
        return server.serve(channel, anonymous=isinstance(address, tuple))

    await listen(address, talk, limit=limit, on_ready=on_ready)


def keep_freed_memory() -> None:
    """Tell the C library to keep what large messages leave behind: giving it back to the system and fetching it again costs five
    times what the message itself does. At most 64 MiB; nothing happens where the library has no such setting."""
    import ctypes  # late: only for servers that move large messages

    with contextlib.suppress(OSError, AttributeError):
        tune = ctypes.CDLL(None).mallopt
        tune(_M_TRIM_THRESHOLD, 64 * 1024 * 1024)
        tune(_M_MMAP_THRESHOLD, 32 * 1024 * 1024)


def settle_memory() -> None:
    """What exists now stays for good, so the collector need never look at it again: most of the tail latency of a server."""
    gc.collect()
    gc.freeze()
