"""The calls of one endpoint that run in this process: counted against a limit, and ended when the
server shuts down.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.events import CallId
from ...quotas import HELD_PER_BYTE, FairQueue, Quota, QuotaUsage, holder_of_address
from ..serve import Serving
from .limits import Limits
from .requests import EndpointRequest
from .ticker import Ticker

_SMALL = 4096  # bytes of a body that is not counted, because the limit on calls bounds it
_QUANTUM = 256 * 1024  # held bytes that a caller may run in each round of the queue


class RunningCalls:
    """Counts running calls by caller, and can answer stateless calls in place of their handlers.

    Args:
        limits: The limits of the endpoint.
        memory: The memory budget of the server.
        ticker: The clock of the endpoint.

    Attributes:
        slots: The quota of running calls: stateless ones, those in sessions, and handled
            notifications.
        memory: The memory budget of the server, in bytes.
        busy_from: The number of running calls from which on the server is busy.
        servings: Stateless calls that have sent a notification, or have run for some time.
    """

    __slots__ = (
        "_ended",
        "_queue",
        "_seconds",
        "_ticker",
        "busy_from",
        "memory",
        "servings",
        "slots",
    )

    def __init__(self, limits: Limits, memory: Quota, ticker: Ticker) -> None:
        self.slots = Quota(limits.calls, limits.share)
        self._queue = FairQueue(self.slots, limits.queue, quantum=_QUANTUM, share=limits.share)
        self.busy_from = limits.calls // 2 + 1
        self._seconds = limits.queue_seconds
        self.memory = memory
        self._ticker = ticker
        self._ended: set[Serving] = set()
        self.servings: set[Serving] = set()

    @property
    def is_full(self) -> bool:
        """Whether the limit on running calls is reached."""
        return self.slots.used >= self.slots.limit

    async def acquire(self, holder: str, held: int) -> str:
        """Start a call as soon as there is room for it.

        Args:
            holder: The holder that it counts for.
            held: The memory that it holds (`held_bytes`), in bytes.

        Returns:
            The resource that is used up, if the call may not run; otherwise empty.
        """
        if held and not self.memory.acquire(holder, held):
            return "large requests"
        is_in = False
        try:
            is_in = await self._queue.acquire(holder, self._seconds, max(held, _QUANTUM))
        finally:
            if held and not is_in:
                self.memory.release(holder, held)
        return "" if is_in else "calls"

    def release(self, holder: str, held: int, calls: int = 1) -> None:
        """End a call, or all calls of a batch."""
        if held:
            self.memory.release(holder, held)
        self.slots.release(holder, calls)

    def close_queue(self) -> None:
        """Refuse all waiting calls."""
        self._queue.close()

    def queue_usage(self) -> QuotaUsage:
        """Return the counters of the places in the queue."""
        return self._queue.usage()

    def all(self) -> list[Serving]:
        """Return every running stateless call. From now on each can be answered from outside."""
        for call in list(self._ticker.light):
            call.grow()
        return list(self.servings)

    def answer(self, serving: Serving, answer: Callable[[Serving, CallId], None]) -> None:
        """Answer calls in place of their handlers, and cancel the handlers of stateless calls.

        The owner of the serving cancels the handlers of other calls.
        """
        running = dict(serving.running)
        for id in running:
            answer(serving, id)
        serving.flush()
        if serving in self.servings:
            self._ended.add(serving)
            for task in running.values():
                task.cancel()

    def was_answered(self, serving: Serving) -> bool:
        """Whether the calls of a serving were answered in place of their handlers."""
        return serving in self._ended

    def discard(self, serving: Serving) -> None:
        """Remove a stateless call that has ended."""
        self.servings.discard(serving)
        self._ended.discard(serving)


def quota_holder(request: EndpointRequest) -> str:
    """Return the holder that a request counts for: its principal, or its address."""
    principal = request.principal
    if principal is not None:
        return principal.key
    client = request.client
    return holder_of_address(client[0] if client else None)


def held_bytes(size: int) -> int:
    """Return the memory that a call with a body of `size` bytes holds; 0 if it is not counted."""
    return size * HELD_PER_BYTE if size > _SMALL else 0
