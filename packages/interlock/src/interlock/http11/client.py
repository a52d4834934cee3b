"""The HTTP/1.1 client and its connection pool: requests over kept connections, directly or
through proxies. It implements `Fetch`.
"""

from __future__ import annotations

import asyncio
import math
import os
import ssl
from collections import deque
from pathlib import Path

from .. import types as t
from ..version import VERSION
from .connect import Lookup, connection_error, dial, tls
from .connection import HttpConnection, IncomingResponse, StaleConnection
from .fetch import ConnectionLost, Request
from .headers import Origin, Target, head, target
from .proxies import Proxies

_MOST_URLS = 256  # the limit of parsed URLs that are cached
_HARMLESS = frozenset(
    {"GET", "HEAD", "OPTIONS", "DELETE"}
)  # idempotent methods, which may be sent twice (RFC 9110, 9.2.2)
_SWEEPS = 4  # sweeps during the time that an idle connection is kept


class HttpFetch:
    """Sends requests over HTTP/1.1, with TLS for https, from a connection pool.

    It belongs to the event loop that uses it first. Once that loop is closed, another one may use
    it.

    Args:
        ca: The certificate authorities to trust: a file or a folder of certificates, or an
            `ssl.SSLContext`. None uses the system's (SSL_CERT_FILE and SSL_CERT_DIR replace them).
        verify: Whether certificates are verified. False trusts every server; use it only in tests.
        proxies: The proxies to use; None for those of the environment.
        connect_seconds: Bounds name lookup, connecting, the proxy's handshake and TLS together.
        head_seconds: Bounds the wait for the head of the response after that; None for no bound.
        keep_seconds: How long an idle connection is kept.
        most_connections: Connections for each destination. A further request waits until one is
            free, unless it is `aside`. A connection whose body is still being read is not free.
        agent: The value of the User-Agent header.
        lookup: Resolves host names for connections without a proxy; None for the system's resolver.
    """

    def __init__(
        self,
        *,
        ca: str | Path | ssl.SSLContext | None = None,
        verify: bool = True,
        proxies: Proxies | None = None,
        connect_seconds: float = 10.0,
        head_seconds: float | None = None,
        keep_seconds: float = 30.0,
        most_connections: int = 256,
        agent: str = f"interlock/{VERSION}",
        lookup: Lookup | None = None,
    ) -> None:
        if most_connections < 1:
            raise ValueError("at least one connection is needed")
        if not (agent.isascii() and agent.isprintable()):
            raise ValueError(f"{agent!r} cannot be the User-Agent")
        self.connect_seconds = connect_seconds
        self.head_seconds = head_seconds
        self.keep_seconds = keep_seconds
        self.most_connections = most_connections
        self.agent = agent
        self.proxies = Proxies.from_environment(os.environ) if proxies is None else proxies
        self._ca = ca
        self._verify = verify
        self._lookup = lookup
        self._context: ssl.SSLContext | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._forget()

    def _forget(self) -> None:
        self._targets: dict[tuple[str, bool], tuple[Target, _Pool]] = {}
        self._pools: dict[tuple[Origin, bool], _Pool] = {}
        self._live: set[HttpConnection] = set()
        self._dialling: dict[asyncio.Timeout, asyncio.Future[None]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._turn = 0

    async def __call__(self, request: Request) -> IncomingResponse:
        """Send a request; return as soon as the head of the response has arrived.

        Cancelling the call cancels the request and closes its connection.

        Raises:
            ConnectionLost: The connection broke, and the request may have arrived.
            TimedOut: A time limit of this client has passed.
            Unreachable: Nothing was sent; the message says why.
            ValueError: The URL or a header cannot be sent.
        """
        if self._loop is not asyncio.get_running_loop():
            self._settle()
        to, pool = self._targets.get((request.url, request.aside)) or self._locate(
            request.url, request.aside
        )
        first = head(request, to)
        again = request.again or request.method in _HARMLESS
        connection = pool.idle.pop() if pool.idle else await self._acquire_connection(pool)
        if not again and connection.kept and connection.is_spent():
            connection.fail(StaleConnection())
            connection = await self._acquire_connection(pool, fresh=True)
        answer = connection.send(first, request.body, bodiless=request.method == "HEAD")
        try:
            await (answer.arrive() if self.head_seconds is None else self._in_time(answer, to))
        except StaleConnection:
            if not again:  # the server may have acted on it before it closed
                raise ConnectionLost(
                    f"{to.site} closed the connection before it answered."
                ) from None
            connection = await self._acquire_connection(pool, fresh=True)
            answer = connection.send(first, request.body, bodiless=request.method == "HEAD")
            try:
                await (answer.arrive() if self.head_seconds is None else self._in_time(answer, to))
            except StaleConnection:
                raise ConnectionLost(
                    f"{to.site} closed two connections before it answered."
                ) from None
        return answer

    async def _in_time(self, answer: IncomingResponse, to: Target) -> None:
        try:
            async with asyncio.timeout(self.head_seconds):
                await answer.arrive()
        except TimeoutError:
            raise t.TimedOut(
                f"{to.site} did not begin to answer within {self.head_seconds:g} seconds."
            ) from None

    def _locate(self, url: str, aside: bool) -> tuple[Target, _Pool]:
        """Parse a URL once, and find the pool of its origin."""
        if len(self._targets) >= _MOST_URLS:
            self._targets.clear()
            self._pools = {place: pool for place, pool in self._pools.items() if pool.count}
        to = target(url, self.proxies, self.agent)
        pool = self._pools.get((to.place, aside))
        if pool is None:
            pool = self._pools[to.place, aside] = _Pool(
                to.place, math.inf if aside else self.most_connections
            )
        found = self._targets[url, aside] = to, pool
        return found

    def _settle(self) -> None:
        """Bind the client to the running event loop. Raises RuntimeError if it belongs to another
        open loop.
        """
        if self._closed:
            raise _closed()
        if self._loop is not None and not self._loop.is_closed():
            raise RuntimeError(
                "this HttpFetch belongs to another event loop; make one for each loop, or close "
                "that loop first"
            )
        self._loop = asyncio.get_running_loop()
        self._forget()

    async def _acquire_connection(self, pool: _Pool, *, fresh: bool = False) -> HttpConnection:
        """Return a connection: an idle one unless it must be fresh, a new one if the limit permits,
        or the first one that becomes free.
        """
        if pool.idle and not fresh:
            return pool.idle.pop()
        if pool.count < pool.most:
            pool.count += 1
            return await self._open(pool)
        if pool.idle:  # a new one is needed, so an idle one is closed to make room
            pool.idle.pop(0).fail(StaleConnection())
        turn: asyncio.Future[HttpConnection | None] = asyncio.get_running_loop().create_future()
        pool.waiting.append(turn)
        try:
            connection = await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._pass_on(pool, turn.result())
            raise
        if connection is None:
            return await self._open(pool)
        if connection.lost:  # it was lost after it was passed on
            return await self._acquire_connection(pool)
        return connection

    def _pass_on(self, pool: _Pool, connection: HttpConnection | None) -> None:
        """Pass a free connection, or the permission for a new one (None), to the longest waiting
        request. If no request waits, keep the connection.
        """
        while pool.waiting:
            place = pool.waiting.popleft()
            if not place.done():
                place.set_result(connection)
                return
        if connection is None:
            pool.count -= 1
        elif not connection.lost:
            connection.turn = self._turn
            pool.idle.append(connection)
            if self._sweeper is None and self._loop is not None:
                self._sweeper = self._loop.call_later(self.keep_seconds / _SWEEPS, self._sweep)

    async def _open(self, pool: _Pool) -> HttpConnection:
        """Open a new connection, which the pool has counted already."""
        if self._loop is None:  # closed while the request waited
            pool.count -= 1
            raise _closed()

        def free(connection: HttpConnection) -> None:
            self._pass_on(pool, connection)

        def lost(connection: HttpConnection) -> None:
            self._live.discard(connection)
            if connection in pool.idle:
                pool.idle.remove(connection)
            self._pass_on(pool, None)

        connection = HttpConnection(str(pool.place), free, lost)
        try:
            async with asyncio.timeout(self.connect_seconds) as bound:
                self._dialling[bound] = over = asyncio.get_running_loop().create_future()
                try:
                    await dial(
                        connection, pool.place, self._tls(pool.place), self.agent, self._lookup
                    )
                finally:
                    del self._dialling[bound]
                    over.set_result(None)
            if connection.lost:
                raise t.Unreachable(
                    f"{pool.place} closed the connection before a request was sent."
                )
        except BaseException as bad:
            if not connection.lost:  # a lost connection has already passed its permission on
                connection.abandon()
                self._pass_on(pool, None)
            if isinstance(bad, TimeoutError):
                words = (
                    f"There was no connection to {pool.place} within {self.connect_seconds:g} "
                    "seconds."
                )
                raise _closed() if self._closed else t.TimedOut(words) from None
            if isinstance(bad, OSError):
                raise connection_error(bad, pool.place) from bad
            raise
        self._live.add(connection)
        return connection

    def _tls(self, place: Origin) -> ssl.SSLContext | None:
        if self._context is None and (
            place.secure or (place.through is not None and place.through.secure)
        ):
            self._context = tls(self._ca, self._verify)
        return self._context

    def _sweep(self) -> None:
        """Close connections that have been idle for too long."""
        self._sweeper = None
        self._turn += 1
        left = 0
        for pool in self._pools.values():
            for connection in [one for one in pool.idle if one.turn + _SWEEPS < self._turn]:
                pool.idle.remove(connection)
                connection.fail(StaleConnection())
            left += len(pool.idle)
        if left and self._loop is not None:
            self._sweeper = self._loop.call_later(self.keep_seconds / _SWEEPS, self._sweep)

    async def aclose(self) -> None:
        """Close every connection. Running requests raise Unreachable."""
        self._closed = True
        loop = self._loop
        self._loop = None
        if loop is not asyncio.get_running_loop():
            return  # its event loop is closed, and so are all its connections
        if self._sweeper is not None:
            self._sweeper.cancel()
        for pool in self._pools.values():
            while pool.waiting:
                turn = pool.waiting.popleft()
                if not turn.done():
                    turn.set_exception(_closed())
        for bound in self._dialling:
            if not bound.expired():
                bound.reschedule(0)
        closing = list(self._dialling.values())
        for connection in self._live:
            connection.gone = loop.create_future()
            closing.append(connection.gone)
            connection.fail(_closed())
        if closing:
            await asyncio.wait(closing)


def _closed() -> t.Unreachable:
    return t.Unreachable("This HTTP client was closed.")


class _Pool:
    """The connections to one origin.

    Attributes:
        place: The origin.
        most: The limit of connections.
        count: How many connections are open or being opened.
        idle: The free connections; the most recently used one is last.
        waiting: The requests that wait for a connection.
    """

    __slots__ = ("count", "idle", "most", "place", "waiting")

    def __init__(self, place: Origin, most: float) -> None:
        self.place = place
        self.most = most
        self.count = 0
        self.idle: list[HttpConnection] = []
        self.waiting: deque[asyncio.Future[HttpConnection | None]] = deque()
