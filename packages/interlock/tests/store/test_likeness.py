"""SQLite and Redis stores behave as the one in memory does, whatever is done with them in whatever
order.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from interlock.store import MemoryStore
from interlock.testing.contracts.sessions import session
from tests.store.makers import SHARED, fresh

IDS = st.sampled_from(["a", "b", "a:b", "städte"])
STREAMS = st.sampled_from(["x", "y", "b:x"])
TIMES = st.integers(0, 60)
SIZES = st.sampled_from([0, 1, 1000, 300_000, 1_100_000])


class Likeness(RuleBasedStateMachine):
    """The same is done to a store in memory and, by two workers in turn, to a shared one.

    Both must say the same.
    """

    kind = redis_url = ""

    def __init__(self) -> None:
        super().__init__()
        self.base = time.time() + 1000.0  # so that the server's own expiry plays no part
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.model = MemoryStore()
        self.stores = fresh(self.kind, Path(self.folder.name), self.redis_url)
        self.turn = 0
        self.seen: dict[str, object] = {}
        self.next: dict[tuple[str, str], int] = {}
        for store in self.stores:
            self.runner.run(store.open())

    def teardown(self) -> None:
        """Close what is open."""
        for store in self.stores:
            self.runner.run(store.aclose())
        self.runner.close()
        self.folder.cleanup()

    def both(self, do):
        """Do something to both, and compare what comes of it."""
        store = self.stores[self.turn % 2]
        expected = self.runner.run(do(self.model))
        found = self.runner.run(do(store))
        assert found == expected
        return expected

    @rule()
    def next_worker(self) -> None:
        """The other worker goes on, once it can read what this one has written."""
        self.runner.run(self.stores[self.turn % 2].events.read("", "", 0))
        self.turn += 1

    @rule(id=IDS, now=TIMES, age=TIMES, most=st.integers(0, 3))
    def create(self, id: str, now: int, age: int, most: int) -> None:
        """Sessions that are over make room."""
        new = msgspec.structs.replace(session(id, created=self.base), until=self.base + now + age)
        self.both(lambda store: store.sessions.create(new, most=most, now=self.base + now))

    @rule(id=IDS, now=TIMES)
    def load(self, id: str, now: int) -> None:
        """What is loaded is what a later save goes by."""
        self.seen[id] = self.both(lambda store: store.sessions.load(id, now=self.base + now))

    @rule(id=IDS, level=st.sampled_from(["debug", "error"]), age=TIMES)
    def save(self, id: str, level: str, age: int) -> None:
        """Sometimes what was loaded has changed since."""
        if (was := self.seen.get(id)) is not None:
            new = msgspec.structs.replace(was, log_level=level, until=self.base + age)
            self.both(lambda store: store.sessions.save(new, was=was))

    @rule(id=IDS, age=TIMES)
    def prolong(self, id: str, age: int) -> None:
        """Further away or nearer."""
        self.both(lambda store: store.sessions.prolong(id, self.base + age))

    @rule(id=IDS)
    def end(self, id: str) -> None:
        """With all of its events."""
        self.both(lambda store: store.sessions.end(id))

    @rule(now=TIMES)
    def count(self, now: int) -> None:
        """Those that are over do not count."""
        self.both(lambda store: store.sessions.count(now=self.base + now))

    @rule(
        id=IDS,
        stream=STREAMS,
        size=SIZES,
        skip=st.sampled_from([-1, 0, 0, 0, 0, 0, 1]),
        last=st.booleans(),
        times=st.sampled_from([1, 1, 1, 20]),
    )
    def append(self, id: str, stream: str, size: int, skip: int, last: bool, times: int) -> None:
        """Mostly in order; now and then one comes again or goes missing.

        Now and then a stream is one of many.
        """
        for n in range(times):
            name = stream if times == 1 else f"{stream}{n}"
            number = max(self.next.get((id, name), 0) + skip, 0)
            self.next[id, name] = number + 1
            for store in (self.model, self.stores[self.turn % 2]):
                store.events.append(
                    id, name, number, b"." * (size if times == 1 else size // 10), last=last
                )

    @rule(id=IDS, stream=STREAMS, after=st.integers(-2, 12))
    def read(self, id: str, stream: str, after: int) -> None:
        """From anywhere."""
        self.both(lambda store: store.events.read(id, stream, after))

    @rule(
        key=IDS,
        now=TIMES,
        rate=st.sampled_from([0.1, 0.5, 1.0, 3.0]),
        burst=st.sampled_from([1.0, 1.5, 4.0]),
    )
    def take(self, key: str, now: int, rate: float, burst: float) -> None:
        """Waits are the same but for the grain of the clock."""
        keyed = f"{key} {rate} {burst}"  # a bucket has one rate for all its life

        async def take(store):
            return await store.rates.acquire(keyed, rate=rate, burst=burst, now=self.base + now)

        expected = self.runner.run(take(self.model))
        found = self.runner.run(take(self.stores[self.turn % 2]))
        assert found == pytest.approx(expected, abs=1e-5)

    @rule(worker=IDS, until=TIMES)
    def beat(self, worker: str, until: int) -> None:
        """The last beat counts."""
        self.both(lambda store: store.workers.heartbeat(worker, until=self.base + until))

    @rule(worker=IDS, now=TIMES)
    def lives(self, worker: str, now: int) -> None:
        """Until then and no longer."""
        self.both(lambda store: store.workers.is_alive(worker, now=self.base + now))

    @rule(worker=IDS)
    def ends(self, worker: str) -> None:
        """It lives no longer."""
        self.both(lambda store: store.workers.withdraw(worker))

    @invariant()
    def streams_are_alike(self) -> None:
        """What is kept of every stream is the same."""
        for id, stream in [("a", "x"), ("a:b", "x"), ("a", "b:x"), ("b", "x0"), ("b", "x19")]:
            self.both(lambda store, id=id, stream=stream: store.events.read(id, stream, -1))


@pytest.mark.parametrize("kind", SHARED)
def test_shared_stores_behave_as_memory_does(kind: str, redis_url: str):
    """Sessions, events, buckets and workers, step by step (`HTL-35`, `HTL-36`, `HTL-42`)."""
    machine = type(f"Likeness{kind}", (Likeness,), {"kind": kind, "redis_url": redis_url})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=settings().max_examples // 3, stateful_step_count=30),
    )
