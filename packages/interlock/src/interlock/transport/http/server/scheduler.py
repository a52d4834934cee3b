"""Fair queueing of requests: when more of them are ready than one turn of the event loop should
start, the holders (principals or addresses) start theirs in turn (round robin). The same holds for
requests that have waited and continue.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

MOST_DIRECT = 2
"""The number of requests that one turn of the event loop starts without a queue."""
_SLICE = 0.0001  # seconds after which the event loop looks for new data before the next request


class Schedulable(Protocol):
    """The members of a connection, or of a request that continues, that the scheduler uses."""

    def start_next(self) -> None:
        """Start the next request of the connection, if it has one, or run the next step of the
        request.
        """


C = TypeVar("C", bound=Schedulable)


class RequestScheduler(Generic[C]):
    """Decides which connection starts a request next, and which request continues next.

    In each round, every holder with ready requests starts one of them. A holder that had none waits
    for the rest of the current round at most: at most one request of each other holder starts
    before its own. Between the requests, the event loop receives new ones. A request that continues
    counts like one that starts.

    Args:
        call_soon: Calls a function in the next turn of the event loop.
        clock: Returns the time in seconds.

    Attributes:
        waiting: The number of connections and requests that wait.
    """

    __slots__ = (
        "_call_soon",
        "_clock",
        "_continued",
        "_direct",
        "_first",
        "_later",
        "_round",
        "waiting",
    )

    def __init__(
        self,
        call_soon: Callable[[Callable[[], object]], object],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._call_soon = call_soon
        self._clock = clock
        self._round: dict[str, deque[C]] = {}  # holders that have not started one in this round
        self._later: dict[str, deque[C]] = {}  # holders that have; a line may be empty
        self._continued = 0  # requests that continued without a queue since the last one
        self._direct = 0  # requests that were started without a queue in this turn
        self._first: C | None = None  # the connection of the first of them
        self.waiting = 0

    def may_start(self, connection: C) -> bool:
        """Whether a connection may start a request now. If not, it queues.

        Args:
            connection: The connection, at most once in each turn of the event loop.
        """
        if self.waiting:
            return False
        if connection is self._first:  # so this is another turn
            self._direct = 1
            return True
        if self._direct >= MOST_DIRECT:
            return False
        if not self._direct:
            self._first = connection
        self._direct += 1
        return True

    def may_continue(self) -> bool:
        """Whether a request that has waited may continue now. If not, it queues: nothing says that
        the event loop has turned, so every third one does.
        """
        if self.waiting or self._continued >= MOST_DIRECT:
            return False
        self._continued += 1
        return True

    def queue(self, connection: C, holder: str) -> None:
        """Let a connection start its next request, or a request continue, when it is its holder's
        turn.
        """
        line = self._later.get(holder)
        if line is None:
            line = self._round.get(holder)
            if line is None:
                line = self._round[holder] = deque()
        line.append(connection)
        self.waiting += 1
        if self.waiting == 1:
            self._call_soon(self._run)

    def forget(self, connection: C) -> None:
        """Release a connection that is closed."""
        if connection is self._first:
            self._first = None

    def _run(self) -> None:
        """Start requests for a moment."""
        clock = self._clock
        end = clock() + _SLICE
        try:
            while self.waiting:
                if not self._round:
                    self._round = {holder: line for holder, line in self._later.items() if line}
                    self._later = {}
                holder = next(iter(self._round))
                line = self._later[holder] = self._round.pop(holder)
                connection = line.popleft()
                self.waiting -= 1
                connection.start_next()
                if clock() >= end:
                    break
        finally:
            if self.waiting:
                self._call_soon(self._run)
            else:
                self._later.clear()
                self._continued = 0
                self._direct = 0
                self._first = None
