"""Topics in SQLite: tables, and a poll for notes of other processes every few milliseconds."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence

from ...logs import limited
from .. import records
from ..subscribers import Listeners, Receive
from .session_versions import SessionVersions
from .writer import Writer

_PAUSE = 0.02  # seconds between two polls
_IDLE_PAUSE = 0.2  # the same, when nothing has changed for some seconds
_BUSY_SECONDS = 2.0  # the time after a change in which it polls often
_SWEEP = 256  # notes of this process between two removals of old or excess notes

log = limited("interlock.store")


class SqliteTopic:
    """A Topic in a separate table, which keeps the last `most` notes for `age` seconds."""

    def __init__(
        self,
        table: str,
        writer: Writer,
        clock: Callable[[], float],
        poll: Poll,
        versions: SessionVersions,
        *,
        most: int,
        age: float,
    ) -> None:
        self._table = table
        self._slot = versions.slot(table)
        self._writer = writer
        self._clock = clock
        self._poll = poll
        self._versions = versions
        self._most = most
        self._age = age
        self._reader: sqlite3.Connection | None = None
        self._listeners = Listeners()
        self._last_read = 0
        self._posted = 0
        self._next_sweep = 0.0

    def attach(self, reader: sqlite3.Connection) -> None:
        """Start reading with this connection. Existing listeners continue where they stopped."""
        self._reader = reader
        if not self._listeners or not self._last_read:
            self._last_read = self._newest()

    def detach(self) -> None:
        """Stop reading."""
        self._reader = None

    @property
    def position(self) -> str:
        """The position of the newest note that this worker has received."""
        if not self._listeners:
            self._last_read = self._newest()
        return str(self._last_read)

    def publish(self, note: bytes) -> None:
        """Publish a note, from any thread."""
        now = self._clock()
        self._writer.send(lambda db: self._insert(db, note, now), size=len(note), posts=True)

    async def publish_confirmed(self, note: bytes) -> None:
        """Publish a note, and return once it is in the file."""
        now = self._clock()
        await self._writer.ask(lambda db: self._insert(db, note, now), posts=True)

    def subscribe(self, receive: Receive) -> Callable[[], None]:
        """Call `receive` with each note and its position until the returned function is called."""
        if not self._listeners:
            self._last_read = self._newest()
        stop = self._listeners.add(receive)
        self._poll.wake()
        return stop

    async def replay(self, position: str) -> list[tuple[bytes, str]] | None:
        """Return the notes after a position, including everything that this worker has published
        before.

        None if some of them are no longer kept.
        """
        after = records.number(position)
        return None if after is None else await self._writer.ask(lambda db: self._after(db, after))

    @property
    def has_listeners(self) -> bool:
        """Whether there are listeners."""
        return bool(self._listeners)

    @property
    def version(self) -> int:
        """The version of the topic; a negative number while it may be changing."""
        return self._versions.current(self._slot)

    def look(self) -> None:
        """Pass new notes to the listeners."""
        if self._reader is None or not self._listeners:
            return
        query = (
            f"SELECT number, note FROM {self._table} WHERE number > ? ORDER BY number LIMIT 1000"
        )
        while rows := self._reader.execute(query, (self._last_read,)).fetchall():
            for number, note in rows:
                self._last_read = number
                self._listeners.put(note, number)
                self._listeners.wake()

    def _newest(self) -> int:
        try:
            return self._last_read if self._reader is None else _newest(self._reader, self._table)
        except sqlite3.Error:
            return self._last_read  # an older position is valid too

    # -- in the writer's thread --------------------------------------------------------------------

    def _insert(self, db: sqlite3.Connection, note: bytes, now: float) -> None:
        self._versions.start_change(self._table)
        db.execute(f"INSERT INTO {self._table} (at, note) VALUES (?, ?)", (now, note))
        self._posted += 1
        if self._posted % _SWEEP == 0 or now >= self._next_sweep:
            self._next_sweep = now + self._age / 10
            # Delete by number, not by time alone: the remaining notes must have no gaps, because a
            # gap means a lost note.
            oldest = f"max(coalesce((SELECT max(number) FROM {self._table} WHERE at < ?), 0), ?)"
            db.execute(
                f"DELETE FROM {self._table} WHERE number <= {oldest}",
                (now - self._age, _newest(db, self._table) - self._most),
            )

    def _after(self, db: sqlite3.Connection, after: int) -> list[tuple[bytes, str]] | None:
        newest = _newest(db, self._table)
        ((first,),) = db.execute(f"SELECT min(number) FROM {self._table}").fetchall()
        if not (newest if first is None else first - 1) <= after <= newest:
            return None
        rows = db.execute(
            f"SELECT note, number FROM {self._table} WHERE number > ? ORDER BY number", (after,)
        ).fetchall()
        return [(note, str(number)) for note, number in rows]


def _newest(db: sqlite3.Connection, table: str) -> int:
    ((newest,),) = db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchall()
    return int(newest)


class Poll:
    """Polls the versions of the topics while one has listeners, and reads those that have changed.

    The versions are in shared memory: without them, each poll would read the file. A process wakes
    up for each poll, so it polls less often while the processes have nothing to say to each other.
    """

    def __init__(self) -> None:
        self._reader: sqlite3.Connection | None = None
        self._topics: Sequence[SqliteTopic] = ()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._busy_until = 0.0  # on the clock of the event loop
        self._seen: dict[SqliteTopic, int] = {}  # the version of each topic at its last poll

    def start(self, reader: sqlite3.Connection, topics: Sequence[SqliteTopic]) -> None:
        """Start polling in this event loop, for these topics."""
        self._reader = reader
        self._topics = topics
        self._seen.clear()
        self._loop = asyncio.get_running_loop()
        self.wake()

    def stop(self) -> None:
        """Stop polling."""
        if self._timer is not None:
            self._timer.cancel()
        self._reader = self._timer = self._loop = None

    def wake(self) -> None:
        """Start polling if there are listeners and no poll is scheduled."""
        loop = self._loop
        if (
            loop is None
            or self._timer is not None
            or not any(topic.has_listeners for topic in self._topics)
        ):
            return
        try:
            here = asyncio.get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            is_busy = loop.time() < self._busy_until
            self._timer = loop.call_later(_PAUSE if is_busy else _IDLE_PAUSE, self._look)
        else:
            loop.call_soon_threadsafe(self.wake)

    def look_now(self) -> None:
        """Read the notes that this process has just written. Others may answer soon."""
        for topic in self._topics:
            self._ask(topic)
        self._poll_often()

    def _look(self) -> None:
        self._timer = None
        if self._reader is None:
            return
        for topic in self._topics:
            version = topic.version  # before the topic is read
            if version < 0 or version != self._seen.get(topic):
                self._poll_often()
                self._seen[topic] = version if self._ask(topic) else -1
        self.wake()

    def _poll_often(self) -> None:
        """Poll often for a while."""
        if self._loop is None:
            return
        now = self._loop.time()
        self._busy_until = now + _BUSY_SECONDS
        if self._timer is not None and self._timer.when() > now + _PAUSE:
            self._timer.cancel()
            self._timer = self._loop.call_later(_PAUSE, self._look)

    def _ask(self, topic: SqliteTopic) -> bool:
        """Read the new notes of a topic. Returns False if the file cannot be read."""
        try:
            topic.look()
        except sqlite3.Error:
            log.warning("the store cannot be read for what is new; trying again")
            return False
        return True
