"""Tasks of FastMCP, for `python -m benchmarks.tasks`: `STORE FIGURE`. Run by FastMCP's own Python.

Its task queue and its client poll; both poll as often as they can here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension, call_tool_task
from task_figures import Lab, measure

SOON = timedelta(milliseconds=1)


class FastmcpLab:
    """A server and a client."""

    sleeping = 300
    creations = 200

    def __init__(self, store: str) -> None:
        self.entered = asyncio.Semaphore(0)
        self.cancelled = asyncio.Semaphore(0)
        url = "memory://" if store == "memory:" else store
        server = FastMCP("lab")
        server.add_extension(TasksExtension(url=url, concurrency=5000, minimum_check_interval=SOON))
        task = TaskConfig(mode="required", poll_interval=SOON)

        @server.tool(task=task)
        async def quick() -> str:
            return "done"

        @server.tool(task=task)
        async def wait() -> str:
            self.entered.release()
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.release()
            return ""

        self.client = Client(server, mode="2026-07-28")

    async def start(self, tool: str) -> Any:
        """Call a tool, and return its task."""
        return await call_tool_task(self.client, tool)

    async def result(self, task: Any) -> None:
        """Wait for the result of a task."""
        assert (await task.result()).data == "done"

    async def cancel(self, task: Any) -> None:
        """Cancel a task."""
        await task.cancel()

    async def cancel_elsewhere(self, task: Any) -> None:
        """Not measured."""
        raise NotImplementedError  # the bench has no row for it: FastMCP runs in one process here


async def run(store: str, figure: Callable[[Lab], Awaitable[float]]) -> float:
    """Open the lab, and measure. The program ends without waiting for the tasks."""
    lab = FastmcpLab(store)
    async with lab.client:
        print(await figure(lab), flush=True)
        os._exit(0)


measure(run)
