"""The connection limit: how many TCP connections are open, in all and by address."""

from __future__ import annotations

from collections import defaultdict
from heapq import nlargest
from typing import Generic, Protocol, TypeVar

from .limits import ConnectionLimits

_MOST_HOLDERS = 8  # among whose connections an idle one is looked for
_MOST_LOOKS = 1000


class Countable(Protocol):
    """A connection as the table sees it."""

    @property
    def holder(self) -> str:
        """The address, or network, that it counts for."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way on it."""
        ...

    def close_idle(self) -> None:
        """Close it; no request is under way on it."""


C = TypeVar("C", bound=Countable)


class ConnectionTable(Generic[C]):
    """The open connections, by holder, the oldest first."""

    __slots__ = ("_by_holder", "_count", "_limits")

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._by_holder: defaultdict[str, dict[C, None]] = defaultdict(dict)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def all(self) -> list[C]:
        """Every open connection."""
        return [each for held in self._by_holder.values() for each in held]

    def admit(self, connection: C) -> bool:
        """Add a connection. False where there is no room for it, and none can be made."""
        held = self._by_holder.get(connection.holder, ())
        if len(held) >= self._limits.connections_per_address:
            return False
        if self._count >= self._limits.connections and not self._evict(len(held)):
            return False
        self._by_holder[connection.holder][connection] = None
        self._count += 1
        return True

    def discard(self, connection: C) -> None:
        """Remove a connection that is closed."""
        held = self._by_holder.get(connection.holder)
        if held is not None and connection in held:
            del held[connection]
            self._count -= 1
            if not held:
                del self._by_holder[connection.holder]

    def _evict(self, own: int) -> bool:
        """Close an idle connection of one of those who hold the most, no fewer than `own`."""
        looks = _MOST_LOOKS
        for held in nlargest(_MOST_HOLDERS, self._by_holder.values(), len):
            if len(held) < own:
                return False
            for each in held:
                if each.is_idle:
                    self.discard(each)
                    each.close_idle()
                    return True
                looks -= 1
                if not looks:
                    return False
        return False
