"""What `python -m benchmarks.mounts` measures in each library: the processor time of a call, in
this process, with everything that is in it. `FIGURE URL`."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

CALLS = int(os.environ.get("CALLS", "1000"))  # of one sample
SAMPLES = 12

Call = Callable[[], Awaitable[object]]
Front = Callable[[str, str], AbstractAsyncContextManager[Call]]


def measure(front: Front) -> None:
    """Measure a figure, and print it in microseconds: the lowest of the samples.

    Args:
        front: Opens what is called: `direct` (a client of a server in this process), `mounted` and
            `twice` (the same through one or two mounts), `url` (a client of the URL), and
            `mounted-url` (a client of a server that has mounted the URL).
    """
    print(asyncio.run(_measure(front, *sys.argv[1:])))


async def _measure(front: Front, figure: str, url: str) -> float:
    async with front(figure, url) as call:
        for _ in range(CALLS // 2):
            await call()
        return min([await _sample(call) for _ in range(SAMPLES)])


async def _sample(call: Call) -> float:
    began = time.process_time()
    for _ in range(CALLS):
        await call()
    return (time.process_time() - began) / CALLS * 1e6


Opened = AsyncIterator[Call]
