"""Paced coroutines: requests that have waited continue when it is their holder's turn.

The timers and results of many requests may be ready in one turn of the event loop, in particular
after the process has not had a core for a while. asyncio continues them in the order in which they
became ready, so the requests of one holder would keep those of all others waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

from .scheduler import RequestScheduler

T = TypeVar("T")


class PacedCoroutine(Coroutine[Any, Any, T]):
    """A coroutine of a request. Its first step runs at once. Before each later one the scheduler is
    asked, and the step may have to wait for its turn.

    Args:
        work: The coroutine.
        scheduler: Decides which request continues next.
        find_holder: Returns the holder that the request counts for.
        loop: The event loop.
    """

    __slots__ = ("_find_holder", "_has_begun", "_is_due", "_loop", "_scheduler", "_turn", "_work")

    def __init__(
        self,
        work: Coroutine[Any, Any, T],
        scheduler: RequestScheduler[Any],
        find_holder: Callable[[], str],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._work = work
        self._scheduler = scheduler
        self._find_holder = find_holder
        self._loop = loop
        self._turn: _TurnFuture | None = None
        self._has_begun = False
        self._is_due = False

    def send(self, value: Any) -> Any:
        """Run the next step, or return a future for its turn."""
        if self._has_begun and not self._is_due and not self._scheduler.may_continue():
            turn = self._turn = _TurnFuture(self._loop)
            self._scheduler.queue(self, self._find_holder())
            return turn
        self._has_begun = True
        self._is_due = False
        try:
            return self._work.send(value)
        except BaseException:
            self._find_holder = str  # the request, with its body, must not outlive its response
            raise

    def throw(self, *error: Any) -> Any:
        """Raise an exception at the point where the coroutine waits. This is never delayed."""
        self._has_begun = True
        self._is_due = False
        self._turn = None
        try:
            return self._work.throw(*error)
        except BaseException:
            self._find_holder = str
            raise

    def close(self) -> None:
        """Close the coroutine."""
        self._work.close()

    def __await__(self) -> Any:
        raise TypeError("only a task runs this")

    def start_next(self) -> None:
        """Run the step whose turn it is, unless the request has been cancelled meanwhile."""
        turn = self._turn
        self._turn = None
        if turn is not None:
            self._is_due = True
            turn.grant()


class _TurnFuture:
    """What the task of a request waits for until its turn. It has what asyncio's tasks use of a
    future. `grant` runs the step of the task at once, so that the scheduler can measure it: a
    future would only have it run in the next turn of the event loop.
    """

    __slots__ = ("_asyncio_future_blocking", "_callback", "_context", "_is_cancelled", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._callback: Callable[[Any], object] | None = None
        self._context: Context | None = None
        self._is_cancelled = False
        self._asyncio_future_blocking = True

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop."""
        return self._loop

    def add_done_callback(self, callback: Callable[[Any], object], *, context: Context) -> None:
        """Set the callback, which is that of the task."""
        self._callback = callback
        self._context = context

    def result(self) -> None:
        """Raise CancelledError if the task was cancelled meanwhile."""
        if self._is_cancelled:
            raise asyncio.CancelledError

    def cancel(self, msg: Any = None) -> bool:
        """Continue the task with a CancelledError."""
        callback = self._callback
        self._callback = None
        if callback is None:
            return False
        self._is_cancelled = True
        self._loop.call_soon(callback, self, context=self._context)
        return True

    def grant(self) -> None:
        """Run the step of the task."""
        callback = self._callback
        self._callback = None
        if callback is not None and self._context is not None:
            self._context.run(callback, self)
