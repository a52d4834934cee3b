"""Lines over stream sockets, Unix and TCP: an example of a custom transport, for servers and for
clients.

Hazard: there is no authentication. A Unix socket is protected by its file's permissions; use a TCP
socket on loopback only. Messages are framed as in stdio (2026-07-28, "Custom Transports").
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from .. import types as t
from ..exchange import AnyResult, Exchange
from ..logs import limited
from ..protocol.opening import Opened
from ..wire.lines import DEFAULT_LIMIT
from .channel import Tap
from .conversation import Hello
from .duplex import Duplex
from .http.client.retries import RetryRules
from .pipes import PipeChannel
from .reconnect import ReconnectingDuplex

log = limited("interlock.server")
_BREATH = 0.1  # seconds

Address = str | Path | tuple[str, int]
"""The address of a socket: the path of a Unix socket, or host and port."""


async def connect(address: Address, *, limit: int = DEFAULT_LIMIT) -> PipeChannel:
    """Return a channel to a listening peer. Raises Unreachable."""
    loop = asyncio.get_running_loop()
    try:
        if not isinstance(address, tuple):
            return _channel(await _reach(socket.AF_UNIX, os.fspath(address)), limit)
        found = await loop.getaddrinfo(*address, type=socket.SOCK_STREAM)
        # A name may have several addresses, as localhost has ::1 and 127.0.0.1. The server may
        # listen on any of them.
        for family, _, _, _, target in found[:-1]:
            with contextlib.suppress(OSError):
                return _channel(await _reach(family, target), limit)
        family, _, _, _, target = found[-1]
        return _channel(await _reach(family, target), limit)
    except OSError as bad:
        raise t.Unreachable(f"Nobody answers at {_words(address)}: {bad.strerror or bad}") from bad


async def _reach(family: int, target: Any) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, target)
    except BaseException:
        sock.close()
        raise
    return sock


class Socket:
    """A client's transport to a server on a Unix or TCP address.

    Args:
        address: A path for a Unix socket, or host and port for TCP.
        limit: The maximum size of a message, in bytes.
        tap: Called with every frame, and with "client" or "server" as its sender.
        reconnect: Whether the next call reopens a broken connection. Running calls fail, except for
            read-only and idempotent calls, which are sent again.
    """

    def __init__(
        self,
        address: Address,
        *,
        limit: int = DEFAULT_LIMIT,
        tap: Tap | None = None,
        reconnect: bool = True,
    ) -> None:
        self.address = address
        self._limit = limit
        self.tap = tap
        self._line = ReconnectingDuplex(self._dial, RetryRules(), reconnect=reconnect)

    async def open(self, hello: Hello) -> Opened:
        """Connect and negotiate a revision. Raises Unreachable."""
        return await self._line.open(hello)

    async def __call__(self, exchange: Exchange) -> AnyResult:
        """Send one exchange and return its result."""
        return await self._line(exchange)

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification that belongs to no request."""
        self._line.send_notification(method, params)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._line.aclose()

    async def _dial(self) -> Duplex:
        return Duplex(await connect(self.address, limit=self._limit), tap=self.tap)


async def listen(
    address: Address,
    talk: Callable[[PipeChannel], Awaitable[None]],
    *,
    most_peers: int = 100,
    limit: int = DEFAULT_LIMIT,
    on_ready: Callable[[Address], None] | None = None,
) -> None:
    """Accept peers on an address until cancelled, at most `most_peers` at once. `talk` serves each
    of them.

    The file of a Unix socket is created for its owner only, and removed at the end. `on_ready` is
    called with the address (port 0 selects a free one).
    """
    loop = asyncio.get_running_loop()
    sock = _listening(address)
    peers: set[asyncio.Task[None]] = set()
    room = asyncio.Semaphore(most_peers)

    async def serve_one(peer: socket.socket) -> None:
        try:
            await talk(_channel(peer, limit))
        except Exception:
            log.exception("serving a peer failed")
        finally:
            room.release()

    try:
        if on_ready is not None:
            on_ready(sock.getsockname()[:2] if isinstance(address, tuple) else address)
        while True:
            await room.acquire()
            try:
                peer, _ = await loop.sock_accept(sock)
            except OSError as bad:
                # no file descriptor is free for a moment, or the peer has disconnected: keep
                # accepting others
                log.warning("a peer could not be accepted: %s", bad)
                room.release()
                await asyncio.sleep(_BREATH)
                continue
            task = loop.create_task(serve_one(peer))
            peers.add(task)
            task.add_done_callback(peers.discard)
    finally:
        sock.close()
        for task in list(peers):
            task.cancel()
        await asyncio.gather(*peers, return_exceptions=True)
        if not isinstance(address, tuple):
            with contextlib.suppress(OSError):
                os.unlink(address)


def _listening(address: Address) -> socket.socket:
    if isinstance(address, tuple):
        sock = socket.create_server(address, backlog=128)
    else:
        _clear(os.fspath(address))
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            sock.bind(os.fspath(address))
            sock.listen(128)
        except OSError:
            sock.close()
            raise
        finally:
            os.umask(mask)
    sock.setblocking(False)
    return sock


def _clear(path: str) -> None:
    """Remove the socket file of a server that was killed."""
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(os.stat(path).st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.setblocking(False)  # a server that is too busy to accept is still alive
                try:
                    probe.connect(path)
                except ConnectionRefusedError:
                    os.unlink(path)


def _channel(sock: socket.socket, limit: int) -> PipeChannel:
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setblocking(False)
    fd = sock.detach()
    return PipeChannel(fd, os.dup(fd), limit=limit)


def _words(address: Address) -> str:
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else os.fspath(address)
