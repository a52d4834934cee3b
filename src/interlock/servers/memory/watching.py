"""Tells those who listen what other processes changed in the graph: the history says what, as long as somebody listens."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing

from interlock import Server, ToolError

from .graph import Graph

log = logging.getLogger("interlock.servers.memory")


class Watcher:
    """Looks now and then, while somebody listens, whether there are changes that this process has not made itself."""

    def __init__(
        self, server: Server, graph: Graph, uris_of: Callable[[set[str]], list[str]]
    ) -> None:
        self._server, self._graph, self._uris_of = server, graph, uris_of
        self._own: set[int] = set()
        self._lock = threading.Lock()
        self.looks = asyncio.Condition()  # notified after each look, for those who wait for one
        self.watching = False

    def knows(self, change: int) -> None:
        """A change of this process, of which everybody is told already."""
        if self.watching:
            with self._lock:
                self._own.add(change)

    async def run(self) -> None:
        """Watch until cancelled."""
        last: int | None = None
        while True:
            if any(listener.wants_anything for listener in self._server.listeners):
                try:
                    last = await asyncio.to_thread(self._look, last)
                except (ToolError, sqlite3.Error) as bad:
                    log.debug(
                        "the memory cannot be watched: %s", bad
                    )  # whoever calls a tool is told
            else:
                last = None
                self._own.clear()
            async with self.looks:
                self.watching = last is not None
                self.looks.notify_all()
            await asyncio.sleep(self._seconds())

    def _seconds(self) -> float:
        try:
            return self._graph.limits.polling
        except ToolError:
            return 1.0

    def _look(self, last: int | None) -> int:
        """Tell of the changes after the last one that was seen; which one is the last now."""
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
                self._server.updated(uri)
        return int(newest)
