"""Announces changes of files to clients that listen.

Changes are always found by a walk on opened folders. watchfiles, where it is installed, only says
when to walk; else the folders are polled.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from typing import NamedTuple

from interlock import Server

from ..polling import ChangePoller
from .openat import again
from .resolve import RootFolder
from .roots import AllowedRoots, CallProgress
from .walk import Walk

_MOST_TOLD = 1_000
_LEISURE = 5  # times as long as a look takes, it rests
_LONGEST = 30.0
_PATIENCE = 10  # times the polling interval, where watchfiles says when to look


class _Snapshot(NamedTuple):
    """Inode, mode, time and size of each entry, and the folders among them."""

    entries: dict[str, tuple[int, int, int, int]]
    folders: frozenset[str]


class FolderWatcher(ChangePoller):
    """Watches the allowed folders as long as a client listens."""

    def __init__(self, server: Server, allowed: AllowedRoots) -> None:
        super().__init__(server)
        self._allowed = allowed
        self._before: _Snapshot | None = None
        self._woken = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self._watched: frozenset[str] = frozenset()

    async def look(self) -> bool:
        """Walk through the folders, and announce what is not as it was."""
        now = await asyncio.to_thread(self._snapshot)
        if self._before is not None:
            self._announce(self._before, now)
        self._before = now
        await self._listen(now.folders)
        return True

    async def forget(self) -> None:
        """Drop the last snapshot, and stop watchfiles."""
        self._before = None
        await self._listen(frozenset())

    async def pause(self, took: float) -> None:
        """Wait for an event of watchfiles or the polling interval, which grows with the folders."""
        await asyncio.sleep(min(_LEISURE * took, _LONGEST))
        seconds = self._allowed.limits.polling
        if self._listening is not None and not self._listening.done():
            seconds *= _PATIENCE
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), seconds)
        self._woken.clear()

    async def _listen(self, folders: frozenset[str]) -> None:
        """Have watchfiles report events in these folders, and in no others."""
        if folders == self._watched:
            return
        self._watched = folders
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
            self._listening = None
        if folders:
            try:
                import watchfiles
            except ImportError:
                return
            self._listening = asyncio.create_task(self._wait_for_events(watchfiles, folders))

    async def _wait_for_events(self, watchfiles: object, folders: frozenset[str]) -> None:
        # A folder is gone, or there are too many: then polling alone finds the changes.
        with contextlib.suppress(OSError, RuntimeError):
            # The module may not be installed, and has no type here.
            watch = getattr(watchfiles, "awatch")  # noqa: B009
            async for _ in watch(
                *sorted(folders),
                watch_filter=None,
                recursive=False,
                step=50,
                debounce=200,
                rust_timeout=200,
            ):
                self._woken.set()

    def _snapshot(self) -> _Snapshot:
        entries: dict[str, tuple[int, int, int, int]] = {}
        folders: set[str] = set()
        limits = self._allowed.limits
        for folder in self._allowed.folders:
            folders.add(folder.path)
            for path, found in _walked(folder, CallProgress(None, limits), self._allowed):
                entries[path] = (found.st_ino, found.st_mode, found.st_mtime_ns, found.st_size)
                if stat.S_ISDIR(found.st_mode):
                    # What changes in a folder is announced by itself.
                    entries[path] = (found.st_ino, found.st_mode, 0, 0)
                    with contextlib.suppress(UnicodeEncodeError):
                        path.encode()
                        folders.add(path)
                if len(entries) >= limits.watched:
                    break
        return _Snapshot(entries, frozenset(folders))

    def _announce(self, before: _Snapshot, now: _Snapshot) -> None:
        """Announce files that changed; where there are very many, only their allowed folders."""
        changed = [path for path, seen in now.entries.items() if before.entries.get(path) != seen]
        gone = [path for path in before.entries if path not in now.entries]
        paths = [*changed, *gone]
        if len(paths) > _MOST_TOLD:
            paths = [folder.path for folder in self._allowed.folders]
        for path in paths:
            self.server.updated(RootFolder.uri_of(path))
        if gone or any(path not in before.entries for path in changed):
            self.server.changed("resources")


def _walked(
    folder: RootFolder, progress: CallProgress, allowed: AllowedRoots
) -> list[tuple[str, os.stat_result]]:
    try:
        fd = again(folder.fd)
    except OSError:
        return []  # the folder was removed
    try:
        found = []
        for one in Walk(folder, allowed.limits, progress).below(fd):
            found.append(("/".join((folder.path.rstrip("/"), *one.steps)), one.stat))
            if len(found) >= allowed.limits.watched:
                break
        return found
    finally:
        os.close(fd)
