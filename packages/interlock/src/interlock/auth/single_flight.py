"""Single flight: concurrent callers share one run of the same work, and its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class _SharedRun(Generic[R]):
    __slots__ = ("firm", "given_up", "task", "waiting")

    def __init__(self, task: asyncio.Task[R]) -> None:
        self.task = task
        self.waiting = 0
        self.firm = False
        self.given_up = False


class SingleFlight(Generic[R]):
    """Work that is under way at most once: who wants it joins, and it is given up once nobody waits
    for it any more.

    While it is `firm` it is not: it has begun what must be ended, as spending what can be spent
    only once.
    """

    def __init__(self) -> None:
        self._run: _SharedRun[R] | None = None

    @property
    def under_way(self) -> bool:
        """Whether there is something to join."""
        return self._run is not None and not self._run.given_up

    @property
    def wanted(self) -> bool:
        """Whether anybody waits."""
        return self._run is not None and self._run.waiting > 0

    @contextmanager
    def firm(self) -> Iterator[None]:
        """In this block the work, from which it is entered, goes on also where nobody waits."""
        run = self._run
        assert run is not None
        run.firm = True
        try:
            yield
        finally:
            run.firm = False

    async def join(self, begin: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """What comes of the work that is under way, or else of that which is begun here.

        Raises what it raises.

        Who is cancelled takes nobody else along; the last one ends the work, and waits until it has
        cleared up.
        """
        while True:
            run = self._run
            if run is None:
                run = self._run = _SharedRun(asyncio.get_running_loop().create_task(begin()))
                run.task.add_done_callback(self._done)
            elif run.given_up or run.task.get_loop() is not asyncio.get_running_loop():
                await self._see_off(run)
                continue
            run.waiting += 1
            try:
                await asyncio.wait([run.task])
            finally:
                run.waiting -= 1
                if not run.waiting and not run.firm and not run.task.done():
                    run.given_up = True
                    run.task.cancel()
                    await asyncio.wait([run.task])
            if not run.task.cancelled():
                return run.task.result()

    async def _see_off(self, run: _SharedRun[R]) -> None:
        """Wait until work that was given up has ended;
        that of an event loop which is no more has."""
        if run.task.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([run.task])
        elif run.task.get_loop().is_closed():
            self._run = None
        else:
            raise RuntimeError(
                "this authorization is in use in another event loop; make one for each loop"
            )

    def _done(self, task: asyncio.Task[R]) -> None:
        if self._run is not None and self._run.task is task:
            self._run = None
        if not task.cancelled():
            task.exception()  # whoever waits is told; nobody need


class SingleFlightGroup(Generic[K, R]):
    """Pieces of work by a key, each under way at most once.

    They go on also where nobody waits for them any more.
    """

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[R]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, key: K) -> bool:
        return key in self._tasks

    async def join(self, key: K, begin: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """What comes of the work that is under way, or else of that which is begun here.

        Raises what it raises.
        """
        task = self._tasks.get(key)
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = self._tasks[key] = asyncio.get_running_loop().create_task(begin())
            task.add_done_callback(lambda done: self._over(key, done))
        return await asyncio.shield(task)  # who waits may go away; the others still want it

    def _over(self, key: K, task: asyncio.Task[R]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]

    async def aclose(self) -> None:
        """Give up what is under way."""
        here = [
            task for task in self._tasks.values() if task.get_loop() is asyncio.get_running_loop()
        ]
        for task in here:
            task.cancel()
        await asyncio.gather(*here, return_exceptions=True)
