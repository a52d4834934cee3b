"""The file vault of one user: mode 0600, written atomically."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ..errors import StoreError
from ..files import open_private, write_atomic
from .blobs import RecordTable, TableVault
from .privacy import check_file, file_lock, make_folder
from .sealing import Key, Sealing

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

T = TypeVar("T")

# A file is read and written whole, so it suits hundreds of records, not very many.
FILE_BYTES = 16 * 1024 * 1024

_VERSION = 1
_BEGINNING = b'{"interlock_vault":'
_ASIDE = 100  # the limit of damaged files that are kept


class _Header(msgspec.Struct, omit_defaults=True):
    """The first line of the file: its format, how its body is encrypted, and the digest of the
    body, which reveals damage.
    """

    interlock_vault: int
    id: str
    by: str = ""
    mark: str = ""
    digest: str = ""


class _Damaged(Exception):
    """The file is damaged."""


class FileVault(TableVault):
    """Stores records in one file of mode 0600, in a folder of mode 0700.

    Missing files and folders are created. Files and folders with wider permissions are refused.
    Each change writes a new file, which replaces the old one atomically, so that neither a reader
    nor a crash leaves half a change. A lock file next to it serializes processes. The file holds at
    most 16 MiB.

    With a key, the whole file is encrypted, names and values. An encrypted vault is never written
    again without its key. A damaged file is kept under another name, and an error says so.

    Args:
        path: The path of the file.
        key: The key, of at least 32 characters; by default the variable INTERLOCK_VAULT_KEY.
            Several with commas between them: the first one encrypts, all of them decrypt.
        keyring: Whether a key in the OS keyring is used if no key is given; or another keyring.
        clock: Returns the time in seconds of the wall clock, for the expiry of records.
        patience: How long to wait for another process that holds the lock, in seconds.

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
        patience: float = 30.0,
    ) -> None:
        self.path = Path(path).absolute()
        self._sealing = Sealing(key, keyring)
        self._clock = clock
        self._patience = patience

    @property
    def sealed(self) -> bool:
        """Whether the file is encrypted, or would be if it existed."""
        try:
            found = self._bytes()
            return self._sealing.possible() if found is None else bool(_split(found)[0].by)
        except (StoreError, _Damaged):
            return False

    async def aclose(self) -> None:
        """Do nothing: the file is open only while it is read or written."""

    async def _do(self, work: Callable[[RecordTable, float], T], *, writes: bool = True) -> T:
        return await asyncio.to_thread(self._write if writes else self._read, work)

    async def rotate_key(self) -> None:
        """Encrypt the vault anew: with the first given key, or with a new key in the OS keyring.

        Raises:
            StoreError: The vault cannot be used, or there is no key.
        """
        await asyncio.to_thread(self._rotate)

    # -- in a thread -------------------------------------------------------------------------------

    def _read(self, work: Callable[[RecordTable, float], T]) -> T:
        # No lock is needed: the file is always complete.
        try:
            _, _, table = self._load()
        except _Damaged:
            return self._write(work)
        return work(table, self._clock())

    def _write(self, work: Callable[[RecordTable, float], T]) -> T:
        with self._locked() as (header, key, table):
            value = work(table, self._clock())
            if table.changed:
                if key is None:
                    header.by, key = self._sealing.begin(header.id)
                elif header.by == "key":
                    key = self._sealing.given()  # the first one, if there are several
                self._save(header, key, table)
            return value

    def _rotate(self) -> None:
        with self._locked() as (header, _, table):
            id = header.id
            by = header.by
            header.id, header.by, key = self._sealing.rotate(self.path, id)
            self._save(header, key, table)
            if by == "keyring":
                self._sealing.discard(id)

    @contextmanager
    def _locked(self) -> Iterator[tuple[_Header, Key | None, RecordTable]]:
        """Hold the file lock, and load the file. Raises StoreError."""
        make_folder(self.path.parent, private=True)
        with file_lock(self.path.with_name(f"{self.path.name}.lock"), patience=self._patience):
            try:
                loaded = self._load()
            except _Damaged as bad:
                aside = self._put_aside()
                raise StoreError(
                    f"the vault {self.path} was damaged ({bad}) and is kept as {aside.name}; a "
                    "new one will be begun, so log in again"
                ) from None
            yield loaded

    def _load(self) -> tuple[_Header, Key | None, RecordTable]:
        """The header, the key and the table; an empty table if there is no file.

        Raises StoreError and _Damaged.
        """
        found = self._bytes()
        if found is None:
            return (
                _Header(interlock_vault=_VERSION, id=secrets.token_hex(8)),
                None,
                RecordTable(most_bytes=FILE_BYTES),
            )
        header, body = _split(found)
        key = self._sealing.resume(self.path, header.id, header.by, header.mark)
        try:
            return (
                header,
                key,
                RecordTable.read(
                    key.open(body, _about(header)) if key is not None else body,
                    most_bytes=FILE_BYTES,
                ),
            )
        except (ValueError, msgspec.MsgspecError) as bad:
            raise _Damaged(bad) from None

    def _bytes(self) -> bytes | None:
        try:
            descriptor = open_private(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as bad:
            why = (
                "it is a link, and a vault must be a file"
                if bad.errno == errno.ELOOP
                else bad.strerror
            )
            raise StoreError(f"the vault {self.path} cannot be opened: {why}") from None
        try:
            check_file(os.fstat(descriptor), self.path)
            make_folder(self.path.parent, private=True)
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        except OSError as bad:
            raise StoreError(f"the vault {self.path} cannot be read: {bad.strerror}") from None
        finally:
            os.close(descriptor)

    def _save(self, header: _Header, key: Key | None, table: RecordTable) -> None:
        header.mark = key.mark if key is not None else ""
        body = table.written()
        if key is not None:
            body = key.close(body, _about(header))
        header.digest = _digest(body)
        try:
            write_atomic(self.path, msgspec.json.encode(header) + b"\n" + body)
        except OSError as bad:
            raise StoreError(
                f"the vault {self.path} cannot be written and is as it was: {bad.strerror}"
            ) from None

    def _put_aside(self) -> Path:
        for number in range(1, _ASIDE + 1):
            aside = self.path.with_name(f"{self.path.name}.damaged-{number}")
            if not aside.exists():
                try:
                    os.rename(self.path, aside)
                except OSError as bad:
                    raise StoreError(
                        f"the vault {self.path} is damaged, and cannot be put aside: {bad.strerror}"
                    ) from None
                return aside
        raise StoreError(
            f"the vault {self.path} is damaged, and there are {_ASIDE} damaged ones beside it: "
            "look at the disk"
        )


def is_vault(data: bytes) -> bool:
    """Whether data begins like a vault file."""
    return data.startswith(_BEGINNING)


def vault_version(path: Path, data: bytes) -> tuple[int, int]:
    """Return the version of a vault file, and the newest one that this program reads.

    Raises StoreError if the file is damaged, or of another version.
    """
    try:
        header, _ = _split(data)
    except _Damaged as bad:
        raise StoreError(f"the vault {path} is damaged: {bad}") from None
    return header.interlock_vault, _VERSION


def _split(found: bytes) -> tuple[_Header, bytes]:
    """The header and the body.

    Raises _Damaged; and StoreError if a later version wrote the file.
    """
    line, _, body = found.partition(b"\n")
    try:
        header = msgspec.json.decode(line, type=_Header)
    except (msgspec.MsgspecError, ValueError):
        raise _Damaged("it does not begin like one") from None
    if header.interlock_vault != _VERSION:
        raise StoreError(
            "the vault was written by another version of Interlock: use that one, or choose "
            "another place"
        )
    if header.digest != _digest(body):
        raise _Damaged("its digest is not that of its contents")
    return header, body


def _about(header: _Header) -> bytes:
    return f"interlock vault {header.interlock_vault} {header.id}".encode()


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()
