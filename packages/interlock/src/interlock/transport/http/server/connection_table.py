"""The connection limit: the number of open TCP connections, in total and per address."""

from __future__ import annotations

from collections import defaultdict
from heapq import nlargest
from typing import Generic, Protocol, TypeVar

from ....quotas import QuotaUsage
from .limits import ConnectionLimits

_MOST_HOLDERS = 8  # the holders among whose connections an idle one is searched
_MOST_LOOKS = 1000


class Countable(Protocol):
    """The members of a connection that the table uses."""

    @property
    def holder(self) -> str:
        """The address or network that the connection is counted under."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether no request is running on it."""
        ...

    def close_idle(self) -> None:
        """Close the connection, on which no request is running."""


C = TypeVar("C", bound=Countable)


class ConnectionTable(Generic[C]):
    """The open connections by holder, the oldest first."""

    __slots__ = ("_by_holder", "_count", "_evicted", "_limits", "_refused")

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._by_holder: defaultdict[str, dict[C, None]] = defaultdict(dict)
        self._count = 0
        self._refused = 0
        self._evicted = 0

    def __len__(self) -> int:
        return self._count

    @property
    def holders(self) -> int:
        """The number of holders with open connections."""
        return len(self._by_holder)

    def all(self) -> list[C]:
        """Return every open connection."""
        return [each for held in self._by_holder.values() for each in held]

    def admit(self, connection: C) -> bool:
        """Add a connection. Returns False if the table is full and no idle connection can be
        closed.
        """
        held = self._by_holder.get(connection.holder, ())
        if len(held) >= self._limits.connections_per_address or (
            self._count >= self._limits.connections and not self._evict(len(held))
        ):
            self._refused += 1
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

    def usage(self) -> QuotaUsage:
        """Return the counters."""
        return QuotaUsage(
            used=self._count,
            limit=self._limits.connections,
            holders=len(self._by_holder),
            largest=max(map(len, self._by_holder.values()), default=0),
            refused=self._refused,
            evicted=self._evicted,
        )

    def _evict(self, own: int) -> bool:
        """Close an idle connection of one of the largest holders, with at least `own`
        connections.
        """
        looks = _MOST_LOOKS
        for held in nlargest(_MOST_HOLDERS, self._by_holder.values(), len):
            if len(held) < own:
                return False
            for each in held:
                if each.is_idle:
                    self._evicted += 1
                    self.discard(each)
                    each.close_idle()
                    return True
                looks -= 1
                if not looks:
                    return False
        return False
