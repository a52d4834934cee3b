"""What is kept in memory for a while, within bounds of number and size: what was not used for longest goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Shelf(Generic[Value]):
    """Values by their keys, at most `most` of them and together at most `most_bytes`."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[str]:
        """The keys, those used last first."""
        return reversed(self._kept)

    def get(self, key: str) -> Value | None:
        """What is kept under a key."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def put(self, key: str, value: Value, size: int) -> None:
        """Keep a value of so many bytes, unless it alone is more than there is room for."""
        self.drop(key)
        if size > self._most_bytes:
            return
        self._kept[key] = value, size
        self.size += size
        while len(self._kept) > self._most or self.size > self._most_bytes:
            self.drop(next(iter(self._kept)))

    def drop(self, key: str) -> None:
        """Keep it no longer."""
        found = self._kept.pop(key, None)
        self.size -= 0 if found is None else found[1]
