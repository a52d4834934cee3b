"""Sessions in SQLite, with a cache of the sessions that this process has read."""

from __future__ import annotations

import sqlite3
from typing import Any

from .. import records
from ..errors import StoreError
from ..interface import Session
from .session_versions import SessionVersions
from .writer import Writer

_LOAD = "SELECT data, until FROM sessions WHERE id = ?"
_RECENT = "SELECT data, until FROM sessions WHERE until >= ? ORDER BY until DESC LIMIT ?"
_LOAD_STATE = "SELECT state FROM sessions WHERE id = ?"
_SAVE_STATE = "UPDATE sessions SET state = ? WHERE id = ? AND state = ?"
_DROP_SESSION = "DELETE FROM sessions WHERE id = ?"
_VICTIM = """SELECT id, until, count FROM session_holders JOIN sessions USING (holder)
    WHERE count = (SELECT max(count) FROM session_holders) ORDER BY until LIMIT 1"""
_MOST_CACHED = 1024  # sessions
_DROP_EVENTS = ("DELETE FROM events WHERE session = ?", "DELETE FROM streams WHERE session = ?")


class SqliteSessions:
    """A SessionStore in SQLite.

    A cached session is used only as long as its version is current, so that no process serves a
    session that another process has ended or changed. Without the cache, each call would cost a
    statement and two locks of the file.
    """

    def __init__(self, writer: Writer, versions: SessionVersions) -> None:
        self._writer = writer
        self._versions = versions
        self._cached: dict[str, tuple[int, int, Session]] = {}  # by ID: slot, version, session
        self._reader: sqlite3.Connection | None = None

    def attach(self, reader: sqlite3.Connection) -> None:
        """Start reading with this connection."""
        self._reader = reader

    def detach(self) -> None:
        """Stop reading."""
        self._reader = None
        self._cached.clear()

    async def create(self, session: Session, *, most: int, now: float, rested: float = 0.0) -> bool:
        """Store a new session. Returns False, and stores nothing, if there is no room."""
        data = records.encode(session)

        def work(db: sqlite3.Connection) -> bool:
            # Counted first, because counting removes expired sessions, and this id may belong to
            # one.
            is_full = self._count(db, now) >= most
            self._versions.start_change(session.id)
            is_known = db.execute(_DROP_SESSION, (session.id,)).rowcount > 0
            if is_full and not is_known and not self._make_room(db, session.holder, rested):
                return False
            db.execute(
                "INSERT INTO sessions (id, until, data, holder) VALUES (?, ?, ?, ?)",
                (session.id, session.until, data, session.holder),
            )
            return True

        return await self._writer.ask(work)

    async def load(self, id: str, *, now: float) -> Session | None:
        """Return the session with this id, if it exists."""
        cached = self._cached.get(id)
        if cached is not None:
            slot, version, session = cached
            if self._versions.current(slot) == version and session.until >= now:
                return session
            del self._cached[id]
        return await self._load(id, now)

    async def _load(self, id: str, now: float) -> Session | None:
        """Read a session from the file."""
        slot = self._versions.slot(id)
        version = self._versions.current(slot)  # before the session is read
        rows = self._read(_LOAD, id)
        if not rows:
            return None
        ((data, until),) = rows
        if until < now:
            await self._writer.ask(lambda db: self._count(db, now))
            return None
        session = records.decode(data, until)
        if session is not None and version >= 0:
            if len(self._cached) >= _MOST_CACHED:
                del self._cached[next(iter(self._cached))]
            self._cached[id] = (slot, version, session)
        return session

    async def save(self, session: Session, *, was: Session) -> bool:
        """Replace a session if the stored one still equals `was`, with the later of the two ends.
        Otherwise return False.
        """
        row = (records.encode(session), session.until, session.id)

        def work(db: sqlite3.Connection) -> bool:
            known = [records.decode(*row) for row in db.execute(_LOAD, (session.id,)).fetchall()]
            if not known or known[0] is None or not records.follows(was, known[0]):
                return False
            self._versions.start_change(session.id)
            return (
                db.execute(
                    "UPDATE sessions SET data = ?, until = max(until, ?) WHERE id = ?", row
                ).rowcount
                > 0
            )

        return await self._writer.ask(work)

    async def prolong(self, id: str, until: float) -> None:
        """Move the end of a session."""

        def work(db: sqlite3.Connection) -> None:
            self._versions.start_change(id)
            db.execute("UPDATE sessions SET until = ? WHERE id = ?", (until, id))

        await self._writer.ask(work)

    async def load_state(self, id: str) -> bytes | None:
        """Return the author's state of a session."""
        rows = self._read(_LOAD_STATE, id)
        return rows[0][0] if rows else None

    async def save_state(self, id: str, state: bytes, *, was: bytes) -> bool:
        """Replace the author's state of a session, if the stored one still equals `was`."""
        return await self._writer.ask(
            lambda db: db.execute(_SAVE_STATE, (state, id, was)).rowcount > 0
        )

    def _read(self, query: str, id: str) -> list[Any]:
        if self._reader is None:
            raise StoreError("the store is not open")
        try:
            return self._reader.execute(query, (id,)).fetchall()
        except (sqlite3.Error, UnicodeError) as bad:
            raise self._writer.file.error(bad, "read") from None

    async def end(self, id: str) -> bool:
        """Remove a session, its state and its events. Returns False if it did not exist."""
        return await self._writer.ask(lambda db: self._drop(db, id))

    async def count(self, *, now: float) -> int:
        """Return the number of sessions."""
        return await self._writer.ask(lambda db: self._count(db, now))

    async def recent(self, *, most: int, now: float) -> list[Session]:
        """Return at most `most` sessions, those that end last first."""
        rows = await self._writer.ask(lambda db: db.execute(_RECENT, (now, most)).fetchall())
        found = [records.decode(*row) for row in rows]
        return [session for session in found if session is not None]

    # -- in the writer's thread --------------------------------------------------------------------

    def _count(self, db: sqlite3.Connection, now: float) -> int:
        """Remove expired sessions, and return the number of the others."""
        for (id,) in db.execute("SELECT id FROM sessions WHERE until < ?", (now,)).fetchall():
            self._drop(db, id)
        ((count,),) = db.execute("SELECT COUNT(*) FROM sessions").fetchall()
        return int(count)

    def _make_room(self, db: sqlite3.Connection, holder: str, rested: float) -> bool:
        """Remove the session that makes room for a new one of a holder; False if none does."""
        own = db.execute("SELECT count FROM session_holders WHERE holder = ?", (holder,)).fetchall()
        victims = db.execute(_VICTIM).fetchall()
        least = own[0][0] + 1 if own else 1
        if not victims or (victims[0][2] <= least and victims[0][1] >= rested):
            return False
        return self._drop(db, victims[0][0])

    def _drop(self, db: sqlite3.Connection, id: str) -> bool:
        self._versions.start_change(id)
        for query in _DROP_EVENTS:
            db.execute(query, (id,))
        return db.execute(_DROP_SESSION, (id,)).rowcount > 0
