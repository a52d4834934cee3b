"""Heartbeats of workers, in SQLite."""

from __future__ import annotations

import sqlite3

from .. import bounds
from .writer import Writer


class SqliteWorkers:
    """A WorkerStore in SQLite."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def heartbeat(self, worker: str, *, until: float) -> None:
        """Record that this worker is alive until then."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR REPLACE INTO workers VALUES (?, ?)", (worker, until))
            db.execute("DELETE FROM workers WHERE until < ?", (until - bounds.WORKER_AGE,))

        await self._writer.ask(work)

    async def is_alive(self, worker: str, *, now: float) -> bool:
        """Whether a worker is alive."""
        return await self._writer.ask(
            lambda db: bool(
                db.execute(
                    "SELECT 1 FROM workers WHERE id = ? AND until BETWEEN ? AND ?",
                    (worker, now, now + bounds.HEARTBEAT_SECONDS),
                ).fetchall()
            )
        )

    async def withdraw(self, worker: str) -> None:
        """Record that a worker has ended in good order."""
        await self._writer.ask(
            lambda db: db.execute("DELETE FROM workers WHERE id = ?", (worker,)).close()
        )
