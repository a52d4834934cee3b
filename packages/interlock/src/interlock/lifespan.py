"""The lifespan of a server: entered for the first peer, left after the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any


class Lifespan:
    """One async context manager that all connections share. A separate task enters and leaves it,
    because a context manager must be left in the task that entered it.
    """

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[Any]] | None) -> None:
        self._make = make
        self._users = 0
        self._task: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Any] | None = None
        self._over: asyncio.Event | None = None
        self.state: Any = None

    @property
    def users(self) -> int:
        """The number of peers that are served now."""
        return self._users

    async def enter(self) -> None:
        """Add a user. Raises whatever entering the context manager raises."""
        self._users += 1
        if self._make is None:
            return
        try:
            while (
                self._leaving is not None and not self._leaving.done()
            ):  # the last user before this one is still leaving
                await asyncio.wait({self._leaving})
            if self._task is None:
                self._ready = asyncio.get_running_loop().create_future()
                self._over = asyncio.Event()
                self._task = asyncio.create_task(self._live(self._make, self._ready, self._over))
            if self._ready is not None:
                self.state = await asyncio.shield(self._ready)
        except BaseException:
            await self.leave()
            raise

    async def leave(self) -> None:
        """Remove a user. The last user waits until the context manager is left, and gets what
        leaving it raises.
        """
        self._users -= 1
        if self._users > 0 or self._task is None or self._over is None:
            return
        self._leaving = self._task
        self._task = None
        self._ready = None
        self._over.set()
        await _to_the_end(self._leaving)

    async def _live(
        self,
        make: Callable[[], AbstractAsyncContextManager[Any]],
        ready: asyncio.Future[Any],
        over: asyncio.Event,
    ) -> None:
        try:
            async with make() as state:
                ready.set_result(state)
                await over.wait()
        except BaseException as bad:
            if ready.done():
                raise
            ready.set_exception(bad)
            ready.exception()
        finally:
            self.state = None


async def _to_the_end(task: asyncio.Task[None]) -> None:
    """Wait for a task. It is not cancelled with its waiter, which waits on; a second cancellation
    ends the wait.
    """
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
