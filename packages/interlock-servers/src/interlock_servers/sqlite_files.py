"""SQLite files of servers: created for the user alone, marked as ours, changed in transactions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from interlock import ToolError


def create_private_file(path: Path) -> None:
    """Create an empty file that only this user may read, unless it exists.

    SQLite would give it the usual permissions. The files that SQLite adds beside it get its mode.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def connect(path: Path, waiting: float, *, any_thread: bool = False) -> sqlite3.Connection:
    """Open an existing file. A statement waits so many seconds for the locks of others."""
    return sqlite3.connect(
        f"{path.as_uri()}?mode=rw",
        uri=True,
        timeout=waiting,
        isolation_level=None,
        check_same_thread=not any_thread,
    )


@contextmanager
def write_transaction(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction that locks out other writers; committed where the block ends well."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.set_progress_handler(None, 0)
            db.execute("ROLLBACK")
        raise


def mark(db: sqlite3.Connection, application: int, version: int) -> None:
    """Mark a file as ours, within a transaction."""
    db.execute(f"PRAGMA application_id = {application}")
    db.execute(f"PRAGMA user_version = {version}")


def is_marked(
    db: sqlite3.Connection,
    path: object,
    application: int,
    version: int,
    *,
    name: str,
    variable: str,
) -> bool:
    """Whether a file is ours; False if it is empty.

    `name` is what errors call it, and `variable` sets another path.

    Raises ToolError for the file of another program or of another version.
    """
    ((found,),) = db.execute("PRAGMA application_id").fetchall()
    ((made_by,),) = db.execute("PRAGMA user_version").fetchall()
    ((tables,),) = db.execute("SELECT count(*) FROM sqlite_master").fetchall()
    if not tables and not found:
        return False
    if found != application:
        raise ToolError(
            f"{path} is the database of another program. Name another file in {variable}."
        )
    if made_by != version:
        raise ToolError(
            f"The {name} {path} was made by another version of this server "
            f"({made_by}, not {version})."
        )
    return True
