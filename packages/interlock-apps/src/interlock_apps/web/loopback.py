"""Serves a page and what it shows in frames on two ports of loopback, which are two origins."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import Any, Protocol

from interlock import listening_socket

LOOPBACK = "127.0.0.1"
MISSING = "The page needs starlette and uvicorn. Install them: pip install 'interlock[host]'"


class Site(Protocol):
    """An ASGI app for a page, with one for its frames."""

    sandbox: Any
    """The ASGI app of the other origin."""

    def close(self) -> None:
        """End the streams of the page."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI app of the page."""


async def serve_site(
    make: Callable[[str, str], Site],
    *,
    port: int = 0,
    on_ready: Callable[[Any], object] | None = None,
) -> None:
    """Serve a page until the task is cancelled, or the process gets SIGINT or SIGTERM.

    Args:
        make: Makes the page from its origin and the origin of its frames.
        port: The port of the page; 0 for any that is free.
        on_ready: Called with the page when it listens.

    Raises:
        OSError: The port is taken.
        ImportError: The extra `host` is not installed.
    """
    try:
        import uvicorn  # optional extra `host`
    except ImportError as bad:
        raise ImportError(MISSING) from bad
    pages = listening_socket(LOOPBACK, port)
    try:
        frames = listening_socket(LOOPBACK, 0)
    except OSError:
        pages.close()
        raise
    site = make(_origin(pages), _origin(frames))
    config = uvicorn.Config(
        _both(site, frames.getsockname()[1]),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    loop = asyncio.get_running_loop()
    handled = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not on every platform, and only in the main thread.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, _end, server)
            handled.append(number)
    try:
        await server.startup(sockets=[pages, frames])
        if on_ready is not None:
            on_ready(site)
        await server.main_loop()
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
        site.close()
        if server.started:
            await server.shutdown(sockets=[pages, frames])
        for sock in (pages, frames):
            sock.close()


def _origin(sock: Any) -> str:
    return f"http://{LOOPBACK}:{sock.getsockname()[1]}"


def _end(server: Any) -> None:
    server.should_exit = True


def _both(site: Site, frames_port: int) -> Any:
    """One ASGI app for both ports: frames have an origin of their own, which reaches no page."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("server", ("", 0))[1] == frames_port:
            await site.sandbox(scope, receive, send)
        else:
            await site(scope, receive, send)

    return app
