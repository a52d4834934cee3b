"""The size of all events in a store: the largest holder loses its oldest events first."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from interlock.exchange import NO_CAPABILITIES
from interlock.store import MemoryStore, RedisStore, SqliteStore, Store
from interlock.store.interface import Session
from interlock.wire.revisions import R4
from tests.store.makers import KINDS, opened

NOW = 1000.0


def workers_of(kind: str, folder: Path, redis_url: str, event_bytes: int) -> list[Store]:
    """Two stores at one place, as two workers have them; one where they are not shared."""
    match kind:
        case "sqlite":
            path = folder / "events.db"
            return [SqliteStore(path, event_bytes=event_bytes) for _ in range(2)]
        case "redis":
            prefix = f"interlock-test:{folder.name}:{time.time_ns()}:"
            return [
                RedisStore(redis_url, prefix=prefix, event_bytes=event_bytes, patience=60.0)
                for _ in range(2)
            ]
    return [MemoryStore(event_bytes=event_bytes)]


async def opened_by(store: Store, session: str, holder: str) -> None:
    """Create a session of a holder."""
    now = time.time()
    made = Session(
        id=session,
        revision=R4,
        capabilities=NO_CAPABILITIES,
        holder=holder,
        created=now,
        until=now + 4000,
    )
    assert await store.sessions.create(made, most=1000, now=now)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_largest_holder_loses_its_oldest_events(
    kind: str, tmp_path: Path, redis_url: str
):
    """The other holders can resume every stream of theirs, whatever a stranger stores on whichever
    worker.
    """
    workers = workers_of(kind, tmp_path, redis_url, 100_000)
    async with opened(*workers):
        for n in range(40):
            store = workers[n % len(workers)]
            await opened_by(store, f"s{n}", "stranger")
            if n < 5:
                await opened_by(store, f"h{n}", f"honest{n}")
                store.events.append(f"h{n}", "stream", 1, b"x" * 3000, last=False)
            for number in range(4):
                store.events.append(f"s{n}", "stream", number, b"y" * 2000, last=number == 3)
            assert (await store.events.measure()).used <= 100_000
        for n in range(5):
            replay = await workers[0].events.read(f"h{n}", "stream", 0)
            assert replay is not None
            assert [data for _, data in replay.events] == [b"x" * 3000]
        assert await workers[0].events.read("s0", "stream", 0) is None
        assert await workers[0].events.read("s39", "stream", 0) is not None
        usages = [await each.events.measure() for each in workers]
        assert usages[0].used == usages[-1].used > 70_000
        assert usages[0].limit == 100_000
        assert usages[0].largest > 50_000
        assert usages[0].holders == 6
        if kind == "sqlite":  # each worker counts what it has evicted
            assert sum(each.evicted for each in usages) > 20
        else:
            assert usages[0].evicted > 20


@pytest.mark.parametrize("kind", KINDS)
async def test_a_running_stream_keeps_its_newest_event(kind: str, tmp_path: Path, redis_url: str):
    """A client that resumes from an event that is gone is told so; the newest one is there."""
    workers = workers_of(kind, tmp_path, redis_url, 10_000)
    async with opened(*workers):
        store = workers[0]
        await opened_by(store, "s", "stranger")
        for number in range(30):
            store.events.append("s", "stream", number, b"y" * 1000, last=False)
        assert await store.events.read("s", "stream", 3) is None
        replay = await store.events.read("s", "stream", 28)
        assert replay is not None
        assert [number for number, _ in replay.events] == [29]
        assert (await store.events.measure()).used <= 10_000


@pytest.mark.parametrize("kind", KINDS)
async def test_events_that_cannot_be_removed_may_exceed_the_limit(
    kind: str, tmp_path: Path, redis_url: str
):
    """The newest event of each running stream stays. The end of a session gives its bytes back."""
    workers = workers_of(kind, tmp_path, redis_url, 1000)
    async with opened(*workers):
        store = workers[0]
        for n in range(20):
            await opened_by(store, f"s{n}", "stranger")
            store.events.append(f"s{n}", "stream", 0, b"y" * 500, last=False)
        assert (await store.events.measure()).used == 10_000
        for n in range(20):
            await store.sessions.end(f"s{n}")
        assert (await store.events.measure()).used == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
async def test_the_measured_size_is_what_can_be_read(
    kind: str, seed: int, tmp_path: Path, redis_url: str
):
    """Whatever is appended, repeated, skipped, ended and evicted, and on whichever worker."""
    rng = random.Random(seed)
    workers = workers_of(kind, tmp_path, redis_url, 20_000)
    names = [(f"s{n}", f"t{m}") for n in range(6) for m in range(4)]
    async with opened(*workers):
        for n in range(6):
            await opened_by(workers[0], f"s{n}", f"holder{n % 3}")
        numbers: dict[tuple[str, str], int] = {}
        for _ in range(600):
            session, stream = rng.choice(names)
            number = numbers.get((session, stream), 0) + rng.choice([0, 1, 1, 1, 2])
            numbers[session, stream] = number
            data = b"e" * rng.randrange(1, 400)
            store = workers[names.index((session, stream)) % len(workers)]
            store.events.append(session, stream, number, data, last=rng.random() < 0.02)
            if rng.random() < 0.01:
                for each in workers:  # what was appended is there before the session ends
                    await each.events.read(session, stream, 0)
                await store.sessions.end(session)
                await opened_by(store, session, f"holder{int(session[1:]) % 3}")
        held = 0
        for session, stream in names:
            store = workers[names.index((session, stream)) % len(workers)]
            for after in range(-1, numbers.get((session, stream), -1)):
                replay = await store.events.read(session, stream, after)
                if replay is not None:
                    held += sum(len(data) for _, data in replay.events)
                    break
        assert (await workers[-1].events.measure()).used == held
        assert held <= 20_000 + len(workers) * (20_000 // 64 + 400)


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


@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_is_a_number_above_0(kind: str, tmp_path: Path):
    """The error names the option."""
    with pytest.raises(ValueError, match="event_bytes"):
        workers_of(kind, tmp_path, "redis://127.0.0.1:1", 0)
