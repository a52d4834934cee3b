"""The memory of tasks that sleep."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

from interlock import Client, Server, TaskLimits, Tasks

COUNT = 300
GOAL = 6000  # bytes: 10,000 sleeping tasks in 60 MB


async def test_a_sleeping_task_costs_less_than_six_kilobytes() -> None:
    """The run with its coroutines, the record in memory, and 1.4 KB of the tool: its coroutine and
    the event that it waits for.
    """
    server = Server("sleepers", extensions=[Tasks(limits=TaskLimits(tasks=10 * COUNT))])
    entered = asyncio.Semaphore(0)

    @server.tool(task="required")
    async def sleep() -> str:
        entered.release()
        await asyncio.Event().wait()
        return ""

    async with Client(server) as client:

        async def fall_asleep(number: int) -> None:
            for _ in range(number):
                await client.start_tool("sleep")
            for _ in range(number):
                await entered.acquire()
            gc.collect()

        await fall_asleep(20)  # what is created once
        tracemalloc.start()
        try:
            await fall_asleep(COUNT)
            size, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert server.quotas["tasks"].usage().used == COUNT + 20
    assert size / COUNT < GOAL
