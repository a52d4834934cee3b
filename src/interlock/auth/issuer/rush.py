"""How many requests one address may make in a minute of those that leave a record behind, or send us for a document."""

from __future__ import annotations

from collections.abc import Callable

from ...caches import BoundedCache
from .throttle import place_of

EACH_MINUTE = {"register": 30, "device": 30, "authorize": 120, "document": 30}
"""Requests of each kind; whole offices may share an address, and log in at nine. Documents are those that had to be fetched."""

_ADDRESSES = 10_000


class Rush:
    """Counts requests of one kind, in each process by itself. `clock` gives the seconds of the wall clock."""

    def __init__(self, kind: str, clock: Callable[[], float]) -> None:
        self._most, self._clock = EACH_MINUTE[kind], clock
        # By address: the minute, and how many in it.
        self._recent: BoundedCache[str, tuple[int, int]] = BoundedCache(_ADDRESSES)

    def is_over(self, address: str) -> bool:
        """Count one more; whether it is one too many."""
        place, minute = place_of(address), int(self._clock() // 60)
        last, count = self._recent.peek(place) or (minute, 0)
        count = count + 1 if last == minute else 1
        self._recent.put(place, (minute, count))
        return count > self._most
