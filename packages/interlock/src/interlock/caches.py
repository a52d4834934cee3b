"""A bounded in-memory cache: the least recently used entries are evicted."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """An LRU cache, bounded by its number of entries, by their total size, or by both.

    It belongs to one thread or event loop, and has no clock: entries do not expire.

    Args:
        most: The maximum number of entries; None for no bound.
        most_size: The maximum total of the sizes that `put` is given; None for no bound.
        on_evict: Called with the key and value of each entry that was evicted to make room.

    Attributes:
        size: The total size now.
    """

    def __init__(
        self,
        most: int | None = None,
        *,
        most_size: int | None = None,
        on_evict: Callable[[K, V], object] | None = None,
    ) -> None:
        self._most = most
        self._most_size = most_size
        self._on_evict = on_evict
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size = 0

    def get(self, key: K) -> V | None:
        """The value of a key, which becomes the most recently used; None if there is no entry."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def peek(self, key: K) -> V | None:
        """The value of a key, without counting as a use."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: K, value: V, size: int = 0) -> None:
        """Cache a value as the most recently used one. A value larger than the whole cache is not
        cached.

        Args:
            key: The key.
            value: The value.
            size: The size of the value, in bytes.
        """
        self.pop(key)
        if self._most_size is not None and size > self._most_size:
            return
        self._entries[key] = value, size
        self.size += size
        while self._is_over():
            self._evict()

    def pop(self, key: K) -> V | None:
        """Remove an entry and return its value; None if there is no entry."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self.size -= entry[1]
        return entry[0]

    def remove_if(self, is_stale: Callable[[K], bool]) -> bool:
        """Remove all entries whose key fulfils a condition. Returns whether there were any."""
        stale = [key for key in self._entries if is_stale(key)]
        for key in stale:
            self.pop(key)
        return bool(stale)

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self.size = 0

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        """The keys, the least recently used first."""
        return iter(self._entries)

    def __reversed__(self) -> Iterator[K]:
        """The keys, the most recently used first."""
        return reversed(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _is_over(self) -> bool:
        if self._most is not None and len(self._entries) > self._most:
            return True
        return self._most_size is not None and self.size > self._most_size

    def _evict(self) -> None:
        key, (value, size) = self._entries.popitem(last=False)
        self.size -= size
        if self._on_evict is not None:
            self._on_evict(key, value)
