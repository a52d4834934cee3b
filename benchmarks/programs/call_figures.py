"""The processor time of a call in this process, with everything that is in it, for `python -m
benchmarks.mounts` and `python -m benchmarks.asking`: `FIGURE [WORD...]`."""

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
Front = Callable[..., AbstractAsyncContextManager[Call]]


def measure(front: Front) -> None:
    """Measure a figure, and print it in microseconds: the lowest of the samples.

    Args:
        front: Opens what is called. It gets the words of the command line: the figure, and what
            belongs to it.
    """
    print(asyncio.run(_measure(front, *sys.argv[1:])))


async def _measure(front: Front, *words: str) -> float:
    async with front(*words) as call:
        for _ in range(CALLS // 2):
            await call()
        return min([await _sample(call) for _ in range(SAMPLES)])


async def _sample(call: Call) -> float:
    began = time.process_time()
    for _ in range(CALLS):
        await call()
    return (time.process_time() - began) / CALLS * 1e6


Opened = AsyncIterator[Call]
