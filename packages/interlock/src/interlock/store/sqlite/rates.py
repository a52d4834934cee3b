"""Token buckets in SQLite."""

from __future__ import annotations

import sqlite3

from ... import rates
from .writer import Writer

# requests of this process between two removals of full buckets, which need not be kept
_SWEEP = 1024


class SqliteRates:
    """A RateStore in SQLite."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._asked = 0

    async def acquire(self, key: str, *, rate: float, burst: float, now: float) -> float:
        """Take one token from a bucket. Returns 0.0 if there was one, otherwise the seconds until
        there is one.
        """

        def work(db: sqlite3.Connection) -> float:
            rows = db.execute("SELECT full FROM rates WHERE key = ?", (key,)).fetchall()
            full, wait = rates.acquire(
                rows[0][0] if rows else None, rate=rate, burst=burst, now=now
            )
            if not wait:
                db.execute("INSERT OR REPLACE INTO rates VALUES (?, ?)", (key, full))
            self._asked += 1
            if self._asked % _SWEEP == 0:
                db.execute("DELETE FROM rates WHERE full < ?", (now,))
            return wait

        return await self._writer.ask(work)
