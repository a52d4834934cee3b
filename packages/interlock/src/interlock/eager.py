"""Eager tasks: their first step runs before they are returned."""

from __future__ import annotations

import asyncio
import sys
from asyncio import sleep
from collections.abc import Coroutine
from contextvars import Context, copy_context
from sys import getrefcount
from typing import Any, TypeVar

T = TypeVar("T")

if sys.version_info >= (3, 12):

    def start_task(
        work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop
    ) -> asyncio.Task[T]:
        """Return a task that starts at once: a call that never waits is answered in the same turn
        of the event loop.
        """
        return asyncio.Task(work, loop=loop, eager_start=True)

    start_eagerly = start_task

else:

    def start_task(
        work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop
    ) -> asyncio.Task[T]:
        """Return a task that starts in the next turn of the event loop."""
        return loop.create_task(work)

    class _Body(Coroutine[Any, Any, Any]):
        """The body of a task that is created ahead of time and runs a coroutine later.

        Most coroutines end in their first step. `start_eagerly` runs that step in the name of this
        task, but the task itself does not run. So the task stays unused and can serve the next
        coroutine.
        """

        __slots__ = (
            "_context",
            "_idle",
            "_is_handed_over",
            "_none",
            "_waits_for",
            "_work",
            "loop",
            "task",
        )

        def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
            self.loop = loop
            self._work: Coroutine[Any, Any, Any] | None = None
            self._context: Context
            self._waits_for: Any = None
            self._is_handed_over = False  # the task waits for what the first step waits for
            self._idle: asyncio.Future[None] | None = None
            # The outcome of every coroutine that ends in its first step without a result.
            self._none: asyncio.Future[Any] = loop.create_future()
            self._none.set_result(None)
            self.task: asyncio.Task[Any] = loop.create_task(self)
            # asyncio neither lists the task nor warns about its loss before it has a coroutine.
            self.task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio's own
            asyncio._unregister_task(self.task)

        def start(
            self, work: Coroutine[Any, Any, Any], context: Context
        ) -> asyncio.Future[Any] | None:
            """Run the first step of a coroutine. Returns the outcome, or None if the coroutine
            continues in the task.
            """
            task = self.task
            holders = getrefcount(task)
            try:
                waits_for = context.run(work.send, None)
            except StopIteration as end:
                outcome = self._none
                if end.value is not None:
                    outcome = self.loop.create_future()
                    outcome.set_result(end.value)
            except asyncio.CancelledError:
                outcome = self.loop.create_future()
                outcome.cancel()
            except Exception as bad:
                outcome = self.loop.create_future()
                outcome.set_exception(bad)
            else:
                self._work = work
                self._context = context
                self._waits_for = waits_for
                asyncio._register_task(task)
                if self._idle is not None and not self._idle.done():
                    self._idle.set_result(None)
                return None
            if getrefcount(task) == holders and not task.cancelling() and not task.done():
                if len(_spares) < _MOST_SPARES:
                    _spares.append(self)
            else:  # the coroutine kept its task: the task ends as an eager task would
                asyncio._register_task(task)
                task.add_done_callback(_retrieve)
                self._work = _ended(outcome)
                self._context = context
                self._waits_for = self._work.send(None)
                if self._idle is not None and not self._idle.done():
                    self._idle.set_result(None)
            return outcome

        def send(self, value: Any) -> Any:
            """Continue the coroutine. The first time, wait for the future that the first step waits
            for.
            """
            if self._work is None:
                self._idle = self.loop.create_future()
                self._idle._asyncio_future_blocking = True
                return self._idle
            if not self._is_handed_over:
                self._is_handed_over = True
                return self._waits_for
            try:
                return self._context.run(self._work.send, value)
            except BaseException:
                self._release()
                raise

        def throw(self, *error: Any) -> Any:
            """Raise an exception at the point where the coroutine waits."""
            if self._work is None:
                raise error[0]
            self._is_handed_over = True
            try:
                return self._context.run(self._work.throw, *error)
            except BaseException:
                self._release()
                raise

        def _release(self) -> None:
            """Drop what the coroutine, which has ended, refers to. The task refers to this object,
            so whatever it holds would stay until the next full garbage collection.
            """
            self._work = None
            self._waits_for = None
            del self._context, self.task

        def close(self) -> None:
            """Close the coroutine."""
            if self._work is not None:
                self._work.close()

        def __await__(self) -> Any:
            raise TypeError("only a task runs this")

    # Unused tasks for the next coroutines, the newest last. Each belongs to one event loop, and so
    # to one thread. First steps nest: a call of a connection starts one, and the input-required
    # layer starts another within it.
    _spares: list[_Body] = []
    _MOST_SPARES = 4

    def _retrieve(task: asyncio.Task[Any]) -> None:
        """Retrieve the exception of a task whose outcome is another future, so that none is logged
        as lost.
        """
        if not task.cancelled():
            task.exception()

    async def _ended(outcome: asyncio.Future[Any]) -> Any:
        await sleep(0)
        return outcome.result()

    def start_eagerly(
        work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop
    ) -> asyncio.Future[T]:
        """Run the first step of a coroutine at once. Returns its outcome, or the task that does the
        rest.

        The first step sees this task as the current one, as in eager tasks of Python 3.12.
        """
        body = _spares.pop() if _spares else None
        if body is None or body.loop is not loop or body.task.done():
            body = _Body(loop)
        task = body.task
        outer = asyncio.current_task(loop)
        if outer is not None:
            asyncio._leave_task(loop, outer)
        asyncio._enter_task(loop, task)
        try:
            outcome = body.start(work, copy_context())
        finally:
            asyncio._leave_task(loop, task)
            if outer is not None:
                asyncio._enter_task(loop, outer)
        return task if outcome is None else outcome
