"""The registry of running calls: who calls what, for how long, so that an operator can see and
cancel them.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ... import types as t
from ...exchange import AnyResult, Exchange, Handler, Notify

_ENDED = "An operator of the server has ended the call."
_LISTENING = "subscriptions/listen"


class RegisteredCall(Struct, eq=False):
    """A running call.

    Attributes:
        id: Names the call among all workers.
        exchange: The call.
        task: The task that runs it.
        began: When it began, in seconds of the monotonic clock.
        is_ended: Whether an operator has ended it.
        progress: Its last progress; None if it has reported none, or its caller wants none.
    """

    id: str
    exchange: Exchange
    task: asyncio.Task[Any]
    began: float
    is_ended: bool = False
    progress: t.ProgressNotificationParams | None = None


class CallRegistry:
    """Registers the calls of a handler while they run.

    Args:
        clock: Returns the time in seconds of the monotonic clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._calls: dict[str, RegisteredCall] = {}
        self._numbers = 0

    def __iter__(self) -> Iterator[RegisteredCall]:
        return iter(list(self._calls.values()))

    def age(self, call: RegisteredCall) -> float:
        """Return how long a call has been running, in seconds."""
        return self._clock() - call.began

    def end(self, id: str) -> bool:
        """Cancel a call. Its caller gets an error. Returns False if no such call runs here."""
        call = self._calls.get(id)
        if call is None:
            return False
        call.is_ended = True
        call.task.cancel()
        return True

    def around(self, handler: Handler) -> Handler:
        """Return a handler that registers its calls."""

        async def handle(x: Exchange) -> AnyResult:
            task = asyncio.current_task()
            if task is None or x.method == _LISTENING:
                return await handler(x)
            self._numbers += 1
            call = RegisteredCall(f"{os.getpid()}-{self._numbers}", x, task, self._clock())
            self._calls[call.id] = call
            if x.progress_token is not None:
                x = replace(x, notify=partial(_notify, call, x.notify))
            try:
                return await handler(x)
            except asyncio.CancelledError:
                if not call.is_ended:
                    raise
                task.uncancel()
                raise t.McpError(t.INTERNAL_ERROR, _ENDED, {"reason": "ended"}) from None
            finally:
                del self._calls[call.id]

        return handle


def _notify(call: RegisteredCall, notify: Notify, method: str, params: Any) -> None:
    """Send a notification of a call, and note its progress."""
    if isinstance(params, t.ProgressNotificationParams):
        call.progress = params
    notify(method, params)
