"""A vault that is one blob of records, read and written whole.

Each such vault decides where the blob is stored.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from ..errors import StoreError
from .interface import RECORDS, RECORDS_BYTES, Name, checked, decoded, encoded, ending, name

T = TypeVar("T")
Kept = tuple[bytes, float | None]  # value and expiry


class VaultRecord(msgspec.Struct, array_like=True, frozen=True):
    """One record in its serialized form."""

    kind: bytes
    key: bytes
    value: bytes
    until: float | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[VaultRecord]).decode


class RecordTable:
    """Records by name. The caller provides the time.

    `changed` says whether there are changes to write.
    """

    def __init__(
        self,
        records: Iterable[VaultRecord] = (),
        *,
        most: int = RECORDS,
        most_bytes: int = RECORDS_BYTES,
    ) -> None:
        self.changed = False
        self._most = most
        self._most_bytes = most_bytes
        self._kept: dict[Name, Kept] = {
            (record.kind, record.key): (record.value, record.until) for record in records
        }
        self._size = sum(_size(of, kept) for of, kept in self._kept.items())
        self._ends: list[tuple[float, Name]] = []
        self._note_ends()

    @classmethod
    def read(cls, data: bytes, *, most_bytes: int = RECORDS_BYTES) -> RecordTable:
        """Read a serialized table. Raises ValueError for invalid data."""
        return cls(_decode(data), most_bytes=most_bytes)

    def written(self) -> bytes:
        """The serialized table."""
        return _encode(
            [
                VaultRecord(kind, key, value, until)
                for (kind, key), (value, until) in self._kept.items()
            ]
        )

    def get(self, of: Name, now: float) -> bytes | None:
        """The value of a record, or None."""
        kept = self._kept.get(of)
        return kept[0] if kept is not None and _lives(kept, now) else None

    def put(self, of: Name, value: bytes, until: float | None, now: float) -> None:
        """Store a value. Raises StoreError, and changes nothing, if a limit is exceeded."""
        self._sweep(now)
        new = (value, until)
        old = self._kept.get(of)
        more = _size(of, new) - (_size(of, old) if old is not None else 0)
        if (old is None and len(self._kept) >= self._most) or (
            more > 0 and self._size + more > self._most_bytes
        ):
            holds = f"{len(self._kept)} records in {self._size} bytes"
            raise StoreError(
                f"the vault is full: it holds {holds}, and at most {self._most} in "
                f"{self._most_bytes}"
            )
        self._kept[of] = new
        self._size += more
        self.changed = True
        if until is not None:
            heapq.heappush(self._ends, (until, of))
            self._sweep(now)

    def add(self, of: Name, value: bytes, until: float | None, now: float) -> bool:
        """Store a value if the record does not exist."""
        if self.get(of, now) is not None:
            return False
        self.put(of, value, until, now)
        return True

    def swap(self, of: Name, was: bytes, value: bytes, until: float | None, now: float) -> bool:
        """Replace the value if it is still `was`."""
        if self.get(of, now) != was:
            return False
        self.put(of, value, until, now)
        return True

    def pop(self, of: Name, now: float) -> bytes | None:
        """Return the value and remove the record."""
        self._sweep(now)
        return self._drop(of)

    def keys(self, kind: bytes, now: float) -> list[bytes]:
        """The keys of a kind."""
        return sorted(
            of[1] for of, kept in self._kept.items() if of[0] == kind and _lives(kept, now)
        )

    def _drop(self, of: Name) -> bytes | None:
        kept = self._kept.pop(of, None)
        if kept is None:
            return None
        self._size -= _size(of, kept)
        self.changed = True
        return kept[0]

    def _sweep(self, now: float) -> None:
        """Remove expired records."""
        while self._ends and self._ends[0][0] <= now:
            _, of = heapq.heappop(self._ends)
            kept = self._kept.get(of)
            if kept is not None and not _lives(kept, now):
                self._drop(of)
        if len(self._ends) > 2 * len(self._kept) + 1024:  # many entries belong to replaced records
            self._note_ends()

    def _note_ends(self) -> None:
        self._ends = [(until, of) for of, (_, until) in self._kept.items() if until is not None]
        heapq.heapify(self._ends)


class TableVault:
    """The methods of a Vault, each of which is one operation on the table."""

    async def _do(self, work: Callable[[RecordTable, float], T], *, writes: bool = True) -> T:
        """Run an operation with exclusive access to the table and the current time, and write the
        table if it has changed.
        """
        raise AssertionError("each vault reaches its table in its own way")

    async def get(self, kind: str, key: str) -> bytes | None:
        """The value; None if there is no record, or it has expired."""
        of = name(kind, key)
        return await self._do(lambda table, now: table.get(of, now), writes=False)

    async def put(self, kind: str, key: str, value: bytes, *, until: float | None = None) -> None:
        """Store a value, and replace the old one."""
        of = name(kind, key)
        value = checked(value)
        end = ending(until)
        await self._do(lambda table, now: table.put(of, value, end, now))

    async def add(self, kind: str, key: str, value: bytes, *, until: float | None = None) -> bool:
        """Store a value if the record does not exist. False if it does."""
        of = name(kind, key)
        value = checked(value)
        end = ending(until)
        return await self._do(lambda table, now: table.add(of, value, end, now))

    async def swap(
        self, kind: str, key: str, was: bytes, value: bytes, *, until: float | None = None
    ) -> bool:
        """Replace the value if it is still `was`. False if it is not."""
        of = name(kind, key)
        value = checked(value)
        end = ending(until)
        return await self._do(lambda table, now: table.swap(of, was, value, end, now))

    async def pop(self, kind: str, key: str) -> bytes | None:
        """Return the value and remove the record. Only one of several concurrent callers gets
        it.
        """
        of = name(kind, key)
        return await self._do(lambda table, now: table.pop(of, now))

    async def remove(self, kind: str, key: str) -> bool:
        """Remove a record. False if there was none."""
        return await self.pop(kind, key) is not None

    async def keys(self, kind: str) -> list[str]:
        """The keys of the records of a kind."""
        of = encoded(kind)
        return [
            decoded(key)
            for key in await self._do(lambda table, now: table.keys(of, now), writes=False)
        ]


def _lives(kept: Kept, now: float) -> bool:
    return kept[1] is None or now < kept[1]


def _size(of: Name, kept: Kept) -> int:
    return len(of[0]) + len(of[1]) + len(kept[0])
