"""Events of streams in memory, bounded per session, per stream, and in age."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from .. import bounds
from ..interface import Replay


class MemoryEvents:
    """An EventLog in memory. `clock` returns the time in seconds, for the age of streams."""

    def __init__(self, clock: Callable[[], float]) -> None:
        # Ordered by the end of each session's latest stream, so that the oldest is always at the
        # front.
        self._logs: OrderedDict[str, _Log] = OrderedDict()
        self._clock = clock

    def append(self, session: str, stream: str, number: int, data: bytes, *, last: bool) -> None:
        """Store an event."""
        now = self._clock()
        self._sweep(now)
        log = self._logs.get(session)
        if log is None:
            log = self._logs[session] = _Log(now)
        if log.append(stream, number, data, now, last=last):
            self._logs.move_to_end(session)

    async def read(self, session: str, stream: str, after: int) -> Replay | None:
        """Return the events after event `after`."""
        log = self._logs.get(session)
        return log.read(stream, after, self._clock()) if log is not None else None

    def forget(self, session: str) -> None:
        """Remove all events of a session."""
        self._logs.pop(session, None)

    def _sweep(self, now: float) -> None:
        """Remove old streams.

        If the latest ended stream of a session is too old, all its ended streams are.
        """
        while self._logs:
            session, log = next(iter(self._logs.items()))
            if log.stirred >= now - bounds.ENDED_AGE:
                return
            if log.tidy(now):
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
    """The running and the ended streams of one session, the oldest end first."""

    __slots__ = ("_ended", "_running", "_size", "stirred")

    def __init__(self, now: float) -> None:
        self._running: dict[str, _Stream] = {}
        self._ended: dict[str, _Stream] = {}
        self._size = 0  # total size of ended streams in bytes
        self.stirred = now  # when a stream last ended, or the log was last checked

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
            stream.size = 0
        stream.events.append(data)
        stream.size += len(data)
        stream.stirred = now
        while len(stream.events) > bounds.RUNNING_EVENTS or (
            stream.size > bounds.RUNNING_BYTES and len(stream.events) > 1
        ):
            stream.size -= len(stream.events.pop(0))
            stream.first += 1
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

    def tidy(self, now: float) -> bool:
        """Remove old streams. Returns False if no stream is left."""
        self._bound(now)
        for name in [
            name
            for name, stream in self._running.items()
            if stream.stirred < now - bounds.RUNNING_AGE
        ]:
            del self._running[name]
        self.stirred = now
        return bool(self._running or self._ended)

    def _end(self, name: str, now: float) -> None:
        stream = self._ended[name] = self._running.pop(name)
        self._size += stream.size
        self.stirred = now
        self._bound(now)

    def _bound(self, now: float) -> None:
        while self._ended:
            name, oldest = next(iter(self._ended.items()))
            many = len(self._ended) > bounds.ENDED_STREAMS or (
                self._size > bounds.ENDED_BYTES and len(self._ended) > 1
            )
            if not many and oldest.stirred >= now - bounds.ENDED_AGE:
                return
            del self._ended[name]
            self._size -= oldest.size
