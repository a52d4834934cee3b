"""Quotas of tasks: the memory budget for their records, and the rate limit for polls."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import Counter
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from ..quotas import Quota, QuotaUsage, busy_error
from ..store import bounds
from ..store.interface import RateStore
from ..store.memory.rates import MemoryRates
from .machine import TaskRecord

_LONGEST_DELAY = 5.0  # seconds; proxies and clients give up on responses that take long
_TOLERANCE = 0.1  # the part of the interval by which a poll may come early without being counted


class _HeldTask(Struct):
    """The record of a task as it is counted."""

    holder: str
    size: int


class TaskMemory:
    """Counts the records of tasks in the memory of this process: all tasks of a store in memory,
    and the running ones of any other store.

    When the budget is full, tasks that have ended are removed from a store in memory, the oldest
    ones of the largest holder first.

    Args:
        memory: The memory budget of the server, in bytes.
        most: The maximum number of tasks of one holder, which the store checks.
        remove: Removes the record of a task, soon. None if the store is not in memory.
    """

    def __init__(
        self, memory: Quota, most: int, remove: Callable[[str], object] | None = None
    ) -> None:
        self._memory = memory
        self._most = most
        self._remove = remove
        self._held: dict[str, _HeldTask] = {}
        self._ended: dict[str, dict[str, None]] = {}  # keys by holder, the oldest end first
        self._expiries: list[tuple[float, str]] = []
        self._counts: Counter[str] = Counter()
        self._refused = 0
        self._evicted = 0
        memory.on_pressure(self._evict)

    def usage(self) -> QuotaUsage:
        """Return the counters. `limit` is the maximum for one holder, over all workers."""
        return QuotaUsage(
            used=len(self._held),
            limit=self._most,
            holders=len(self._counts),
            largest=max(self._counts.values(), default=0),
            refused=self._refused,
            evicted=self._evicted,
        )

    def admit(self, key: str, task: TaskRecord, size: int) -> None:
        """Count a new task. Raises McpError if its holder has no memory left."""
        self._sweep(task.created)
        if not self._memory.acquire(task.holder, size):
            raise busy_error("tasks in memory")
        self._add(key, task, size)

    def take(self, key: str, task: TaskRecord, size: int) -> None:
        """Count a task that exists already."""
        if key not in self._held:
            self._memory.take(task.holder, size)
            self._add(key, task, size)

    def resize(self, key: str, task: TaskRecord, size: int) -> None:
        """Count the new size of a record, in bytes."""
        held = self._held.get(key)
        if held is None:
            return
        if size > held.size:
            self._memory.take(held.holder, size - held.size)
        elif size < held.size:
            self._memory.release(held.holder, held.size - size)
        held.size = size
        if task.is_terminal and self._remove is not None:
            self._ended.setdefault(held.holder, {})[key] = None

    def drop(self, key: str) -> None:
        """Stop counting a task."""
        held = self._held.pop(key, None)
        if held is None:
            return
        self._memory.release(held.holder, held.size)
        self._counts[held.holder] -= 1
        if not self._counts[held.holder]:
            del self._counts[held.holder]
        ended = self._ended.get(held.holder)
        if ended is not None:
            ended.pop(key, None)
            if not ended:
                del self._ended[held.holder]

    def ended_run(self, key: str) -> None:
        """Stop counting a task that does not run here any more, unless the store keeps it here."""
        if self._remove is None:
            self.drop(key)

    def refused(self) -> None:
        """Count a holder that was refused, because all its tasks are running."""
        self._refused += 1

    def evicted(self) -> None:
        """Count a task that was removed to make room."""
        self._evicted += 1

    def close(self) -> None:
        """Stop counting everything."""
        for key in list(self._held):
            self.drop(key)
        self._remove = None
        self._expiries.clear()

    def _add(self, key: str, task: TaskRecord, size: int) -> None:
        self._held[key] = _HeldTask(task.holder, size)
        self._counts[task.holder] += 1
        if self._remove is not None and task.until is not None:
            heapq.heappush(self._expiries, (task.until, key))

    def _sweep(self, now: float) -> None:
        """Remove tasks that expired so long ago that their records are not kept any more."""
        while self._expiries and self._expiries[0][0] < now - bounds.CLOCK_TOLERANCE:
            _, key = heapq.heappop(self._expiries)
            if key in self._held and self._remove is not None:
                self.drop(key)
                self._remove(key)

    def _evict(self, holder: str) -> bool:
        """Remove the oldest task of a holder that has ended."""
        ended = self._ended.get(holder)
        if not ended or self._remove is None:
            return False
        key = next(iter(ended))
        self.drop(key)
        self._remove(key)
        self._evicted += 1
        return True


class PollLimit:
    """The rate limit for polls: one that comes too early, and would return the same as the last
    one, waits for the rest of the interval or until the task changes.

    Where several workers run, they count polls together, in the token buckets of their store.

    Args:
        interval: The time between two polls of one task, in seconds.
        most: The maximum number of polls that wait in this process, and of those that one holder
            sends within five seconds to all workers. The others are refused.
    """

    def __init__(self, interval: float, most: int) -> None:
        self._interval = interval
        self._most = most
        self._waiting = Quota(most)
        self._own = MemoryRates()
        self._refused = 0

    def usage(self) -> QuotaUsage:
        """Return the counters of the polls that wait."""
        usage = self._waiting.usage()
        return replace(usage, refused=usage.refused + self._refused)

    async def acquire(self, shared: RateStore | None, key: str, version: int, now: float) -> float:
        """Ask whether a poll may be answered now.

        Args:
            shared: The token buckets of all workers; None if this worker is the only one.
            key: The key of the task.
            version: The version of its record, because a change is answered at once.
            now: The time, in seconds of the wall clock.

        Returns:
            0.0, or the seconds for which the poll has to wait.
        """
        rates = self._own if shared is None else shared
        bucket = f"poll:{key}:{version}"
        wait = await rates.acquire(bucket, rate=1.0 / self._interval, burst=1.0, now=now)
        return min(wait, _LONGEST_DELAY)

    async def wait(
        self,
        shared: RateStore | None,
        holder: str,
        changed: asyncio.Event,
        seconds: float,
        now: float,
    ) -> None:
        """Wait until a task changes, at most so many seconds.

        Raises:
            McpError: Too many polls wait, or too many of this holder.
        """
        if shared is not None and seconds > self._interval * _TOLERANCE:
            later = await shared.acquire(
                f"polls:{holder}", rate=self._most / _LONGEST_DELAY, burst=self._most, now=now
            )
            if later:
                self._refused += 1
                raise busy_error("polls", int(later) + 1)
        if not self._waiting.acquire(holder):
            raise busy_error("polls", int(seconds) + 1)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await changed.wait()
        finally:
            self._waiting.release(holder)
