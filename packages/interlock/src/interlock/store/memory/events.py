"""Events of streams in memory, bounded in total, per session, per stream, and in age."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable

from ...quotas import QuotaUsage
from .. import bounds
from ..interface import Replay

_SWEEP = 1.0  # seconds between two searches for old streams


class MemoryEvents:
    """An EventLog in memory.

    The sizes are not counted by holder until they reach the limit, because most servers never do.

    Args:
        clock: Returns the time in seconds, for the age of streams.
        limit: The maximum size of all events, in bytes.

    Attributes:
        holder_of: Returns the holder of a session.
    """

    def __init__(self, clock: Callable[[], float], limit: int = bounds.EVENT_BYTES) -> None:
        bounds.check_event_bytes(limit)
        # Ordered by the end of each session's latest stream, so that the oldest is always at the
        # front.
        self._logs: OrderedDict[str, _Log] = OrderedDict()
        self._clock = clock
        self._limit = limit
        self._check_at = limit  # the size above which events are removed
        self._size = 0
        self._evicted = 0
        self._next_sweep = 0.0
        self.holder_of: Callable[[str], str] = str

    def usage(self) -> QuotaUsage:
        """Return the counters. It takes time in proportion to the number of sessions."""
        sizes = self._sizes()
        return QuotaUsage(
            used=self._size,
            limit=self._limit,
            holders=len(sizes),
            largest=max(sizes.values(), default=0),
            refused=0,
            evicted=self._evicted,
        )

    async def measure(self) -> QuotaUsage:
        """Return the counters."""
        return self.usage()

    def append(self, session: str, stream: str, number: int, data: bytes, *, last: bool) -> None:
        """Store an event."""
        now = self._clock()
        if not 0 < self._next_sweep - now <= _SWEEP:  # it is time, or the clock was set back
            self._next_sweep = now + _SWEEP
            self._sweep(now)
        log = self._logs.get(session)
        if log is None:
            log = self._logs[session] = _Log(now)
        before = log.size
        if log.append(stream, number, data, now, last=last):
            self._logs.move_to_end(session)
        self._size += log.size - before
        if self._size > self._check_at:
            self._make_room()

    async def read(self, session: str, stream: str, after: int) -> Replay | None:
        """Return the events after event `after`."""
        log = self._logs.get(session)
        return log.read(stream, after, self._clock()) if log is not None else None

    def forget(self, session: str) -> None:
        """Remove all events of a session."""
        log = self._logs.pop(session, None)
        if log is not None:
            self._size -= log.size

    def _sizes(self) -> Counter[str]:
        """Return the size of the events of each holder."""
        sizes = Counter[str]()
        for session, log in self._logs.items():
            sizes[self.holder_of(session)] += log.size
        return sizes

    def _make_room(self) -> None:
        """Remove the oldest events of the largest holders."""
        sizes = self._sizes()
        logs: dict[str, list[_Log]] = {}
        for session, log in reversed(self._logs.items()):  # the least recent one is the last
            logs.setdefault(self.holder_of(session), []).append(log)
        target = self._limit * bounds.EVENT_TARGET
        while self._size > target and logs:
            holder = max(logs, key=sizes.__getitem__)
            freed = logs[holder].pop().shrink()
            if not logs[holder]:
                del logs[holder]
            sizes[holder] -= freed
            self._size -= freed
            self._evicted += freed > 0
        # If the newest events alone exceed the limit, the next attempt waits for more events.
        self._check_at = max(self._limit, self._size + self._limit // 10)

    def _sweep(self, now: float) -> None:
        """Remove old streams.

        If the latest ended stream of a session is too old, all its ended streams are.
        """
        while self._logs:
            session, log = next(iter(self._logs.items()))
            if log.stirred >= now - bounds.ENDED_AGE:
                return
            before = log.size
            is_kept = log.tidy(now)
            self._size += log.size - before
            if is_kept:
                self._logs.move_to_end(
                    session
                )  # a stream is still running: check again after the same time
            else:
                del self._logs[session]


class _Stream:
    """The stored events of one stream, and the number of the first of them."""

    __slots__ = ("events", "first", "size", "stirred")

    def __init__(self, first: int) -> None:
        self.first = first
        self.events: list[bytes] = []
        self.size = 0
        self.stirred = 0.0


class _Log:
    """The running and the ended streams of one session, the oldest end first.

    Attributes:
        size: The total size of all events, in bytes.
        stirred: When a stream last ended, or the log was last checked.
    """

    __slots__ = ("_ended", "_ended_size", "_running", "size", "stirred")

    def __init__(self, now: float) -> None:
        self._running: dict[str, _Stream] = {}
        self._ended: dict[str, _Stream] = {}
        self._ended_size = 0  # in bytes
        self.size = 0
        self.stirred = now

    def append(self, name: str, number: int, data: bytes, now: float, *, last: bool) -> bool:
        """Store an event. Returns True if the event ends the stream."""
        stream = self._running.get(name)
        if stream is None:
            if name in self._ended:
                return False
            stream = self._running[name] = _Stream(number)
        awaited = stream.first + len(stream.events)
        if number < awaited:
            return False
        if (
            number > awaited
        ):  # events were lost before they arrived, so the earlier ones are useless
            stream.first = number
            stream.events = []
            self.size -= stream.size
            stream.size = 0
        stream.events.append(data)
        size = stream.size
        stream.size += len(data)
        stream.stirred = now
        while len(stream.events) > bounds.RUNNING_EVENTS or (
            stream.size > bounds.RUNNING_BYTES and len(stream.events) > 1
        ):
            stream.size -= len(stream.events.pop(0))
            stream.first += 1
        self.size += stream.size - size
        if last:
            self._end(name, now)
        return last

    def read(self, name: str, after: int, now: float) -> Replay | None:
        """Return the events after an event of a stream."""
        stream = self._running.get(name) or self._ended.get(name)
        ended = name in self._ended
        if stream is None or stream.stirred < now - (
            bounds.ENDED_AGE if ended else bounds.RUNNING_AGE
        ):
            return None
        begin = max(after, -1) + 1 - stream.first
        return (
            Replay(tuple(enumerate(stream.events[begin:], stream.first + begin)), ended)
            if begin >= 0
            else None
        )

    def shrink(self) -> int:
        """Remove the ended streams, and all events of running ones except the newest of each.

        Returns:
            The size of the removed events, in bytes.
        """
        before = self.size
        self.size -= self._ended_size
        self._ended.clear()
        self._ended_size = 0
        for stream in self._running.values():
            older = stream.events[:-1]
            del stream.events[:-1]
            stream.first += len(older)
            removed = sum(map(len, older))
            stream.size -= removed
            self.size -= removed
        return before - self.size

    def tidy(self, now: float) -> bool:
        """Remove old streams. Returns False if no stream is left."""
        self._bound(now)
        for name in [
            name
            for name, stream in self._running.items()
            if stream.stirred < now - bounds.RUNNING_AGE
        ]:
            self.size -= self._running.pop(name).size
        self.stirred = now
        return bool(self._running or self._ended)

    def _end(self, name: str, now: float) -> None:
        stream = self._ended[name] = self._running.pop(name)
        self._ended_size += stream.size
        self.stirred = now
        self._bound(now)

    def _bound(self, now: float) -> None:
        while self._ended:
            name, oldest = next(iter(self._ended.items()))
            many = len(self._ended) > bounds.ENDED_STREAMS or (
                self._ended_size > bounds.ENDED_BYTES and len(self._ended) > 1
            )
            if not many and oldest.stirred >= now - bounds.ENDED_AGE:
                return
            del self._ended[name]
            self._ended_size -= oldest.size
            self.size -= oldest.size
