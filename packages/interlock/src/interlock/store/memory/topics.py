"""Topics in memory."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice

from .. import records
from ..subscribers import Listeners, Receive


class MemoryTopic:
    """A Topic in memory that keeps the last `most` notes."""

    def __init__(self, most: int) -> None:
        self._kept: deque[bytes] = deque(maxlen=most)
        # Numbers start at the time of day, so that a position from before a restart is not mistaken
        # for a current one.
        self._newest = time.time_ns() // 1_000_000
        self._lock = threading.Lock()
        self._listeners = Listeners()

    @property
    def position(self) -> str:
        """The position of the newest note that the listeners of this event loop have received."""
        with self._lock:
            return str(self._listeners.before(self._newest))

    def publish(self, note: bytes) -> None:
        """Publish a note, from any thread."""
        with self._lock:
            self._newest += 1
            self._kept.append(note)
            self._listeners.put(note, self._newest)
        self._listeners.wake()

    async def publish_confirmed(self, note: bytes) -> None:
        """Publish a note."""
        self.publish(note)

    def subscribe(self, receive: Receive) -> Callable[[], None]:
        """Call `receive` with each note and its position until the returned function is called."""
        return self._listeners.add(receive)

    async def replay(self, position: str) -> list[tuple[bytes, str]] | None:
        """Return the notes after a position, the oldest first.

        None if some of them are no longer kept, or the position is unknown.
        """
        after = records.number(position)
        with self._lock:
            before_first = self._newest - len(self._kept)
            if after is None or not before_first <= after <= self._newest:
                return None
            notes = list(islice(self._kept, after - before_first, None))
        return [(note, str(number)) for number, note in enumerate(notes, after + 1)]
