"""Stores that several processes use at once: they hear each other, outlive each other, and can be
opened after a fork.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time

import pytest

from interlock.store import RedisStore, Store, open_store
from interlock.testing.contracts.promises import RecordingListener
from tests.store.makers import SHARED, opened
from tests.store.scripts import BUSY, ECHO, FORK, start


@pytest.fixture(params=SHARED)
def place(request, tmp_path, redis_url: str) -> str:
    """A fresh place as the programs take it: a URL, and for Redis a prefix."""
    return (
        f"sqlite:{tmp_path}/store.db"
        if request.param == "sqlite"
        else f"{redis_url} interlock-test:{tmp_path.name}:{time.time_ns()}:"
    )


def at(place: str) -> Store:
    """A store at that place."""
    url, _, prefix = place.partition(" ")
    return RedisStore(url, prefix=prefix) if prefix else open_store(url)


async def test_two_processes_hear_each_other(place: str):
    """A note goes to another process and its answer comes back, many times, in one order."""
    store = at(place)
    async with asyncio.timeout(30), opened(store):
        process = await start(ECHO, place)
        assert await process.stdout.readline() == b"ready\n"
        listener = RecordingListener(store.notes)
        for n in range(20):
            store.notes.publish(b"ping %d" % n)
        received = await listener.receive(40)
        assert [note for note in received if note.startswith(b"pong")] == [
            b"pong %d" % n for n in range(20)
        ]
        store.notes.publish(b"over")
        assert await process.wait() == 0


async def test_a_killed_process_leaves_a_store_that_can_be_used(place: str):
    """kill -9 in the middle of writing: what was noted is there without gaps, and the others go on
    writing and hearing.
    """
    store = at(place)
    async with asyncio.timeout(30), opened(store):
        listener = RecordingListener(store.changes)
        process = await start(BUSY, place)
        said = [int(await process.stdout.readline()) for _ in range(20)][-1]
        process.kill()
        await process.wait()
        replay = await store.events.read("s", "t", -1)
        assert [number for number, _ in replay.events] == list(range(len(replay.events)))
        assert all(data == b"%d" % number * 50 for number, data in replay.events)
        assert len(replay.events) >= said
        assert await store.sessions.load("s", now=time.time()) is not None
        received = await listener.receive(said)
        assert received == [b"%d" % n for n in range(len(received))]
        store.changes.publish(b"still here")
        while listener.notes[-1] != b"still here":
            await listener.receive(len(listener.received) + 1)
        assert await store.sessions.end("s")
    if place.startswith("sqlite"):
        with sqlite3.connect(place.removeprefix("sqlite:")) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        db.close()


async def test_a_store_can_be_opened_after_a_fork(place: str):
    """A store that was open and is closed again works in both processes
    that a fork makes of one."""
    async with asyncio.timeout(30):
        assert await (await start(FORK, place)).wait() == 0
