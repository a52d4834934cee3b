"""Worker process for one SQLite connection. A statement that cannot be interrupted ends with it.

It reads calls from its input and writes the results to its output, each as its length and JSON. It
ends when its input ends.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sqlite3
import stat
import struct
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec
from msgspec import Raw, Struct, field

from interlock import ToolError

from .engine import RowRange, Statement, TableName
from .limits import DatabaseLimits
from .sqlite_authorizer import OPCODES, Authorizer, opened
from .sqlite_queries import FAILURES, RunningCall, SqliteSession, has_journal, tool_error
from .sqlite_schema import described, tables_of

GRACE = 1.0  # seconds in which a stopped statement must end
HEAD = struct.Struct(">I")  # the length of the next message
MOST = 16 * 1024 * 1024  # bytes of an answer, regardless of other limits
# bytes for Python itself, and for a second copy of a SQLite row as Python values
_PYTHON = 256 * 1024 * 1024


class OpenDatabase(Struct):
    """The first message to a worker: the file, the limits, and whether it may be written."""

    path: bytes
    limits: DatabaseLimits
    write: bool


class WorkerCall(Struct, tag="call"):
    """A call for a worker, with its time limit in seconds."""

    number: int
    what: Literal["check", "version", "tables", "describe", "rows", "explain", "execute"]
    seconds: float
    statements: list[Statement] = field(default_factory=list)
    tables: list[TableName] = field(default_factory=list)
    page: RowRange = RowRange(0, 0, 0, 0)
    keep: bool = False


class StopCall(Struct, tag="stop"):
    """Cancels a call."""

    number: int


class WorkerReply(Struct):
    """The result of a call, or its error.

    `journal` means that a writer has to recover the file first.
    """

    result: Raw = Raw(b"null")
    error: str = ""
    journal: bool = False


class SqliteWorker:
    """One connection, opened on demand, and again after the file was replaced."""

    def __init__(self, opening: OpenDatabase) -> None:
        self._opening = opening
        self._path = Path(os.fsdecode(opening.path))
        self._authorizer = Authorizer()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._job: RunningCall | None = None
        self._stopped = 0  # the number of the last call that was stopped
        self._turn = threading.Lock()  # held while the current call changes
        self.calls: queue.SimpleQueue[WorkerCall | None] = queue.SimpleQueue()

    def receive(self, source: BinaryIO) -> None:
        """Read calls until the input ends. A stop takes effect at once."""
        while (frame := _frame(source)) is not None:
            received = msgspec.json.decode(frame, type=WorkerCall | StopCall)
            if isinstance(received, WorkerCall):
                self.calls.put(received)
            else:
                self._stop(received.number)
        self.calls.put(None)
        self._stop(None)
        threading.Event().wait(GRACE)
        os._exit(1)  # the other thread is in an endless statement, and the parent is gone

    def _stop(self, number: int | None) -> None:
        with self._turn:
            # A call that still waits in the queue finds here that it was stopped.
            self._stopped = max(self._stopped, number or 0)
            if self._job is not None and number in (None, self._job.number):
                self._job.stopped.set()
                if self._connection is not None:
                    self._connection.interrupt()

    def answer(self, call: WorkerCall) -> WorkerReply:
        """Run a call."""
        with self._turn:
            self._job = job = RunningCall(call.number, call.seconds)
            if call.number <= self._stopped:
                job.stopped.set()
        try:
            self._open()
            assert self._connection is not None
            self._authorizer.enter("read")
            self._connection.set_progress_handler(job.over, OPCODES)
            work = SqliteSession(self._connection, self._authorizer, self._opening.limits, job)
            try:
                return WorkerReply(Raw(_within(msgspec.json.encode(_done(work, call)))))
            except FAILURES as bad:
                return WorkerReply(error=str(work.failure(bad)), journal=has_journal(bad))
        except ToolError as bad:
            return WorkerReply(error=str(bad))
        except FAILURES as bad:
            return WorkerReply(
                error=str(tool_error(bad, self._opening.limits)), journal=has_journal(bad)
            )
        finally:
            with self._turn:
                self._job = None

    def _open(self) -> None:
        try:
            found = self._path.stat()
        except OSError as bad:
            raise ToolError(f"The file of the database cannot be opened: {bad.strerror}.") from None
        if not stat.S_ISREG(found.st_mode):  # opening a pipe would wait for a writer
            raise ToolError("The file of the database cannot be opened: it is not a regular file.")
        if self._file == (found.st_dev, found.st_ino):
            return
        self.close()
        made = opened(self._path, self._authorizer, self._opening.limits, write=self._opening.write)
        with self._turn:
            self._connection = made
            self._file = (found.st_dev, found.st_ino)

    def close(self) -> None:
        """Close the connection."""
        with self._turn:
            if self._connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.close()
            self._connection = self._file = None


def _done(work: SqliteSession, call: WorkerCall) -> Any:
    if call.what == "rows":
        return work.rows(call.statements[0], call.page)
    if call.what == "explain":
        return work.plan(call.statements[0])
    if call.what == "execute":
        return work.transaction(call.statements, call.page, keep=call.keep)
    if call.what == "tables":
        return tables_of(work.connection)
    if call.what == "describe":
        return described(work.connection, call.tables)
    if call.what == "version":
        return str(work.connection.execute("PRAGMA schema_version").fetchone()[0])
    return work.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _within(answer: bytes) -> bytes:
    if len(answer) > MOST:
        raise ToolError("The answer is too large. Ask for fewer tables or statements at once.")
    return answer


def _frame(source: BinaryIO) -> bytes | None:
    head = source.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    frame = source.read(HEAD.unpack(head)[0])
    return frame if len(frame) == HEAD.unpack(head)[0] else None


def _bound(limits: DatabaseLimits) -> None:
    """Limit the resources of the process, if the platform can."""
    if sys.platform != "win32":
        import resource  # not on every platform

        for what, most in (
            (resource.RLIMIT_DATA, 3 * limits.memory + _PYTHON),
            (resource.RLIMIT_CORE, 0),
        ):
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(what, (most, most))


def main() -> None:
    """Serve the parent process until its input ends."""
    source = sys.stdin.buffer
    sink = sys.stdout.buffer
    first = _frame(source)
    if first is None:
        return
    opening = msgspec.json.decode(first, type=OpenDatabase)
    _bound(opening.limits)
    worker = SqliteWorker(opening)
    threading.Thread(target=worker.receive, args=(source,), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):  # the parent is gone
        while (call := worker.calls.get()) is not None:
            frame = msgspec.json.encode(worker.answer(call))
            sink.write(HEAD.pack(len(frame)) + frame)
            sink.flush()
    worker.close()
    os._exit(0)  # the other thread is waiting
