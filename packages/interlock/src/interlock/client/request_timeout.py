"""Timeouts of requests: the time for one request, restarted by progress up to a maximum."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Iterator
from typing import TypeVar

from .. import types as t
from ..exchange import ExchangeTransport

R = TypeVar("R")


class RequestTimeout(ExchangeTransport):
    """The timeout of one request (`LIF-18` to `LIF-21`).

    It does what `asyncio.timeout` does at a third of the cost, because every request has one. The
    time that a person takes to answer or to log in counts only towards `most`.

    Args:
        method: The method of the request, for the error message.
        seconds: The maximum duration in seconds; without progress, if `most` is given.
        most: The maximum duration in total, in seconds, if progress restarts the timeout.
    """

    __slots__ = (
        "_expired",
        "_left",
        "_loop",
        "_method",
        "_most",
        "_over",
        "_seconds",
        "_still",
        "_task",
        "_timer",
        "_until",
    )

    def __init__(self, method: str, seconds: float, most: float | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a client must be used from an asyncio task")
        self._task = task
        self._expired = False
        self._over = False
        self._still = 0  # the number of open blocks that pause the timeout
        self._left = 0.0  # the remaining seconds when the first of them began
        self._method = method
        self._seconds = seconds
        self._most = most
        self._until = 0.0 if most is None else self._loop.time() + most
        self._timer = self._loop.call_later(
            seconds if most is None else min(seconds, most), self._expire
        )

    @property
    def restarts_on_progress(self) -> bool:
        """Whether progress restarts the timeout."""
        return self._most is not None

    def restart(self) -> None:
        """Restart the timeout after progress, up to the maximum."""
        if self._most is not None and not self._expired and not self._still:
            self._timer.cancel()
            self._timer = self._loop.call_at(
                min(self._loop.time() + self._seconds, self._until), self._expire
            )

    @contextlib.contextmanager
    def pause_timeout(self) -> Iterator[None]:
        """Pause the timeout while a person is asked. Only the maximum counts meanwhile."""
        if not self._still:
            self._timer.cancel()
            self._left = self._timer.when() - self._loop.time()
            if self._most is not None:
                self._timer = self._loop.call_at(self._until, self._expire)
        self._still += 1
        try:
            yield
        finally:
            self._still -= 1
            if not self._still and not self._expired and not self._over:
                self._timer.cancel()
                at = self._loop.time() + self._left
                self._timer = self._loop.call_at(
                    at if self._most is None else min(at, self._until), self._expire
                )

    async def run(self, work: Awaitable[R]) -> R:
        """Wait for the response, and cancel the request at the server if it takes longer.

        Raises:
            TimedOut: The request took longer.
        """
        before = self._task.cancelling()
        try:
            return await work
        except asyncio.CancelledError:
            if self._expired and self._task.cancelling() <= before + 1:
                raise t.TimedOut(
                    f"No answer to {self._method} came within {self._words()}."
                ) from None
            raise
        finally:
            self._over = True
            self._timer.cancel()
            if self._expired:
                self._task.uncancel()

    def _words(self) -> str:
        if self._most is None:
            return f"{self._seconds:g} seconds"
        return (
            f"{self._most:g} seconds in all"
            if self._loop.time() >= self._until
            else f"{self._seconds:g} seconds without progress"
        )

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()
