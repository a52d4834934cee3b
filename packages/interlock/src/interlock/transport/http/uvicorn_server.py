"""The web server beneath an endpoint: uvicorn on httptools (and uvloop where present), with limits
that uvicorn itself lacks.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...logs import limited
from .app import HttpApp

if TYPE_CHECKING:
    import uvicorn

log = limited("interlock.server")

_BACKLOG = 2048
_LINGER = 0.1  # seconds at the end in which requests on open connections are still served
# seconds, at most, in which the first request on such a connection is waited for
_FIRST_REQUEST = 1.0
_LOOK = 0.01  # seconds between two looks whether it has come


MISSING = "HTTP needs uvicorn and httptools: pip install 'interlock[http]'"


def lacking() -> str:
    """The line that says what to install; empty where nothing is missing."""
    try:
        # optional extra `http`: only whether it is there is asked here
        import httptools  # noqa: F401 - optional extra `http`
        import uvicorn  # noqa: F401 - optional extra `http`
    except ImportError:
        return MISSING
    return ""


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises OSError with words that name the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # asyncio turns Nagle's delay off only where TCP is said
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError as bad:
        made.close()
        raise OSError(bad.errno, f"cannot listen on {host}:{port}: {bad.strerror}") from None
    made.setblocking(False)
    return made


async def serve_http(
    app: HttpApp,
    sock: socket.socket,
    *,
    grace: float,
    proxies: Sequence[str] = (),
    on_ready: Callable[[Any], None] | None = None,
    on_large: Callable[[], object] = bool,
) -> None:
    """Serve an app at a listening socket until cancelled, then shut down gracefully.

    A shutdown accepts no more requests, waits for those in flight, and closes the socket.

    Args:
        app: The app.
        sock: The listening socket. It is closed at the end.
        grace: Seconds that requests in flight have to finish.
        proxies: Addresses or networks of trusted reverse proxies: their `X-Forwarded-For` header
            names the client. The header is ignored from all others.
        on_ready: Called with the address of the socket once the server accepts connections.
        on_large: Called whenever a large piece of data is received or sent.
    """
    try:
        import uvicorn  # optional extra `http`

        from .uvicorn_protocol import LOOKS, limited_protocol  # late: it needs the same extra
    except ImportError as bad:
        sock.close()
        raise ImportError(MISSING) from bad
    try:
        await app.open()
    except BaseException:
        sock.close()
        raise
    limited("uvicorn.error")  # it warns of each request that is no HTTP
    protocol = limited_protocol(app.limits.head, app.limits.head_seconds, on_large)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_keep_alive=60,
        timeout_graceful_shutdown=1,
        backlog=_BACKLOG,
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    address = sock.getsockname()
    watching = asyncio.get_running_loop().create_task(
        _watch(server, app.limits.stall_seconds / LOOKS)
    )
    try:
        await server.startup(sockets=[sock])
        if on_ready is not None:
            on_ready(address)
        with contextlib.suppress(asyncio.CancelledError):
            await server.main_loop()
        waiting = _accept_waiting(sock)
        for listener in server.servers:  # take no more
            listener.close()
        make = partial(
            protocol,
            config=config,
            server_state=server.server_state,
            app_state=server.lifespan.state,
        )
        await _serve_waiting(waiting, make)
        await asyncio.sleep(min(_LINGER, grace))
        await _first_requests(server, min(_FIRST_REQUEST, grace))
        await app.drain(grace)
        await server.shutdown(sockets=[sock])
    except asyncio.CancelledError:
        await _break_off(server)
        raise
    finally:
        watching.cancel()
        await app.aclose()
        sock.close()


async def _break_off(server: uvicorn.Server) -> None:
    """End at once: close every connection and cancel what runs for it."""
    for listener in getattr(server, "servers", ()):
        listener.close()
    await asyncio.sleep(0)  # connections that were let in just now are known then
    for task in list(server.server_state.tasks):
        task.cancel()
    for connection in list(server.server_state.connections):
        connection.transport.close()
    await asyncio.sleep(0)  # transports close in the next turn of the loop


async def _serve_waiting(waiting: list[socket.socket], make: Callable[[], Any]) -> None:
    """Serve connections that were just accepted; those that cannot be served any more are
    closed.
    """
    loop = asyncio.get_running_loop()
    try:
        while waiting:
            await loop.connect_accepted_socket(make, waiting[0])
            del waiting[0]
    finally:
        for each in waiting:
            each.close()


def _accept_waiting(sock: socket.socket) -> list[socket.socket]:
    """Accept the connections that wait: closing the socket would break them, and lose their
    requests.
    """
    found = []
    with contextlib.suppress(OSError):  # no more connections wait, or no more can be accepted
        for _ in range(_BACKLOG):
            found.append(sock.accept()[0])
            found[-1].setblocking(False)
    return found


async def _first_requests(server: uvicorn.Server, seconds: float) -> None:
    """Wait until each connection has had a request, for so long at most.

    A client that has just connected is about to send a request. It would take a connection that is
    closed without an answer for a failure; a client whose connection was used before connects anew.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    connections = server.server_state.connections
    # uvicorn does not report a first request, so that it is looked for.
    while loop.time() < end and any(map(_is_new, connections)):  # noqa: ASYNC110
        await asyncio.sleep(_LOOK)


def _is_new(connection: Any) -> bool:
    """Whether a connection, of our own class, has had no request yet."""
    return connection.cycle is None


async def _watch(server: uvicorn.Server, pause: float) -> None:
    """Check every connection for a stalled client from time to time."""
    while True:
        await asyncio.sleep(pause)
        for connection in list(server.server_state.connections):
            connection.look()  # type: ignore[union-attr]  # they are all of our own class
