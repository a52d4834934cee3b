"""Sessions by holder: which session makes room for a new one, in every store."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from interlock.exchange import NO_CAPABILITIES
from interlock.store import Store
from interlock.store.interface import Session
from interlock.wire.revisions import R4
from tests.store.makers import KINDS, fresh, opened

NOW = time.time()  # Redis removes what is over by its own clock


def session(id: str, holder: str, until: float = NOW + 4000.0) -> Session:
    """A session of a holder."""
    return Session(
        id=id, revision=R4, capabilities=NO_CAPABILITIES, holder=holder, created=NOW, until=until
    )


async def left(store: Store, *ids: str) -> list[bool]:
    """Which sessions exist."""
    return [await store.sessions.load(id, now=NOW) is not None for id in ids]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_largest_holder_makes_room(kind: str, tmp_path, redis_url: str):
    """The least recently used session of who has the most makes room for who has less; its owner
    gets no more, and nobody loses a session to it.
    """
    store = fresh(kind, tmp_path, redis_url)[0]
    async with opened(store):

        async def create(id: str, holder: str, until: float = NOW + 4000.0) -> bool:
            return await store.sessions.create(session(id, holder, until), most=5, now=NOW)

        for n in range(4):
            assert await create(f"g{n}", "greedy", NOW + 4000.0 + n)
        assert await create("h0", "honest", NOW + 3000.0)
        assert not await create("g9", "greedy")
        await store.sessions.prolong("g0", NOW + 5000.0)
        assert await create("m0", "modest")
        assert await left(store, "g0", "g1", "h0", "m0") == [True, False, True, True]
        assert await create("h1", "honest")
        assert await left(store, "g0", "g2", "g3") == [True, False, True]
        assert not await create("h2", "honest")
        assert await create("h1", "honest")  # the same id is no further session
        assert await store.sessions.end("h1")
        assert await create("h2", "honest")
        assert await store.sessions.count(now=NOW) == 5


@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_that_nobody_uses_makes_room(kind: str, tmp_path, redis_url: str):
    """Where all have equally many, the session that was not used for the longest time makes room
    once it has rested.
    """
    store = fresh(kind, tmp_path, redis_url)[0]
    async with opened(store):

        async def create(id: str, rested: float) -> bool:
            new = session(id, id, NOW + 3000.0)
            return await store.sessions.create(new, most=3, now=NOW, rested=rested)

        for id, until in (("a", NOW + 2002.0), ("b", NOW + 2001.0), ("c", NOW + 2003.0)):
            assert await store.sessions.create(session(id, id, until), most=3, now=NOW)
        assert not await create("d", NOW + 2001.0)
        assert await create("d", NOW + 2001.5)
        assert await left(store, "a", "b", "c", "d") == [True, False, True, True]


@pytest.mark.parametrize("kind", KINDS)
async def test_expired_sessions_count_for_nobody(kind: str, tmp_path, redis_url: str):
    """A holder whose sessions have expired is the largest no longer."""
    store = fresh(kind, tmp_path, redis_url)[0]
    async with opened(store):
        for n in range(3):
            new = session(f"a{n}", "a", NOW + 500.0)
            assert await store.sessions.create(new, most=3, now=NOW)
        for n in range(2):
            new = replace(session(f"b{n}", "b"), created=NOW + 1000.0)
            assert await store.sessions.create(new, most=3, now=NOW + 1000.0)
        assert await store.sessions.create(session("a9", "a"), most=3, now=NOW + 1000.0)
        assert await store.sessions.count(now=NOW + 1000.0) == 3
        assert not await store.sessions.create(session("b9", "b"), most=3, now=NOW + 1000.0)
        assert await store.sessions.create(session("c0", "c"), most=3, now=NOW + 1000.0)
        assert await store.sessions.load("b0", now=NOW + 1000.0) is None
