"""Idle workers: keeps processes and connections for the next call, and closes them after a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class IdlePool(Generic[T]):
    """Idle resources. The one that was used last is reused first, so that the others can expire."""

    def __init__(self, seconds: float, end: Callable[[T], Awaitable[None]]) -> None:
        """`end` closes a resource that was idle for this many seconds."""
        self._seconds = seconds
        self._end = end
        self._kept: list[tuple[float, T]] = []  # longest idle first
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def release(self, thing: T) -> None:
        """Keep a resource for the next call."""
        loop = asyncio.get_running_loop()
        self._kept.append((loop.time() + self._seconds, thing))
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._tidy)

    def acquire(self) -> T | None:
        """An idle resource, or None."""
        return self._kept.pop()[1] if self._kept else None

    def _tidy(self) -> None:
        loop = asyncio.get_running_loop()
        while self._kept and self._kept[0][0] <= loop.time():
            ending = asyncio.ensure_future(self._ended(self._kept.pop(0)[1]))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
        self._timer = loop.call_at(self._kept[0][0], self._tidy) if self._kept else None

    async def _ended(self, thing: T) -> None:
        await self._end(thing)

    async def close(self) -> None:
        """Close all resources, including those that are being closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        kept = self._kept
        self._kept = []
        await asyncio.gather(*(self._end(thing) for _, thing in kept), *self._ending)
