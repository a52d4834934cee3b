"""A concurrency limit with a bounded queue, which is fair between callers."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType

from ... import types as t
from ...quotas import FairQueue, Quota


class Gate:
    """Admits `most` calls at once and queues `waiting` more.

    The holders (principals or addresses) of queued calls get slots in turn, and the calls of one
    holder in order. If the queue is full, the last call of the holder with the most queued calls
    fails at once, for a holder that has fewer.
    """

    def __init__(self, most: int, waiting: int, what: str) -> None:
        if most < 1 or waiting < 0:
            raise ValueError(
                "a limit lets at least one in, and a queue is not shorter than nothing"
            )
        self.most = most
        self.waiting = waiting
        self._what = what
        self._slots = Quota(most, share=1)
        self._queue = FairQueue(self._slots, waiting, share=1)

    @property
    def inside(self) -> int:
        """The number of running calls."""
        return self._slots.used

    def slot(self, holder: str) -> AbstractAsyncContextManager[None]:
        """Return a context manager that waits for a slot, and gives it back.

        Entering it raises McpError if too many calls wait.
        """
        return _Slot(self, holder)

    async def acquire(self, holder: str) -> None:
        """Wait for a slot. Raises McpError if too many calls wait."""
        if await self._queue.acquire(holder):
            return
        words = (
            f"{self._what} is busy: {self.inside} calls are running and"
            f" {self._queue.usage().used} wait. Try again later."
        )
        raise t.McpError(t.INTERNAL_ERROR, words, {"reason": "busy"})

    def release(self, holder: str) -> None:
        """Give a slot back."""
        self._slots.release(holder)


class _Slot(AbstractAsyncContextManager[None]):
    """A slot of a gate, while a call runs."""

    __slots__ = ("_gate", "_holder")

    def __init__(self, gate: Gate, holder: str) -> None:
        self._gate = gate
        self._holder = holder

    async def __aenter__(self) -> None:
        await self._gate.acquire(self._holder)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._gate.release(self._holder)
