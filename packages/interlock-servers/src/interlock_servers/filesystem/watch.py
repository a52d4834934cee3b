"""Notifies subscribed clients of changes to files.

Changes are always found by a walk on opened folders.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from typing import NamedTuple

from interlock import Server
from interlock.watching import FileEvents, Stamp, changed_paths

from ..polling import ChangePoller
from .openat import again
from .resolve import RootFolder
from .roots import AllowedRoots, CallProgress
from .walk import Walk

_MOST_NOTIFIED = 1_000
_LEISURE = 5  # the pause after a check, as a multiple of the check's duration
_LONGEST = 30.0


class _Snapshot(NamedTuple):
    """Inode, mode, time and size of each entry, and the folders among them."""

    entries: dict[str, Stamp]
    folders: frozenset[str]


class FolderWatcher(ChangePoller):
    """Watches the allowed folders while a client is subscribed."""

    def __init__(self, server: Server, allowed: AllowedRoots) -> None:
        super().__init__(server)
        self._allowed = allowed
        self._before: _Snapshot | None = None
        self._events = FileEvents(recursive=False)

    async def look(self) -> bool:
        """Walk through the folders, and report changes."""
        now = await asyncio.to_thread(self._snapshot)
        if self._before is not None:
            self._announce(self._before, now)
        self._before = now
        await self._events.watch(now.folders)
        return True

    async def forget(self) -> None:
        """Drop the last snapshot, and stop watchfiles."""
        self._before = None
        await self._events.aclose()

    async def pause(self, took: float) -> None:
        """Wait for an event of watchfiles or the polling interval, which grows with the folders."""
        await asyncio.sleep(min(_LEISURE * took, _LONGEST))
        await self._events.wait(self._allowed.limits.polling)

    def _snapshot(self) -> _Snapshot:
        entries: dict[str, Stamp] = {}
        folders: set[str] = set()
        limits = self._allowed.limits
        for folder in self._allowed.folders:
            folders.add(folder.path)
            for path, found in _walked(folder, CallProgress(None, limits), self._allowed):
                entries[path] = (found.st_ino, found.st_mode, found.st_mtime_ns, found.st_size)
                if stat.S_ISDIR(found.st_mode):
                    # Changes in a folder are reported for its entries.
                    entries[path] = (found.st_ino, found.st_mode, 0, 0)
                    with contextlib.suppress(UnicodeEncodeError):
                        path.encode()
                        folders.add(path)
                if len(entries) >= limits.watched:
                    break
        return _Snapshot(entries, frozenset(folders))

    def _announce(self, before: _Snapshot, now: _Snapshot) -> None:
        """Report changed files; if there are very many, only their allowed folders."""
        paths = changed_paths(before.entries, now.entries)
        came_or_went = any(path not in before.entries or path not in now.entries for path in paths)
        if len(paths) > _MOST_NOTIFIED:
            paths = {folder.path for folder in self._allowed.folders}
        for path in sorted(paths):
            self.server.updated(RootFolder.uri_of(path))
        if came_or_went:
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
