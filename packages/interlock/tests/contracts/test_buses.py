"""The bus of one process passes the contract check, and the check catches buses that break a
promise.
"""

from __future__ import annotations

import asyncio

import pytest

from interlock import Change
from interlock.server.changes import MemoryBus
from interlock.testing import check_change_bus


async def test_the_bus_in_memory_keeps_its_promises():
    """Every listener receives every change in order, in its own loop (`LSN-13`)."""

    async def make() -> MemoryBus:
        return MemoryBus()

    await check_change_bus(make)


class Private(MemoryBus):
    """Tells only the first who listens."""

    def publish(self, change):
        """Tell one."""
        for listener in list(self._listeners)[:1]:
            listener.loop.call_soon_threadsafe(listener.receive, change)


class Backwards(MemoryBus):
    """Tells the last change first."""

    def publish(self, change):
        """Keep them back for a turn."""
        self.held = [change, *getattr(self, "held", [])]
        for listener in list(self._listeners)[:1]:
            listener.loop.call_soon_threadsafe(self._tell)

    def _tell(self):
        held = self.held
        self.held = []
        for change in held:
            super().publish(change)


class Clinging(MemoryBus):
    """Goes on telling those who stopped."""

    def listen(self, receive):
        """Listen for ever."""
        super().listen(receive)
        return lambda: None


class Local(MemoryBus):
    """Calls listeners in the thread of the publisher."""

    def publish(self, change):
        """Tell them here and now."""
        for listener in list(self._listeners):
            listener.receive(change)


class Echoing(MemoryBus):
    """Tells everything twice."""

    def publish(self, change):
        """Tell it, and again."""
        super().publish(change)
        super().publish(change)


class Lonely(MemoryBus):
    """Raises where nobody listens."""

    def publish(self, change: Change):
        """Tell somebody."""
        if not len(self):
            raise LookupError("nobody listens")
        super().publish(change)


class Bound(MemoryBus):
    """Cannot be used from other threads."""

    def publish(self, change: Change):
        """Tell them, in the loop's thread only."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        super().publish(change)


BROKEN = {
    Private: "every listener receives every change once",
    Backwards: "in the order of publication",
    Clinging: "receives nothing more",
    Local: "in the thread of the publisher",
    Echoing: "every listener receives every change once",
    Lonely: "without a listener is not an error",
    Bound: "any thread may publish",
}


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
async def test_broken_buses_are_caught(kind: type[MemoryBus]):
    """Each promise that is broken is the one that the error names."""

    async def make() -> MemoryBus:
        return kind()

    with pytest.raises(AssertionError, match=BROKEN[kind]):
        await check_change_bus(make, patience=0.2)
