"""Events of streams in SQLite, bounded in total, per session, per stream, and in age."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from ...quotas import QuotaUsage
from .. import bounds, records
from ..interface import Replay
from .writer import Writer

_SWEEP = 30.0  # seconds between two searches for old streams

# A process measures the size of all events after it has added this part of the limit.
_CHECKS = 64

_SIZES = """SELECT coalesce(holder, ''), sum(size) FROM streams LEFT JOIN sessions ON id = session
    GROUP BY coalesce(holder, '')"""
_OLDEST = """SELECT session, stream, first, next, size, turn FROM streams
    LEFT JOIN sessions ON id = session WHERE coalesce(holder, '') = ? ORDER BY stirred DESC"""

_STREAM = "session = ? AND stream = ?"


class SqliteEvents:
    """An EventLog in SQLite."""

    def __init__(
        self, writer: Writer, clock: Callable[[], float], limit: int = bounds.EVENT_BYTES
    ) -> None:
        bounds.check_event_bytes(limit)
        self._writer = writer
        self._clock = clock
        self._limit = limit
        self._next_sweep = 0.0
        self._unmeasured = 0  # bytes that were added since the last measurement
        self._evicted = 0
        self._losing: set[tuple[str, str]] = set()  # streams that are about to be removed

    def append(self, session: str, stream: str, number: int, data: bytes, *, last: bool) -> None:
        """Store an event."""
        now = self._clock()
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP
            self._writer.send(lambda db: _sweep(db, now))
        is_queued = self._writer.send(
            lambda db: _append(db, session, stream, number, data, last, now), size=len(data)
        )
        if not is_queued:
            self._remove_lossy(session, stream)
        elif self._losing:
            self._losing.discard((session, stream))
        self._unmeasured += len(data)
        if self._unmeasured * _CHECKS > self._limit:
            self._unmeasured = 0
            self._writer.send(self._make_room)

    def _remove_lossy(self, session: str, stream: str) -> None:
        """Remove a stream whose event was dropped. Without its newest event it would look as if it
        were still running, and its reader would wait for ever.
        """
        key = (session, stream)
        if key in self._losing:
            return
        self._losing.add(key)

        def remove(db: sqlite3.Connection) -> None:
            _drop(db, session, stream)
            self._losing.discard(key)

        self._writer.send(remove, always=True)

    async def measure(self) -> QuotaUsage:
        """Return the counters. `evicted` counts the streams that this process has cut."""
        found = await self._writer.ask(lambda db: db.execute(_SIZES).fetchall())
        sizes = [size for _, size in found]
        used = sum(sizes)
        largest = max(sizes, default=0)
        return QuotaUsage(used, self._limit, len(sizes), largest, 0, self._evicted)

    def _make_room(self, db: sqlite3.Connection) -> None:
        """Remove the oldest events of the largest holders, if there are too many bytes. In the
        writer's thread.
        """
        ((total,),) = db.execute("SELECT coalesce(sum(size), 0) FROM streams").fetchall()
        if total <= self._limit:
            return
        sizes = dict(db.execute(_SIZES).fetchall())
        streams: dict[str, list[tuple[str, str, int, int, int, int | None]]] = {}
        target = self._limit * bounds.EVENT_TARGET
        while total > target and sizes:
            holder = max(sizes, key=sizes.__getitem__)
            if holder not in streams:
                streams[holder] = db.execute(_OLDEST, (holder,)).fetchall()
            if not streams[holder]:
                del sizes[holder]
                continue
            freed = _shrink(db, *streams[holder].pop())
            sizes[holder] -= freed
            total -= freed
            self._evicted += freed > 0

    async def read(self, session: str, stream: str, after: int) -> Replay | None:
        """Return the events after event `after`, including everything that this worker has appended
        before.
        """
        now = self._clock()
        return await self._writer.ask(
            lambda db: _read(db, session, stream, records.known(after), now)
        )


def _append(
    db: sqlite3.Connection,
    session: str,
    stream: str,
    number: int,
    data: bytes,
    last: bool,
    now: float,
) -> None:
    key = (session, stream)
    rows = db.execute(
        f"SELECT first, next, size, turn FROM streams WHERE {_STREAM}", key
    ).fetchall()
    first, awaited, size, turn = rows[0] if rows else (number, number, 0, None)
    if turn is not None or number < awaited:
        return
    if number > awaited:  # events were lost before they arrived, so the earlier ones are useless
        db.execute(f"DELETE FROM events WHERE {_STREAM}", key)
        first = number
        size = 0
    db.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (session, stream, number, data))
    size += len(data)
    while number - first >= bounds.RUNNING_EVENTS or (
        size > bounds.RUNNING_BYTES and first < number
    ):
        ((lost,),) = db.execute(
            f"SELECT length(data) FROM events WHERE {_STREAM} AND number = ?", (*key, first)
        ).fetchall()
        db.execute(f"DELETE FROM events WHERE {_STREAM} AND number = ?", (*key, first))
        size -= lost
        first += 1
    if last:
        ((turn,),) = db.execute(
            "SELECT coalesce(max(turn), 0) + 1 FROM streams WHERE session = ?", (session,)
        ).fetchall()
    db.execute(
        "INSERT OR REPLACE INTO streams VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*key, first, number + 1, size, now, turn),
    )
    if last:
        _bound(db, session)


def _bound(db: sqlite3.Connection, session: str) -> None:
    """Remove the oldest ended streams of a session while there are too many streams or bytes."""
    ended = "FROM streams WHERE session = ? AND turn IS NOT NULL"
    ((count, size),) = db.execute(f"SELECT count(*), sum(size) {ended}", (session,)).fetchall()
    while count > bounds.ENDED_STREAMS or (size > bounds.ENDED_BYTES and count > 1):
        ((stream, freed),) = db.execute(
            f"SELECT stream, size {ended} ORDER BY turn LIMIT 1", (session,)
        ).fetchall()
        _drop(db, session, stream)
        count = count - 1
        size = size - freed


def _shrink(
    db: sqlite3.Connection,
    session: str,
    stream: str,
    first: int,
    awaited: int,
    size: int,
    turn: int | None,
) -> int:
    """Remove a stream that has ended, or all events of a running one except the newest. Returns the
    bytes of the removed events.
    """
    if turn is not None:
        _drop(db, session, stream)
        return size
    newest = awaited - 1
    if first == newest:
        return 0
    key = (session, stream, newest)
    ((left,),) = db.execute(
        f"SELECT length(data) FROM events WHERE {_STREAM} AND number = ?", key
    ).fetchall()
    db.execute(f"DELETE FROM events WHERE {_STREAM} AND number < ?", key)
    db.execute(
        f"UPDATE streams SET first = ?, size = ? WHERE {_STREAM}", (newest, left, session, stream)
    )
    return size - int(left)


def _sweep(db: sqlite3.Connection, now: float) -> None:
    """Remove old streams."""
    over = "stirred < ? AND (turn IS NOT NULL OR stirred < ?)"
    for key in db.execute(
        f"SELECT session, stream FROM streams WHERE {over}",
        (now - bounds.ENDED_AGE, now - bounds.RUNNING_AGE),
    ).fetchall():
        _drop(db, *key)


def _drop(db: sqlite3.Connection, session: str, stream: str) -> None:
    db.execute(f"DELETE FROM events WHERE {_STREAM}", (session, stream))
    db.execute(f"DELETE FROM streams WHERE {_STREAM}", (session, stream))


def _read(
    db: sqlite3.Connection, session: str, stream: str, after: int, now: float
) -> Replay | None:
    rows = db.execute(
        f"SELECT first, stirred, turn FROM streams WHERE {_STREAM}", (session, stream)
    ).fetchall()
    if not rows:
        return None
    ((first, stirred, turn),) = rows
    if after + 1 < first or stirred < now - (
        bounds.RUNNING_AGE if turn is None else bounds.ENDED_AGE
    ):
        return None
    later = f"SELECT number, data FROM events WHERE {_STREAM} AND number > ? ORDER BY number"
    return Replay(tuple(db.execute(later, (session, stream, after)).fetchall()), turn is not None)
