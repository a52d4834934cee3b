"""Contract check of a ChangeBus: every listener gets all changes, in order, in its own loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

from ...server.changes import Change, ChangeBus

MakeBus = Callable[[], Awaitable[ChangeBus]]


async def check_change_bus(make_bus: MakeBus, *, patience: float = 5.0) -> None:
    """Check that buses keep the contract of `interlock.ChangeBus`.

    Args:
        make_bus: Makes a new bus that is not connected to earlier ones.
        patience: The longest time in seconds until a change arrives.

    Raises:
        AssertionError: A promise is broken; the message names it.
    """
    await _everyone_hears_everything_in_order(await make_bus(), patience)
    await _who_stopped_hears_no_more(await make_bus(), patience)
    await _any_thread_may_publish(await make_bus(), patience)
    _nobody_need_listen(await make_bus())


async def _everyone_hears_everything_in_order(bus: ChangeBus, patience: float) -> None:
    changes = [
        Change("tools"),
        Change("resource", "note://1"),
        Change("prompts"),
        Change("resource", "note://2"),
        Change("resources"),
    ]
    ears = [_BusListener(bus), _BusListener(bus)]
    for change in changes:
        bus.publish(change)
    for ear in ears:
        heard = await ear.hear(len(changes), patience)
        _require(
            heard == changes,
            f"all who listen hear all changes in order: {changes} were published, {heard} were"
            " heard",
        )
        ear.stop()


async def _who_stopped_hears_no_more(bus: ChangeBus, patience: float) -> None:
    gone = _BusListener(bus)
    there = _BusListener(bus)
    gone.stop()
    gone.stop()
    bus.publish(Change("tools"))
    heard = await there.hear(1, patience)
    _require(
        heard == [Change("tools")],
        f"the others still hear once one has stopped listening, but heard {heard}",
    )
    _require(
        gone.heard == [], f"who has stopped listening hears nothing more, but heard {gone.heard}"
    )
    there.stop()


async def _any_thread_may_publish(bus: ChangeBus, patience: float) -> None:
    ear = _BusListener(bus)
    thread = threading.Thread(target=bus.publish, args=(Change("resource", "note://1"),))
    thread.start()
    heard = await ear.hear(1, patience)
    thread.join()
    _require(
        heard == [Change("resource", "note://1")],
        f"a change that another thread publishes is heard, but {heard} was",
    )
    _require(
        ear.threads == {threading.get_ident()},
        "a listener is called in the thread of its own loop, not in that of the publisher",
    )
    ear.stop()


def _nobody_need_listen(bus: ChangeBus) -> None:
    try:
        bus.publish(Change("tools"))
    except Exception as bad:
        raise AssertionError(
            "a change bus promises that a change that nobody listens for is no fault, but raised"
            f" {bad!r}"
        ) from bad


class _BusListener:
    """A listener that records its changes, and the threads in which it was called."""

    def __init__(self, bus: ChangeBus) -> None:
        self.heard: list[Change] = []
        self.threads: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self._stirred = asyncio.Event()
        self.stop = bus.listen(self._take)

    async def hear(self, count: int, patience: float) -> list[Change]:
        """The received changes, after `count` of them or at the end of the patience."""
        try:
            async with asyncio.timeout(patience):
                while len(self.heard) < count:
                    self._stirred.clear()
                    await self._stirred.wait()
        except TimeoutError:
            pass
        await asyncio.sleep(0)  # a duplicate would arrive at once
        return list(self.heard)

    def _take(self, change: Change) -> None:
        self.heard.append(change)
        self.threads.add(threading.get_ident())
        self._loop.call_soon_threadsafe(self._stirred.set)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(f"a change bus promises that {otherwise}")
