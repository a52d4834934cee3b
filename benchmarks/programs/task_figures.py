"""The measurements of tasks, in one process with a client and its server: `PROGRAM STORE FIGURE`
prints one number.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

SAMPLES = 200
IN_FLIGHT = 64
CANCELLATIONS = 30
PAGE_BYTES = 4096


class Lab(Protocol):
    """A client, and a server with two tools that run as tasks: `quick`, which ends at once, and
    `wait`, which ends when it is cancelled. `entered` and `cancelled` count the runs of `wait`;
    `sleeping` and `creations` are how many tasks those figures make.
    """

    entered: asyncio.Semaphore
    cancelled: asyncio.Semaphore
    sleeping: int
    creations: int

    async def start(self, tool: str) -> Any:
        """Call a tool, and return its task."""
        ...

    async def result(self, task: Any) -> None:
        """Wait for the result of a task."""
        ...

    async def cancel(self, task: Any) -> None:
        """Cancel a task."""
        ...

    async def cancel_elsewhere(self, task: Any) -> None:
        """Cancel a task at another worker."""
        ...

    async def start_of_another(self) -> str:
        """Create a task of another principal, and return its id."""
        ...

    async def ask_in_vain(self, id: str) -> None:
        """Ask for a task that the principal does not have."""
        ...


async def create(lab: Lab) -> float:
    """The median time of a call that becomes a task, in milliseconds."""

    async def one() -> None:
        await lab.start("quick")

    return await _median(one)


async def result(lab: Lab) -> float:
    """The median time of a call and of the result of its task, in milliseconds."""

    async def one() -> None:
        await lab.result(await lab.start("quick"))

    return await _median(one)


async def creations(lab: Lab) -> float:
    """The number of tasks that are created in a second, with many calls in flight."""
    left = lab.creations

    async def caller() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await lab.start("wait")

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(IN_FLIGHT)))
    return lab.creations / (time.perf_counter() - began)


async def cancel(lab: Lab) -> float:
    """The median time from a cancellation until the tool is cancelled, in milliseconds."""
    return await _cancelled(lab, lab.cancel)


async def elsewhere(lab: Lab) -> float:
    """The same, where another worker receives the cancellation."""
    return await _cancelled(lab, lab.cancel_elsewhere)


async def stranger(lab: Lab) -> float:
    """The processor time of a request for another principal's task, divided by that of a request
    for a task that does not exist. The two take turns.
    """
    ids = [await lab.start_of_another(), "0" * 32]
    samples: list[list[int]] = [[], []]
    for number in range(SAMPLES * 10):
        began = time.process_time_ns()
        await lab.ask_in_vain(ids[number % 2])
        samples[number % 2].append(time.process_time_ns() - began)
    return statistics.median(samples[0]) / statistics.median(samples[1])


async def sleeping(lab: Lab) -> float:
    """The memory of a task that waits, in KB: the growth of the process."""
    await lab.start("wait")
    gc.collect()
    before = _resident()
    for _ in range(lab.sleeping):
        await lab.start("wait")
    for _ in range(lab.sleeping):
        await lab.entered.acquire()
    gc.collect()
    return (_resident() - before) / lab.sleeping / 1024


FIGURES: dict[str, Callable[[Lab], Awaitable[float]]] = {
    "create": create,
    "result": result,
    "creations": creations,
    "cancel": cancel,
    "elsewhere": elsewhere,
    "stranger": stranger,
    "sleeping": sleeping,
}


def measure(run: Callable[[str, Callable[[Lab], Awaitable[float]]], Awaitable[float]]) -> None:
    """Run the program: `run(store, figure)` opens the lab."""
    _, store, figure = sys.argv
    print(asyncio.run(run(store, FIGURES[figure])), flush=True)
    sys.stdout.flush()


async def _median(one: Callable[[], Awaitable[None]]) -> float:
    for _ in range(SAMPLES // 10):
        await one()
    samples = []
    for _ in range(SAMPLES):
        began = time.perf_counter()
        await one()
        samples.append(time.perf_counter() - began)
    return statistics.median(samples) * 1000


async def _cancelled(lab: Lab, cancelling: Callable[[Any], Awaitable[None]]) -> float:
    samples = []
    for _ in range(CANCELLATIONS):
        task = await lab.start("wait")
        await lab.entered.acquire()
        began = time.perf_counter()
        await cancelling(task)
        await lab.cancelled.acquire()
        samples.append(time.perf_counter() - began)
    return statistics.median(samples) * 1000


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE_BYTES
