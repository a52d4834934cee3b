"""What stores keep and what they forget, to the letter of `store/bounds.py`."""

from __future__ import annotations

import pytest

from interlock.store import MemoryStore, Replay, SqliteStore, Store, bounds
from tests.store.makers import KINDS, fresh, opened

MIB = 1024 * 1024


def write(store: Store, stream: str, *sizes: int, last: bool) -> None:
    """Events of these sizes."""
    for number, size in enumerate(sizes):
        store.events.append(
            "s", stream, number, b"." * size, last=last and number == len(sizes) - 1
        )


async def kept(store: Store, *streams: str) -> list[bool]:
    """Which streams are there from their beginning."""
    return [await store.events.read("s", stream, -1) is not None for stream in streams]


@pytest.mark.parametrize("kind", KINDS)
async def test_bounds_hold_to_the_letter(kind: str, tmp_path, redis_url: str):
    """As many ended streams, bytes in them, events and bytes of a running one as are named, and one
    more drops the oldest (`HTL-35`).
    """
    store = fresh(kind, tmp_path, redis_url)[0]
    async with opened(store):
        for n in range(bounds.ENDED_STREAMS):
            write(store, f"many{n}", 1, last=True)
        assert await kept(store, "many0", "many1") == [True, True]
        write(store, "one more", 1, last=True)
        assert await kept(store, "many0", "many1", "one more") == [False, True, True]

        half = bounds.ENDED_BYTES // 2
        write(store, "half", half, last=True)
        write(store, "other half", half, last=True)
        assert await kept(store, "one more", "half", "other half") == [False, True, True]
        write(store, "a byte", 1, last=True)
        assert await kept(store, "half", "other half", "a byte") == [False, True, True]
        write(store, "too large", bounds.ENDED_BYTES, 1, last=True)
        assert await kept(store, "other half", "a byte", "too large") == [False, False, True]
        write(store, "next", 1, last=True)
        assert await kept(store, "too large", "next") == [False, True]

        write(store, "long", *[1] * (bounds.RUNNING_EVENTS // 2), last=False)
        assert await kept(store, "long") == [
            True
        ]  # and nothing waits: a store may drop what comes too fast
        for number in range(bounds.RUNNING_EVENTS // 2, bounds.RUNNING_EVENTS):
            store.events.append("s", "long", number, b".", last=False)
        assert await kept(store, "long") == [True]
        store.events.append("s", "long", bounds.RUNNING_EVENTS, b".", last=False)
        assert await kept(store, "long") == [False]
        assert len((await store.events.read("s", "long", 0)).events) == bounds.RUNNING_EVENTS

        write(store, "wide", *[MIB] * 16, last=False)
        assert await kept(store, "wide") == [True]
        store.events.append("s", "wide", 16, b".", last=False)
        assert await kept(store, "wide") == [False]
        assert await store.events.read("s", "wide", 14) == Replay(((15, b"." * MIB), (16, b".")))
        store.events.append("s", "wide", 17, b"." * 17 * MIB, last=False)
        assert [number for number, _ in (await store.events.read("s", "wide", 16)).events] == [17]
        assert await store.events.read("s", "wide", 15) is None


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_streams_grow_old(kind: str, tmp_path):
    """Ten minutes after its end a stream is forgotten, a day after its last event one that never
    ended.
    """
    now = 1000.0
    clock = lambda: now  # noqa: E731  # a clock that the test turns
    store = (
        MemoryStore(clock=clock)
        if kind == "memory"
        else SqliteStore(tmp_path / "store.db", clock=clock)
    )
    async with opened(store):
        write(store, "running", 1, last=False)
        write(store, "ended", 1, last=True)
        now += bounds.ENDED_AGE
        assert await kept(store, "running", "ended") == [True, True]
        now += 1
        assert await kept(store, "running", "ended") == [True, False]
        write(store, "another", 1, last=True)
        now += bounds.RUNNING_AGE - bounds.ENDED_AGE
        assert await kept(store, "running", "another") == [False, False]
        store.events.append("other", "x", 0, b"", last=True)
        store.events.append("other", "y", 0, b"", last=True)
        assert await kept(store, "running", "ended", "another") == [False, False, False]
        if kind == "memory":
            assert set(store.events._logs) == {"other"}  # and nothing is left of the first


async def test_notes_grow_old(tmp_path):
    """SQLite keeps change notices for ten minutes and messages between workers for one.

    Who comes for older ones is told.
    """
    now = 1000.0
    store = SqliteStore(tmp_path / "store.db", clock=lambda: now)
    async with opened(store):
        begin = {topic: topic.position for topic in (store.changes, store.notes)}
        for topic in begin:
            topic.publish(b"1")
            assert len(await topic.replay(begin[topic])) == 1
        now += 300.0
        for topic in begin:
            topic.publish(b"2")
        assert len(await store.changes.replay(begin[store.changes])) == 2
        assert await store.notes.replay(begin[store.notes]) is None
        now += 301.0
        store.changes.publish(b"3")
        assert await store.changes.replay(begin[store.changes]) is None


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_what_a_store_cannot_take_is_dropped_and_told(
    kind: str, tmp_path, redis_url: str, monkeypatch, caplog
):
    """Neither an exception nor a wait: a line in the log, without names, and the store goes on."""
    monkeypatch.setattr(bounds, "WAITING_BYTES", 1000)
    store = fresh(kind, tmp_path, redis_url)[0]
    async with opened(store):
        store.events.append("secret", "t", 0, b"small", last=False)
        store.events.append("secret", "t", 1, b"." * 2000, last=False)
        store.events.append("secret", "t", 2, b"after", last=False)
        assert await store.events.read("secret", "t", 0) is None
        assert await store.events.read("secret", "t", 1) == Replay(((2, b"after"),))
    assert "has dropped" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_a_stream_that_loses_its_last_event_is_lost(
    kind: str, lost: int, tmp_path, redis_url: str, monkeypatch
):
    """Its reader would wait for ever for the end of a stream that looks as if it were running
    (`HTL-34`).
    """
    monkeypatch.setattr(bounds, "WAITING_BYTES", 1000)
    store = fresh(kind, tmp_path, redis_url)[0]
    async with opened(store):
        store.events.append("s", "t", 0, b"kept", last=False)
        for number in range(1, lost + 1):
            store.events.append("s", "t", number, b"." * 2000, last=number == lost)
        assert await store.events.read("s", "t", 0) is None
        assert await store.events.read("s", "t", -1) is None


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_a_stream_may_lose_events_twice(kind: str, tmp_path, redis_url: str, monkeypatch):
    """The events between two losses are lost with the second one, and those after it are kept."""
    monkeypatch.setattr(bounds, "WAITING_BYTES", 1000)
    store = fresh(kind, tmp_path, redis_url)[0]
    async with opened(store):
        for number, data in enumerate((b".", b"." * 2000, b".", b"." * 2000)):
            store.events.append("s", "t", number, data, last=False)
        assert await store.events.read("s", "t", 1) is None
        assert await store.events.read("s", "t", 2) is None
        store.events.append("s", "t", 4, b"end", last=True)
        assert await store.events.read("s", "t", 2) is None
        assert await store.events.read("s", "t", 3) == Replay(((4, b"end"),), True)
