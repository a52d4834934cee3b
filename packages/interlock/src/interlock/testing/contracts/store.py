"""Contract check of a Store with two workers: sessions, events, topics, records, rates, workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from ...store.errors import StoreError
from ...store.interface import Store
from .promises import eventually, promise_of, require, within
from .records import STEPS as RECORD_STEPS
from .sessions import STEPS as SESSION_STEPS
from .sessions import session
from .topics import STEPS as TOPIC_STEPS

MakeStores = Callable[[], Awaitable[Sequence[Store]]]
Step = Callable[[Store, Store], Awaitable[None]]


async def check_store(make_store: MakeStores, *, patience: float = 30.0) -> None:
    """Check that stores keep the contract of `interlock.store.Store`.

    Args:
        make_store: Makes unopened stores at an empty location: two that share the location, as two
            workers do, or one if a store is not `shared`. Called for each step.
        patience: Seconds that each step waits.

    Raises:
        AssertionError: A promise is broken; the message names it.
    """
    for step in (*SESSION_STEPS, *TOPIC_STEPS, *RECORD_STEPS, *_STEPS):
        stores = list(await make_store())
        async with within(patience, "a store", promise_of(step)):
            require(
                len(stores) == (2 if stores[0].shared else 1),
                f"`shared` is {stores[0].shared}, but `make_store` returned {len(stores)} stores",
            )
            try:
                for store in stores:
                    await store.open()
                await step(stores[0], stores[-1])
            finally:
                for store in stores:
                    await store.aclose()


async def _grants_rate_and_burst(one: Store, other: Store) -> None:
    """a token bucket grants its burst at once, then its rate, and holds at most its burst"""
    now = time.time()
    waits = [
        await store.rates.acquire("k", rate=2.0, burst=3.0, now=now)
        for store in (one, other, one, other)
    ]
    require(
        waits[:3] == [0.0, 0.0, 0.0],
        f"3 tokens were requested from a bucket of 3, and the waits were {waits[:3]}",
    )
    require(
        abs(waits[3] - 0.5) < 0.01,
        f"the wait at an empty bucket with a rate of 2 tokens a second was {waits[3]} seconds",
    )
    require(
        await one.rates.acquire("another", rate=2.0, burst=3.0, now=now) == 0.0,
        "an empty bucket made another bucket empty",
    )
    require(
        await other.rates.acquire("k", rate=2.0, burst=3.0, now=now + waits[3]) == 0.0,
        "there was no token after the announced wait",
    )
    later = now + 3600.0
    waits = [await one.rates.acquire("k", rate=2.0, burst=3.0, now=later) for _ in range(4)]
    require(
        waits[:3] == [0.0, 0.0, 0.0] and waits[3] > 0.0,
        f"after an hour, 4 tokens were requested from a bucket of 3, and the waits were {waits}",
    )


async def _shares_buckets(one: Store, other: Store) -> None:
    """all workers together get at most the tokens that a bucket holds"""
    now = time.time()
    asked = [
        store.rates.acquire("k", rate=1.0, burst=10.0, now=now)
        for _ in range(20)
        for store in (one, other)
    ]
    had = sum(wait == 0.0 for wait in await asyncio.gather(*asked))
    require(
        had == 10, f"40 tokens were requested at once from a bucket of 10, and {had} were granted"
    )


async def _tracks_live_workers(one: Store, other: Store) -> None:
    """every worker sees a worker as alive until the end of its last heartbeat"""
    now = time.time()
    require(not await one.workers.is_alive("w", now=now), "an unknown worker is alive")
    await one.workers.heartbeat("w", until=now + 10.0)
    for store in (one, other):
        require(
            await store.workers.is_alive("w", now=now), "a worker with a heartbeat is not alive"
        )
        require(
            not await store.workers.is_alive("v", now=now),
            "a heartbeat of one worker made another worker alive",
        )
    await one.workers.heartbeat("w", until=now + 20.0)
    require(
        await other.workers.is_alive("w", now=now + 15.0),
        "a second heartbeat did not extend the first",
    )
    require(
        not await other.workers.is_alive("w", now=now + 25.0),
        "a worker is alive after the end of its heartbeat",
    )
    await one.workers.heartbeat("ahead", until=now + 86_400.0)
    require(
        not await other.workers.is_alive("ahead", now=now),
        "a worker is alive for a day because its clock was ahead when it sent a heartbeat",
    )
    await one.workers.heartbeat("v", until=now + 20.0)
    await other.workers.withdraw("w")
    await other.workers.withdraw("nobody")
    for store in (one, other):
        require(
            not await store.workers.is_alive("w", now=now),
            "a worker is alive after it was withdrawn",
        )
        require(
            await store.workers.is_alive("v", now=now), "withdrawing one worker withdrew another"
        )
    await one.workers.heartbeat("w", until=now + 20.0)
    require(await other.workers.is_alive("w", now=now), "a withdrawn worker cannot return")


async def _opens_again(one: Store, other: Store) -> None:
    """a store can be closed twice and opened again, and other workers still find its data"""
    kept = session("s")
    now = kept.created
    await one.sessions.create(kept, most=9, now=now)
    one.events.append("s", "t", 0, b"before", last=True)
    one.changes.publish(b"before")
    await one.aclose()
    await one.aclose()
    if one.shared:
        require(
            await other.sessions.load("s", now=now) == kept,
            "closing a store deleted a session",
        )
        await eventually(lambda: _data(other, "s", "t"), [b"before"])
        await _refuses(one)
    await one.open()
    if one.shared:
        require(
            await one.sessions.load("s", now=now) == kept,
            "a session was lost when the store was opened again",
        )
        require(
            await _data(one, "s", "t") == [b"before"],
            "events were lost when the store was opened again",
        )
    require(
        await one.sessions.create(session("t"), most=9, now=now),
        "a store that was opened again accepts no session",
    )
    position = one.changes.position
    one.changes.publish(b"after")
    require(
        await one.changes.replay(position) == [(b"after", await _newest(one, position))],
        "a topic that was opened again lost a note",
    )


async def _refuses(closed: Store) -> None:
    closed.events.append("s", "t", 1, b"", last=False)  # neither call raises
    closed.notes.publish(b"")
    try:
        await closed.sessions.count(now=0.0)
    except StoreError:
        return
    raise AssertionError("a closed store answers")


async def _data(store: Store, id: str, stream: str) -> list[bytes]:
    replay = await store.events.read(id, stream, -1)
    return [data for _, data in replay.events] if replay is not None else []


async def _newest(store: Store, position: str) -> str:
    return (await store.changes.replay(position) or [(b"", "")])[-1][1]


_STEPS: tuple[Step, ...] = (
    _grants_rate_and_burst,
    _shares_buckets,
    _tracks_live_workers,
    _opens_again,
)
