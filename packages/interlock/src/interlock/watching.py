"""File watching and change polling: look again and again, compare with the last look, and tell what
changed.

Changes are always found by comparing two looks. watchfiles, where it is installed, only says when
to look; without it the watcher polls more often.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

Stamp = tuple[int, ...]
"""What is compared of a file, such as its time and size."""

_PATIENCE = 10  # times the polling interval, where watchfiles says when to look


def stamps(paths: Iterable[str | os.PathLike[str]]) -> dict[str, Stamp]:
    """The time (nanoseconds) and size (bytes) of each file that exists."""
    found: dict[str, Stamp] = {}
    for path in paths:
        with contextlib.suppress(OSError):  # it may be being written anew
            status = os.stat(path)
            found[os.fspath(path)] = (status.st_mtime_ns, status.st_size)
    return found


def changed_paths(before: Mapping[str, Stamp], now: Mapping[str, Stamp]) -> set[str]:
    """The paths that came, went or changed between two looks."""
    return {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}


class FileEvents:
    """Wakes a watcher when the system reports a change in folders.

    Args:
        recursive: Whether changes in the folders below count too.
    """

    def __init__(self, *, recursive: bool) -> None:
        self._recursive = recursive
        self._woken = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self._folders: frozenset[str] = frozenset()

    async def watch(self, folders: Iterable[str | os.PathLike[str]]) -> None:
        """Listen in these folders, and in no others; nothing happens without watchfiles."""
        wanted = frozenset(os.fspath(folder) for folder in folders)
        if wanted == self._folders:
            return
        self._folders = wanted
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
            self._listening = None
        if wanted:
            self._listening = asyncio.create_task(self._listen(wanted))

    async def wait(self, seconds: float) -> None:
        """Wait for an event, or for the polling interval: ten times as long where there are
        events.
        """
        if self._listening is not None and not self._listening.done():
            seconds *= _PATIENCE
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), seconds)
        self._woken.clear()

    async def aclose(self) -> None:
        """Stop listening."""
        await self.watch(())

    async def _listen(self, folders: frozenset[str]) -> None:
        # A folder is gone, or there are too many: then polling alone finds the changes.
        with contextlib.suppress(ImportError, OSError, RuntimeError):
            from watchfiles import awatch

            async for _ in awatch(
                *sorted(folders),
                watch_filter=None,
                recursive=self._recursive,
                step=50,
                debounce=400,
                rust_timeout=200,
            ):
                self._woken.set()


async def file_changes(
    look: Callable[[], dict[str, Stamp]],
    *,
    every: float,
    folders: Iterable[str | os.PathLike[str]] = (),
) -> AsyncIterator[set[str]]:
    """The paths that have changed, as often as some have.

    Args:
        look: Returns what is there now. It runs in a thread, but for the first time.
        every: Seconds between two looks.
        folders: Where events of the system mean that it is time to look.
    """
    before = look()
    events = FileEvents(recursive=True)
    try:
        await events.watch(folders)
        while True:
            await events.wait(every)
            now = await asyncio.to_thread(look)
            if changed := changed_paths(before, now):
                yield changed
            before = now
    finally:
        await events.aclose()


class Poller(ABC):
    """Looks for changes in the background, as long as somebody wants to hear of them."""

    def __init__(self) -> None:
        self.watching = False  # whether the last look found a state to compare the next one with
        self.looks = asyncio.Condition()  # notified after each look

    @property
    @abstractmethod
    def is_wanted(self) -> bool:
        """Whether somebody wants to hear of changes."""

    @abstractmethod
    async def look(self) -> bool:
        """Compare with the last look, and announce what changed; whether the look succeeded."""

    @abstractmethod
    async def forget(self) -> None:
        """Drop the last look. It is called between two looks while nobody wants to hear."""

    @abstractmethod
    async def pause(self, took: float) -> None:
        """Wait for the next look. The last one took so many seconds."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            began = time.monotonic()
            if self.is_wanted:
                self.watching = await self.look()
            else:
                await self.forget()
                self.watching = False
            await self.notify()
            await self.pause(time.monotonic() - began)

    async def notify(self) -> None:
        """Wake those who wait for a look."""
        async with self.looks:
            self.looks.notify_all()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look in the background while the block runs."""
        polling = asyncio.create_task(self.run())
        try:
            yield
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
            await self.forget()
