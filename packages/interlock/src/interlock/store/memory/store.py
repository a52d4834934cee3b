"""MemoryStore: everything that the workers of one process share, in memory."""

from __future__ import annotations

import time
from collections.abc import Callable

from .. import bounds
from .events import MemoryEvents
from .rates import MemoryRates
from .records import MemoryRecords
from .sessions import MemorySessions
from .topics import MemoryTopic
from .workers import MemoryWorkers


class MemoryStore:
    """Keeps everything in memory, for the workers of one process.

    Args:
        clock: Returns the time in seconds, for the age of streams.
        event_bytes: The maximum size of all events of all sessions, in bytes. Above it, the oldest
            events of the caller with the most of them are removed.
    """

    shared = False

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        event_bytes: int = bounds.EVENT_BYTES,
    ) -> None:
        self.events = MemoryEvents(clock, event_bytes)
        self.sessions = MemorySessions(self.events.forget)
        self.events.holder_of = self.sessions.holder_of
        self.changes = MemoryTopic(bounds.CHANGES)
        self.notes = MemoryTopic(bounds.CHANGES)
        self.rates = MemoryRates()
        self.records = MemoryRecords()
        self.workers = MemoryWorkers()

    async def open(self) -> None:
        """Do nothing: there is no connection."""

    async def aclose(self) -> None:
        """Do nothing: the contents live as long as this object."""
