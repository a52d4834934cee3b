"""The metrics endpoint: `/metrics` in the format of Prometheus, on a listener of its own.

With several workers any of them answers, with the metrics of all: each worker has a Unix socket in
a private folder, where the others ask for its metrics.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from ...logs import limited
from ...observe.meters import Gauge, Labels, Meters
from ...observe.options import Observe
from ...observe.prometheus import CONTENT_TYPE, Metric, collect, exposition, merge
from ...transport.http.server.serve import listening_socket, serve_http
from .process_memory import resident_bytes

log = limited("interlock.server")

PATH = "/metrics"
_LOOPBACK = "127.0.0.1"
_PEER_SECONDS = 2.0  # that another worker has to send its metrics
_LAG_SECONDS = 0.5  # between two measurements of the event loop

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Metric]).decode


class MetricsServer:
    """The listener for `/metrics`. Make it before workers are forked, and `serve` in each.

    Args:
        observe: The options of the server.
        several: Whether several processes serve, of which each answers for all.

    Raises:
        ValueError: The address is not `[HOST]:PORT`.
        OSError: It cannot listen there.
    """

    def __init__(self, observe: Observe, *, several: bool = False) -> None:
        assert observe.metrics is not None
        host, colon, port = observe.metrics.rpartition(":")
        if not colon or not port.isdecimal():
            raise ValueError(
                f"metrics= takes [HOST]:PORT, such as :9464 or 127.0.0.1:9464, not"
                f" {observe.metrics!r}"
            )
        self._sock = listening_socket(host.strip("[]") or _LOOPBACK, int(port))
        self._on_ready = observe.on_ready
        self._folder = None
        if several:
            import tempfile  # late: only for several workers

            self._folder = tempfile.TemporaryDirectory(prefix="interlock-metrics-")

    @property
    def url(self) -> str:
        """The URL of the metrics."""
        host, port = self._sock.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"

    def announce(self) -> None:
        """Tell the caller's function where the metrics are."""
        if self._on_ready is not None:
            self._on_ready(self.url)

    def close(self) -> None:
        """Stop to listen, and remove what the workers have in common."""
        self._sock.close()
        if self._folder is not None:
            self._folder.cleanup()

    @contextlib.asynccontextmanager
    async def serve(self, meters: Meters) -> AsyncIterator[None]:
        """Serve the metrics of this process, and of the other workers, while the block runs."""
        meters.readers += 1
        lag = _LoopLag()
        meters.add_gauge(
            Gauge(
                "interlock_event_loop_lag_seconds",
                "How late the event loop was at most since the last reading.",
                lag.read,
            )
        )
        meters.add_gauge(
            Gauge(
                "process_resident_memory_bytes", "The resident memory of the process.", _memory_used
            )
        )
        peers = None
        folder = None if self._folder is None else Path(self._folder.name)
        if folder is not None:
            peers = await asyncio.start_unix_server(
                lambda reader, writer: _send(meters, writer), folder / f"{os.getpid()}.sock"
            )
        app = _MetricsApp(meters, folder)
        tasks = [
            asyncio.ensure_future(serve_http(app, self._sock.dup(), grace=0.0)),
            asyncio.ensure_future(lag.measure()),
        ]
        try:
            yield
        finally:
            meters.readers -= 1
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            if peers is not None and folder is not None:
                peers.close()
                with contextlib.suppress(OSError):
                    os.unlink(folder / f"{os.getpid()}.sock")


class _LoopLag:
    """Measures how late the timers of the event loop are."""

    def __init__(self) -> None:
        self._most = 0.0

    async def measure(self) -> None:
        """Measure until cancelled."""
        while True:
            due = time.monotonic() + _LAG_SECONDS
            await asyncio.sleep(_LAG_SECONDS)
            self._most = max(self._most, time.monotonic() - due)

    def read(self) -> dict[Labels, float]:
        """Return the longest delay since the last reading, in seconds."""
        most = self._most
        self._most = 0.0
        return {(): most}


def _memory_used() -> dict[Labels, float]:
    return {(): float(resident_bytes())}


async def _send(meters: Meters, writer: asyncio.StreamWriter) -> None:
    """Send the metrics of this process to another worker."""
    with contextlib.suppress(OSError):
        writer.write(_encode(collect(meters)))
        await writer.drain()
    writer.close()


def _peers(folder: Path) -> list[Path]:
    """Return the sockets of the other workers."""
    return [path for path in sorted(folder.glob("*.sock")) if path.stem != str(os.getpid())]


async def _of_peers(folder: Path) -> dict[str, list[Metric]]:
    """Return the metrics of the other workers by process ID."""
    paths = _peers(folder)
    found = await asyncio.gather(*(_of_peer(path) for path in paths))
    return {path.stem: metrics for path, metrics in zip(paths, found, strict=True) if metrics}


async def _of_peer(path: Path) -> list[Metric]:
    """Return the metrics of one worker; nothing if it has gone or does not answer."""
    try:
        async with asyncio.timeout(_PEER_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                return _decode(await reader.read())
            finally:
                writer.close()
    except ConnectionRefusedError:  # it was killed
        os.unlink(path)
    except (OSError, ValueError) as bad:  # OSError: a timeout too
        log.warning("the metrics of the worker %s are missing: %r", path.stem, bad)
    return []


class _MetricsApp:
    """An ASGI app with one page."""

    def __init__(self, meters: Meters, folder: Path | None) -> None:
        self._meters = meters
        self._folder = folder

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        status = 200
        body = b""
        if scope["path"] != PATH:
            status = 404
            body = b"The metrics are at /metrics.\n"
        elif scope["method"] not in ("GET", "HEAD"):
            status = 405
        else:
            body = await self._page()
        headers = [
            (b"content-type", CONTENT_TYPE if status == 200 else b"text/plain; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send(
            {"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body}
        )

    async def _page(self) -> bytes:
        own = collect(self._meters)
        if self._folder is None:
            return exposition(own)
        return exposition(merge({str(os.getpid()): own, **await _of_peers(self._folder)}))
