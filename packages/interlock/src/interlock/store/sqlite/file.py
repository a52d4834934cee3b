"""SQLite files of Interlock: opened in one way, private, with schema migrations and one set of
errors.

A file is marked with its kind (`PRAGMA application_id`) and the version of its tables (`PRAGMA
user_version`). A file of another program or of a newer version is rejected and not changed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeVar

from msgspec import Struct

from ..errors import StoreError
from ..files import open_private

T = TypeVar("T")

_PATIENCE = 5.0  # seconds that one process waits for another's transaction
_PAUSE = 0.01  # seconds between two attempts if SQLite does not wait by itself

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_TEMPORARY = _BUSY | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full, or the file has reached its largest size",
    sqlite3.SQLITE_READONLY: (
        "it is read-only: check the permissions of the file, its folder and its disk"
    ),
    sqlite3.SQLITE_CANTOPEN: "check that it is a file, that its folder exists, and who may write",
    sqlite3.SQLITE_IOERR: "the disk has failed",
    **dict.fromkeys(_DAMAGED, "it is damaged, or not a SQLite database"),
}

# Held while a file is created: closing the file releases all locks that another thread's connection
# has on it (POSIX locks belong to the process).
_CREATING = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_CREATING.acquire,
        after_in_parent=_CREATING.release,
        after_in_child=_CREATING.release,
    )


class SqliteError(StoreError):
    """A SQLite file cannot be used.

    Attributes:
        reason: The cause and the remedy, without the name of the file.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class SqliteSchema(Struct, frozen=True, kw_only=True):
    """The tables of one kind of file, and the migrations from older versions.

    Attributes:
        name: The word for such a file in errors, for example "vault".
        application: The mark of the kind, a 32-bit number.
        migrations: Each one creates the next version of the tables; the first one starts with an
            empty file. They run in one transaction. Hazard: append new migrations, never edit old
            ones.
        unmarked: The tables of files that version 1 wrote without a mark.
        instead: What to do about a file of the wrong kind or version.
        repair: What to do about a damaged file.
    """

    name: str
    application: int
    migrations: tuple[Callable[[sqlite3.Connection], None], ...]
    unmarked: frozenset[str] = frozenset()
    instead: str = "choose another file"
    repair: str = "move it away, or restore it from a copy"

    @property
    def version(self) -> int:
        """The newest version of the tables."""
        return len(self.migrations)


