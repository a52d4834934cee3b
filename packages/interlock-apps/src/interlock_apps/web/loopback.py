"""Serves a page and its frames on two ports of loopback, which are two origins."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import Any, Protocol

from interlock import listening_socket, serve_http

LOOPBACK = "127.0.0.1"
_GRACE = 2.0  # seconds for requests to finish at shutdown


class Site(Protocol):
    """An ASGI app for a page, with one for its frames."""

    sandbox: Any
    """The ASGI app of the other origin."""

    def close(self) -> None:
        """End the page's event streams."""

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
        make: Creates the page from its origin and the origin of its frames.
        port: The port of the page; 0 for any that is free.
        on_ready: Called with the page once it listens.

    Raises:
        OSError: The port is taken.
        ImportError: The extra `http` is not installed.
    """
    pages = listening_socket(LOOPBACK, port)
    try:
        frames = listening_socket(LOOPBACK, 0)
    except OSError:
        pages.close()
        raise
    site = make(_origin(pages), _origin(frames))
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    handled = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not on every platform, and only in the main thread.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, task.cancel)
            handled.append(number)
    try:
        await serve_http(
            _TwoOrigins(site, frames.getsockname()[1]),
            [pages, frames],
            grace=_GRACE,
            on_ready=lambda _: on_ready(site) if on_ready is not None else None,
        )
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
        site.close()


def _origin(sock: Any) -> str:
    return f"http://{LOOPBACK}:{sock.getsockname()[1]}"


class _TwoOrigins:
    """One ASGI app for both ports: frames have their own origin, which cannot reach the page."""

    def __init__(self, site: Site, frames_port: int) -> None:
        self._site = site
        self._frames_port = frames_port

    async def open(self) -> None:
        """Do nothing: the site is ready."""

    async def drain(self, grace: float) -> None:
        """End the page's event streams, which would keep the server running."""
        self._site.close()

    async def aclose(self) -> None:
        """Do nothing more."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request of the page or of a frame."""
        if scope["server"][1] == self._frames_port:
            await self._site.sandbox(scope, receive, send)
        else:
            await self._site(scope, receive, send)
