"""How many requests one address may make in a minute of those that leave a record behind, or send us for a document."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from .throttle import place_of

EACH_MINUTE = {"register": 30, "device": 30, "authorize": 120, "document": 30}
"""Requests of each kind; whole offices may share an address, and log in at nine. Documents are those that had to be fetched."""

_ADDRESSES = 10_000


class Rush:
    """Counts requests of one kind, in each process by itself. `clock` gives the seconds of the wall clock."""

    def __init__(self, kind: str, clock: Callable[[], float]) -> None:
        self._most, self._clock = EACH_MINUTE[kind], clock
        self._recent: OrderedDict[str, tuple[int, int]] = (
            OrderedDict()
        )  # by address: the minute, and how many in it

    def is_over(self, address: str) -> bool:
        """Count one more; whether it is one too many."""
        place, minute = place_of(address), int(self._clock() // 60)
        last, count = self._recent.pop(place, (minute, 0))
        count = count + 1 if last == minute else 1
        self._recent[place] = (minute, count)
        while len(self._recent) > _ADDRESSES:
            self._recent.popitem(last=False)
        return count > self._most
