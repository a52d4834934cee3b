"""Who listens to changes goes from worker to worker: every change is told once, in its order,
however far each worker has heard."""

from __future__ import annotations

import asyncio
from itertools import count

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Change
from interlock import types as t
from interlock.meta_keys import POSITION
from interlock.server.changes import Listener, MemoryBus, TopicBus
from interlock.store import MemoryStore, RedisStore, SqliteStore, Store
from tests.workers.conftest import STORES, place

URIS = [f"docs://{n}" for n in range(60)]
ALL = t.SubscriptionFilter(resource_subscriptions=URIS)
_turn = count()

moves = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1)), max_size=8)


@pytest.fixture(scope="module", params=STORES)
def where(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Makes pairs of stores that are as two workers."""
    folder = tmp_path_factory.mktemp(request.param)
    with place(request.param, folder) as url:

        def pair() -> list[Store]:
            if request.param == "redis":
                prefix = f"{next(_turn)}:"
                return [RedisStore(url, prefix=prefix) for _ in range(2)]
            path = folder / f"{next(_turn)}.db"
            return [SqliteStore(path) for _ in range(2)]

        yield pair


async def told(bus: TopicBus | MemoryBus, since: str, many: int) -> list[tuple[str, str]]:
    """The next notices for one who was at a place, each with its own."""
    listener = Listener(ALL, bus)
    stop = bus.listen(listener.receive)
    received: list[tuple[str, str]] = []
    try:
        async with asyncio.timeout(10):
            await listener.catch_up(since)
            while len(received) < many:
                await listener.wait()
                if (notice := listener.next_notice()) is not None:
                    _, params = notice
                    received.append((params.uri, msgspec.json.decode(params.meta)[POSITION]))
    finally:
        stop()
    return received


@given(plan=moves)
def test_every_change_is_told_once_and_in_order(where, plan: list[tuple[int, int, int]]):
    """Each move: so many changes are told by the first worker, and so many notices taken at one of
    the two (`HTL-35`)."""

    async def main() -> None:
        stores = where()
        for store in stores:
            await store.open()
        buses = [TopicBus(store.changes) for store in stores]
        # As on a worker that serves others too: it hears all the while.
        stops = [bus.listen(lambda change: None) for bus in buses]
        since = buses[0].position
        uris = iter(URIS)
        posted = 0
        received = 0
        for more, take, at in [*plan, (1, 99, 1)]:
            for _ in range(more):
                buses[0].publish(Change("resource", next(uris)))
                posted += 1
            for uri, next_place in await told(buses[at], since, min(take, posted - received)):
                assert uri == URIS[received]
                received = received + 1
                since = next_place
        assert received == posted
        for stop in stops:
            stop()
        for store in stores:
            await store.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("make", [MemoryBus, lambda: TopicBus(MemoryStore().changes)])
async def test_what_changed_again_is_told_again_to_who_has_heard_the_first_of_it(make):
    """A, B and A again, told as A and B: whoever goes on from either has nothing left out."""
    bus = make()
    start = bus.position
    for uri in (URIS[0], URIS[1], URIS[0]):
        bus.publish(Change("resource", uri))
    first, second = await told(bus, start, 2)
    assert (first[0], second[0]) == (URIS[0], URIS[1])
    assert [uri for uri, _ in await told(bus, first[1], 2)] == [URIS[1], URIS[0]]
    assert [uri for uri, _ in await told(bus, second[1], 1)] == [URIS[0]]
