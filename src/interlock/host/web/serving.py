"""Serves the web face on two loopback ports: one for the page, one, another origin, for what apps of servers show."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from interlock import listening_socket

from .app import WebFace

if TYPE_CHECKING:
    from ..app import Host

LOOPBACK = "127.0.0.1"
MISSING = (
    "The web face needs starlette and uvicorn. Install them with: pip install 'interlock[host]'"
)


async def serve(
    host: Host,
    *,
    port: int = 0,
    title: str = "Interlock",
    demo: str = "",
    on_ready: Callable[[WebFace], object] | None = None,
) -> None:
    """Serve a host's web face until the task is cancelled or the process gets SIGINT or SIGTERM; then end the streams and close.

    `port` is the page's, 0 for any that is free. Loopback only. `on_ready` gets the face once it listens. Raises OSError where the port
    cannot be had, ImportError where the extra `host` is not installed.
    """
    try:
        import uvicorn  # optional extra `host`
    except ImportError as bad:
        raise ImportError(MISSING) from bad
    pages = listening_socket(LOOPBACK, port)
    try:
        apps = listening_socket(LOOPBACK, 0)
    except OSError:
        pages.close()
        raise
    origin, apart = (f"http://{LOOPBACK}:{sock.getsockname()[1]}" for sock in (pages, apps))
    face = WebFace(host, origin=origin, apps_origin=apart, title=title, demo=demo)
    config = uvicorn.Config(
        _both(face, apps.getsockname()[1]), log_config=None, access_log=False, server_header=False, lifespan="off",
        ws="none", proxy_headers=False, timeout_graceful_shutdown=2,
    )  # fmt: skip
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    loop = asyncio.get_running_loop()
    handled = []
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(
            NotImplementedError, RuntimeError, ValueError
        ):  # another platform, or not the main thread
            loop.add_signal_handler(number, _end, server)
            handled.append(number)
    try:
        await server.startup(sockets=[pages, apps])
        if on_ready is not None:
            on_ready(face)
        await server.main_loop()
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
        face.close()
        if server.started:
            await server.shutdown(sockets=[pages, apps])
        for sock in (pages, apps):
            sock.close()


def _end(server: Any) -> None:
    server.should_exit = True


def _both(face: WebFace, apps_port: int) -> Any:
    """One ASGI app for both ports: what apps show has an origin of its own, where nothing of the page can be reached."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("server", ("", 0))[1] == apps_port:
            await face.apart(scope, receive, send)
        else:
            await face(scope, receive, send)

    return app
