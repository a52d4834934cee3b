"""Notifies subscribed clients of changes that other processes made to the graph."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing

from interlock import Server, ToolError

from ..polling import ChangePoller
from .graph import Graph

log = logging.getLogger("interlock_servers.memory")


class HistoryWatcher(ChangePoller):
    """Polls the history for changes that this process did not make."""

    def __init__(
        self, server: Server, graph: Graph, uris_of: Callable[[set[str]], list[str]]
    ) -> None:
        super().__init__(server)
        self._graph = graph
        self._uris_of = uris_of
        self._last: int | None = None
        self._own: set[int] = set()
        self._lock = threading.Lock()

    def knows(self, change: int) -> None:
        """Record a change of this process, which was reported already."""
        if self.watching:
            with self._lock:
                self._own.add(change)

    async def look(self) -> bool:
        """Report the changes since the last check."""
        try:
            self._last = await asyncio.to_thread(self._look, self._last)
        except (ToolError, sqlite3.Error) as bad:  # callers of tools see the same error
            log.debug("the memory cannot be watched: %s", bad)
        return self._last is not None

    async def forget(self) -> None:
        """Forget the last seen change."""
        self._last = None
        self._own.clear()

    async def pause(self, took: float) -> None:
        """Wait for the polling interval."""
        await asyncio.sleep(self._seconds())

    def _seconds(self) -> float:
        try:
            return self._graph.limits.polling
        except ToolError:
            return 1.0

    def _look(self, last: int | None) -> int:
        """Report the changes after `last`, and return the newest."""
        names: set[str] = set()
        with (
            self._graph.raw() as db,
            closing(db.execute("SELECT coalesce(max(id), 0) FROM changes")) as found,
        ):
            ((newest,),) = found.fetchall()
            if last is None or newest == last:
                return int(newest)
            rows = db.execute(
                "SELECT DISTINCT change, name, other FROM steps WHERE change > ?", (last,)
            ).fetchall()
        with self._lock:
            changes = {change for change, _, _ in rows} - self._own
            self._own = {change for change in self._own if change > newest}
        for change, *pair in rows:
            if change in changes:
                names.update(name for name in pair if name)
        if changes:
            for uri in self._uris_of(names):
                self.server.updated(uri)
        return int(newest)
