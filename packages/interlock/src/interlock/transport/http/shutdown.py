"""Graceful shutdown of the endpoint: whether new requests are refused, and whether the web server
around it is shutting down.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Shutdown:
    """Whether an endpoint drains, because `start` was called or because the web server around it
    shuts down.

    Args:
        drain: Drains the endpoint. Called when the web server is found to be shutting down.
    """

    __slots__ = ("_drain", "_draining", "_task")

    def __init__(self, drain: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._drain = drain
        self._draining = False
        self._task: asyncio.Task[None] | None = None  # drains because the web server shuts down

    def start(self) -> None:
        """Refuse new requests from now on."""
        self._draining = True

    @property
    def is_draining(self) -> bool:
        """Whether new requests are refused."""
        if not self._draining:
            return False
        if self._task is not None and not is_ending():  # another web server has taken over
            self._task = None
            self._draining = False
        return self._draining

    def check(self) -> None:
        """Drain if the web server is shutting down, because it waits until all streams have
        ended.
        """
        if not self._draining and is_ending():
            self._task = asyncio.get_running_loop().create_task(self._drain())


def is_ending() -> bool:
    """Whether a uvicorn in this process is shutting down.

    uvicorn then waits until every response is complete, and notifies the app only after that: open
    subscription streams would keep it running forever. Its only sign is the signal handler, which
    is a method of a server with `should_exit` set.
    """
    return any(
        getattr(getattr(signal.getsignal(number), "__self__", None), "should_exit", False) is True
        for number in _SIGNALS
    )
