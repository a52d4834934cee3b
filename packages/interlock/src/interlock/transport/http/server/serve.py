"""The HTTP server: listens, runs an ASGI app on each connection, and shuts down gracefully."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

from ....quotas import QuotaUsage
from ..limits import Limits
from ..requests import ServerRequest, is_direct
from .cycle import App, RequestCycle
from .limits import ConnectionLimits
from .supervision import Supervision

if TYPE_CHECKING:
    from .connection import Connection, ServerState

_BACKLOG = 2048
_LINGER = 0.1  # seconds at the end in which open connections still get responses
_FIRST_REQUEST = 1.0  # maximum seconds to wait for the first request on such a connection
_LAST_REQUESTS = 5.0  # maximum seconds in which a replaced process answers on idle connections
_LOOK = 0.01  # seconds between two checks whether it has arrived
_LAST_RESPONSES = 1.0  # maximum seconds for responses after the app has ended
_TICK = 1.0  # maximum seconds between two checks of the deadlines
_HANDSHAKE = 10.0  # seconds for a TLS handshake
_UNIX = "unix:"
_DESCRIPTOR = "fd:"

MISSING = "HTTP needs httptools: pip install 'interlock[http]'"


@runtime_checkable
class CountsConnections(Protocol):
    """An ASGI app that reports the connections and the bytes of its server.

    Attributes:
        connections: Returns the number of connections.
        traffic: Returns the numbers of received and of sent bytes.
    """

    connections: Callable[[], QuotaUsage] | None
    traffic: Callable[[], tuple[int, int]] | None


@runtime_checkable
class ManagedApp(Protocol):
    """An ASGI app that is opened, drained and closed by its methods instead of a lifespan."""

    async def open(self) -> None:
        """Start the app. Called before the first request."""

    async def drain(self, grace: float) -> None:
        """Refuse new requests, and let running ones finish for `grace` seconds."""

    async def aclose(self) -> None:
        """Stop the app. May be called twice."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one ASGI connection."""


class DirectApp(Protocol):
    """An ASGI app that also serves requests of this server without ASGI."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one ASGI connection."""

    def serve(self, request: ServerRequest) -> Awaitable[None]:
        """Serve one request."""
        ...

    @property
    def has_principals(self) -> bool:
        """Whether requests may have principals."""
        ...

    def holder_of(self, request: ServerRequest) -> str:
        """Return the holder that a request counts for, as far as it is known before it starts."""
        ...


def serving(app: App | DirectApp) -> Callable[[RequestCycle], Awaitable[None]]:
    """Return a function that serves a request: directly if the app can, otherwise with ASGI."""
    if _is_direct(app):
        return app.serve
    return lambda cycle: app(cycle.scope, cycle.receive, cycle)


def _is_direct(app: App | DirectApp) -> TypeGuard[DirectApp]:
    return is_direct(app, "serve")


