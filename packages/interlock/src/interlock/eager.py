"""Tasks that start eagerly: their first step is done before they are returned."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")

if sys.version_info >= (3, 12):

    def start_task(
        work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop
    ) -> asyncio.Task[T]:
        """A task that begins at once: a call that never waits is answered in the turn of the loop
        in which it came.
        """
        return asyncio.Task(work, loop=loop, eager_start=True)

    start_eagerly = start_task

else:

    def start_task(
        work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop
    ) -> asyncio.Task[T]:
        """A task that begins in the next turn of the loop."""
        return loop.create_task(work)

    class _Begun(Coroutine[Any, Any, Any]):
        """A coroutine whose first step is done by `begin`, and the rest by its task."""

        def __init__(self, work: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> None:
            self._work = work
            self._loop = loop
            self._waits_for: Any = None
            self._is_new = True  # the task has made no step yet
            self.outcome: asyncio.Future[Any] | None = None

        def begin(self) -> None:
            """Do the first step; `outcome` is set where it was the only one."""
            try:
                self._waits_for = self._work.send(None)
            except StopIteration as end:
                self.outcome = self._loop.create_future()
                self.outcome.set_result(end.value)
            except asyncio.CancelledError:
                self.outcome = self._loop.create_future()
                self.outcome.cancel()
            except Exception as bad:
                self.outcome = self._loop.create_future()
                self.outcome.set_exception(bad)
            except BaseException:  # it ends the program; the task has nothing left to do
                self.outcome = self._loop.create_future()
                raise

        def send(self, value: Any) -> Any:
            """Go on; the first time, wait for what the first step waits for."""
            if self.outcome is not None:
                raise StopIteration
            if self._is_new:
                self._is_new = False
                return self._waits_for
            return self._work.send(value)

        def throw(self, *error: Any) -> Any:
            """Raise an error where the coroutine waits."""
            if self.outcome is not None:
                raise StopIteration
            self._is_new = False
            return self._work.throw(*error)

        def close(self) -> None:
            """End the coroutine."""
            self._work.close()

        def __await__(self) -> Any:
            raise TypeError("only a task runs this")

    def start_eagerly(
        work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop
    ) -> asyncio.Future[T]:
        """What runs a coroutine whose first step is done at once: its outcome, or the task that
        does the rest.

        The first step is done as the task, as eager tasks of Python 3.12 do it.
        """
        begun = _Begun(work, loop)
        context = copy_context()
        task = loop.create_task(begun, context=context)
        outer = asyncio.current_task(loop)
        if outer is not None:
            asyncio._leave_task(loop, outer)
        asyncio._enter_task(loop, task)
        try:
            context.run(begun.begin)
        finally:
            asyncio._leave_task(loop, task)
            if outer is not None:
                asyncio._enter_task(loop, outer)
        return task if begun.outcome is None else begun.outcome
