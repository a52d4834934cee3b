"""Sessions in SQLite."""

from __future__ import annotations

import sqlite3
from typing import Any

from .. import records
from ..errors import StoreError
from ..interface import Session
from .writer import Writer

_LOAD = "SELECT data, until FROM sessions WHERE id = ?"
_RECENT = "SELECT data, until FROM sessions WHERE until >= ? ORDER BY until DESC LIMIT ?"
_LOAD_STATE = "SELECT state FROM sessions WHERE id = ?"
_SAVE_STATE = "UPDATE sessions SET state = ? WHERE id = ? AND state = ?"
_DROP_SESSION = "DELETE FROM sessions WHERE id = ?"
_VICTIM = """SELECT id, until, count FROM session_holders JOIN sessions USING (holder)
    WHERE count = (SELECT max(count) FROM session_holders) ORDER BY until LIMIT 1"""
_DROP_EVENTS = ("DELETE FROM events WHERE session = ?", "DELETE FROM streams WHERE session = ?")


class SqliteSessions:
    """A SessionStore in SQLite."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._reader: sqlite3.Connection | None = None

    def attach(self, reader: sqlite3.Connection) -> None:
        """Start reading with this connection."""
        self._reader = reader

    def detach(self) -> None:
        """Stop reading."""
        self._reader = None

    async def create(self, session: Session, *, most: int, now: float, rested: float = 0.0) -> bool:
        """Store a new session. Returns False, and stores nothing, if there is no room."""
        data = records.encode(session)

        def work(db: sqlite3.Connection) -> bool:
            # Counted first, because counting removes expired sessions, and this id may belong to
            # one.
            is_full = _count(db, now) >= most
            is_known = db.execute(_DROP_SESSION, (session.id,)).rowcount > 0
            if is_full and not is_known and not _make_room(db, session.holder, rested):
                return False
            db.execute(
                "INSERT INTO sessions (id, until, data, holder) VALUES (?, ?, ?, ?)",
                (session.id, session.until, data, session.holder),
            )
            return True

        return await self._writer.ask(work)

    async def load(self, id: str, *, now: float) -> Session | None:
        """Return the session with this id, if it exists."""
        rows = self._read(_LOAD, id)
        if not rows:
            return None
        ((data, until),) = rows
        if until < now:
            await self._writer.ask(lambda db: _count(db, now))
            return None
        return records.decode(data, until)

    async def save(self, session: Session, *, was: Session) -> bool:
        """Replace a session if the stored one still equals `was`, with the later of the two ends.
        Otherwise return False.
        """
        row = (records.encode(session), session.until, session.id)

        def work(db: sqlite3.Connection) -> bool:
            known = [records.decode(*row) for row in db.execute(_LOAD, (session.id,)).fetchall()]
            if not known or known[0] is None or not records.follows(was, known[0]):
                return False
            return (
                db.execute(
                    "UPDATE sessions SET data = ?, until = max(until, ?) WHERE id = ?", row
                ).rowcount
                > 0
            )

        return await self._writer.ask(work)

    async def prolong(self, id: str, until: float) -> None:
        """Move the end of a session."""
        await self._writer.ask(
            lambda db: (
                db.execute("UPDATE sessions SET until = ? WHERE id = ?", (until, id)).rowcount
            )
        )

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
        return await self._writer.ask(lambda db: _drop(db, id))

    async def count(self, *, now: float) -> int:
        """Return the number of sessions."""
        return await self._writer.ask(lambda db: _count(db, now))

    async def recent(self, *, most: int, now: float) -> list[Session]:
        """Return at most `most` sessions, those that end last first."""
        rows = await self._writer.ask(lambda db: db.execute(_RECENT, (now, most)).fetchall())
        found = [records.decode(*row) for row in rows]
        return [session for session in found if session is not None]


def _count(db: sqlite3.Connection, now: float) -> int:
    """Remove expired sessions, and return the number of the others."""
    for (id,) in db.execute("SELECT id FROM sessions WHERE until < ?", (now,)).fetchall():
        _drop(db, id)
    ((count,),) = db.execute("SELECT COUNT(*) FROM sessions").fetchall()
    return int(count)


def _make_room(db: sqlite3.Connection, holder: str, rested: float) -> bool:
    """Remove the session that makes room for a new one of a holder; False if none does."""
    own = db.execute("SELECT count FROM session_holders WHERE holder = ?", (holder,)).fetchall()
    victims = db.execute(_VICTIM).fetchall()
    least = own[0][0] + 1 if own else 1
    if not victims or (victims[0][2] <= least and victims[0][1] >= rested):
        return False
    return _drop(db, victims[0][0])


def _drop(db: sqlite3.Connection, id: str) -> bool:
    for query in _DROP_EVENTS:
        db.execute(query, (id,))
    return db.execute(_DROP_SESSION, (id,)).rowcount > 0
