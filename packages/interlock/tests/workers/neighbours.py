"""Several workers within the test's own loop, for what is shared by a store and needs no
processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from interlock import Server
from interlock.server.run.http import serve_web


class Neighbours:
    """Workers of one store; as `Cluster`, as far as a client by hand is concerned."""

    def __init__(self, ports: list[int]) -> None:
        self.ports = ports

    def at(self, number: int) -> str:
        """The endpoint of one worker."""
        return f"http://127.0.0.1:{self.ports[number % len(self.ports)]}/mcp"


async def eventually(true: Callable[[], Awaitable[bool]]) -> None:
    """Look until something is so."""
    for _ in range(1000):
        if await true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"it never came about: {true.__name__}")


@asynccontextmanager
async def neighbours(
    count: int, make: Callable[[], Server], **options: Any
) -> AsyncIterator[Neighbours]:
    """So many workers with these options."""
    loop = asyncio.get_running_loop()
    tasks = []
    ports = []
    try:
        for _ in range(count):
            ready: asyncio.Future[Any] = loop.create_future()
            tasks.append(
                loop.create_task(
                    serve_web(make(), port=0, grace=1.0, on_ready=ready.set_result, **options)
                )
            )
            await asyncio.wait({ready, tasks[-1]}, return_when=asyncio.FIRST_COMPLETED)
            if tasks[-1].done():
                tasks[-1].result()
            ports.append(ready.result()[1])
        yield Neighbours(ports)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
