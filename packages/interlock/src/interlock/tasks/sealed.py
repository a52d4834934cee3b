"""Encryption at rest: a RecordStore that seals what it writes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..store import bounds
from ..store.errors import StoreError
from ..store.interface import Record, RecordStore
from ..wire.seal import BadSeal, Seal

_FOR_EVER = 1e11  # seconds; the store itself drops expired records


class SealedRecords:
    """A RecordStore whose data and bodies only holders of a key can read or change.

    Args:
        records: The store behind it.
        keys: Secrets of 16 random bytes or more. The first one seals, all of them open.

    Raises:
        ValueError: A key is too short, or the package cryptography is missing.
    """

    def __init__(self, records: RecordStore, keys: Sequence[bytes]) -> None:
        self._records = records
        self._seal = Seal(keys, seconds=_FOR_EVER, encrypt=True)

    @property
    def identity(self) -> str:
        """The identity of the store's contents."""
        return self._records.identity

    async def load(self, key: str, *, now: float) -> Record | None:
        """Return the record with this key, if it exists."""
        record = await self._records.load(key, now=now)
        if record is None:
            return None
        body = self._opened(record.body, key) if record.body else b""
        return replace(record, data=self._opened(record.data, key), body=body)

    async def swap(
        self,
        key: str,
        data: bytes,
        *,
        was: int,
        until: float,
        now: float,
        body: bytes = b"",
        account: str = "",
        most: int = bounds.ACCOUNT_RECORDS,
    ) -> int:
        """Write a record if it still has the version `was`; otherwise return 0."""
        return await self._records.swap(
            key,
            self._closed(data, key),
            was=was,
            until=until,
            now=now,
            body=self._closed(body, key) if body else b"",
            account=account,
            most=most,
        )

    async def remove(self, key: str, *, was: int) -> None:
        """Remove a record, if it still has the version `was`."""
        await self._records.remove(key, was=was)

    async def keys(
        self, prefix: str, *, now: float, after: str = "", most: int = 1000
    ) -> list[str]:
        """Return the keys of records in ascending order."""
        return await self._records.keys(prefix, now=now, after=after, most=most)

    def _closed(self, data: bytes, key: str) -> bytes:
        return self._seal.close(data.decode(), key.encode(), 0.0).encode()

    def _opened(self, data: bytes, key: str) -> bytes:
        try:
            text: str = self._seal.open(data.decode(), key.encode(), 0.0)
        except (BadSeal, UnicodeDecodeError) as bad:
            raise StoreError(f"a record in the store cannot be read: {bad}") from None
        return text.encode()
