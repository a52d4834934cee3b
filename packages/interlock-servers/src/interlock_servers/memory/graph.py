"""The SQLite file of a graph, created on first use and safe for several processes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from interlock import Context, ToolError, settings_of
from interlock.store import (
    SqliteError,
    SqliteFile,
    StoreError,
    own_path,
    primary_code,
    sqlite_reason,
    write_transaction,
)

from . import schema
from .limits import PREFIX, MemoryLimits
from .schema import VARIABLE
from .transaction import Transaction

# SQLite virtual machine instructions between two checks for cancellation
_LOOKS = 20_000
_IDLE = 8  # idle connections that are kept


class ChangeObserver(Protocol):
    """Receives the numbers of changes made by this process."""

    def knows(self, change: int) -> None:
        """Record a change of this process."""
        ...


class CallProgress:
    """Progress and deadline of a call. `ctx` is its context, `seconds` its time limit."""

    def __init__(self, ctx: Context[Graph] | None, seconds: float) -> None:
        self._ctx = ctx
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._done = 0

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled."""
        return self._ctx is not None and self._ctx.cancelled

    @property
    def over(self) -> bool:
        """Whether the call must end: cancelled or too late."""
        return self.cancelled or time.monotonic() > self._end

    def check(self) -> None:
        """Raise CancelledError if the call was cancelled, and ToolError if it took too long."""
        if self.cancelled:
            raise asyncio.CancelledError
        if time.monotonic() > self._end:
            raise ToolError(
                f"This took longer than {self._seconds:g} seconds, so it was stopped. "
                "Nothing was changed."
            )

    def report(self, done: int, total: int | None, message: str) -> None:
        """Report progress; raises like `check`."""
        self.check()
        self._done = done
        if self._ctx is not None:
            self._ctx.progress(done, total, message)

    def further(self, done: int, total: int) -> None:
        """Report the progress of the last phase; raises like `check`."""
        self.check()
        if self._ctx is not None and done:
            self._ctx.progress(
                self._done + done,
                self._done + total,
                f"{done:,} of {total:,} entities are in the index",
            )


class Graph:
    """The graph in the file at `path`; by default the environment's or the user's file.

    Each operation has its own connection, so any thread may run it. Every failure is a ToolError
    that names the file.
    """

    def __init__(self, path: Path | None = None, limits: MemoryLimits | None = None) -> None:
        self._path = path
        self._limits = limits
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._sqlite: SqliteFile | None = None
        self._file: tuple[int, int] | None = None  # the file that the idle connections have open
        self.indexed = True
        self.imports: Path | None = None  # the folder for imports by name
        self.watcher: ChangeObserver | None = None  # set while the server runs

    @property
    def path(self) -> Path:
        """The path of the file. Raises ToolError if the user has no data folder."""
        if self._path is None:
            self._path = named_path()
        self._path = self._path.absolute()
        return self._path

    @property
    def limits(self) -> MemoryLimits:
        """The limits of the graph.

        Raises ToolError for an invalid limit in the environment.
        """
        if self._limits is None:
            try:
                self._limits = settings_of(MemoryLimits, PREFIX)
            except ValueError as bad:
                raise ToolError(f"A limit of this server has an invalid value: {bad}.") from None
        return self._limits

    def progress(self, ctx: Context[Graph] | None, times: int = 1) -> CallProgress:
        """The progress of a call, with the time limit multiplied by `times`."""
        return CallProgress(ctx, self.limits.seconds * times)

    @contextmanager
    def reading(self, progress: CallProgress) -> Iterator[sqlite3.Connection]:
        """A read-only connection.

        All reads in the block see the same snapshot, whatever others write.
        """
        with self._trouble("read", progress), self._connected(progress) as db:
            if self.indexed and schema.index_waits(db):
                with write_transaction(db):
                    schema.catch_up(db)
            db.execute("PRAGMA query_only = ON")
            try:
                db.execute("BEGIN")
                yield db
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                db.execute("PRAGMA query_only = OFF")

    @contextmanager
    def changing(
        self, progress: CallProgress, tool: str, client: str = "", *, undoes: int | None = None
    ) -> Iterator[Transaction]:
        """A write transaction, committed if the block succeeds and otherwise rolled back.

        No other process writes in the meantime. `tool` and `client` are recorded in the history;
        `undoes` is the change that this one undoes.
        """
        with (
            self._trouble("written", progress),
            self._connected(progress) as db,
            write_transaction(db),
        ):
            if self.indexed and schema.index_waits(db):
                schema.catch_up(db)
            change = Transaction(db, tool, client, self.limits, indexed=self.indexed, undoes=undoes)
            yield change
            change.finish(progress.further)
            if change.id is not None and self.watcher is not None:
                self.watcher.knows(change.id)  # before other processes can see it

    @contextmanager
    def raw(self) -> Iterator[sqlite3.Connection]:
        """A connection without a transaction, for statements that cannot be in one."""
        progress = CallProgress(None, self.limits.seconds)
        with self._trouble("used", progress), self._connected(progress) as db:
            yield db

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle = self._idle
            self._idle = []
            self._file = None  # connections in use are closed when they are returned
        for db in idle:
            db.close()

    # -- connections -------------------------------------------------------------------------------

    @contextmanager
    def _connected(self, progress: CallProgress) -> Iterator[sqlite3.Connection]:
        db = self._open_connection()
        try:
            db.set_progress_handler(lambda: 1 if progress.over else 0, _LOOKS)
            yield db
        finally:
            db.set_progress_handler(None, 0)
            if db.in_transaction:
                db.close()
            else:
                self._give_back(db)

    def _open_connection(self) -> sqlite3.Connection:
        """A connection to the current file, which is created if it is missing."""
        with self._lock:
            file = self._seen()
            if file is None or file != self._file:  # the file was removed or replaced
                for db in self._idle:
                    db.close()
                self._idle.clear()
                self._prepare()
                self._file = self._seen()
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, db: sqlite3.Connection) -> None:
        with self._lock:
            if len(self._idle) < _IDLE and self._seen() == self._file:
                self._idle.append(db)
                return
        db.close()

    def _seen(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _prepare(self) -> None:
        """Create the file and its tables, unless they exist."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.indexed = schema.can_index()
        self._sqlite = SqliteFile(
            self.path,
            schema.SCHEMA,
            journal="wal",
            pragmas=(
                f"synchronous = {'FULL' if self.limits.sync else 'NORMAL'}",
                "secure_delete = ON",  # deleted content is overwritten
            ),
            patience=self.limits.waiting,
        )
        self._connect().close()

    def _connect(self) -> sqlite3.Connection:
        assert self._sqlite is not None
        return self._sqlite.connect(any_thread=True)

    @contextmanager
    def _trouble(self, what: str, progress: CallProgress) -> Iterator[None]:
        try:
            yield
        except SqliteError as bad:
            raise self._failed("opened", bad.reason) from None
        except (sqlite3.Error, OSError) as bad:
            if primary_code(bad) == sqlite3.SQLITE_INTERRUPT:
                progress.check()
            reason = sqlite_reason(bad, patience=self.limits.waiting)
            raise self._failed(what, reason) from None

    def _failed(self, what: str, reason: str) -> ToolError:
        return ToolError(f"The memory {self.path} cannot be {what}: {reason}.")


def named_path() -> Path:
    """The path from the environment, or the user's default.

    Raises ToolError if the user has no data folder.
    """
    try:
        return own_path(VARIABLE, "memory", "graph.db")
    except StoreError as bad:
        raise ToolError(str(bad)) from None
