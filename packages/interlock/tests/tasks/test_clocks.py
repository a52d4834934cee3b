"""Clocks that jump, in servers and in workers: no task is taken from a living worker, none is lost,
and each runs once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest

from interlock import Docket
from tests.tasks.test_docket import running, waits
from tests.tasks.test_extension import Offered, make_server, result_of, serving
from tests.workers.conftest import place

BEATS = 6  # of each process after the jump; four of them may be missing


class Clock:
    """A wall clock that can be set."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@pytest.fixture(params=["inline", "docket"])
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of the queue of a fleet; empty if the processes that serve run the tasks."""
    with ExitStack() as opened:
        is_fleet = request.param == "docket"
        yield opened.enter_context(place("redis", tmp_path)) if is_fleet else ""


async def beaten(server: Offered) -> None:
    """Wait until a process has sent some more heartbeats."""
    messages = server.tasks.running.messages
    beat_once = messages.beat_once
    enough = asyncio.Event()
    count = 0

    async def counted() -> bool:
        nonlocal count
        has_store = await beat_once()
        count += has_store
        if count >= BEATS:
            enough.set()
        return has_store

    messages.beat_once = counted  # type: ignore[method-assign]  # counts what it sends
    await enough.wait()


@pytest.mark.parametrize("seconds", [3600.0, -3600.0], ids=["forward", "back"])
async def test_a_jump_of_the_clock_moves_no_task(
    seconds: float, queue: str, tmp_path: Path
) -> None:
    """All processes of a machine have one clock, which jumps while a task runs. Afterwards another
    jump sets it right. New tasks run between the jumps.
    """
    clock = Clock()
    store = f"sqlite://{tmp_path}/tasks.db"

    def made() -> Offered:
        runner = Docket(queue) if queue else None
        return make_server(store=store, runner=runner, wall_clock=clock)

    front, one, two = made(), made(), made()
    async with AsyncExitStack() as entered:
        peer = await entered.enter_async_context(serving(front))
        for worker in (one, two):
            await entered.enter_async_context(running(worker) if queue else serving(worker))
        waiting = await peer.create("wait")
        await peer.until(waiting.task_id, waits)
        for ahead in (seconds, 0.0):
            clock.ahead = ahead
            await asyncio.gather(beaten(front), beaten(one), beaten(two))
            task = await peer.ended((await peer.create("add", a=1, b=2)).task_id)
            assert result_of(task)["content"][0]["text"] == "3"
        for server in (front, one, two):
            server.gate.set()
        task = await peer.ended(waiting.task_id)
        assert result_of(task)["content"][0]["text"] == "waited"
    assert front.runs + one.runs + two.runs == ["wait"]
