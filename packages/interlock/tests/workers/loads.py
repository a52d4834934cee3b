"""Clients that call again and again while something is done to their server."""

from __future__ import annotations

import asyncio

from interlock import Client, Unreachable
from interlock import types as t
from tests.workers.clusters import until

PAUSE = 0.01
"""Seconds between two calls of a client: always some are under way, and the server that is replaced
meanwhile has time to start. Without it, clients take all the processor time that there is."""


class Load:
    """A client that calls with such pauses, and notes what came of it."""

    def __init__(self, url: str, revision: str, *, pause: float = PAUSE) -> None:
        self._pause = pause
        self.client = Client(url, revision=revision)
        self.done = 0
        self.failed: list[Exception] = []
        self.stop = False

    @property
    def session(self) -> str | None:
        """The id of its session."""
        return self.client._transport.trips.session

    async def run(self) -> None:
        """Call until told to stop."""
        async with self.client:
            while not self.stop:
                try:
                    await self.client.call_tool("pid")
                    self.done += 1
                except t.InterlockError as bad:
                    self.failed.append(bad)
                await asyncio.sleep(self._pause)


async def more(loads: list[Load]) -> None:
    """Wait until each has done ten calls more."""
    goals = [load.done + 10 for load in loads]
    await asyncio.to_thread(
        until, lambda: all(load.done >= goal for load, goal in zip(loads, goals, strict=True))
    )


def check(loads: list[Load], *, deaths: int) -> None:
    """Each had one call at a time, so each death has cost it one at the most; and it was told what
    happened, in words."""
    for load in loads:
        assert len(load.failed) <= deaths, load.failed
        for bad in load.failed:
            assert isinstance(bad, Unreachable)
            assert any(
                words in str(bad) for words in ("before the answer", "not known", "status 502")
            ), bad
