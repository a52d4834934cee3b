"""The store of one machine: a SQLite file that several processes share."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from .. import bounds
from .events import SqliteEvents
from .file import SqliteFile
from .rates import SqliteRates
from .records import SqliteRecords
from .schema import SCHEMA
from .session_versions import SessionVersions
from .sessions import SqliteSessions
from .topics import Poll, SqliteTopic
from .workers import SqliteWorkers
from .writer import Writer

__all__ = [
    "SqliteTopic",
    "SqliteEvents",
    "SqliteRates",
    "SqliteRecords",
    "SqliteSessions",
    "SqliteStore",
    "SqliteWorkers",
]


class SqliteStore:
    """Keeps everything in one file. Next to it are two more while it is open, and one with version
    counters of sessions. A missing file is created with mode 0600.

    Hazard: the file must not be on a network file system. The workers of one machine can share it.
    Other programs must not change its sessions while it is open.
    A worker that is killed loses its notes of the last milliseconds, but damages nothing. `clock`
    returns the time in seconds, for the age of streams and notes; it must be the same in every
    process. `event_bytes` is the maximum size of all events of all sessions, in bytes. Above it,
    the oldest events of the caller with the most of them are removed.
    """

    shared = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], float] = time.time,
        event_bytes: int = bounds.EVENT_BYTES,
    ) -> None:
        self._file = SqliteFile(path, SCHEMA, journal="wal", pragmas=("synchronous = NORMAL",))
        self._writer = Writer(self._file)
        self._poll = Poll()
        self._versions = SessionVersions(self._file.path)
        self.sessions = SqliteSessions(self._writer, self._versions)
        self.events = SqliteEvents(self._writer, clock, event_bytes)
        self.changes = SqliteTopic(
            "changes",
            self._writer,
            clock,
            self._poll,
            self._versions,
            most=bounds.CHANGES,
            age=bounds.CHANGES_AGE,
        )
        self.notes = SqliteTopic(
            "notes",
            self._writer,
            clock,
            self._poll,
            self._versions,
            most=bounds.CHANGES,
            age=bounds.NOTES_AGE,
        )
        self.rates = SqliteRates(self._writer)
        self.records = SqliteRecords(self._writer)
        self.workers = SqliteWorkers(self._writer)
        self._reader: sqlite3.Connection | None = None

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        return self._file.path.parent

    async def open(self) -> None:
        """Open the file, and create missing tables.

        Raises StoreError if the file cannot be used.
        """
        if self._reader is not None:
            return
        await self._writer.open(on_posted=self._poll.look_now, on_ended=self._versions.end_changes)
        try:
            await self._writer.ask(lambda db: self._versions.open())
            await self.records.open()
            # Reads are short and never wait, so they run in the event loop.
            reader = await asyncio.to_thread(self._file.connect, any_thread=True)
        except BaseException:
            await self._writer.aclose()
            self._versions.close()
            raise
        reader.execute("PRAGMA query_only = ON")
        self._reader = reader
        for part in (self.sessions, self.changes, self.notes):
            part.attach(reader)
        self._poll.start(reader, (self.changes, self.notes))

    async def aclose(self) -> None:
        """Write everything that is queued, and close the file."""
        reader = self._reader
        self._reader = None
        if reader is None:
            return
        self._poll.stop()
        for part in (self.sessions, self.changes, self.notes):
            part.detach()
        await self._writer.aclose()
        self._versions.close()
        reader.close()