class SqliteFile:
    """One SQLite file of a given schema, and the settings of every connection to it.

    Args:
        path: The file. It is created with mode 0600 when it is first opened; its folder must exist.
        schema: The tables of the file.
        journal: "wal" for a write-ahead log, with which readers and writers do not wait for each
            other; "delete" for a rollback journal; None leaves the mode as it is.
        pragmas: Settings of each connection, such as "synchronous = NORMAL".
        patience: The maximum wait for the locks of other connections, in seconds.
        max_bytes: The maximum size of the file in bytes; None for no limit.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: SqliteSchema,
        *,
        journal: Literal["wal", "delete"] | None = None,
        pragmas: Sequence[str] = (),
        patience: float = _PATIENCE,
        max_bytes: int | None = None,
    ) -> None:
        self.path = Path(path).absolute()
        self.schema = schema
        self.patience = patience
        self._journal = journal
        self._pragmas = ("trusted_schema = OFF", *pragmas)
        self._max_bytes = max_bytes

    def connect(self, *, any_thread: bool = False) -> sqlite3.Connection:
        """Open a connection in autocommit mode; create the file and migrate its tables if needed.

        Args:
            any_thread: Whether threads other than this one may use the connection.

        Raises:
            SqliteError: The file cannot be opened, is of another kind or of a newer version. In the
                last two cases the file is not changed.
        """
        with self.errors("opened"):
            create_private_file(self.path)
            db = connect_sqlite(self.path, patience=self.patience, any_thread=any_thread)
            try:
                self._configure(db)
            except BaseException:
                db.close()
                raise
            return db

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction on a separate connection, committed unless the block raises.

        Args:
            write: False for a transaction that can only read.

        Raises:
            SqliteError: The file cannot be used.
        """
        with self.errors(), closing(self.connect()) as db:
            if write:
                with write_transaction(db, self.patience):
                    yield db
            else:
                db.execute("PRAGMA query_only = ON")
                db.execute("BEGIN")
                yield db  # closing the connection ends a read transaction

    async def run(self, work: Callable[[sqlite3.Connection], T], *, write: bool = True) -> T:
        """Run a function in a thread, in a `transaction`."""
        import asyncio  # late: programs without an event loop open files too

        def call() -> T:
            with self.transaction(write=write) as db:
                return work(db)

        return await asyncio.to_thread(call)

    @contextmanager
    def errors(self, doing: str = "used") -> Iterator[None]:
        """Turn exceptions of SQLite or the system in the block into SqliteError."""
        try:
            yield
        except (sqlite3.Error, OSError) as bad:
            raise self.error(bad, doing) from None

    def error(self, bad: Exception, doing: str = "used") -> StoreError:
        """Return the StoreError for an exception; `doing` completes "the file cannot be ...".

        A StoreError is returned unchanged.
        """
        if isinstance(bad, StoreError):
            return bad
        reason = sqlite_reason(bad, patience=self.patience)
        code = primary_code(bad)
        if code in _DAMAGED:
            reason = f"{reason}; it was not changed: {self.schema.repair}"
        elif code == sqlite3.SQLITE_CANTOPEN and self.path.is_dir():
            reason = "it is a directory"
        elif code == sqlite3.SQLITE_FULL and self._max_bytes is not None:
            reason = f"{reason}, {self._max_bytes:,} bytes at most"
        return self._error(reason, doing)

    def _error(self, reason: str, doing: str = "opened") -> SqliteError:
        return SqliteError(
            f"the {self.schema.name} {self.path} cannot be {doing}: {reason}", reason
        )

    def _configure(self, db: sqlite3.Connection) -> None:
        for pragma in self._pragmas:
            db.execute(f"PRAGMA {pragma}").fetchall()
        if self._max_bytes is not None:
            pages = self._max_bytes // _number(db, "PRAGMA page_size")
            db.execute(f"PRAGMA max_page_count = {pages}").fetchall()
        self._migrate(db)  # before any write: a file of another kind must stay unchanged
        if self._journal is not None:
            # SQLite does not wait by itself if another process changes the mode at the same time.
            journal = f"PRAGMA journal_mode = {self._journal}"
            retry_locked(lambda: db.execute(journal).fetchall(), self.patience)

    def _migrate(self, db: sqlite3.Connection) -> None:
        newest = (self.schema.application, self.schema.version)
        if _marks(db) == newest:
            return
        # Raises before the file is locked. One transaction, because another process may create the
        # tables between two reads: they would look like those of another program.
        db.execute("BEGIN")
        try:
            self._version(db)
        finally:
            db.execute("ROLLBACK")
        with write_transaction(db, self.patience):
            version = self._version(db)  # another process may have been faster
            for migration in self.schema.migrations[version:]:
                migration(db)
            if _marks(db) != newest:
                db.execute(f"PRAGMA application_id = {self.schema.application}")
                db.execute(f"PRAGMA user_version = {self.schema.version}")

    def _version(self, db: sqlite3.Connection) -> int:
        """Return the version of the tables in a file, 0 if it is empty.

        Raises SqliteError if the file belongs to another program, or is newer than this program.
        """
        schema = self.schema
        application, version = _marks(db)
        if application != schema.application:
            query = "SELECT tbl_name FROM sqlite_master WHERE tbl_name NOT GLOB 'sqlite_*'"
            tables = {name for (name,) in db.execute(query).fetchall()}
            if application or version or (tables and tables != schema.unmarked):
                raise self._error(f"it is the database of another program: {schema.instead}")
            return 1 if tables else 0
        if version > schema.version:
            raise self._error(
                f"a newer version of Interlock wrote it (version {version} of its tables; this one "
                f"knows up to {schema.version}), and it was not changed: upgrade Interlock, or "
                f"{schema.instead}"
            )
        return version


