"""Jobs of the setup: work in the background whose progress a page follows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from interlock import InterlockError

MOST_EVENTS = 2_000
"""Events that one job keeps; later ones are counted and dropped."""
MOST_JOBS = 50
"""Ended jobs that can still be read."""


class SetupJob:
    """Work in the background: a test of a server, an examination, a login.

    Attributes:
        id: Its id.
        events: What happened so far, as JSON objects with a `kind`.
        done: Whether it has ended.
        reply: Receives what the user gives to a job that waits for it.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self.events: list[dict[str, Any]] = []
        self.done = False
        self.reply: Callable[[str], None] | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, kind: str, **more: Any) -> None:
        """Add an event."""
        if len(self.events) < MOST_EVENTS or kind == "ended":
            self.events.append({"kind": kind, **more})
            self._wake()

    def start(self, work: Callable[[SetupJob], Awaitable[None]]) -> None:
        """Run the work. An error ends the job, and is its last event."""
        self._task = asyncio.get_running_loop().create_task(self._run(work))

    async def after(self, number: int, seconds: float) -> list[dict[str, Any]]:
        """Return the events after the first `number`, as soon as there is one, or the job ends.

        Args:
            number: The number of events that are known already.
            seconds: The longest wait; afterwards the list is empty.
        """
        try:
            async with asyncio.timeout(seconds):
                while len(self.events) <= number and not self.done:
                    await self._changed.wait()
        except TimeoutError:
            pass
        return self.events[number:]

    async def cancel(self) -> None:
        """Cancel the work, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self, work: Callable[[SetupJob], Awaitable[None]]) -> None:
        try:
            await work(self)
        except (InterlockError, OSError, ValueError, ImportError) as bad:
            self.add("failed", words=str(bad))
        except asyncio.CancelledError:
            self.add("failed", words="It was cancelled.")
        finally:
            self.done = True
            self.reply = None
            self._wake()

    def _wake(self) -> None:
        changed = self._changed
        self._changed = asyncio.Event()
        changed.set()


class SetupJobs:
    """The jobs of a host."""

    def __init__(self) -> None:
        self._jobs: dict[str, SetupJob] = {}
        self._count = count(1)

    def start(self, work: Callable[[SetupJob], Awaitable[None]]) -> SetupJob:
        """Start a job."""
        for id in [id for id, job in self._jobs.items() if job.done][:-MOST_JOBS]:
            del self._jobs[id]
        job = SetupJob(f"j{next(self._count)}")
        self._jobs[job.id] = job
        job.start(work)
        return job

    def job(self, id: str) -> SetupJob:
        """Return a job. Raises ValueError if there is none with this id."""
        found = self._jobs.get(id)
        if found is None:
            raise ValueError("This is no longer running. Start it again.")
        return found

    async def aclose(self) -> None:
        """Cancel every job."""
        for job in self._jobs.values():
            await job.cancel()
