"""Records that all workers share, changed by compare-and-swap: the seam of what must happen once
(used states, outcomes of calls, idempotency keys, leases of tasks).
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class Record(Struct, frozen=True):
    """One record as it stands.

    Attributes:
        version: A number that grows with every change of any record and is never given twice. For
            the one who wrote it, it is a fencing token: a later holder of the record has a greater
            one.
        data: What is kept until the record expires.
        body: What may be dropped earlier, where its account holds too many bytes; empty then.
    """

    version: int
    data: bytes
    body: bytes = b""


class RecordStore(Protocol):
    """Keeps records until they expire. A record that has expired is as good as none."""

    @property
    def identity(self) -> str:
        """Names what the store remembers; known once it is open.

        A store that has forgotten everything (another process, a new file, a flushed server) has
        another identity.
        """
        ...

    async def load(self, key: str, *, now: float) -> Record | None:
        """The record with this key."""
        ...

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
    ) -> int:
        """Write a record if it still has the version that it `was`.

        A record that holds the same data already counts as written: the connection may have broken
        after the first try. The data of two rivals must differ, therefore.

        Args:
            key: The record.
            data: What is kept until the end.
            was: The version that is replaced; 0 where there must be no record.
            until: When the record expires, in seconds of the wall clock.
            now: The time, in seconds of the wall clock.
            body: What is kept as long as the account has room for it.
            account: Whose bytes the body counts among, up to `bounds.ACCOUNT_BYTES`. The bodies
                that expire soonest make room for newer ones.

        Returns:
            The version of the record now; 0 where another stands there.

        Raises:
            StoreError: The store cannot answer, it has forgotten what it knew, or the account has
                `bounds.ACCOUNT_RECORDS` records.
        """
        ...

    async def remove(self, key: str, *, was: int) -> None:
        """Forget a record, if it still has the version that it `was`."""
        ...
