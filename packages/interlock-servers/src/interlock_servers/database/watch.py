"""Notifies subscribed clients of schema changes."""

from __future__ import annotations

import asyncio

from interlock import Server, ToolError

from ..polling import ChangePoller
from .databases import Databases, schema_uri, table_uri
from .engine import Engine

_MOST_NOTIFIED = 1_000  # tables


class SchemaWatcher(ChangePoller):
    """Compares schema versions: periodically, and after a tool may have changed one."""

    def __init__(self, server: Server, databases: Databases) -> None:
        super().__init__(server)
        self._databases = databases
        self._versions: dict[str, str] = {}
        self._tables: dict[str, set[str]] = {}
        self._looking = asyncio.Lock()

    async def look(self) -> bool:
        """Compare all schemas with their previous versions."""
        async with self._looking:
            await asyncio.gather(*map(self._at, self._databases.engines.values()))
        return True

    async def look_now(self) -> None:
        """Compare at once, if a client is subscribed."""
        if self.is_wanted:
            await self.look()
            await self.notify()

    async def forget(self) -> None:
        """Drop the recorded versions."""
        self._versions.clear()

    async def pause(self, took: float) -> None:
        """Wait for the polling interval."""
        await asyncio.sleep(self._databases.limits.polling)

    async def _at(self, engine: Engine) -> None:
        version = await engine.version()
        before = self._versions.get(engine.name)
        if not version or version == before:
            return
        try:
            known = set(list(await self._databases.labels(engine))[:_MOST_NOTIFIED])
        except ToolError:
            return  # the database cannot be reached at the moment
        gone = self._tables.get(engine.name, set())
        self._versions[engine.name] = version
        self._tables[engine.name] = known
        if before is None:
            return
        self.server.updated(schema_uri(engine.name))
        for table in known | gone:
            self.server.updated(table_uri(engine.name, table))
