"""Inactivity timeouts: a call that reports no progress for too long is cancelled.

One slow clock checks all calls, so that a call costs two operations on a dict, and neither a timer
nor a look at the time.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

from ... import types as t
from .context import RunningCall

_TICKS = 20  # checks within one timeout


class InactivityTimeouts:
    """The running calls of one event loop that have an inactivity timeout.

    The timeout of a call begins again with each progress that it reports, and stands still while a
    question is open.

    Args:
        seconds: The maximum time without progress, in seconds. A call ends at most a twentieth
            later.
        loop: The event loop.

    Attributes:
        calls: The calls, each with its task. A call that has not expired removes itself.
    """

    def __init__(self, seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        self._seconds = seconds
        self.loop = loop
        self.calls: dict[RunningCall, asyncio.Task[Any] | None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self.calls)

    def add(self, call: RunningCall) -> None:
        """Watch a call that runs in the current task."""
        self.calls[call] = asyncio.current_task(self.loop)
        if self._timer is None:
            self._start_timer()

    def discard_expired(self, call: RunningCall) -> t.TimedOut | None:
        """Remove a call whose time was over, and undo its cancellation.

        Returns:
            The error of the call; None if its task was cancelled for another reason too.
        """
        task = self.calls.pop(call, None)
        if task is not None and task.uncancel() > 0:
            return None
        return t.TimedOut(
            f"The call made no progress for {self._seconds:g} seconds and was stopped."
        )

    def check(self) -> None:
        """Let a twentieth of the timeout pass, and cancel the calls whose time is over."""
        for call, task in list(self.calls.items()):
            context = call.context
            if call.expired or (context is not None and context._open_questions):
                continue
            if context is not None and context._made_progress:
                context._made_progress = False
                call.idle_ticks = 0
            call.idle_ticks += 1
            if call.idle_ticks > _TICKS:
                call.expired = True
                if task is not None:
                    task.cancel()

    def close(self) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self.check()
        self._timer = None
        if self.calls:
            self._start_timer()

    def _start_timer(self) -> None:
        # In a context of its own: it would keep the context of the call that starts it.
        pause = self._seconds / _TICKS
        self._timer = self.loop.call_later(pause, self._tick, context=contextvars.Context())
