"""The session cache of the SQLite store: an unchanged session costs no statement, and one that
another worker has ended or changed is never served from the cache.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from msgspec.structs import replace

from interlock.store import SqliteStore, StoreError
from interlock.store.sqlite.session_versions import SessionVersions
from interlock.testing.contracts.sessions import session
from tests.store.makers import opened

CREATED = 1000.0
NOW = CREATED + 1.0


def statements_of(store: SqliteStore) -> list[str]:
    """Return a list that grows by each statement with which a store reads sessions."""
    statements: list[str] = []
    reader = store.sessions._reader
    assert reader is not None
    reader.set_trace_callback(
        lambda statement: statements.append(statement) if "sessions" in statement else None
    )
    return statements


async def test_an_unchanged_session_is_read_once(tmp_path):
    """Neither other loads nor other writes to the file make a process read it again."""
    store = SqliteStore(tmp_path / "store.db")
    async with opened(store):
        kept = session("s", created=CREATED)
        await store.sessions.create(kept, most=9, now=NOW)
        assert await store.sessions.load("s", now=NOW) == kept
        statements = statements_of(store)
        for number in range(10):
            store.events.append("s", "t", number, b"event", last=False)
            assert await store.sessions.load("s", now=NOW) == kept
        await store.events.read("s", "t", -1)
        assert await store.sessions.load("s", now=NOW) == kept
        assert statements == []


@pytest.mark.parametrize("change", ["end", "save", "prolong", "replace", "make room", "expire"])
async def test_a_change_of_another_worker_is_seen_at_once(change: str, tmp_path):
    """As soon as the other worker knows of its change, this one does."""
    path = tmp_path / "store.db"
    one, other = SqliteStore(path), SqliteStore(path)
    kept = session("s", created=CREATED)
    async with opened(one, other):
        await one.sessions.create(kept, most=9, now=NOW)
        assert await one.sessions.load("s", now=NOW) == kept
        expected = None
        match change:
            case "end":
                assert await other.sessions.end("s")
            case "save":
                expected = replace(kept, log_level="debug")
                assert await other.sessions.save(expected, was=kept)
            case "prolong":
                expected = replace(kept, until=kept.until + 500.0)
                await other.sessions.prolong("s", expected.until)
            case "replace":
                expected = replace(kept, principal="somebody else")
                assert await other.sessions.create(expected, most=9, now=NOW)
            case "make room":
                newer = replace(kept, id="newer", holder="another")
                rested = kept.until + 1.0
                assert await other.sessions.create(newer, most=1, now=NOW, rested=rested)
            case "expire":  # the clock of the other worker is ahead for a moment
                assert await other.sessions.count(now=kept.until + 1.0) == 0
        assert await one.sessions.load("s", now=NOW) == expected


async def test_a_cached_session_expires(tmp_path):
    """A session past its end is not found, although nobody has changed it."""
    store = SqliteStore(tmp_path / "store.db")
    kept = session("s", created=CREATED)
    async with opened(store):
        await store.sessions.create(kept, most=9, now=NOW)
        assert await store.sessions.load("s", now=kept.until) == kept
        assert await store.sessions.load("s", now=kept.until + 0.1) is None
        assert await store.sessions.load("s", now=NOW) is None


async def test_any_sequence_of_changes_is_seen_by_all_workers(tmp_path):
    """Whatever workers do to sessions that share slots, each load returns what the file has."""
    path = tmp_path / "store.db"
    stores = [SqliteStore(path) for _ in range(3)]
    draw = random.Random(7)
    ids = [f"s{number}" for number in range(5)]
    async with opened(*stores):
        expected = dict.fromkeys(ids)
        for _ in range(300):
            id = draw.choice(ids)
            store = draw.choice(stores)
            known = expected[id]
            if known is None:
                expected[id] = session(id, created=CREATED)
                assert await store.sessions.create(expected[id], most=9, now=NOW)
            elif draw.random() < 0.3:
                expected[id] = None
                assert await store.sessions.end(id)
            elif draw.random() < 0.5:
                expected[id] = replace(known, log_level=draw.choice(["info", "debug", "error"]))
                assert await store.sessions.save(expected[id], was=known)
            else:
                expected[id] = replace(known, until=known.until + 1.0)
                await store.sessions.prolong(id, expected[id].until)
            for each in draw.sample(stores, 2):
                asked = draw.choice(ids)
                assert await each.sessions.load(asked, now=NOW) == expected[asked]


async def test_an_unfinished_change_makes_the_cache_useless_not_wrong(tmp_path):
    """A worker that is killed after its commit, before it says so: the others read the file."""
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    kept = session("s", created=CREATED)
    async with opened(store):
        await store.sessions.create(kept, most=9, now=NOW)
        assert await store.sessions.load("s", now=NOW) == kept
        killed = SessionVersions(path)
        with sqlite3.connect(path, isolation_level=None) as db:
            db.execute("BEGIN IMMEDIATE")
            killed.open()
            killed.start_change("s")
            db.execute("DELETE FROM sessions")
            db.execute("COMMIT")
        db.close()
        killed.close()
        assert await store.sessions.load("s", now=NOW) is None
        await store.sessions.create(kept, most=9, now=NOW)  # the next change repairs the slot
        assert await store.sessions.load("s", now=NOW) == kept
        statements = statements_of(store)
        assert await store.sessions.load("s", now=NOW) == kept
        assert statements == []


async def test_a_failed_change_leaves_the_session(tmp_path):
    """A transaction that is rolled back ends its change too."""
    store = SqliteStore(tmp_path / "store.db")
    kept = session("s", created=CREATED)
    async with opened(store):
        await store.sessions.create(kept, most=9, now=NOW)
        done = await asyncio.gather(
            store.sessions.prolong("s", kept.until + 1.0),
            store.workers.heartbeat("\udc80", until=1.0),  # no text that SQLite can store
            return_exceptions=True,
        )
        assert isinstance(done[1], StoreError)
        later = replace(kept, until=kept.until + 1.0)
        assert await store.sessions.load("s", now=NOW) == later
        statements = statements_of(store)
        assert await store.sessions.load("s", now=NOW) == later
        assert statements == []


async def test_a_closed_store_serves_nothing_from_its_cache(tmp_path):
    """A store that is opened again reads what has happened in between."""
    path = tmp_path / "store.db"
    one, other = SqliteStore(path), SqliteStore(path)
    kept = session("s", created=CREATED)
    async with opened(one):
        await one.sessions.create(kept, most=9, now=NOW)
        assert await one.sessions.load("s", now=NOW) == kept
    with pytest.raises(StoreError, match="not open"):
        await one.sessions.load("s", now=NOW)
    async with opened(other):
        await other.sessions.end("s")
    async with opened(one):
        assert await one.sessions.load("s", now=NOW) is None


async def test_the_cache_is_bounded(tmp_path):
    """More sessions than the cache holds are all found, and the first ones are read again."""
    store = SqliteStore(tmp_path / "store.db")
    async with opened(store):
        sessions = [session(f"s{number}", created=CREATED) for number in range(1100)]
        await asyncio.gather(
            *(store.sessions.create(kept, most=2000, now=NOW) for kept in sessions)
        )
        for kept in sessions:
            assert await store.sessions.load(kept.id, now=NOW) == kept
        assert len(store.sessions._cached) == 1024
        statements = statements_of(store)
        assert await store.sessions.load("s0", now=NOW) is not None
        assert len(statements) == 1


async def test_workers_share_the_counters_through_a_link(tmp_path):
    """SQLite opens the file behind a symbolic link, so the counters are beside that file."""
    (tmp_path / "data").mkdir()
    one = SqliteStore(tmp_path / "data" / "store.db")
    kept = session("s", created=CREATED)
    async with opened(one):
        os.symlink(tmp_path / "data" / "store.db", tmp_path / "link.db")
        other = SqliteStore(tmp_path / "link.db")
        async with opened(other):
            await one.sessions.create(kept, most=9, now=NOW)
            assert await one.sessions.load("s", now=NOW) == kept
            await other.sessions.end("s")
            assert await one.sessions.load("s", now=NOW) is None


def test_an_unknown_state_of_the_file_is_grown(tmp_path):
    """A file that is too short becomes whole; one that is whole keeps its counters."""
    path = tmp_path / "store.db"
    beside = Path(f"{path}-sessions")
    beside.write_bytes(b"\0" * 24)
    one, other = SessionVersions(path), SessionVersions(path)
    one.open()
    one.start_change("s")
    one.end_changes()
    other.open()
    slot = SessionVersions.slot("s")
    assert other.current(slot) == one.current(slot) == 1
    one.close()
    assert one.current(slot) < 0
    other.close()
    assert len(beside.read_bytes()) == 16384


ENDER = """
import asyncio, sys
from interlock.store import open_store

async def main():
    store = open_store(sys.argv[1])
    await store.open()
    for line in sys.stdin:
        await store.sessions.end(line.strip())
        print("ended", flush=True)

asyncio.run(main())
"""


async def test_a_session_that_another_process_has_ended_is_refused(tmp_path):
    """What another process has acknowledged as ended is gone here, each of many times."""
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    async with asyncio.timeout(60), opened(store):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ENDER, f"sqlite:{path}", stdin=PIPE, stdout=PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(50):
            kept = session(f"s{number}", created=CREATED)
            await store.sessions.create(kept, most=999, now=NOW)
            assert await store.sessions.load(kept.id, now=NOW) == kept
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{kept.id}\n".encode())
            assert await process.stdout.readline() == b"ended\n"
            assert await store.sessions.load(kept.id, now=NOW) is None
        process.stdin.close()
        assert await process.wait() == 0
