"""The SQLite vault of one machine: mode 0600, many records, many processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..errors import StoreError
from ..sqlite.file import SqliteFile, SqliteSchema, begin
from .interface import Name, checked, decoded, encoded, ending, name
from .privacy import check_file, file_lock, make_folder
from .sealing import Key, Sealing, about

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

T = TypeVar("T")

# The largest size of the file.
DATABASE_BYTES = 1024 * 1024 * 1024

_TABLES = (
    "CREATE TABLE about (id TEXT NOT NULL, sealed_by TEXT NOT NULL, mark TEXT NOT NULL)",
    "CREATE TABLE records (kind BLOB NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, until "
    "REAL, PRIMARY KEY (kind, key))",
    "CREATE INDEX records_until ON records (until)",
)
_LIVES = "kind = ? AND key = ? AND (until IS NULL OR until > ?)"


def _make_tables(db: sqlite3.Connection) -> None:
    for table in _TABLES:
        db.execute(table)
    db.execute("INSERT INTO about VALUES (?, '', '')", (secrets.token_hex(8),))


SCHEMA = SqliteSchema(
    name="vault",
    application=0x494C4B56,
    migrations=(_make_tables,),
    instead="choose another place for the vault",
    repair="move it away, and log in again",
)


class _Drawer:
    """The records inside one transaction, encrypted and decrypted with the key of the file."""

    def __init__(
        self, db: sqlite3.Connection, id: str, by: str, key: Key | None, now: float
    ) -> None:
        self._db = db
        self.id = id
        self.by = by  # "key", "keyring", or empty without encryption
        self._key = key
        self._now = now

    def get(self, of: Name) -> bytes | None:
        rows = self._db.execute(
            f"SELECT value FROM records WHERE {_LIVES}", (*of, self._now)
        ).fetchall()
        return self._opened(of, rows[0][0]) if rows else None

    def put(self, of: Name, value: bytes, until: float | None) -> None:
        if until is not None and until <= self._now:
            self._db.execute("DELETE FROM records WHERE kind = ? AND key = ?", of)
            return
        kept = value if self._key is None else self._key.close(value, about(self.id, of))
        self._db.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", (*of, kept, until))

    def add(self, of: Name, value: bytes, until: float | None) -> bool:
        if self._db.execute(f"SELECT 1 FROM records WHERE {_LIVES}", (*of, self._now)).fetchall():
            return False
        self.put(of, value, until)
        return True

    def swap(self, of: Name, was: bytes, value: bytes, until: float | None) -> bool:
        if self.get(of) != was:
            return False
        self.put(of, value, until)
        return True

    def pop(self, of: Name) -> bytes | None:
        found = self.get(of)
        if found is not None:
            self._db.execute("DELETE FROM records WHERE kind = ? AND key = ?", of)
        return found

    def remove(self, of: Name) -> bool:
        return (
            self._db.execute(f"DELETE FROM records WHERE {_LIVES}", (*of, self._now)).rowcount > 0
        )

    def keys(self, kind: bytes) -> list[str]:
        query = (
            "SELECT key FROM records WHERE kind = ? AND (until IS NULL OR until > ?) ORDER BY key"
        )
        return [decoded(key) for (key,) in self._db.execute(query, (kind, self._now)).fetchall()]

    def sweep(self) -> None:
        self._db.execute("DELETE FROM records WHERE until <= ?", (self._now,))

    def seal(self, id: str, by: str, key: Key) -> None:
        """Encrypt all records, which may be encrypted with another key or for another vault ID."""
        rows = self._db.execute("SELECT kind, key FROM records").fetchall()
        for of in rows:
            ((value,),) = self._db.execute(
                "SELECT value FROM records WHERE kind = ? AND key = ?", of
            ).fetchall()
            self._db.execute(
                "UPDATE records SET value = ? WHERE kind = ? AND key = ?",
                (key.close(self._opened(of, value), about(id, of)), *of),
            )
        self._db.execute("UPDATE about SET id = ?, sealed_by = ?, mark = ?", (id, by, key.mark))
        self.id = id
        self.by = by
        self._key = key

    def _opened(self, of: Name, value: bytes) -> bytes:
        if self._key is None:
            return value
        try:
            return self._key.open(value, about(self.id, of))
        except ValueError as bad:
            raise StoreError(
                f"a record of kind {decoded(of[0])!r} in the vault cannot be opened: {bad}"
            ) from None


class SqliteVault:
    """Stores records in a SQLite file of mode 0600, up to 1 GiB. The file must be on a local disk.

    A file with wider permissions is refused. A lock file next to it serializes processes. With a
    key, values are encrypted and names are not. An encrypted vault is never used again without its
    key; an unencrypted one is encrypted as soon as there is a key.

    Args:
        path: The path of the file.
        key: The key, of at least 32 characters; by default the variable INTERLOCK_VAULT_KEY.
            Several with commas between them: the first one encrypts, all of them decrypt.
        keyring: Whether a key in the OS keyring is used if no key is given; or another keyring.
        clock: Returns the time in seconds of the wall clock, for the expiry of records.
        patience: How long to wait for another process that uses the file, in seconds.

    Raises:
        ValueError: The key is too short.
        StoreError: (By the methods.) The vault cannot be used.
    """

    shared = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: str | None = None,
        keyring: KeyringBackend | bool = True,
        clock: Callable[[], float] = time.time,
        patience: float = 10.0,
    ) -> None:
        self.path = Path(path).absolute()
        # No write-ahead log, so that the process holds no lock between transactions and can be
        # forked.
        self._file = SqliteFile(
            self.path,
            SCHEMA,
            journal="delete",
            pragmas=("synchronous = FULL", "secure_delete = ON"),
            patience=patience,
            max_bytes=DATABASE_BYTES,
        )
        self._sealing = Sealing(key, keyring)
        self._clock = clock
        self._patience = patience
        self._db: sqlite3.Connection | None = None
        self._by: str | None = None
        self._lock = threading.Lock()
        _VAULTS.add(self)

    @property
    def sealed(self) -> bool:
        """Whether the values are encrypted; before the first use, whether they will be."""
        return bool(self._by) if self._by is not None else self._sealing.possible()

    async def get(self, kind: str, key: str) -> bytes | None:
        """The value; None if there is no record, or it has expired."""
        of = name(kind, key)
        return await self._do(lambda drawer: drawer.get(of), writes=False)

    async def put(self, kind: str, key: str, value: bytes, *, until: float | None = None) -> None:
        """Store a value, and replace the old one."""
        of = name(kind, key)
        value = checked(value)
        end = ending(until)
        await self._do(lambda drawer: drawer.put(of, value, end))

    async def add(self, kind: str, key: str, value: bytes, *, until: float | None = None) -> bool:
        """Store a value if the record does not exist. False if it does."""
        of = name(kind, key)
        value = checked(value)
        end = ending(until)
        return await self._do(lambda drawer: drawer.add(of, value, end))

    async def swap(
        self, kind: str, key: str, was: bytes, value: bytes, *, until: float | None = None
    ) -> bool:
        """Replace the value if it is still `was`. False if it is not."""
        of = name(kind, key)
        value = checked(value)
        end = ending(until)
        return await self._do(lambda drawer: drawer.swap(of, was, value, end))

    async def pop(self, kind: str, key: str) -> bytes | None:
        """Return the value and remove the record. Only one of several concurrent callers gets
        it.
        """
        of = name(kind, key)
        return await self._do(lambda drawer: drawer.pop(of))

    async def remove(self, kind: str, key: str) -> bool:
        """Remove a record. False if there was none."""
        of = name(kind, key)
        return await self._do(lambda drawer: drawer.remove(of))

    async def keys(self, kind: str) -> list[str]:
        """The keys of the records of a kind."""
        of = encoded(kind)
        return await self._do(lambda drawer: drawer.keys(of), writes=False)

    async def aclose(self) -> None:
        """Close the file. It is opened again if the vault is used again."""
        await asyncio.to_thread(self._close)

    def __del__(self) -> None:
        db = getattr(self, "_db", None)  # missing if the constructor has failed
        if db is not None:
            db.close()

    async def _do(self, work: Callable[[_Drawer], T], *, writes: bool = True) -> T:
        return await asyncio.to_thread(self._work, work, writes)

    async def rotate_key(self) -> None:
        """Encrypt the vault anew: with the first given key, or with a new key in the OS keyring.

        Raises:
            StoreError: The vault cannot be used, or there is no key.
        """

        def rotate(drawer: _Drawer) -> tuple[str, str]:
            before = (drawer.id, drawer.by)
            drawer.seal(*self._sealing.rotate(self.path, drawer.id))
            return before

        id, by = await self._do(rotate)
        if by == "keyring":
            await asyncio.to_thread(self._sealing.discard, id)

    # -- in a thread -------------------------------------------------------------------------------

    def _work(self, work: Callable[[_Drawer], T], writes: bool) -> T:
        with self._lock:
            make_folder(self.path.parent, private=False)
            # SQLite can wait for other processes too, but if one writes without a pause, the others
            # wait forever.
            lock = self.path.with_name(f"{self.path.name}.lock")
            with file_lock(lock, patience=self._patience), self._file.errors():
                db = self._db
                if db is None:
                    db = self._db = self._open()
                return self._transaction(db, work, writes)

    def _transaction(self, db: sqlite3.Connection, work: Callable[[_Drawer], T], writes: bool) -> T:
        if writes:
            begin(db, self._patience)
        else:
            db.execute("BEGIN")
        try:
            ((id, by, mark),) = db.execute("SELECT id, sealed_by, mark FROM about").fetchall()
            key = self._sealing.resume(self.path, id, by, mark)
            drawer = _Drawer(db, id, by, key, self._clock())
            if writes:
                drawer.sweep()
                self._update_key(drawer, key)
            value = work(drawer)
            db.execute("COMMIT")
            self._by = drawer.by
            return value
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")

    def _update_key(self, drawer: _Drawer, key: Key | None) -> None:
        """Encrypt the file if there is a key now, or if the first given key is another one."""
        if key is None:
            by, first = self._sealing.begin(drawer.id)
            if first is not None:
                drawer.seal(drawer.id, by, first)
        elif drawer.by == "key":
            first = self._sealing.given()
            if first is not None and first.mark != key.mark:
                drawer.seal(drawer.id, "key", first)

    def _open(self) -> sqlite3.Connection:
        with contextlib.suppress(FileNotFoundError):
            check_file(self.path.lstat(), self.path)
        return self._file.connect(any_thread=True)

    def _close(self) -> None:
        with self._lock:
            db = self._db
            self._db = None
            if db is not None:
                db.close()

    # -- around a fork -----------------------------------------------------------------------------

    def hold(self) -> None:
        """Before a fork: wait for the running transaction, because a connection must not be in use
        on both sides.
        """
        self._lock.acquire()

    def release(self) -> None:
        """After a fork, in the parent: release the lock."""
        self._lock.release()

    def inherit(self) -> None:
        """After a fork, in the child: the parent's connection is neither used nor closed here."""
        if self._db is not None:
            _INHERITED.append(self._db)
            self._db = None
        self._lock.release()


_VAULTS: weakref.WeakSet[SqliteVault] = weakref.WeakSet()
_HELD: list[SqliteVault] = []
_INHERITED: list[sqlite3.Connection] = []


def _before_fork() -> None:
    _HELD[:] = _VAULTS
    for vault in _HELD:
        vault.hold()


def _after_fork(each: Callable[[SqliteVault], None]) -> None:
    for vault in _HELD:
        each(vault)
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(SqliteVault.release),
        after_in_child=lambda: _after_fork(SqliteVault.inherit),
    )
