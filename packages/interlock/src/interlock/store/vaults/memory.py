"""The vault of one process, in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from .blobs import RecordTable, TableVault
from .interface import RECORDS, RECORDS_BYTES

T = TypeVar("T")


class MemoryVault(TableVault):
    """Stores records in memory.

    Args:
        clock: Returns the time in seconds of the wall clock, for the expiry of records.
        most: The largest number of records.
        most_bytes: The largest size of all names and values, in bytes.

    Raises:
        StoreError: (By the methods.) A limit is exceeded.
    """

    shared = False
    sealed = True  # nothing is written to a disk

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        most: int = RECORDS,
        most_bytes: int = RECORDS_BYTES,
    ) -> None:
        self._clock = clock
        self._table = RecordTable(most=most, most_bytes=most_bytes)
        self._lock = threading.Lock()

    async def aclose(self) -> None:
        """Do nothing: the records stay as long as the vault object."""

    async def _do(self, work: Callable[[RecordTable, float], T], *, writes: bool = True) -> T:
        with self._lock:
            return work(self._table, self._clock())
