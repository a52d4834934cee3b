"""Backup, restore and integrity check of data files: SQLite files and file vaults."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct

from .errors import StoreError
from .files import settle_folder, write_new
from .sqlite.file import connect_sqlite, create_private_file, primary_code, sqlite_reason
from .sqlite.schema import SCHEMA as STORE
from .sqlite.schema import mark_restored
from .vaults.file import is_vault, vault_version
from .vaults.sqlite import SCHEMA as VAULT

_PATIENCE = 30.0  # seconds to wait for a writer
_BESIDE = ("-wal", "-shm", "-journal")  # the additional files of a SQLite file
_OURS = 0x494C  # the first half of the mark of every SQLite file of Interlock
# Files of other distributions are known by their mark only. Their programs check the version.
_OTHER_KINDS = {
    0x494C4B41: "account file",
    0x494C4C47: "log",
    0x494C4D47: "memory",
    0x494C5456: "travel database",
}


class DataFile(Struct, frozen=True):
    """A data file of Interlock.

    Attributes:
        kind: The word for such a file, for example "store".
        version: The version of its tables, or of its format.
        newest: The newest version that this program reads; None if another program reads it.
    """

    kind: str
    version: int
    newest: int | None = None


def check_data(path: Path) -> DataFile:
    """Check that a file is a complete and undamaged data file of a known version.

    Raises:
        StoreError: It is not, or it cannot be read.
    """
    if (vault := _read_vault(path)) is not None:
        return _describe_vault(path, vault)
    with _errors(path), closing(_open(path)) as db:
        return _check(path, db)


def back_up_data(path: Path, copy: Path) -> DataFile:
    """Copy a data file, also while programs write to it. The copy is one file of mode 0600.

    A SQLite file is copied in one transaction, through SQLite's online backup: the copy is as the
    file was at one point in time. The copy is checked before it gets its name.

    Raises:
        StoreError: The file cannot be read or is damaged; `copy` exists or cannot be written.
    """
    return _copy(path, copy)


def restore_data(copy: Path, path: Path) -> DataFile:
    """Copy a backup to where a program expects its file.

    A restored store gets a new identity: a `requestState` from before is refused instead of being
    accepted a second time, because the store may have forgotten that it was used.

    Raises:
        StoreError: The backup cannot be read or is damaged, or is newer than this program; or there
            is a file at `path`.
    """
    there = [each for each in (path, *_beside(path)) if os.path.lexists(each)]
    if there:
        names = " ".join(str(each) for each in there)
        raise StoreError(
            f"{path} exists: stop the programs that use it, move these files away, and try again: "
            f"{names}"
        )
    return _copy(copy, path, is_restored=True)


def _copy(source: Path, target: Path, *, is_restored: bool = False) -> DataFile:
    """Copy a data file to a name that does not exist yet."""
    if os.path.lexists(target):
        raise StoreError(f"{target} exists: choose another name")
    if (vault := _read_vault(source)) is not None:
        found = _describe_vault(source, vault)
        with _errors(target, "written"):
            write_new(target, vault)
            settle_folder(target.parent)
        return found
    half = target.with_name(f".{target.name}.half")
    with _errors(source, f"copied to {target}"), closing(_open(source)) as db:
        _check_kind(source, db)
        with _private(half):
            with closing(connect_sqlite(half, patience=_PATIENCE)) as new:
                # All pages in one step, so that no write comes between them.
                db.backup(new, progress=_until(time.monotonic() + _PATIENCE))
                new.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, without a log
                found = _check(source, new)
                if is_restored and found.kind == STORE.name:
                    mark_restored(new)
            os.link(half, target)  # unlike a rename it fails if another process was faster
            settle_folder(target.parent)
    return found


def _until(end: float) -> Callable[[int, int, int], None]:
    """Return a progress function that stops a backup which waits for a lock for too long."""

    def progress(status: int, remaining: int, total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > end:
            raise TimeoutError(
                errno.ETIMEDOUT, f"another process has locked it for {_PATIENCE:g} seconds"
            )

    return progress


@contextmanager
def _private(half: Path) -> Iterator[None]:
    """Create a file of mode 0600, and remove it at the end with what SQLite puts beside it."""
    _remove(half)  # left by a process that was killed
    create_private_file(half)
    try:
        yield
    finally:
        _remove(half)


def _remove(half: Path) -> None:
    for each in (half, *_beside(half)):
        with contextlib.suppress(FileNotFoundError):
            each.unlink()


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in _BESIDE]


def _open(path: Path) -> sqlite3.Connection:
    # A read-only connection would leave the additional files of a write-ahead log behind.
    db = connect_sqlite(path, write=os.access(path, os.W_OK), patience=_PATIENCE)
    db.execute("PRAGMA trusted_schema = OFF").fetchall()
    return db


def _check(path: Path, db: sqlite3.Connection) -> DataFile:
    """Check the pages of a SQLite file, and its kind and version."""
    found = _check_kind(path, db)
    wrong = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)").fetchall()]
    if wrong != ["ok"]:
        raise StoreError(f"{path} is damaged: {'; '.join(wrong)}")
    return found


def _check_kind(path: Path, db: sqlite3.Connection) -> DataFile:
    ((application,),) = db.execute("PRAGMA application_id").fetchall()
    ((version,),) = db.execute("PRAGMA user_version").fetchall()
    for schema in (STORE, VAULT):
        if application == schema.application:
            return _known(path, DataFile(schema.name, version, schema.version))
    if application >> 16 != _OURS:
        raise StoreError(f"{path} is not a data file of Interlock")
    return DataFile(_OTHER_KINDS.get(application, "file of another version"), version)


def _known(path: Path, found: DataFile) -> DataFile:
    """Return what was found. Raises StoreError if it is too new."""
    if found.newest is not None and found.version > found.newest:
        raise StoreError(
            f"a newer version of Interlock wrote the {found.kind} {path} (version {found.version}; "
            f"this one knows up to {found.newest}): upgrade Interlock"
        )
    return found


def _read_vault(path: Path) -> bytes | None:
    """Return the bytes of a file vault; None if the file is something else."""
    with _errors(path):
        try:
            with closing(_open(path)) as db:
                # SQLite opens it first: opening a database in another way and closing it would
                # release the locks of this process.
                db.execute("PRAGMA application_id").fetchall()
                db.execute("SELECT 1 FROM sqlite_master").fetchall()
        except sqlite3.Error as bad:
            if primary_code(bad) != sqlite3.SQLITE_NOTADB:
                raise
            data = path.read_bytes()
            if is_vault(data):
                return data
            raise StoreError(f"{path} is not a data file of Interlock, or it is damaged") from None
    return None


def _describe_vault(path: Path, data: bytes) -> DataFile:
    version, newest = vault_version(path, data)
    return DataFile(VAULT.name, version, newest)


@contextmanager
def _errors(path: Path, doing: str = "read") -> Iterator[None]:
    """Turn exceptions of SQLite and the system in the block into StoreError."""
    try:
        yield
    except (sqlite3.Error, OSError) as bad:
        reason = sqlite_reason(bad, patience=_PATIENCE)
        raise StoreError(f"{path} cannot be {doing}: {reason}") from None
