"""Timeouts by an injected clock, tasks that clean up to their end, and a throttle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

log = logging.getLogger("interlock_apps.host")

Sleep = Callable[[float], Awaitable[None]]
"""Waits for some seconds."""


async def within(work: asyncio.Future[Any], seconds: float | None, sleep: Sleep) -> bool:
    """Wait for work for at most some seconds (None: no limit); return whether it is done.

    The work is not cancelled.
    """
    if seconds is None:
        await asyncio.wait({work})
        return True
    timer = asyncio.ensure_future(sleep(seconds))
    try:
        await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancelled(timer)
    return work.done()


async def cancelled(*work: asyncio.Future[Any]) -> None:
    """Cancel work and wait until it has ended, whatever the outcome."""
    for one in work:
        one.cancel()
    if work:
        await asyncio.wait(work)
    for one in work:
        if one.done() and not one.cancelled():
            one.exception()  # marks the exception as retrieved


class CleanupTasks:
    """Tasks that run to their end even if their caller is cancelled."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work in its own task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (bad := task.exception()) is not None:
            log.error("ending a server failed", exc_info=bad)

    async def finish(self) -> None:
        """Wait until all tasks are done, except the current one.

        A cancellation of the wait is raised afterwards.
        """
        called_back: asyncio.CancelledError | None = None
        while left := self._tasks - {asyncio.current_task()}:
            try:
                await asyncio.wait(left)
            except asyncio.CancelledError as bad:
                called_back = bad
        if called_back is not None:
            raise called_back


class Throttle:
    """Runs a function at once, but at most once in `seconds`, and once more after a burst.

    `do` must not raise.
    """

    def __init__(self, do: Callable[[], Awaitable[None]], seconds: float, sleep: Sleep) -> None:
        self._do = do
        self._seconds = seconds
        self._sleep = sleep
        self._wanted = False
        self._task: asyncio.Task[None] | None = None

    def request(self) -> None:
        """Request a run, now or as soon as the throttle allows."""
        self._wanted = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._wanted:
            self._wanted = False
            await self._do()
            await self._sleep(self._seconds)

    async def aclose(self) -> None:
        """Drop pending requests, and cancel a run that has started."""
        self._wanted = False
        if self._task is not None:
            await cancelled(self._task)