def lacking() -> str:
    """Return the line that says what to install; empty if nothing is missing."""
    try:
        # optional extra `http`: only checks that it is installed
        import httptools  # noqa: F401 - optional extra `http`
    except ImportError:
        return MISSING
    return ""


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Args:
        host: A name or an address; `unix:PATH` for a Unix socket; `fd:N` for a socket that the
            parent process has opened as descriptor N.
        port: The TCP port; ignored for the last two.

    Raises:
        OSError: It cannot listen there; the message names the address.
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
    )  # asyncio disables Nagle's algorithm only on sockets that are declared as TCP
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
    """Return a listening Unix socket. Replaces the socket file of a process that has ended."""
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
    """Whether a path is a Unix socket without a listener."""
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
    supervision: Supervision | None = None,
    limits: ConnectionLimits | None = None,
    tls: ssl.SSLContext | None = None,
) -> None:
    """Serve until cancelled. Then stop accepting, let running requests finish, and close.

    Args:
        app: An ASGI app. A `ManagedApp` is opened and closed by its methods, any other app by its
            lifespan, if it has one.
        sock: One listening socket, or several. They are closed at the end.
        grace: The time that requests have to finish at the end, in seconds.
        proxies: Addresses or networks whose `X-Forwarded-For` is trusted ("unix" for clients of a
            Unix socket); none by default.
        on_ready: Called with the address of the first socket once the server accepts connections.
        on_large: Called whenever a large piece is received or sent.
        supervision: The process that supervises this one.
        limits: The limits; by default those of the app, if it is an endpoint.
        tls: The SSL context for HTTPS.

    Raises:
        ImportError: httptools is missing.
        ValueError: A proxy is neither an address nor a network.
    """
    socks = [sock] if isinstance(sock, socket.socket) else list(sock)
    try:
        await _serve(app, socks, grace, proxies, on_ready, on_large, supervision, limits, tls)
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
    supervision: Supervision | None,
    limits: ConnectionLimits | None,
    tls: ssl.SSLContext | None,
) -> None:
    try:
        # late: these need the extra `http`
        from .connection import LOOKS, ServerState, address_of
        from .connection_table import ConnectionTable
        from .forwarded import TrustedProxies
        from .lifespan import LifespanApp
    except ImportError as bad:
        raise ImportError(MISSING) from bad
    known = limits or limits_of(getattr(app, "limits", None))
    managed = app if isinstance(app, ManagedApp) else LifespanApp(app)
    await managed.open()
    loop = asyncio.get_running_loop()
    table: ConnectionTable[Connection] = ConnectionTable(known)
    trusted = TrustedProxies(proxies)
    state = ServerState(
        serving(app),
        known,
        loop,
        trusted,
        table,
        app.holder_of if _is_direct(app) else address_of,
        # A proxy forwards the requests of several clients, each of which is a holder.
        bool(trusted) or (_is_direct(app) and app.has_principals),
        False,
        on_large,
        getattr(managed, "state", {}),
        now=loop.time(),
    )
    if isinstance(app, CountsConnections):
        app.connections = table.usage
        app.traffic = lambda: (state.received, state.sent)
    watching = loop.create_task(_watch(state, known.stall_seconds / LOOKS))
    listeners: list[asyncio.Server] = []
    try:
        for each in socks:
            listeners.append(await _listen(state, each, tls))
        address = socks[0].getsockname()
        if on_ready is not None:
            on_ready(address)
        if supervision is not None:
            supervision.started(lambda: state.requests)
        with contextlib.suppress(asyncio.CancelledError):
            await loop.create_future()
        waiting = [one for each in socks for one in _accept_waiting(each)]
        for listener in listeners:  # stop accepting
            listener.close()
        # Clients of this process can connect anew. Without a successor they get a refusal instead.
        is_replaced = supervision is not None and supervision.is_replaced
        state.is_draining = is_replaced  # each response says that the connection closes
        await _serve_waiting(waiting, state, tls)
        await asyncio.sleep(min(_LINGER, grace))
        await _first_requests(state, min(_FIRST_REQUEST, grace))
        if is_replaced:
            began = loop.time()
            await _last_requests(state, min(_LAST_REQUESTS, grace))
            grace = max(grace - (loop.time() - began), 0.0)
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
    """Return the limits of the server. An endpoint limits its bodies itself; the bodies of any
    other app are limited here.
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
    """Accept connections on a socket."""
    options: dict[str, Any] = {"backlog": _BACKLOG, "ssl": tls}
    if tls is not None:
        options["ssl_handshake_timeout"] = _HANDSHAKE
    make = _maker(state)
    if hasattr(socket, "AF_UNIX") and sock.family == socket.AF_UNIX:
        return await state.loop.create_unix_server(make, sock=sock, **options)
    return await state.loop.create_server(make, sock=sock, **options)


def _maker(state: ServerState) -> Callable[[], Connection]:
    """Return the protocol factory for connections."""
    from .connection import Connection  # late: needs the extra `http`

    return lambda: Connection(state)


async def _shut_down(state: ServerState) -> None:
    """Close the connections, each after its response, and all of them after a second."""
    state.is_draining = True
    for connection in state.table.all():
        connection.shut_down()
    await _all_closed(state, _LAST_RESPONSES)
    for task in list(state.tasks):
        task.cancel()
    await asyncio.sleep(0)
    for connection in state.table.all():
        connection.abort()
    await asyncio.sleep(0)  # transports close in the next turn of the event loop


async def _all_closed(state: ServerState, seconds: float) -> None:
    """Wait until every connection is closed, for at most this many seconds."""
    end = state.loop.time() + seconds
    # Connections close by themselves, and there is no notification when the last one is gone.
    while len(state.table) and state.loop.time() < end:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK)


async def _break_off(state: ServerState, listeners: Sequence[asyncio.Server]) -> None:
    """End at once: close every connection, and cancel its requests."""
    for listener in listeners:
        listener.close()
    await asyncio.sleep(0)  # connections accepted just now are registered after this
    for task in list(state.tasks):
        task.cancel()
    for connection in state.table.all():
        connection.close_idle()
    await asyncio.sleep(0)  # transports close in the next turn of the event loop


async def _serve_waiting(
    waiting: list[socket.socket], state: ServerState, tls: ssl.SSLContext | None
) -> None:
    """Serve connections that were just accepted, and close those that cannot be served any more."""
    make = _maker(state)
    try:
        while waiting:
            await state.loop.connect_accepted_socket(make, waiting[0], ssl=tls)
            del waiting[0]
    finally:
        for each in waiting:
            each.close()


def _accept_waiting(sock: socket.socket) -> list[socket.socket]:
    """Accept the connections in the backlog: closing the socket would reset them, and lose their
    requests.
    """
    found = []
    with contextlib.suppress(OSError):  # the backlog is empty, or accepting fails
        for _ in range(_BACKLOG):
            found.append(sock.accept()[0])
            found[-1].setblocking(False)
    return found


async def _last_requests(state: ServerState, seconds: float) -> None:
    """Answer one more request on each connection, and close it with the response, for at most this
    many seconds. Then close the idle connections.

    A client that sends a request on an idle connection just when it is closed would lose it.
    """
    await _all_closed(state, seconds)
    for _ in range(2):
        await asyncio.sleep(0)  # requests that have arrived are read before
    for connection in state.table.all():
        connection.shut_down()


async def _first_requests(state: ServerState, seconds: float) -> None:
    """Wait until each connection has received a request, for at most this many seconds.

    A client that has just connected is about to send a request, and would treat a connection closed
    without a response as a failure. A client with a reused connection just connects again.
    """
    end = state.loop.time() + seconds
    # A connection does not report its first request, so this polls.
    while state.loop.time() < end and not all(  # noqa: ASYNC110
        each.has_asked for each in state.table.all()
    ):
        await asyncio.sleep(_LOOK)


async def _watch(state: ServerState, pause: float) -> None:
    """Check every connection for timeouts and stalled clients, from time to time."""
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
