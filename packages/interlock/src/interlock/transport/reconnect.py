"""Reconnects: the next request reopens a broken connection and restores the state that the server
had been sent.

For connections with state: the pipes of a child process, a socket, the event stream of HTTP with
SSE.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec.structs import replace

from .. import types as t
from ..exchange import AnyResult, Exchange
from ..logs import limited
from ..protocol.opening import Opened, UnsupportedRevision
from .conversation import Hello
from .duplex import Duplex
from .http.client.event_stream import Sleep, backoff
from .http.client.retries import MOST_TRIES, RetryRules

log = limited("interlock.client")

MOST_RESTARTS = 3
RESTARTS_WITHIN = 60.0
"""The interval in seconds for counting restarts of a child process. The count is limited, because a
child that always dies at once would be started again with every call.
"""


class Reconnectable(Protocol):
    """A connection that can be opened again."""

    @property
    def is_broken(self) -> bool:
        """Whether no more responses can arrive, although this side has not closed the
        connection.
        """
        ...

    async def connect(self, hello: Hello) -> Opened:
        """Open a new connection in place of the broken one.

        Raises Unreachable, ProtocolError or McpError.
        """
        ...

    async def exchange(self, exchange: Exchange) -> AnyResult:
        """Send one exchange. Raises Unreachable if the connection breaks."""
        ...


class Recovery:
    """Sends exchanges over a connection, and reopens the connection after it has broken.

    Requests in flight fail with Unreachable when the connection breaks, and are sent again only if
    that is safe (`RetryRules`). The next request reopens the connection.

    Args:
        connection: The connection.
        repeats: The requests that may be sent again.
        most_restarts: The maximum number of reopenings within `RESTARTS_WITHIN` seconds; None for
            no limit, 0 for none.
        sleep: Waits for a number of seconds.
    """

    def __init__(
        self,
        connection: Reconnectable,
        repeats: RetryRules,
        *,
        most_restarts: int | None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._connection = connection
        self._repeats = repeats
        self._most_restarts = most_restarts
        self._sleep = sleep
        self._hello: Hello | None = None
        self._revision = ""
        self._restarts: deque[float] = deque()
        self._reopening: asyncio.Task[None] | None = None
        self._level: Exchange | None = None  # the log level for new connections
        self._subscribed: dict[str, Exchange] = {}

    def opened(self, hello: Hello, opened: Opened) -> None:
        """Record that the connection was opened for the first time."""
        self._hello = hello
        self._revision = opened.revision
        self._level = None
        self._subscribed = {}
        self._restarts.clear()

    async def carry(self, x: Exchange) -> AnyResult:
        """Send one exchange. Raises whatever the connection raises."""
        tries = 0
        while True:
            try:
                if self._connection.is_broken and self._most_restarts != 0:
                    await self._reopened()
                result = await self._connection.exchange(x)
            except t.TimedOut:
                raise
            except t.Unreachable:
                tries += 1
                again = self._most_restarts != 0 and self._connection.is_broken
                if not again or tries >= MOST_TRIES or not self._repeats.may(x):
                    raise
                await self._sleep(backoff(tries))
            else:
                self._learn(x, result)
                return result

    async def aclose(self) -> None:
        """Stop reconnecting."""
        task = self._reopening
        self._reopening = None
        self._hello = None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _reopened(self) -> None:
        """Reopen the connection. Concurrent callers share one attempt."""
        if self._reopening is None:
            self._reopening = asyncio.get_running_loop().create_task(self._reopen())
            self._reopening.add_done_callback(self._done)
        reopening = self._reopening
        await asyncio.wait({reopening})
        if reopening.cancelled():
            raise t.Unreachable("The client was closed.")
        reopening.result()

    def _done(self, task: asyncio.Task[None]) -> None:
        if self._reopening is task:
            self._reopening = None
        if not task.cancelled():
            task.exception()  # mark as retrieved: possibly no request waits for it

    async def _reopen(self) -> None:
        hello = self._hello
        if hello is None:
            raise t.Unreachable("The client was closed.")
        self._count()
        log.info("the connection to the server broke; it is opened again")
        only = (self._revision,)
        try:
            await self._connection.connect(replace(hello, revisions=only, known=self._revision))
        except (UnsupportedRevision, t.McpError) as bad:
            raise t.Unreachable(
                f"The server has gone, and does not speak {self._revision} any more ({bad}); open "
                "the client anew."
            ) from bad
        for restored in [*([self._level] if self._level else []), *self._subscribed.values()]:
            with contextlib.suppress(t.McpError):  # the server may no longer have the resource
                await self._connection.exchange(restored)

    def _count(self) -> None:
        """Raise Unreachable if the connection was reopened too often."""
        if self._most_restarts is None:
            return
        now = asyncio.get_running_loop().time()
        while self._restarts and now - self._restarts[0] >= RESTARTS_WITHIN:
            self._restarts.popleft()
        if len(self._restarts) >= self._most_restarts:
            left = RESTARTS_WITHIN - (now - self._restarts[0])
            raise t.Unreachable(
                f"The server has ended {len(self._restarts) + 1} times within {RESTARTS_WITHIN:g} "
                "seconds. "
                f"It is not started again before {max(1, round(left))} s have passed."
            )
        self._restarts.append(now)

    def _learn(self, x: Exchange, result: AnyResult) -> None:
        """Record what a response means for later requests, and the state that the server was
        sent.
        """
        self._repeats.learn(result)
        if x.method == "logging/setLevel":
            self._level = x
        elif x.method == "resources/subscribe":
            self._subscribed[x.params.uri] = x
        elif x.method == "resources/unsubscribe":
            self._subscribed.pop(x.params.uri, None)


class ReconnectingDuplex:
    """A connection over one channel at a time. After a break, the next exchange gets a new channel.

    For transports whose only resource is a channel. Each transport provides `dial`.

    Args:
        dial: Connects, and returns the new Duplex. Raises Unreachable.
        repeats: The requests that may be sent again.
        reconnect: Whether to reconnect.
        sleep: Waits for a number of seconds.
    """

    def __init__(
        self,
        dial: Callable[[], Awaitable[Duplex]],
        repeats: RetryRules,
        *,
        reconnect: bool = True,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._dial = dial
        self._duplex: Duplex | None = None
        self._is_open = False
        most_restarts = None if reconnect else 0
        self._recovery = Recovery(self, repeats, most_restarts=most_restarts, sleep=sleep)

    async def open(self, hello: Hello) -> Opened:
        """Connect for the first time and negotiate a revision. Raises whatever `dial` raises."""
        opened = await self.connect(hello)
        self._recovery.opened(hello, opened)
        return opened

    async def __call__(self, exchange: Exchange) -> AnyResult:
        """Send one exchange and return its result."""
        return await self._recovery.carry(exchange)

    @property
    def is_broken(self) -> bool:
        """Whether no more responses can arrive, although this side has not closed the
        connection.
        """
        return self._is_open and (self._duplex is None or self._duplex.is_broken)

    async def connect(self, hello: Hello) -> Opened:
        """Connect again and negotiate a revision."""
        await self._disconnect()
        self._is_open = True
        self._duplex = duplex = await self._dial()
        try:
            return await duplex.open(hello)
        except BaseException:
            await self._disconnect()
            raise

    async def exchange(self, exchange: Exchange) -> AnyResult:
        """Send one exchange over the current connection."""
        if self._duplex is None:
            raise t.Unreachable("The client is closed, or was not opened.")
        return await self._duplex(exchange)

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification that belongs to no request."""
        if self._duplex is not None:
            self._duplex.send_notification(method, params)

    async def aclose(self) -> None:
        """Close the connection."""
        self._is_open = False
        await self._recovery.aclose()
        await self._disconnect()

    async def _disconnect(self) -> None:
        duplex = self._duplex
        self._duplex = None
        if duplex is not None:
            await duplex.aclose()
