"""Limits of calls through the gateway: rates, calls at once with a queue, and sizes."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec import Struct

from interlock import AnyResult, Exchange, McpError, Rate, RawResult
from interlock.quotas import RATE_LIMITED, FairQueue, Quota, busy_error, holder_of_exchange
from interlock.store import RateStore, Store, StoreError, open_store

from .asked import Asked

CONCURRENCY = 256
"""Requests that run at one server at once, in one worker."""
QUEUE_SECONDS = 30.0
"""The longest time that a request waits for a server."""


class CallLimits(Struct, frozen=True, kw_only=True):
    """The limits of requests that reach servers.

    Attributes:
        rates: The rates of each principal (of each address without a principal) by what they count:
            "principal" for all requests, "server:NAME" for those to one server, "tool:NAME" for
            calls of tools, by the public name or a shell pattern of it.
        concurrency: The maximum number of requests that run at one server.
        queue: The maximum number of requests that wait for one server.
        queue_seconds: The longest time that a request waits.
        result: The maximum size of a result, in bytes of JSON; None for no limit.
    """

    rates: Mapping[str, Rate] = {}
    concurrency: int = CONCURRENCY
    queue: int = 100
    queue_seconds: float = QUEUE_SECONDS
    result: int | None = None


class _CountedRate(NamedTuple):
    """One rate, and the requests that it counts."""

    key: str
    kind: str
    pattern: str
    rate: Rate

    def counts(self, asked: Asked) -> bool:
        """Whether it counts a request."""
        if self.kind == "server":
            return asked.server == self.pattern
        if self.kind == "tool":
            return asked.kind == "tool" and fnmatchcase(asked.public_name, self.pattern)
        return True

    def words(self, asked: Asked) -> str:
        """What is too fast, as the beginning of a sentence."""
        if self.kind == "principal":
            return "You send too many requests"
        target = asked.server if self.kind == "server" else asked.public_name
        return f"You send too many requests to {target}"


class CallRates:
    """The rates of requests, counted in a store that all workers share.

    Args:
        limits: The limits.
        rates: The buckets.
        clock: Returns the seconds of the wall clock.
    """

    def __init__(
        self, limits: CallLimits, rates: RateStore, clock: Callable[[], float] = time.time
    ) -> None:
        self._rates = rates
        self.clock = clock
        self._counted = [
            _CountedRate(f"gateway:{key}", *key.partition(":")[::2], rate)
            for key, rate in limits.rates.items()
        ]

    async def acquire(self, x: Exchange, asked: Asked) -> None:
        """Count a request.

        Raises:
            McpError: A rate is exceeded; the error says when to try again. Or the store fails: then
                nothing can be counted, and therefore nothing passes.
        """
        holder = holder_of_exchange(x)
        for counted in self._counted:
            if not counted.counts(asked):
                continue
            try:
                wait = await self._rates.acquire(
                    f"{counted.key}:{holder}",
                    rate=counted.rate.per_second,
                    burst=counted.rate.burst,
                    now=self.clock(),
                )
            except StoreError as bad:
                words = "The gateway cannot count requests now. Try again in 1 s."
                data = {"reason": "busy", "retryAfter": 1, "retryAfterMs": 1000}
                raise McpError(RATE_LIMITED, words, data) from bad
            if wait > 0.0:
                seconds = math.ceil(wait)
                raise McpError(
                    RATE_LIMITED,
                    f"{counted.words(asked)}. Try again in {seconds} s.",
                    {
                        "reason": "rate",
                        "retryAfter": seconds,
                        "retryAfterMs": math.ceil(wait * 1000),
                    },
                )


class OwnRates:
    """The buckets of a store that is opened when the first request is counted.

    Successive protections share it, so that a reload does not fill the buckets. Each of them calls
    `acquire_use` and, at its end, `release_use`.

    Args:
        url: The URL of the store.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._store: Store | None = None
        self._opening = asyncio.Lock()
        self._users = 0

    def acquire_use(self) -> None:
        """Count one more user."""
        self._users += 1

    async def release_use(self) -> None:
        """Close the store if this was the last user."""
        self._users -= 1
        store = self._store
        if not self._users and store is not None:
            self._store = None
            await store.aclose()

    async def acquire(self, key: str, *, rate: float, burst: float, now: float) -> float:
        """See RateStore."""
        store = self._store
        if store is None:
            async with self._opening:
                store = self._store
                if store is None:
                    store = open_store(self.url)
                    await store.open()
                    self._store = store
        return await store.rates.acquire(key, rate=rate, burst=burst, now=now)


class CallQueue:
    """The requests that run at one server, and those that wait for it, in a queue that is fair
    between principals. Further requests are shed.

    Args:
        server: The name of the server.
        concurrency: The maximum number of running requests.
        queue: The maximum number of waiting requests.
        seconds: The longest time that a request waits.
    """

    def __init__(self, server: str, concurrency: int, queue: int, seconds: float) -> None:
        self._what = f"requests to {server}"
        self._slots = Quota(concurrency)
        self._queue = FairQueue(self._slots, queue)
        self._seconds = seconds

    @property
    def running(self) -> int:
        """The number of running requests."""
        return self._slots.used

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return self._queue.usage().used

    async def acquire(self, x: Exchange) -> str:
        """Wait for a slot. Returns its holder, for `release`.

        Raises:
            McpError: There is no slot in time.
        """
        holder = holder_of_exchange(x)
        if not await self._queue.acquire(holder, self._seconds):
            raise busy_error(self._what)
        return holder

    def release(self, holder: str) -> None:
        """Give a slot back."""
        self._slots.release(holder)


def size_of(result: AnyResult) -> int | None:
    """Return the size of an encoded result in bytes; None for a result that is not encoded yet.

    What a server sends under the caller's revision stays encoded, so that it is never decoded here.
    """
    return len(result.body) if isinstance(result, RawResult) else None
