"""The vault of one process, in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from .blobs import Book, BookVault
from .interface import RECORDS, RECORDS_BYTES

T = TypeVar("T")


class MemoryVault(BookVault):
    """Keeps records in memory: at most `most`, and `most_bytes` of names and values.

    StoreError is raised for more.

    `clock` gives the seconds by which records come to their ends.
    """

    shared = False
    sealed = True  # nothing lies anywhere

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        most: int = RECORDS,
        most_bytes: int = RECORDS_BYTES,
    ) -> None:
        self._clock = clock
        self._book = Book(most=most, most_bytes=most_bytes)
        self._lock = threading.Lock()

    async def aclose(self) -> None:
        """Nothing to let go of: what is kept stays, for as long as the vault itself."""

    async def _do(self, work: Callable[[Book, float], T], *, writes: bool = True) -> T:
        with self._lock:
            return work(self._book, self._clock())
