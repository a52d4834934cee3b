"""Tasks of Interlock, for `python -m benchmarks.tasks`: `STORE FIGURE`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from msgspec import Raw
from task_figures import Lab, measure

from interlock import Caller, Client, Exchange, McpError, Principal, Server, TaskLimits, Tasks
from interlock import types as t
from interlock.types.tasks import TASKS_EXTENSION, CreateTaskResult, GetTaskRequestParams


class InterlockLab:
    """A server, a client, and another worker with a client of its own."""

    sleeping = 10_000
    creations = 2000

    def __init__(self, store: str) -> None:
        self.entered = asyncio.Semaphore(0)
        self.cancelled = asyncio.Semaphore(0)
        self.server = self._server(store)
        self.client = Client(self.server)
        self.other = Client(self._server(store))

    def _server(self, store: str) -> Server:
        server = Server("lab", extensions=[Tasks(store, limits=TaskLimits(tasks=1_000_000))])

        @server.tool(task="required")
        async def quick() -> str:
            return "done"

        @server.tool(task="required")
        async def wait() -> str:
            self.entered.release()
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.release()
            return ""

        return server

    async def start(self, tool: str) -> Any:
        """Call a tool, and return its task."""
        return await self.client.start_tool(tool)

    async def result(self, task: Any) -> None:
        """Wait for the result of a task."""
        assert (await task.result()).text == "done"

    async def cancel(self, task: Any) -> None:
        """Cancel a task."""
        await task.cancel()

    async def cancel_elsewhere(self, task: Any) -> None:
        """Cancel a task at another worker."""
        await self.other.task(task.id).cancel()

    async def start_of_another(self) -> str:
        """Create a task of another principal, and return its id."""
        params = t.CallToolRequestParams(name="wait", arguments=Raw(b"{}"))
        made = await self.server.handle(Exchange("tools/call", params, _caller("alice")))
        assert isinstance(made, CreateTaskResult)
        return made.task_id

    async def ask_in_vain(self, id: str) -> None:
        """Ask for a task that the principal does not have."""
        params = GetTaskRequestParams(task_id=id)
        with contextlib.suppress(McpError):
            await self.server.handle(Exchange("tasks/get", params, _caller("bob")))
            raise AssertionError("the task is known")


def _caller(name: str) -> Caller:
    capabilities = t.ClientCapabilities(extensions={TASKS_EXTENSION: {}})
    return Caller("2026-07-28", capabilities, principal=Principal(subject=name))


async def run(store: str, figure: Callable[[Lab], Awaitable[float]]) -> float:
    """Open the lab, and measure."""
    lab = InterlockLab(store)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(lab.client)
        if figure.__name__ == "elsewhere":
            await stack.enter_async_context(lab.other)
        return await figure(lab)


measure(run)
