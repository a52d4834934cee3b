"""Heartbeats of workers, in Redis."""

from __future__ import annotations

from .. import bounds
from .connection import Link

# extra seconds for a key, because the clocks of workers and server may differ
_SLACK = 60.0


class RedisWorkers:
    """A WorkerStore in Redis."""

    def __init__(self, link: Link, prefix: str) -> None:
        self._link = link
        self._prefix = f"{prefix}worker:"

    async def heartbeat(self, worker: str, *, until: float) -> None:
        """Record that this worker is alive until then."""
        await self._link.ask(
            "SET", self._prefix + worker, repr(until), "PXAT", int((until + _SLACK) * 1000)
        )

    async def is_alive(self, worker: str, *, now: float) -> bool:
        """Whether a worker is alive."""
        until = await self._link.ask("GET", self._prefix + worker)
        return until is not None and now <= float(until) <= now + bounds.HEARTBEAT_SECONDS

    async def withdraw(self, worker: str) -> None:
        """Record that a worker has ended in good order."""
        await self._link.ask("DEL", self._prefix + worker)
