"""The orders of a Python client program: one line on standard input is one batch of calls."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable


async def obey(call: Callable[[], Awaitable[int]]) -> None:
    """Make the ordered calls until standard input ends.

    An order is `IN_FLIGHT SECONDS`; the answer is the number of calls made. `call` adds 1 and 2 and
    returns the sum. The loop blocks while it waits for an order. That costs nothing, because no
    call is in flight then.
    """
    print("ready", flush=True)
    for order in sys.stdin:
        in_flight, seconds = order.split()
        print(await batch(call, int(in_flight), float(seconds)), flush=True)


async def batch(call: Callable[[], Awaitable[int]], in_flight: int, seconds: float) -> int:
    """Keep `in_flight` calls running for `seconds` and return how many were made."""
    end = time.perf_counter() + seconds

    async def worker() -> int:
        made = 0
        while time.perf_counter() < end:
            if await call() != 3:
                raise AssertionError("the answer to 1 + 2 was not 3")
            made += 1
        return made

    if in_flight == 1:
        return await worker()
    return sum(await asyncio.gather(*(worker() for _ in range(in_flight))))
