"""The size of all events in a memory store: the largest holder loses its oldest events first."""

from __future__ import annotations

import random

import pytest

from interlock.exchange import NO_CAPABILITIES
from interlock.store import MemoryStore
from interlock.store.interface import Session
from interlock.wire.revisions import R4

NOW = 1000.0


async def opened_by(store: MemoryStore, session: str, holder: str) -> None:
    """Create a session of a holder."""
    made = Session(
        id=session,
        revision=R4,
        capabilities=NO_CAPABILITIES,
        holder=holder,
        created=NOW,
        until=NOW + 4000,
    )
    assert await store.sessions.create(made, most=1000, now=NOW)


async def test_the_largest_holder_loses_its_oldest_events():
    """The other holders can resume every stream of theirs, whatever a stranger stores."""
    store = MemoryStore(event_bytes=100_000, clock=lambda: NOW)
    for n in range(40):
        await opened_by(store, f"s{n}", "stranger")
        if n < 5:
            await opened_by(store, f"h{n}", f"honest{n}")
            store.events.append(f"h{n}", "stream", 1, b"x" * 3000, last=False)
        for number in range(4):
            store.events.append(f"s{n}", "stream", number, b"y" * 2000, last=number == 3)
        assert store.events.usage().used <= 100_000
    for n in range(5):
        replay = await store.events.read(f"h{n}", "stream", 0)
        assert replay is not None
        assert [data for _, data in replay.events] == [b"x" * 3000]
    assert await store.events.read("s0", "stream", 0) is None
    assert await store.events.read("s39", "stream", 0) is not None
    usage = store.events.usage()
    assert usage.evicted > 20
    assert usage.largest > 50_000
    assert usage.holders == 6


async def test_a_running_stream_keeps_its_newest_event():
    """A client that resumes from an event that is gone is told so; the newest one is there."""
    store = MemoryStore(event_bytes=10_000, clock=lambda: NOW)
    await opened_by(store, "s", "stranger")
    for number in range(30):
        store.events.append("s", "stream", number, b"y" * 1000, last=False)
    assert await store.events.read("s", "stream", 3) is None
    replay = await store.events.read("s", "stream", 28)
    assert replay is not None
    assert [number for number, _ in replay.events] == [29]
    assert store.events.usage().used <= 10_000


async def test_events_that_cannot_be_removed_may_exceed_the_limit():
    """The newest event of each running stream stays."""
    store = MemoryStore(event_bytes=1000, clock=lambda: NOW)
    for n in range(20):
        await opened_by(store, f"s{n}", "stranger")
        store.events.append(f"s{n}", "stream", 0, b"y" * 500, last=False)
    assert store.events.usage().used == 10_000
    for n in range(20):
        await store.sessions.end(f"s{n}")
    assert store.events.usage().used == 0


@pytest.mark.parametrize("seed", range(5))
async def test_the_size_is_the_sum_of_the_events(seed: int):
    """Whatever is appended, skipped, ended, forgotten and outlived."""
    rng = random.Random(seed)
    clock = [NOW]
    store = MemoryStore(event_bytes=20_000, clock=lambda: clock[0])
    numbers: dict[tuple[str, str], int] = {}
    for _ in range(3000):
        session, stream = f"s{rng.randrange(6)}", f"t{rng.randrange(4)}"
        number = numbers.get((session, stream), 0) + rng.choice([0, 1, 1, 1, 2])
        numbers[session, stream] = number
        size = rng.randrange(200)
        store.events.append(session, stream, number, b"e" * size, last=rng.random() < 0.02)
        if rng.random() < 0.01:
            store.events.forget(session)
        clock[0] += rng.choice([0, 0, 0, 30])
        held = sum(
            len(event)
            for log in store.events._logs.values()
            for streams in (log._running, log._ended)
            for each in streams.values()
            for event in each.events
        )
        assert store.events.usage().used == held == sum(store.events._sizes().values())


def test_the_limit_is_a_number_above_0():
    with pytest.raises(ValueError, match="event_bytes"):
        MemoryStore(event_bytes=0)
