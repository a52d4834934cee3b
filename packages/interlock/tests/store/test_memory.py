"""The store in memory: what it costs, and what it lets go of."""

from __future__ import annotations

import gc
import time
import tracemalloc

import msgspec

from interlock.store import MemoryStore, Session
from interlock.testing.contracts.sessions import session

COUNT = 2000


async def test_an_idle_session_costs_less_than_four_kilobytes():
    """Its record, its place in the store, and what a call has left in the event log."""
    store = MemoryStore()
    now = time.time()
    encoded = msgspec.json.encode(session("s", created=now))
    gc.collect()
    tracemalloc.start()
    try:
        for n in range(COUNT):
            fresh = msgspec.structs.replace(
                msgspec.json.decode(encoded, type=Session), id=f"session-{n}"
            )
            await store.sessions.create(fresh, most=COUNT, now=now)
            store.events.append(fresh.id, "1", 0, b"x" * 200, last=True)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size / COUNT < 4096


async def test_what_has_gone_leaves_nothing_behind():
    """Sessions that come, are used and go, by an end or by their age, leave the store as small as
    it was.
    """
    now = time.time()
    clock = [0.0]
    store = MemoryStore(clock=lambda: clock[0])
    for n in range(5000):
        each = msgspec.structs.replace(session(f"s{n}", created=now + n), until=now + n + 10)
        assert await store.sessions.create(each, most=20, now=now + n)
        store.events.append(each.id, "t", 0, b"x", last=n % 2 == 0)
        await store.sessions.prolong(each.id, now + n + 12)
        await store.rates.acquire(each.id, rate=1.0, burst=2.0, now=now + n)
        if n % 3 == 0:
            assert await store.sessions.end(each.id)
    assert await store.sessions.count(now=now + 10_000) == 0
    assert not store.sessions._kept
    assert len(store.sessions._ends) < 200
    assert not store.events._logs
    assert len(store.rates._full) < 3000
