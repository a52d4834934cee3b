"""The HTTP server: listens, runs an ASGI app on each connection, and ends in good order (graceful
shutdown).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..limits import Limits
from .asgi import App
from .limits import ConnectionLimits

if TYPE_CHECKING:
    from .connection import Connection, ServerState

_BACKLOG = 2048
_LINGER = 0.1  # seconds at the end in which requests on open connections are still served
_FIRST_REQUEST = (
    1.0  # seconds, at most, in which the first request on such a connection is waited for
)
_LOOK = 0.01  # seconds between two looks whether it has come
_LAST_RESPONSES = 1.0  # seconds that responses may take after the app has ended
_TICK = 1.0  # seconds between two checks of the deadlines, at most
_HANDSHAKE = 10.0  # seconds of a TLS handshake
_UNIX = "unix:"
_DESCRIPTOR = "fd:"

MISSING = "HTTP needs httptools: pip install 'interlock[http]'"


@runtime_checkable
class ManagedApp(Protocol):
    """An ASGI app that is opened, drained and closed by its methods, and not by a lifespan."""

    async def open(self) -> None:
        """Start. Called before the first request."""

    async def drain(self, grace: float) -> None:
        """Refuse new requests, and let those that run finish for `grace` seconds."""

    async def aclose(self) -> None:
        """End. May be called twice."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one ASGI connection."""


def lacking() -> str:
    """The line that says what to install; empty where nothing is missing."""
    try:
        # optional extra `http`: only whether it is there is asked here
        import httptools  # noqa: F401 - optional extra `http`
    except ImportError:
        return MISSING
    return ""


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Args:
        host: A name or an address; `unix:PATH` for a Unix socket; `fd:N` for a socket that the
            parent process has opened as descriptor N.
        port: The port; of no use for the last two.

    Raises:
        OSError: It cannot listen there; the words name the address.
    """
    if host.startswith(_DESCRIPTOR):
        made = socket.socket(fileno=int(host[len(_DESCRIPTOR) :]))
        made.setblocking(False)
        return made
    if host.startswith(_UNIX):
        return _unix_socket(host[len(_UNIX) :])
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


def _unix_socket(path: str) -> socket.socket:
    """A Unix socket that listens; one that a process has left behind is replaced."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_left_behind(path):
            os.unlink(path)
        made.bind(path)
        made.listen(_BACKLOG)
    except OSError as bad:
        made.close()
        raise OSError(bad.errno, f"cannot listen on {path}: {bad.strerror}") from None
    made.setblocking(False)
    return made


