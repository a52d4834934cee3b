"""The vault in the OS keyring (extra `keyring`)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ..errors import StoreError
from . import os_keyring
from .blobs import RecordTable, TableVault
from .privacy import file_lock, make_folder
from .user_folder import data_folder

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

T = TypeVar("T")

# Keyrings are made for few and small entries. This is the limit for all names and values together.
KEYRING_BYTES = 256 * 1024

# Characters in one entry. Windows permits 2,560 bytes, two for each character.
_PIECE = 1000 if sys.platform == "win32" else 32_768


class _Root(msgspec.Struct):
    """The entry that locates the others: the table consists of `pieces` entries, in one of two
    slots that alternate.
    """

    slot: int
    pieces: int
    digest: str


class KeyringVault(TableVault):
    """Stores records in the OS keyring, at most 256 KiB, in as many entries as needed.

    Records are written to two slots in turn. One entry names the current slot and is written last,
    so that a change is never half done. A lock file in the user's data folder serializes processes.

    Args:
        name: The name of the vault in the keyring.
        keyring: Another keyring than that of the system.
        lock: Another folder for the lock file.
        piece: The largest number of characters in one entry.
        clock: Returns the time in seconds of the wall clock, for the expiry of records.
        patience: How long to wait for another process that holds the lock, in seconds.

    Raises:
        StoreError: The package `keyring` is not installed; or, by the methods, there is no keyring,
            as is usual without a desktop.
    """

    shared = True
    sealed = True  # the keyring protects its entries

    def __init__(
        self,
        name: str = "vault",
        *,
        keyring: KeyringBackend | None = None,
        lock: str | Path | None = None,
        piece: int = _PIECE,
        clock: Callable[[], float] = time.time,
        patience: float = 30.0,
    ) -> None:
        if keyring is None and find_spec("keyring") is None:
            raise StoreError(
                "the vault in the keyring needs the package keyring: pip install "
                "'interlock[keyring]'"
            )
        self._name = name
        self._keyring = keyring
        self._lock = lock
        self._piece = piece
        self._clock = clock
        self._patience = patience

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""

    async def _do(self, work: Callable[[RecordTable, float], T], *, writes: bool = True) -> T:
        return await asyncio.to_thread(self._work, work)

    # -- in a thread -------------------------------------------------------------------------------

    def _work(self, work: Callable[[RecordTable, float], T]) -> T:
        try:
            ring = os_keyring.find(self._keyring or True)
        except StoreError as bad:
            raise StoreError(f"{bad}: {os_keyring.INSTEAD}") from None
        folder = Path(self._lock) if self._lock is not None else data_folder()
        make_folder(folder, private=True)
        key = hashlib.blake2b(self._name.encode(), digest_size=8).hexdigest()
        # Readers also need the lock, because the records are spread over several entries.
        with file_lock(folder / f"keyring-{key}.lock", patience=self._patience):
            root = self._root(ring)
            table = self._table(ring, root)
            value = work(table, self._clock())
            if table.changed:
                self._save(ring, root, table)
            return value

    def _root(self, ring: KeyringBackend) -> _Root | None:
        text = os_keyring.read(ring, self._name)
        if text is None:
            return None
        try:
            return msgspec.json.decode(text, type=_Root)
        except (msgspec.MsgspecError, ValueError):
            raise StoreError(self._damaged()) from None

    def _table(self, ring: KeyringBackend, root: _Root | None) -> RecordTable:
        if root is None:
            return RecordTable(most_bytes=KEYRING_BYTES)
        pieces = [
            os_keyring.read(ring, self._entry(root.slot, number)) for number in range(root.pieces)
        ]
        text = "".join(piece for piece in pieces if piece is not None)
        try:
            if _digest(text) != root.digest:
                raise ValueError("some of it is missing")
            return RecordTable.read(base64.b64decode(text, validate=True), most_bytes=KEYRING_BYTES)
        except (msgspec.MsgspecError, ValueError):
            raise StoreError(self._damaged()) from None

    def _save(self, ring: KeyringBackend, root: _Root | None, table: RecordTable) -> None:
        text = base64.b64encode(table.written()).decode()
        pieces = [text[at : at + self._piece] for at in range(0, len(text), self._piece)]
        new = _Root(1 - root.slot if root is not None else 0, len(pieces), _digest(text))
        for number, piece in enumerate(pieces):
            os_keyring.write(ring, self._entry(new.slot, number), piece)
        os_keyring.write(ring, self._name, msgspec.json.encode(new).decode())
        # Remove the remaining entries of longer versions, also those of a process that died.
        self._forget(ring, new.slot, len(pieces))
        self._forget(ring, 1 - new.slot, 0)

    def _forget(self, ring: KeyringBackend, place: int, first: int) -> None:
        end = first
        while os_keyring.read(ring, self._entry(place, end)) is not None:
            end += 1
        for number in reversed(
            range(first, end)
        ):  # last entry first: if the process dies, there is no gap that hides later entries
            os_keyring.drop(ring, self._entry(place, number))

    def _entry(self, place: int, number: int) -> str:
        return f"{self._name} {'ab'[place]}{number}"

    def _damaged(self) -> str:
        return (
            "the vault in the keyring is damaged and is left as it is: remove the entries of "
            f"{os_keyring.SERVICE} that begin with "
            f"{self._name!r} from the keyring, and log in again"
        )


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
