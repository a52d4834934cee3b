"""Contract check of a ChangeBus: every listener gets all changes, in order, in its own loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

from ...server.changes import Change, ChangeBus
from .promises import promise_of, require, within

MakeBus = Callable[[], Awaitable[ChangeBus]]


async def check_change_bus(make_bus: MakeBus, *, patience: float = 5.0) -> None:
    """Check that buses keep the contract of `interlock.ChangeBus`.

    Args:
        make_bus: Makes a new bus that is not connected to earlier ones.
        patience: Seconds that each step waits.

    Raises:
        AssertionError: A promise is broken; the message names it.
    """
    for step in _STEPS:
        bus = await make_bus()
        async with within(patience, "a change bus", promise_of(step)):
            await step(bus)


async def _delivers_in_order(bus: ChangeBus) -> None:
    """every listener receives every change once, in the order of publication"""
    changes = [
        Change("tools"),
        Change("resource", "note://1"),
        Change("prompts"),
        Change("resource", "note://2"),
        Change("resources"),
    ]
    listeners = [_BusListener(bus), _BusListener(bus)]
    for change in changes:
        bus.publish(change)
    for listener in listeners:
        received = await listener.receive(len(changes))
        require(received == changes, f"{changes} were published, and {received} were received")
        listener.stop()


async def _stops_delivery(bus: ChangeBus) -> None:
    """a listener that was stopped receives nothing more, and the other listeners still do"""
    stopped = _BusListener(bus)
    other = _BusListener(bus)
    stopped.stop()
    stopped.stop()
    bus.publish(Change("tools"))
    received = await other.receive(1)
    require(
        received == [Change("tools")], f"one change was published, and another received {received}"
    )
    require(stopped.changes == [], f"a stopped listener received {stopped.changes}")
    other.stop()


async def _accepts_any_thread(bus: ChangeBus) -> None:
    """any thread may publish, and a listener is called in the thread of its own event loop"""
    listener = _BusListener(bus)
    thread = threading.Thread(target=bus.publish, args=(Change("resource", "note://1"),))
    thread.start()
    received = await listener.receive(1)
    thread.join()
    require(
        received == [Change("resource", "note://1")],
        f"another thread published one change, and {received} were received",
    )
    require(
        listener.threads == {threading.get_ident()},
        "a listener was called in the thread of the publisher",
    )
    listener.stop()


async def _needs_no_listener(bus: ChangeBus) -> None:
    """publishing without a listener is not an error"""
    bus.publish(Change("tools"))


class _BusListener:
    """A listener that records its changes, and the threads in which it was called."""

    def __init__(self, bus: ChangeBus) -> None:
        self.changes: list[Change] = []
        self.threads: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self.stop = bus.listen(self._add)

    async def receive(self, count: int) -> list[Change]:
        """The received changes, once there are at least `count`."""
        while len(self.changes) < count:
            self._woken.clear()
            await self._woken.wait()
        await asyncio.sleep(0)  # a duplicate would arrive at once
        return list(self.changes)

    def _add(self, change: Change) -> None:
        self.changes.append(change)
        self.threads.add(threading.get_ident())
        self._loop.call_soon_threadsafe(self._woken.set)


_STEPS = (_delivers_in_order, _stops_delivery, _accepts_any_thread, _needs_no_listener)