def _is_left_behind(path: str) -> bool:
    """Whether a path is a Unix socket at which nobody listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        try:
            asking.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


async def serve_http(
    app: App,
    sock: socket.socket | Sequence[socket.socket],
    *,
    grace: float,
    proxies: Sequence[str] = (),
    on_ready: Callable[[Any], object] | None = None,
    on_large: Callable[[], object] = bool,
    limits: ConnectionLimits | None = None,
    tls: ssl.SSLContext | None = None,
) -> None:
    """Serve until cancelled; then take no more, let what runs finish, and close.

    Args:
        app: An ASGI app; a `ManagedApp` is opened and closed by its methods, any other one by its
            lifespan, if it has one.
        sock: One listening socket, or several; they are closed at the end.
        grace: Seconds that requests have to finish at the end.
        proxies: Addresses or networks whose `X-Forwarded-For` is believed ("unix" for whoever
            connects through a Unix socket); nobody's is otherwise.
        on_ready: Called with the address of the first socket once the server can be reached.
        on_large: Called whenever much comes or goes in one piece.
        limits: The limits; those of an endpoint come from its app by default.
        tls: Serve HTTPS with this context.

    Raises:
        ImportError: httptools is missing.
        ValueError: A proxy is neither an address nor a network.
    """
    socks = [sock] if isinstance(sock, socket.socket) else list(sock)
    try:
        await _serve(app, socks, grace, proxies, on_ready, on_large, limits, tls)
    finally:
        for each in socks:
            each.close()


async def _serve(
    app: App,
    socks: list[socket.socket],
    grace: float,
    proxies: Sequence[str],
    on_ready: Callable[[Any], object] | None,
    on_large: Callable[[], object],
    limits: ConnectionLimits | None,
    tls: ssl.SSLContext | None,
) -> None:
    try:
        # late: they need the extra `http`
        from .connection import LOOKS, ServerState
        from .connection_table import ConnectionTable
        from .forwarded import TrustedProxies
        from .lifespan import LifespanApp
    except ImportError as bad:
        raise ImportError(MISSING) from bad
    known = limits or limits_of(getattr(app, "limits", None))
    managed = app if isinstance(app, ManagedApp) else LifespanApp(app)
    await managed.open()
    loop = asyncio.get_running_loop()
    state = ServerState(
        app,
        known,
        loop,
        TrustedProxies(proxies),
        ConnectionTable(known),
        on_large,
        getattr(managed, "state", {}),
        now=loop.time(),
    )
    watching = loop.create_task(_watch(state, known.stall_seconds / LOOKS))
    listeners: list[asyncio.Server] = []
    try:
        for each in socks:
            listeners.append(await _listen(state, each, tls))
        address = socks[0].getsockname()
        if on_ready is not None:
            on_ready(address)
        with contextlib.suppress(asyncio.CancelledError):
            await loop.create_future()
        waiting = [one for each in socks for one in _accept_waiting(each)]
        for listener in listeners:  # take no more
            listener.close()
        await _serve_waiting(waiting, state, tls)
        await asyncio.sleep(min(_LINGER, grace))
        await _first_requests(state, min(_FIRST_REQUEST, grace))
        await managed.drain(grace)
        await _shut_down(state)
    except asyncio.CancelledError:
        await _break_off(state, listeners)
        raise
    finally:
        for listener in listeners:
            listener.close()
        watching.cancel()
        await managed.aclose()


def limits_of(endpoint: Limits | None) -> ConnectionLimits:
    """The limits of the server beneath an endpoint, which bounds its bodies itself, or beneath any
    other app.
    """
    if not isinstance(endpoint, Limits):
        usual = Limits()
        return ConnectionLimits(body=usual.body, body_seconds=usual.body_seconds)
    return ConnectionLimits(
        head=endpoint.head,
        head_seconds=endpoint.head_seconds,
        stall_seconds=endpoint.stall_seconds,
        connections=endpoint.connections,
        connections_per_address=endpoint.connections_per_address,
    )


async def _listen(
    state: ServerState, sock: socket.socket, tls: ssl.SSLContext | None
) -> asyncio.Server:
    """Accept connections from a socket."""
    options: dict[str, Any] = {"backlog": _BACKLOG, "ssl": tls}
    if tls is not None:
        options["ssl_handshake_timeout"] = _HANDSHAKE
    make = _maker(state)
    if hasattr(socket, "AF_UNIX") and sock.family == socket.AF_UNIX:
        return await state.loop.create_unix_server(make, sock=sock, **options)
    return await state.loop.create_server(make, sock=sock, **options)


def _maker(state: ServerState) -> Callable[[], Connection]:
    """What makes the protocol of a connection."""
    from .connection import Connection  # late: it needs the extra `http`

    return lambda: Connection(state)


async def _shut_down(state: ServerState) -> None:
    """Close the connections: each after its response, and all of them after a second."""
    state.is_draining = True
    for connection in state.table.all():
        connection.shut_down()
    end = state.loop.time() + _LAST_RESPONSES
    # Connections close by themselves; nobody tells when the last one has gone.
    while len(state.table) and state.loop.time() < end:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK)
    for task in list(state.tasks):
        task.cancel()
    await asyncio.sleep(0)
    for connection in state.table.all():
        connection.abort()
    await asyncio.sleep(0)  # transports close in the next turn of the loop


async def _break_off(state: ServerState, listeners: Sequence[asyncio.Server]) -> None:
    """End at once: close every connection and cancel what runs for it."""
    for listener in listeners:
        listener.close()
    await asyncio.sleep(0)  # connections that were let in just now are known then
    for task in list(state.tasks):
        task.cancel()
    for connection in state.table.all():
        connection.close_idle()
    await asyncio.sleep(0)  # transports close in the next turn of the loop


async def _serve_waiting(
    waiting: list[socket.socket], state: ServerState, tls: ssl.SSLContext | None
) -> None:
    """Serve connections that were just accepted; those that cannot be served any more are
    closed.
    """
    make = _maker(state)
    try:
        while waiting:
            await state.loop.connect_accepted_socket(make, waiting[0], ssl=tls)
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


async def _first_requests(state: ServerState, seconds: float) -> None:
    """Wait until each connection has had a request, for so long at most.

    A client that has just connected is about to send a request. It would take a connection that is
    closed without an answer for a failure; a client whose connection was used before connects anew.
    """
    end = state.loop.time() + seconds
    # A connection does not report its first request, so that it is looked for.
    while state.loop.time() < end and not all(  # noqa: ASYNC110
        each.has_asked for each in state.table.all()
    ):
        await asyncio.sleep(_LOOK)


async def _watch(state: ServerState, pause: float) -> None:
    """Check every connection for what is too slow, and for a stalled client, from time to time."""
    limits = state.limits
    tick = min(_TICK, pause, limits.head_seconds / 4, limits.idle_seconds / 4)
    next_look = state.loop.time() + pause
    while True:
        await asyncio.sleep(tick)
        now = state.now = state.loop.time()
        connections = state.table.all()
        for connection in connections:
            connection.check_deadline(now)
        if now >= next_look:
            next_look = now + pause
            for connection in connections:
                connection.check_stalled()
