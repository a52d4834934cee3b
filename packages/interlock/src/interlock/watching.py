"""File watching and change polling: take snapshots at intervals, compare each with the one before,
and report the differences.

Changes are always found by comparing two snapshots. If watchfiles is installed, it only says when
to take one. Without watchfiles the watcher polls more often.
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
"""The part of a file's state that is compared, such as its time and size."""

_PATIENCE = 10  # factor for the polling interval if watchfiles says when to look


def stamps(paths: Iterable[str | os.PathLike[str]]) -> dict[str, Stamp]:
    """Return the time (nanoseconds) and size (bytes) of each file that exists."""
    found: dict[str, Stamp] = {}
    for path in paths:
        with contextlib.suppress(OSError):  # the file may be being replaced at this moment
            status = os.stat(path)
            found[os.fspath(path)] = (status.st_mtime_ns, status.st_size)
    return found


def changed_paths(before: Mapping[str, Stamp], now: Mapping[str, Stamp]) -> set[str]:
    """Return the paths that were created, deleted or changed between two snapshots."""
    return {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}


class FileEvents:
    """Wakes a watcher when the operating system reports a change in folders.

    Args:
        recursive: Whether changes in subfolders count too.
    """

    def __init__(self, *, recursive: bool) -> None:
        self._recursive = recursive
        self._woken = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self._folders: frozenset[str] = frozenset()

    async def watch(self, folders: Iterable[str | os.PathLike[str]]) -> None:
        """Listen for events in exactly these folders. Without watchfiles this does nothing."""
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
        """Wait for an event or for the end of the polling interval, which is ten times as long if
        there are events.
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
        # A folder is gone, or there are too many folders: polling alone finds the changes.
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
    """Yield the sets of paths that have changed.

    Args:
        look: Returns the current state. It runs in a thread, except for the first time.
        every: The polling interval in seconds.
        folders: The folders whose file events trigger a look.
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
    """Looks for changes in the background while there are listeners."""

    def __init__(self) -> None:
        self.watching = False  # whether the last look returned a state to compare with
        self.looks = asyncio.Condition()  # notified after each look

    @property
    @abstractmethod
    def is_wanted(self) -> bool:
        """Whether there are listeners."""

    @abstractmethod
    async def look(self) -> bool:
        """Compare with the last look, and announce the changes. Returns whether the look
        succeeded.
        """

    @abstractmethod
    async def forget(self) -> None:
        """Drop the last state. Called between two looks while there are no listeners."""

    @abstractmethod
    async def pause(self, took: float) -> None:
        """Wait for the next look. `took` is the duration of the last one in seconds."""

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
        """Wake the tasks that wait for a look."""
        async with self.looks:
            self.looks.notify_all()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look for changes in the background while the block runs."""
        polling = asyncio.create_task(self.run())
        try:
            yield
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
            await self.forget()
