"""One piece of work for all who want what comes of it at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class _Run(Generic[R]):
    __slots__ = ("firm", "given_up", "task", "waiting")

    def __init__(self, task: asyncio.Task[R]) -> None:
        self.task, self.waiting, self.firm, self.given_up = task, 0, False, False


class Flight(Generic[R]):
    """Work that is under way at most once: who wants it joins, and it is given up once nobody waits for it any more.

    While it is `firm` it is not: it has begun what must be ended, as spending what can be spent only once.
    """

    def __init__(self) -> None:
        self._run: _Run[R] | None = None

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
        """What comes of the work that is under way, or else of that which is begun here. Raises what it raises.

        Who is cancelled takes nobody else along; the last one ends the work, and waits until it has cleared up.
        """
        while True:
            run = self._run
            if run is None:
                run = self._run = _Run(asyncio.get_running_loop().create_task(begin()))
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

    async def _see_off(self, run: _Run[R]) -> None:
        """Wait until work that was given up has ended; that of an event loop which is no more has."""
        if run.task.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([run.task])
        elif run.task.get_loop().is_closed():
            self._run = None
        else:
            raise RuntimeError("this authorization is in use in another event loop; make one for each loop")

    def _done(self, task: asyncio.Task[R]) -> None:
        if self._run is not None and self._run.task is task:
            self._run = None
        if not task.cancelled():
            task.exception()  # whoever waits is told; nobody need
