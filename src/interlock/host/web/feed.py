"""What happens in the host, as one page gets it: the state first, then event by event, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ..events import (
    FeaturesChanged,
    LogEntry,
    RootsChanged,
    RuleRemembered,
    ServerState,
    SessionBegan,
    SessionResumed,
    TurnEnded,
)
from .state import plain

if TYPE_CHECKING:
    from ..app import Host

MOST_WAITING = 20_000  # events for one page
QUIET = 15.0  # seconds, after which a comment shows that the stream lives
SETTLE = 0.1  # seconds in which changes of the state are gathered
# After these the state is not as it was.
STATEFUL = (
    FeaturesChanged,
    ServerState,
    RootsChanged,
    RuleRemembered,
    SessionBegan,
    SessionResumed,
    TurnEnded,
)


class Feed:
    """One page's stream of server-sent events. It ends where the page is too slow, and begins anew with the state when it comes again."""

    def __init__(self, host: Host, state: Callable[[], Any], closing: asyncio.Event) -> None:
        self._listen, self._state, self._closing = host.listen, state, closing
        self._waiting: deque[LogEntry] = deque()
        self._stirred = asyncio.Event()
        self._lost = False

    async def stream(self) -> AsyncIterator[bytes]:
        """The events, as bytes for the page."""
        loop = asyncio.get_running_loop()
        stop = self._listen(self._hear)
        ending = loop.create_task(self._end())
        stale: float | None = loop.time()
        try:
            while not (self._lost or self._closing.is_set()):
                if stale is not None and loop.time() >= stale and not self._waiting:
                    stale = None
                    yield _event({"kind": "state", "state": self._state()})
                elif self._waiting:
                    noted = self._waiting.popleft()
                    yield _event({"kind": "noted", "noted": plain(noted)})
                    if isinstance(noted.event, STATEFUL) and stale is None:
                        stale = loop.time() + SETTLE
                elif (
                    not await self._wait(QUIET if stale is None else stale - loop.time())
                    and stale is None
                ):
                    yield b": still here\n\n"
        finally:
            stop()
            ending.cancel()

    def _hear(self, noted: LogEntry) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._lost = True
        else:
            self._waiting.append(noted)
        self._stirred.set()

    async def _end(self) -> None:
        await self._closing.wait()
        self._stirred.set()

    async def _wait(self, seconds: float) -> bool:
        """Whether something came within the time."""
        self._stirred.clear()
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._stirred.wait()
        except TimeoutError:
            return False
        return True


def _event(value: Any) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"
