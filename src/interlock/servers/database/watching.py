"""Tells whoever watches a schema when it has changed, by whomever."""

from __future__ import annotations

import asyncio

from interlock import Server, ToolError

from .databases import Databases, schema_uri, table_uri
from .engine import Engine

_MOST_TOLD = 1_000  # tables


class Watcher:
    """Looks at the versions of schemas: now and then while there is somebody to tell, and when a tool may have changed one."""

    def __init__(self, server: Server, databases: Databases) -> None:
        self._server, self._databases = server, databases
        self._versions: dict[str, str] = {}
        self._tables: dict[str, set[str]] = {}
        self._looking = asyncio.Lock()
        self.looks = asyncio.Condition()  # notified after each look, for those who wait for one

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            if any(listener.wants_anything for listener in self._server.listeners):
                await self.look()
            else:
                self._versions.clear()  # what changes while nobody listens is told to nobody
            await asyncio.sleep(self._databases.limits.polling)

    async def look(self) -> None:
        """Look once, and tell what has changed since the last time."""
        if not any(listener.wants_anything for listener in self._server.listeners):
            return
        async with self._looking:
            await asyncio.gather(*map(self._at, self._databases.engines.values()))
        async with self.looks:
            self.looks.notify_all()

    async def _at(self, engine: Engine) -> None:
        version = await engine.version()
        before = self._versions.get(engine.name)
        if not version or version == before:
            return
        try:
            known = set(list(await self._databases.labels(engine))[:_MOST_TOLD])
        except ToolError:
            return  # it cannot be reached at the moment
        gone = self._tables.get(engine.name, set())
        self._versions[engine.name], self._tables[engine.name] = version, known
        if before is None:
            return
        self._server.updated(schema_uri(engine.name))
        for table in known | gone:
            self._server.updated(table_uri(engine.name, table))
