"""Tells those who watch files what has changed: by looking again, as soon as something stirs or some time has gone by.

What has changed is always found by a walk on opened folders. Watchfiles, where it is installed, only says when to look.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time
from typing import NamedTuple

from interlock import Server

from .doors import again
from .grounds import Grounds, Pace
from .places import Folder
from .walking import Walk

_MOST_TOLD = 1_000
_LEISURE = 5  # times as long as a look takes, it rests
_LONGEST = 30.0
_PATIENCE = 10  # times the polling interval, where watchfiles says when to look


class _Sight(NamedTuple):
    """What was seen: of each entry what changes when it does, and the folders among them."""

    entries: dict[str, tuple[int, int, int, int]]
    folders: frozenset[str]


class Watcher:
    """Watches the allowed folders as long as somebody listens."""

    def __init__(self, server: Server, grounds: Grounds) -> None:
        self._server, self._grounds = server, grounds
        self._stirred = asyncio.Event()
        self._bell: asyncio.Task[None] | None = None
        self._watched: frozenset[str] = frozenset()
        self.looks = asyncio.Condition()  # notified after each look, for those who wait for one
        self.watching = False

    async def run(self) -> None:
        """Watch until cancelled."""
        before: _Sight | None = None
        try:
            while True:
                began = time.monotonic()
                if any(listener.wants_anything for listener in self._server.listeners):
                    now = await asyncio.to_thread(self._look)
                    if before is not None:
                        self._tell(before, now)
                    before = now
                    await self._listen(now.folders)
                else:
                    before = None
                    await self._listen(frozenset())
                async with self.looks:
                    self.watching = before is not None
                    self.looks.notify_all()
                await self._rest(_LEISURE * (time.monotonic() - began))
        finally:
            await self._listen(frozenset())

    async def _rest(self, least: float) -> None:
        """Wait until something stirs, or it is time to look again; for large folders that is seldom."""
        await asyncio.sleep(min(least, _LONGEST))
        seconds = self._grounds.limits.polling * (
            _PATIENCE if self._bell is not None and not self._bell.done() else 1
        )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stirred.wait(), seconds)
        self._stirred.clear()

    async def _listen(self, folders: frozenset[str]) -> None:
        """Have watchfiles listen at these folders, and at no other ones."""
        if folders == self._watched:
            return
        self._watched = folders
        if self._bell is not None:
            self._bell.cancel()
            await asyncio.gather(self._bell, return_exceptions=True)
            self._bell = None
        if folders:
            try:
                import watchfiles
            except ImportError:
                return
            self._bell = asyncio.create_task(self._ring(watchfiles, folders))

    async def _ring(self, watchfiles: object, folders: frozenset[str]) -> None:
        with contextlib.suppress(
            OSError, RuntimeError
        ):  # a folder is gone, or there are too many: then we look now and then
            watch = getattr(watchfiles, "awatch")  # noqa: B009 - the module may not be installed, and has no type here
            async for _ in watch(
                *sorted(folders),
                watch_filter=None,
                recursive=False,
                step=50,
                debounce=200,
                rust_timeout=200,
            ):
                self._stirred.set()

    def _look(self) -> _Sight:
        entries: dict[str, tuple[int, int, int, int]] = {}
        folders: set[str] = set()
        limits = self._grounds.limits
        for folder in self._grounds.folders:
            folders.add(folder.path)
            for path, found in _walked(folder, Pace(None, limits), self._grounds):
                entries[path] = (found.st_ino, found.st_mode, found.st_mtime_ns, found.st_size)
                if stat.S_ISDIR(found.st_mode):
                    entries[path] = (
                        found.st_ino,
                        found.st_mode,
                        0,
                        0,
                    )  # what changes in it is told by itself
                    with contextlib.suppress(UnicodeEncodeError):
                        path.encode()
                        folders.add(path)
                if len(entries) >= limits.watched:
                    break
        return _Sight(entries, frozenset(folders))

    def _tell(self, before: _Sight, now: _Sight) -> None:
        """Say which files are not as they were; of very many only in which folders."""
        changed = [path for path, seen in now.entries.items() if before.entries.get(path) != seen]
        gone = [path for path in before.entries if path not in now.entries]
        paths = [*changed, *gone]
        if len(paths) > _MOST_TOLD:
            paths = [folder.path for folder in self._grounds.folders]
        for path in paths:
            self._server.updated(Folder.uri_of(path))
        if gone or any(path not in before.entries for path in changed):
            self._server.changed("resources")


def _walked(folder: Folder, pace: Pace, grounds: Grounds) -> list[tuple[str, os.stat_result]]:
    try:
        fd = again(folder.fd)
    except OSError:
        return []  # the folder was removed
    try:
        found = []
        for one in Walk(folder, grounds.limits, pace).below(fd):
            found.append(("/".join((folder.path.rstrip("/"), *one.steps)), one.stat))
            if len(found) >= grounds.limits.watched:
                break
        return found
    finally:
        os.close(fd)
