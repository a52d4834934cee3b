"""Failure messages and waiting for contract checks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from ...store.interface import Topic

_PAUSE = 0.005  # seconds between two checks


def require(holds: bool, otherwise: str) -> None:
    """Raise AssertionError with this message unless the condition holds."""
    if not holds:
        raise AssertionError(otherwise)


@asynccontextmanager
async def within(patience: float, who: str, what: str) -> AsyncIterator[None]:
    """Convert a timeout, or any other error, to a message about the promise that is being
    checked.
    """
    limit = asyncio.timeout(patience)
    try:
        async with limit:
            yield
    except AssertionError as bad:
        raise AssertionError(f"{who} promises that {what}: {bad}") from None
    except TimeoutError as bad:
        if not limit.expired():
            raise AssertionError(f"{who} promises that {what}: it raised {bad!r}") from bad
        raise AssertionError(
            f"{who} promises that {what}: it still waits after {patience:g} seconds"
        ) from None
    except Exception as bad:
        raise AssertionError(f"{who} promises that {what}: it raised {bad!r}") from bad


async def eventually(look: Callable[[], Awaitable[object]], wanted: object) -> None:
    """Wait until the result is the wanted one. The caller limits the time."""
    while await look() != wanted:  # noqa: ASYNC110 # another worker cannot set an event of this one
        await asyncio.sleep(_PAUSE)


class RecordingListener:
    """A listener of a topic that records its messages, and the threads in which it was called."""

    def __init__(self, topic: Topic) -> None:
        self.received: list[tuple[bytes, str]] = []
        self.positions: list[str] = []  # the position of the topic at each message
        self.threads: set[int] = set()
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self.stop = topic.subscribe(self._add)

    @property
    def notes(self) -> list[bytes]:
        """The received messages, without positions."""
        return [note for note, _ in self.received]

    async def receive(self, count: int) -> list[bytes]:
        """The received messages, after `count` of them, and after some further runs of the event
        loop.
        """
        while len(self.received) < count:
            self._woken.clear()
            await self._woken.wait()
        for _ in range(20):  # a duplicate would arrive at once
            await asyncio.sleep(0)
        return self.notes

    def _add(self, note: bytes, position: str) -> None:
        self.received.append((note, position))
        self.positions.append(self._topic.position)
        self.threads.add(threading.get_ident())
        self._loop.call_soon_threadsafe(self._woken.set)


def promise_of(step: Callable[..., object]) -> str:
    """The promise that a step checks: its docstring on one line."""
    return " ".join((step.__doc__ or step.__name__).split())
