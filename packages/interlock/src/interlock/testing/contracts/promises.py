"""Failure messages and waiting for contract checks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from ...store.interface import Topic

_PAUSE = 0.005  # seconds between two looks


def require(holds: bool, otherwise: str) -> None:
    """Raise AssertionError with words about what is the case instead of what was promised."""
    if not holds:
        raise AssertionError(otherwise)


@asynccontextmanager
async def within(patience: float, who: str, what: str) -> AsyncIterator[None]:
    """Turn waiting for too long, and whatever else happens, into words about the promise that is
    being checked.
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
    """Look until what is wanted is seen; how long that may take is the caller's business."""
    while await look() != wanted:  # noqa: ASYNC110  # what another worker writes sets no event of ours
        await asyncio.sleep(_PAUSE)


class RecordingListener:
    """One who listens to a board: what was heard, and in which threads."""

    def __init__(self, board: Topic) -> None:
        self.heard: list[tuple[bytes, str]] = []
        self.positions: list[str] = []  # where the board said it was, at each note
        self.threads: set[int] = set()
        self._board = board
        self._loop = asyncio.get_running_loop()
        self._stirred = asyncio.Event()
        self.stop = board.subscribe(self._take)

    @property
    def notes(self) -> list[bytes]:
        """What was heard, without positions."""
        return [note for note, _ in self.heard]

    async def hear(self, count: int) -> list[bytes]:
        """What was heard, once it is `count` notes and some turns of the loop have brought no
        more.
        """
        while len(self.heard) < count:
            self._stirred.clear()
            await self._stirred.wait()
        for _ in range(20):  # what is heard twice is heard at once
            await asyncio.sleep(0)
        return self.notes

    def _take(self, note: bytes, position: str) -> None:
        self.heard.append((note, position))
        self.positions.append(self._board.position)
        self.threads.add(threading.get_ident())
        self._loop.call_soon_threadsafe(self._stirred.set)


def promise_of(step: Callable[..., object]) -> str:
    """What a step of a contract check is about: its docstring on one line."""
    return " ".join((step.__doc__ or step.__name__).split())
