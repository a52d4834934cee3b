"""Heartbeats of workers, in memory."""

from __future__ import annotations

from .. import bounds


class MemoryWorkers:
    """A WorkerStore in memory."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    async def heartbeat(self, worker: str, *, until: float) -> None:
        """Record that this worker is alive until then."""
        if worker not in self._until:
            self._until = {
                each: end for each, end in self._until.items() if end >= until - bounds.WORKER_AGE
            }
        self._until[worker] = until

    async def is_alive(self, worker: str, *, now: float) -> bool:
        """Whether a worker is alive."""
        until = self._until.get(worker)
        return until is not None and now <= until <= now + bounds.HEARTBEAT_SECONDS

    async def withdraw(self, worker: str) -> None:
        """Record that a worker has ended in good order."""
        self._until.pop(worker, None)
