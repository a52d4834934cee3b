"""A load generator: calls in an open or a closed loop, and their latency in a histogram.

In the open loop calls start at a fixed rate, whatever the server does, and the latency of a call is
measured from the time at which it should have started: no coordinated omission. In the closed loop
a fixed number of callers each start a call when the one before has ended.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Final

from msgspec import Struct, field

from .. import types as t
from ..observe.meters import TOOL_ERROR, error_type

GROWTH: Final = 1.05
"""The ratio of the bounds of neighbouring buckets: a quantile is at most 5 % too high."""

_PER_FACTOR: Final = 1 / math.log(GROWTH)
_SHORTEST: Final = 1e-7  # seconds; shorter latencies count as this one
_SPUN: Final = 0.0015  # seconds; timers of an event loop are up to a millisecond late
_PAUSE: Final = 0.1  # seconds until a caller tries again after the connection failed
_MOST_IN_FLIGHT: Final = 10_000


class LatencyHistogram:
    """Latencies in buckets whose bounds grow by 5 %.

    Attributes:
        longest: The longest latency, in seconds.
        total: The sum of all latencies, in seconds.
    """

    __slots__ = ("_counts", "longest", "total")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.longest = 0.0
        self.total = 0.0

    def record(self, seconds: float) -> None:
        """Add a latency."""
        bucket = math.ceil(math.log(max(seconds, _SHORTEST)) * _PER_FACTOR)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self.total += seconds
        if seconds > self.longest:
            self.longest = seconds

    @property
    def count(self) -> int:
        """The number of latencies."""
        return sum(self._counts.values())

    @property
    def mean(self) -> float:
        """The mean, in seconds; 0 without any latency."""
        return self.total / self.count if self._counts else 0.0

    def buckets(self) -> list[tuple[float, int]]:
        """Return the upper bound of each bucket, in seconds, and its count, without empty ones."""
        return [(GROWTH**bucket, count) for bucket, count in sorted(self._counts.items())]

    def quantile(self, part: float) -> float:
        """Return an upper bound of a quantile, in seconds, at most 5 % too high.

        Args:
            part: The quantile, from 0 to 1, such as 0.99.

        Returns:
            0 without any latency.
        """
        rank = part * self.count
        seen = 0
        for bound, count in self.buckets():
            seen += count
            if seen >= rank:
                return min(bound, self.longest)
        return 0.0


class LoadFigures(Struct):
    """What a load generator has measured.

    Attributes:
        started: How many calls were started.
        ended: How many have ended, with a result or an error.
        errors: How many of those have failed, by kind: `tool_error`, the code of a JSON-RPC error,
            or the class of an exception.
        latencies: The latencies of the others.
        not_started: Open loop: how many calls were due, and were never started because too many
            were in flight.
        most_in_flight: The largest number of calls that were in flight.
        latest_start: Open loop: how late a call was started at most because the generator itself
            was too slow, in seconds.
        seconds: The duration, until the last call has ended.
    """

    started: int = 0
    ended: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latencies: LatencyHistogram = field(default_factory=LatencyHistogram)
    not_started: int = 0
    most_in_flight: int = 0
    latest_start: float = 0.0
    seconds: float = 0.0

    @property
    def failed(self) -> int:
        """How many calls have failed."""
        return sum(self.errors.values())

    @property
    def per_second(self) -> float:
        """Calls that ended in each second."""
        return self.ended / self.seconds if self.seconds else 0.0


class LoadGenerator:
    """Makes calls for some time. `figures` may be read while it runs.

    Args:
        call: Makes one call.
        seconds: How long calls are started. The calls in flight at the end are awaited.
        rate: Open loop: the calls to start in each second. None: closed loop.
        concurrency: Closed loop: the number of callers.
        most_in_flight: Open loop: above this number of calls in flight, calls are started late,
            and their latency counts from the time at which they were due.
    """

    def __init__(
        self,
        call: Callable[[], Awaitable[t.CallToolResult]],
        *,
        seconds: float,
        rate: float | None = None,
        concurrency: int = 1,
        most_in_flight: int = _MOST_IN_FLIGHT,
    ) -> None:
        self.figures = LoadFigures()
        self._call = call
        self._seconds = seconds
        self._rate = rate
        self._concurrency = concurrency
        self._most_in_flight = most_in_flight
        self._began = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._has_room = asyncio.Event()

    async def run(self) -> None:
        """Make the calls. If it is cancelled, the calls in flight are cancelled too, and do not
        count as ended.
        """
        self._began = perf_counter()
        try:
            if self._rate is None:
                await self._run_closed()
            else:
                await self._run_open(self._rate)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self.figures.seconds = perf_counter() - self._began

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self._began

    # -- the closed loop ---------------------------------------------------------------------------

    async def _run_closed(self) -> None:
        end = self._began + self._seconds
        self._tasks = {asyncio.create_task(self._call_until(end)) for _ in range(self._concurrency)}
        await asyncio.gather(*self._tasks)

    async def _call_until(self, end: float) -> None:
        while (now := perf_counter()) < end:
            if not await self._make_call(now):
                await asyncio.sleep(_PAUSE)  # else a server that is down fails in a busy loop

    # -- the open loop -----------------------------------------------------------------------------

    async def _run_open(self, rate: float) -> None:
        total = math.ceil(rate * self._seconds)
        made = 0
        while made < total:
            intended = self._began + made / rate
            await self._wait_until(intended)
            was_full = len(self._tasks) >= self._most_in_flight
            if was_full and not await self._wait_for_room():
                break
            if not was_full:
                late = perf_counter() - intended
                self.figures.latest_start = max(self.figures.latest_start, late)
            task = asyncio.create_task(self._make_call(intended))
            self._tasks.add(task)
            task.add_done_callback(self._forget)
            made += 1
        self.figures.not_started = total - made
        await asyncio.gather(*self._tasks)

    async def _wait_until(self, moment: float) -> None:
        """Wait more exactly than the timers of the event loop: the rest is spent in its turns."""
        left = moment - perf_counter()
        if left > _SPUN:
            await asyncio.sleep(left - _SPUN)
        while perf_counter() < moment:  # noqa: ASYNC110  # nothing sets an event at a time
            await asyncio.sleep(0)

    async def _wait_for_room(self) -> bool:
        """Wait until a call ends; return False if the time is up before."""
        self._has_room.clear()
        left = self._began + self._seconds - perf_counter()
        try:
            async with asyncio.timeout(max(left, 0)):
                await self._has_room.wait()
        except TimeoutError:
            return False
        return True

    def _forget(self, task: asyncio.Task[bool]) -> None:
        if task.cancelled() or task.exception() is None:
            self._tasks.discard(task)  # else the last `gather` raises the exception
        self._has_room.set()

    # -- one call ----------------------------------------------------------------------------------

    async def _make_call(self, intended: float) -> bool:
        """Make one call, and record it. Returns False if the connection has failed."""
        figures = self.figures
        figures.started += 1
        in_flight = figures.started - figures.ended
        if in_flight > figures.most_in_flight:
            figures.most_in_flight = in_flight
        try:
            result = await self._call()
        except t.InterlockError as bad:
            figures.ended += 1
            figures.errors[error_type(bad)] += 1
            return not isinstance(bad, t.Unreachable)
        figures.ended += 1
        if result.is_error:
            figures.errors[TOOL_ERROR] += 1
        else:
            figures.latencies.record(perf_counter() - intended)
        return True