def create_private_file(path: Path) -> None:
    """Create an empty file of mode 0600, unless it exists. SQLite gives its additional files the
    same mode.

    An existing file is not opened: closing it would release the locks of this process. Raises
    OSError.
    """
    with _CREATING, suppress(FileExistsError):
        target = Path(os.path.realpath(path))
        os.close(open_private(target, os.O_RDWR | os.O_CREAT | os.O_EXCL))


def connect_sqlite(
    path: Path,
    *,
    write: bool = True,
    patience: float = _PATIENCE,
    any_thread: bool = False,
    cached_statements: int = 128,
) -> sqlite3.Connection:
    """Open an existing SQLite file of any kind, in autocommit mode.

    Args:
        path: The file.
        write: False to open it read-only.
        patience: The maximum wait of a statement for the locks of other connections, in seconds.
        any_thread: Whether threads other than this one may use the connection.
        cached_statements: The maximum number of prepared statements in the cache.

    Raises:
        sqlite3.Error: The file does not exist or cannot be opened.
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={'rw' if write else 'ro'}",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=not any_thread,
        cached_statements=cached_statements,
    )


def begin(db: sqlite3.Connection, patience: float = _PATIENCE) -> None:
    """Begin a transaction that excludes other writers. Waits at most `patience` seconds for them.

    Raises sqlite3.Error.
    """
    retry_locked(lambda: db.execute("BEGIN IMMEDIATE"), patience)


@contextmanager
def write_transaction(db: sqlite3.Connection, patience: float = _PATIENCE) -> Iterator[None]:
    """A transaction that excludes other writers, committed unless the block raises.

    Raises sqlite3.Error, for example if another connection writes for longer than `patience`
    seconds.
    """
    begin(db, patience)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.set_progress_handler(None, 0)  # else it would stop this statement too
            db.execute("ROLLBACK")
        raise


def primary_code(bad: BaseException) -> int:
    """Return the primary error code of SQLite; 0 if there is none."""
    code: int = getattr(bad, "sqlite_errorcode", 0)
    return code & 0xFF


def is_locked(bad: BaseException) -> bool:
    """Whether SQLite has waited in vain for the lock of another connection."""
    return primary_code(bad) in _BUSY


def is_temporary(bad: BaseException) -> bool:
    """Whether the same write may succeed later: the file is locked, or the disk full or failing."""
    return primary_code(bad) in _TEMPORARY


def sqlite_reason(bad: Exception, *, patience: float = _PATIENCE) -> str:
    """Return why SQLite or the system has failed, and what to do.

    Args:
        bad: The exception.
        patience: How long the statement waited for locks, in seconds.
    """
    code = primary_code(bad)
    if is_locked(bad):
        return f"another process has locked it for {patience:g} seconds: try again later ({bad})"
    if getattr(bad, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED:
        return f"the file was moved or removed while it was in use ({bad})"
    if code in _REASONS:
        return f"{_REASONS[code]} ({bad})"
    return (bad.strerror if isinstance(bad, OSError) else None) or str(bad)


def retry_locked(
    action: Callable[[], T], patience: float, *, wait: Callable[[float], object] = time.sleep
) -> T:
    """Repeat an action while another connection holds a lock, if SQLite does not wait by itself.

    Args:
        action: Raises sqlite3.OperationalError while the database is locked.
        patience: The maximum wait, in seconds.
        wait: Waits for so many seconds between two attempts. A true result ends the attempts.

    Raises:
        sqlite3.OperationalError: The last error of the action.
    """
    end = time.monotonic() + patience
    while True:
        try:
            return action()
        except sqlite3.OperationalError as bad:
            if not is_locked(bad) or time.monotonic() > end or wait(_PAUSE):
                raise


def _marks(db: sqlite3.Connection) -> tuple[int, int]:
    return _number(db, "PRAGMA application_id"), _number(db, "PRAGMA user_version")


def _number(db: sqlite3.Connection, query: str) -> int:
    ((value,),) = db.execute(query).fetchall()
    return int(value)
