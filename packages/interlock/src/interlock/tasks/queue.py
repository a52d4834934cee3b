"""The interface of a task queue: it delivers the keys of tasks to a fleet of workers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol


class TaskQueue(Protocol):
    """A message queue between the servers, which create tasks, and the workers, which run them.

    The queue gets the keys of tasks and nothing else: arguments, questions and results are in the
    store of the tasks. It may deliver a key late, twice, or to several workers; the lease in the
    record of the task decides who runs it.
    """

    async def open(self, store: str | None) -> None:
        """Connect.

        Args:
            store: The URL of the store of the tasks, if it is known.

        Raises:
            StoreError: The queue cannot be reached.
            ValueError: The queue has no URL.
        """
        ...

    async def put(self, key: str, delivery: str) -> None:
        """Queue the key of a task.

        Args:
            key: The key.
            delivery: A name of this delivery. If it is queued already, nothing happens.

        Raises:
            StoreError: The queue failed.
        """
        ...

    async def consume(self, run: Callable[[str], Awaitable[None]]) -> None:
        """Call `run` with each delivered key, until cancelled. What `run` has begun goes on."""
        ...

    async def aclose(self) -> None:
        """Disconnect."""
        ...
