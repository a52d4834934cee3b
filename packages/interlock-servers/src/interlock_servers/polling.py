"""Watching by polling: looks for changes again and again, only while a client listens."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from interlock import Server


class ChangePoller(ABC):
    """Looks for changes while a client listens to the server, and announces them.

    Changes that happen while nobody listens are never announced.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.watching = False  # whether the last look found a state to compare the next one with
        self.looks = asyncio.Condition()  # notified after each look

    @property
    def has_listeners(self) -> bool:
        """Whether a client listens to anything."""
        return any(listener.wants_anything for listener in self.server.listeners)

    @abstractmethod
    async def look(self) -> bool:
        """Compare with the last look, and announce what changed; whether the look succeeded."""

    @abstractmethod
    async def forget(self) -> None:
        """Drop the last look. It is called between two looks while nobody listens."""

    @abstractmethod
    async def pause(self, took: float) -> None:
        """Wait for the next look. The last one took so many seconds."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            began = time.monotonic()
            if self.has_listeners:
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
