"""Records with compare-and-swap, in memory: a dictionary, and a heap of expiry times."""

from __future__ import annotations

import heapq
import os

from msgspec import Struct

from .. import bounds
from ..errors import AccountFull
from ..interface import Record


class _ExpiringRecord(Struct):
    record: Record
    written: float
    until: float
    account: str


class _Account(Struct):
    """The totals of one account: number of records, bytes of bodies, and the owners of the bodies,
    the oldest first.
    """

    records: int = 0
    size: int = 0
    bodies: dict[str, None] = {}


class MemoryRecords:
    """A RecordStore in memory."""

    def __init__(self) -> None:
        self.identity = os.urandom(8).hex()
        self._kept: dict[str, _ExpiringRecord] = {}
        self._ends: list[tuple[float, str]] = []
        self._accounts: dict[str, _Account] = {}
        self._version = 0
        self._latest = 0.0  # the time of the last write, on the wall clock

    async def load(self, key: str, *, now: float) -> Record | None:
        """Return the record with this key, if it exists."""
        kept = self._kept.get(key)
        return kept.record if kept is not None and _exists(kept, now) else None

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
        if now < self._latest - bounds.CLOCK_TOLERANCE:
            self._correct(now)
        self._latest = now
        self._sweep(now - bounds.CLOCK_TOLERANCE)
        known = self._kept.get(key)
        if known is not None and known.record.data == data:
            return known.record.version
        if was != (0 if known is None else known.record.version):
            return 0
        holder = self._accounts.setdefault(account, _Account())
        if known is None and holder.records >= most:
            self._sweep_account(account, now)
            holder = self._accounts.setdefault(account, _Account())
            if holder.records >= most:
                raise AccountFull("one caller has too many records in the store")
        if known is not None:
            self._forget(key)
        self._version += 1
        kept = _ExpiringRecord(Record(self._version, data), now, until, account)
        self._kept[key] = kept
        holder = self._accounts.setdefault(account, _Account())
        holder.records += 1
        if body and len(body) <= bounds.ACCOUNT_BYTES:
            kept.record = Record(self._version, data, body)
            holder.size += len(body)
            holder.bodies[key] = None
            while holder.size > bounds.ACCOUNT_BYTES:
                self._drop_body(holder, next(iter(holder.bodies)))
        heapq.heappush(self._ends, (until, key))
        return self._version

    async def remove(self, key: str, *, was: int) -> None:
        """Remove a record, if it still has the version `was`."""
        known = self._kept.get(key)
        if known is not None and known.record.version == was:
            self._forget(key)

    async def keys(
        self, prefix: str, *, now: float, after: str = "", most: int = 1000
    ) -> list[str]:
        """Return the keys of records in ascending order."""
        found = (
            key
            for key, kept in self._kept.items()
            if key > after and key.startswith(prefix) and _exists(kept, now)
        )
        return heapq.nsmallest(most, found)

    def _drop_body(self, holder: _Account, key: str) -> None:
        kept = self._kept[key]
        holder.size -= len(kept.record.body)
        del holder.bodies[key]
        kept.record = Record(kept.record.version, kept.record.data)

    def _forget(self, key: str) -> None:
        kept = self._kept[key]
        holder = self._accounts[kept.account]
        if kept.record.body:
            self._drop_body(holder, key)
        holder.records -= 1
        del self._kept[key]
        if not holder.records:
            del self._accounts[kept.account]

    def _correct(self, now: float) -> None:
        """Move the ends of records that were written with a clock that was ahead."""
        for key, kept in self._kept.items():
            if kept.written > now + bounds.CLOCK_TOLERANCE:
                kept.until -= kept.written - now
                kept.written = now
                heapq.heappush(self._ends, (kept.until, key))

    def _sweep_account(self, account: str, now: float) -> None:
        """Remove the records of a full account that expired before `now`."""
        for key in [
            key for key, kept in self._kept.items() if kept.account == account and kept.until < now
        ]:
            self._forget(key)

    def _sweep(self, now: float) -> None:
        """Remove records that expired before `now`."""
        while self._ends and self._ends[0][0] < now:
            _, key = heapq.heappop(self._ends)
            kept = self._kept.get(key)
            if kept is not None and kept.until < now:
                self._forget(key)


def _exists(kept: _ExpiringRecord, now: float) -> bool:
    return kept.until >= now - bounds.CLOCK_TOLERANCE
