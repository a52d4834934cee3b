"""Notification callbacks, plain or async: called in order, one at a time, with their exceptions
logged.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from ..logs import limited
from ..wire.codec import encode

log = limited("interlock.client")

Callback = Callable[..., Awaitable[object] | None]

_MOST_WAITING = 10_000  # notifications that wait for an async function; more are dropped
_MOST_BYTES = 8 * 1024 * 1024  # the JSON size of these, in bytes
_CLOSING_SECONDS = 5.0  # for running functions when the client closes


class Callbacks:
    """The callbacks for the notifications of one call, or for those of a connection that belong to
    no call.

    A plain function runs at once, in the turn of the event loop in which its notification arrived.
    If a function returns an awaitable, later notifications wait until it has finished, in a task
    that exists only while something is queued.

    Args:
        name: The name of the functions in warnings; None for each function's own name.
    """

    __slots__ = ("_bytes", "_closed", "_dropped", "_name", "_task", "_waiting")

    def __init__(self, name: str | None = None) -> None:
        self._name = name
        self._closed = False
        self._waiting: deque[tuple[Callback, tuple[Any, ...], int]] = deque()
        self._bytes = 0  # the size of the queue
        self._task: asyncio.Task[None] | None = None
        self._dropped = 0

    def call(self, function: Callback, *args: Any) -> None:
        """Call a function now, or after all earlier ones. It never raises."""
        if self._closed:
            return
        if self._task is not None:
            size = sum(len(encode(arg)) for arg in args)
            if len(self._waiting) < _MOST_WAITING and self._bytes + size <= _MOST_BYTES:
                self._waiting.append((function, args, size))
                self._bytes += size
                return
            self._dropped += 1
            if self._dropped == 1:
                log.warning(
                    "%s is too slow: notifications are dropped", self._name or _name(function)
                )
            return
        try:
            begun = function(*args)
        except Exception:
            log.exception("the callback %s failed", _name(function))
            return
        if begun is not None and inspect.isawaitable(begun):
            self._task = asyncio.get_running_loop().create_task(self._go_on(function, args, begun))

    async def _go_on(
        self, function: Callback, args: tuple[Any, ...], begun: Awaitable[object] | None
    ) -> None:
        try:
            while True:
                try:
                    if begun is None:
                        begun = function(*args)
                    if begun is not None and inspect.isawaitable(begun):
                        await begun
                except asyncio.CancelledError:
                    if _is_cancelled():
                        raise
                    log.warning("the callback %s was cancelled", _name(function))
                except Exception:
                    log.exception("the callback %s failed", _name(function))
                if not self._waiting:
                    return
                function, args, size = self._waiting.popleft()
                self._bytes -= size
                begun = None
        finally:
            self._task = None
            if self._dropped > 1:
                log.warning(
                    "%s missed %d notifications", self._name or _name(function), self._dropped
                )
            self._dropped = 0

    def after(self, function: Callable[[], None]) -> None:
        """Call a function after all earlier ones have returned. It is never dropped."""
        if self._task is None:
            self.call(function)
        else:
            self._waiting.append((function, (), 0))

    async def caught_up(self) -> None:
        """Wait until the functions called so far have returned. Cancelling the wait does not cancel
        the functions.
        """
        task = self._task
        if task is None or task is asyncio.current_task():
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.after(partial(reached.set_result, None))
        # If the functions are cancelled, the task ends and nothing sets `reached`.
        await asyncio.wait({task, reached}, return_when=asyncio.FIRST_COMPLETED)

    async def finished(self) -> None:
        """Wait until every function has returned. Cancelling the wait cancels the functions."""
        while (task := self._task) is not None and task is not asyncio.current_task():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                self.cancel()
                raise

    def cancel(self) -> None:
        """Cancel running and queued functions."""
        self._waiting.clear()
        self._bytes = 0
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    def close(self) -> None:
        """Cancel running and queued functions, and accept no more."""
        self._closed = True
        self.cancel()

    async def aclose(self) -> None:
        """Wait until all functions have returned, for at most five seconds, then cancel the
        others.
        """
        task = self._task
        if task is None or task is asyncio.current_task():
            return
        await asyncio.wait({task}, timeout=_CLOSING_SECONDS)
        if not task.done():
            log.warning("callbacks for notifications were cancelled when the client closed")
            self.cancel()
            await asyncio.wait({task}, timeout=_CLOSING_SECONDS)


def _is_cancelled() -> bool:
    """Whether the current task itself is being cancelled, not only something that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", None) or repr(function)
