"""The server-sent event stream of one page: the state first, then events in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

Entry = TypeVar("Entry")

MOST_WAITING = 20_000
"""Events queued for one page. A slower page loses its stream and reconnects."""
QUIET = 15.0
"""Seconds without an event, after which a comment shows that the stream is alive."""
SETTLE = 0.1
"""Seconds in which changes of the state are collected."""


class Feed(Protocol[Entry]):
    """The content of a page: its current state, and the entries that follow."""

    def listen(self, receive: Callable[[Entry], None]) -> Callable[[], None]:
        """Call a function with every entry; call the returned function to stop."""

    def state(self) -> Any:
        """The whole state, as JSON values."""

    def encoded(self, entry: Entry) -> Any:
        """An entry, as JSON values."""

    def changes_state(self, entry: Entry) -> bool:
        """Whether the state must be sent again after this entry."""


class EventStream(Generic[Entry]):
    """The stream of one page. It ends if the page is too slow; the page reconnects and starts over.

    Args:
        feed: The content to show.
        closing: Ends the stream when it is set.
    """

    def __init__(self, feed: Feed[Entry], closing: asyncio.Event) -> None:
        self._feed = feed
        self._closing = closing
        self._waiting: deque[Entry] = deque()
        self._stirred = asyncio.Event()
        self._overflowed = False

    async def stream(self) -> AsyncIterator[bytes]:
        """The events as bytes."""
        loop = asyncio.get_running_loop()
        stop = self._feed.listen(self._receive)
        ending = loop.create_task(self._wake_at_close())
        stale: float | None = loop.time()
        try:
            while not (self._overflowed or self._closing.is_set()):
                if stale is not None and loop.time() >= stale and not self._waiting:
                    stale = None
                    yield _event({"kind": "state", "state": self._feed.state()})
                elif self._waiting:
                    entry = self._waiting.popleft()
                    yield _event({"kind": "noted", "noted": self._feed.encoded(entry)})
                    if self._feed.changes_state(entry) and stale is None:
                        stale = loop.time() + SETTLE
                elif (
                    not await self._wait(QUIET if stale is None else stale - loop.time())
                    and stale is None
                ):
                    yield b": still here\n\n"
        finally:
            stop()
            ending.cancel()

    def _receive(self, entry: Entry) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._overflowed = True
        else:
            self._waiting.append(entry)
        self._stirred.set()

    async def _wake_at_close(self) -> None:
        await self._closing.wait()
        self._stirred.set()

    async def _wait(self, seconds: float) -> bool:
        """Wait at most some seconds; return whether something arrived."""
        self._stirred.clear()
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._stirred.wait()
        except TimeoutError:
            return False
        return True


def _event(value: Any) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"
