"""Single flight: concurrent callers share one run of the same work, and its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class _SharedRun(Generic[R]):
    __slots__ = ("given_up", "task", "uncancellable", "waiting")

    def __init__(self, task: asyncio.Task[R]) -> None:
        self.task = task
        self.waiting = 0
        self.uncancellable = False
        self.given_up = False


class SingleFlight(Generic[R]):
    """Work that runs at most once at a time. Concurrent callers join it; it is cancelled when the
    last caller has gone.

    While it is `uncancellable`, it has started something that must be completed, such as using a
    token that is valid only once.
    """

    def __init__(self) -> None:
        self._run: _SharedRun[R] | None = None

    @property
    def under_way(self) -> bool:
        """Whether the work is running and can be joined."""
        return self._run is not None and not self._run.given_up

    @property
    def wanted(self) -> bool:
        """Whether a caller waits for it."""
        return self._run is not None and self._run.waiting > 0

    @contextmanager
    def uncancellable(self) -> Iterator[None]:
        """A block in which the work is not cancelled, even if no caller waits. The work itself
        enters it.
        """
        run = self._run
        assert run is not None
        run.uncancellable = True
        try:
            yield
        finally:
            run.uncancellable = False

    async def join(self, begin: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Return the result of the running work, or start it with `begin`. Raises what the work
        raises.

        Cancelling one caller does not affect the others. The last one cancels the work, and waits
        until it has cleaned up.
        """
        while True:
            run = self._run
            if run is None:
                run = self._run = _SharedRun(asyncio.get_running_loop().create_task(begin()))
                run.task.add_done_callback(self._done)
            elif run.given_up or run.task.get_loop() is not asyncio.get_running_loop():
                await self._wait_until_ended(run)
                continue
            run.waiting += 1
            try:
                await asyncio.wait([run.task])
            finally:
                run.waiting -= 1
                if not run.waiting and not run.uncancellable and not run.task.done():
                    run.given_up = True
                    run.task.cancel()
                    await asyncio.wait([run.task])
            if not run.task.cancelled():
                return run.task.result()

    async def _wait_until_ended(self, run: _SharedRun[R]) -> None:
        """Wait until cancelled work has ended; the work of a closed event loop has ended
        already.
        """
        if run.task.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([run.task])
        elif run.task.get_loop().is_closed():
            self._run = None
        else:
            raise RuntimeError(
                "this authorization is in use in another event loop; create one for each loop"
            )

    def _done(self, task: asyncio.Task[R]) -> None:
        if self._run is not None and self._run.task is task:
            self._run = None
        if not task.cancelled():
            task.exception()  # marks it as retrieved: waiting callers get it, but there may be none


class SingleFlightGroup(Generic[K, R]):
    """Pieces of work by key, each of which runs at most once at a time.

    They continue even if no caller waits any more.
    """

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[R]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, key: K) -> bool:
        return key in self._tasks

    async def join(self, key: K, begin: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Return the result of the running work for this key, or start it with `begin`. Raises what
        the work raises.
        """
        task = self._tasks.get(key)
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = self._tasks[key] = asyncio.get_running_loop().create_task(begin())
            task.add_done_callback(lambda done: self._over(key, done))
        return await asyncio.shield(task)  # one caller may be cancelled while the others still wait

    def _over(self, key: K, task: asyncio.Task[R]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]

    async def aclose(self) -> None:
        """Cancel all running work."""
        here = [
            task for task in self._tasks.values() if task.get_loop() is asyncio.get_running_loop()
        ]
        for task in here:
            task.cancel()
        await asyncio.gather(*here, return_exceptions=True)
