"""Records with compare-and-swap, in SQLite."""

from __future__ import annotations

import sqlite3
from math import inf

from .. import bounds
from ..errors import AccountFull
from ..interface import Record
from .writer import Writer

_SWEEP = 200  # the maximum number of expired records that one write removes
_SWEEP_SECONDS = 1.0  # between two such writes of a process


class SqliteRecords:
    """A RecordStore in SQLite."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.identity = ""
        self._swept: float | None = None  # the time before which expired records were removed
        self._latest = inf  # the time of the last write, on the wall clock

    async def open(self) -> None:
        """Read the identity of the file."""
        self.identity = await self._writer.ask(_identity)

    async def load(self, key: str, *, now: float) -> Record | None:
        """Return the record with this key, if it exists."""
        return await self._writer.ask(lambda db: _load(db, key, now))

    async def swap(
        self,
        key: str,
        data: bytes,
        *,
        was: int,
        until: float,
        now: float,
        body: bytes = b"",
        account: str = "",
        most: int = bounds.ACCOUNT_RECORDS,
    ) -> int:
        """Write a record if it still has the version `was`; otherwise return 0."""
        if len(body) > bounds.ACCOUNT_BYTES:
            body = b""

        def work(db: sqlite3.Connection) -> int:
            if now < self._latest - bounds.CLOCK_TOLERANCE:
                _correct(db, now)
            self._latest = now
            self._sweep_sometimes(db, now - bounds.CLOCK_TOLERANCE)
            found = "SELECT version, until, account, length(body), data FROM records WHERE key = ?"
            rows = db.execute(found, (key,)).fetchall()
            if rows and rows[0][1] < now - bounds.CLOCK_TOLERANCE:  # expired, and still there
                _forget(db, key)
                rows = []
            if not rows:
                return 0 if was else _insert(db, key, data, until, now, body, account, most)
            version, _, known_account, size, known_data = rows[0]
            if known_data == data:
                return int(version)
            if version != was:
                return 0
            if known_account != account or size or body:
                _forget(db, key)
                return _insert(db, key, data, until, now, body, account)
            version = _next_version(db)
            db.execute(
                "UPDATE records SET version = ?, written = ?, until = ?, data = ? WHERE key = ?",
                (version, now, until, data, key),
            )
            return version

        version = await self._writer.ask(work)
        if version < 0:
            raise AccountFull("one caller has too many records in the store")
        return version

    def _sweep_sometimes(self, db: sqlite3.Connection, now: float) -> None:
        """Remove records that expired before `now`, about once a second."""
        if self._swept is None or not 0 <= now - self._swept < _SWEEP_SECONDS:
            # again with the next write if there are more
            self._swept = None if _sweep(db, now) == _SWEEP else now

    async def remove(self, key: str, *, was: int) -> None:
        """Remove a record, if it still has the version `was`."""

        def work(db: sqlite3.Connection) -> None:
            found = "SELECT 1 FROM records WHERE key = ? AND version = ?"
            if db.execute(found, (key, was)).fetchall():
                _forget(db, key)

        await self._writer.ask(work)

    async def keys(
        self, prefix: str, *, now: float, after: str = "", most: int = 1000
    ) -> list[str]:
        """Return the keys of records in ascending order."""
        found = """SELECT key FROM records WHERE key > ? AND key >= ? AND key < ? AND until >= ?
                       ORDER BY key LIMIT ?"""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        arguments = (after, prefix, end, now - bounds.CLOCK_TOLERANCE, most)

        def work(db: sqlite3.Connection) -> list[str]:
            return [key for (key,) in db.execute(found, arguments).fetchall()]

        return await self._writer.ask(work)


def _identity(db: sqlite3.Connection) -> str:
    ((identity,),) = db.execute("SELECT identity FROM record_store").fetchall()
    return str(identity)


def _load(db: sqlite3.Connection, key: str, now: float) -> Record | None:
    found = "SELECT version, data, body FROM records WHERE key = ? AND until >= ?"
    rows = db.execute(found, (key, now - bounds.CLOCK_TOLERANCE)).fetchall()
    return Record(*rows[0]) if rows else None


def _next_version(db: sqlite3.Connection) -> int:
    db.execute("UPDATE record_store SET version = version + 1")
    ((version,),) = db.execute("SELECT version FROM record_store").fetchall()
    return int(version)


def _insert(
    db: sqlite3.Connection,
    key: str,
    data: bytes,
    until: float,
    now: float,
    body: bytes,
    account: str,
    most: float = inf,
) -> int:
    """Add a record. Returns its version, -1 if its account has `most` records."""
    records, size = _holds(db, account)
    if records >= most:
        _sweep_account(db, account, now)
        records, size = _holds(db, account)
        if records >= most:
            return -1
    version = _next_version(db)
    db.execute(
        "INSERT INTO records (key, version, written, until, account, data, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (key, version, now, until, account, data, body),
    )
    size = _make_room(db, account, size + len(body))
    db.execute(
        "INSERT OR REPLACE INTO record_accounts VALUES (?, ?, ?)", (account, records + 1, size)
    )
    return version


def _holds(db: sqlite3.Connection, account: str) -> tuple[int, int]:
    """Return the number of records and the bytes of bodies of an account."""
    found = "SELECT records, size FROM record_accounts WHERE account = ?"
    rows = db.execute(found, (account,)).fetchall()
    return rows[0] if rows else (0, 0)


def _make_room(db: sqlite3.Connection, account: str, size: int) -> int:
    """Drop the bodies that expire soonest until an account is within its limit. Returns its size in
    bytes.
    """
    if size <= bounds.ACCOUNT_BYTES:
        return size
    oldest = """SELECT key, length(body) FROM records WHERE account = ? AND length(body) > 0
                    ORDER BY until, version"""
    for key, freed in db.execute(oldest, (account,)).fetchall():
        db.execute("UPDATE records SET body = x'' WHERE key = ?", (key,))
        size -= freed
        if size <= bounds.ACCOUNT_BYTES:
            break
    return size


def _forget(db: sqlite3.Connection, key: str) -> None:
    found = "SELECT account, length(body) FROM records WHERE key = ?"
    for account, size in db.execute(found, (key,)).fetchall():
        db.execute("DELETE FROM records WHERE key = ?", (key,))
        db.execute(
            "UPDATE record_accounts SET records = records - 1, size = size - ? WHERE account = ?",
            (size, account),
        )
        db.execute("DELETE FROM record_accounts WHERE account = ? AND records <= 0", (account,))


def _correct(db: sqlite3.Connection, now: float) -> None:
    """Move the ends of records that were written with a clock that was ahead."""
    wrong = now + bounds.CLOCK_TOLERANCE
    db.execute(
        "UPDATE records SET until = until - (written - ?), written = ?"
        " WHERE until > ? AND written > ?",
        (now, now, wrong, wrong),
    )


def _sweep_account(db: sqlite3.Connection, account: str, now: float) -> None:
    """Remove records of a full account that expired before `now`."""
    found = "SELECT key FROM records WHERE until < ? AND account = ? ORDER BY until LIMIT ?"
    for (key,) in db.execute(found, (now, account, _SWEEP)).fetchall():
        _forget(db, key)


def _sweep(db: sqlite3.Connection, now: float) -> int:
    """Remove records that expired before `now`. Returns how many."""
    found = "SELECT key FROM records WHERE until < ? ORDER BY until LIMIT ?"
    rows = db.execute(found, (now, _SWEEP)).fetchall()
    for (key,) in rows:
        _forget(db, key)
    return len(rows)
