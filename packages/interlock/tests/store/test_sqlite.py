"""The SQLite store's file: who may read it, what it refuses to be, and what happens when it cannot
be written.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from pathlib import Path

import pytest

from interlock.store import Replay, SqliteStore, StoreError
from interlock.store.sqlite import topics
from interlock.store.sqlite.schema import SCHEMA
from interlock.testing.contracts.promises import RecordingListener
from interlock.testing.contracts.sessions import session
from tests.store.makers import opened


async def test_only_its_owner_may_read_the_file(tmp_path):
    """0600, whatever the umask, and the same for the files beside it."""
    before = os.umask(0)
    try:
        store = SqliteStore(tmp_path / "store.db")
        async with opened(store):
            assert await store.sessions.create(session("s"), most=1, now=time.time())
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    names = ("store.db", "store.db-wal", "store.db-shm", "store.db-sessions")
    assert modes == dict.fromkeys(names, 0o600)


def _text(path: Path) -> None:
    path.write_text(
        "No database at all, but a text that is long enough to be looked at as one.\n" * 20,
        encoding="utf-8",
    )


def _others(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE sessions (id)")
    db.close()


def _newer(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA application_id = {SCHEMA.application}")
        db.execute("PRAGMA user_version = 99")
    db.close()


STRANGE = {
    "a text": (_text, "not a SQLite database"),
    "another program's": (_others, "the database of another program"),
    "a newer version's": (_newer, "a newer version of Interlock wrote it"),
    "a folder": (Path.mkdir, "directory"),
}


@pytest.mark.parametrize("kind", STRANGE)
async def test_other_files_are_refused_and_left_alone(kind: str, tmp_path):
    """Words that say what is wrong, and the store can be opened once that is repaired."""
    make, words = STRANGE[kind]
    path = tmp_path / "store.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    store = SqliteStore(path)
    with pytest.raises(StoreError, match=words):
        await store.open()
    if path.is_dir():
        path.rmdir()
    else:
        assert path.read_bytes() == before
        path.unlink()
    async with opened(store):
        assert await store.sessions.count(now=0.0) == 0


async def test_a_folder_that_is_not_there_is_named(tmp_path):
    """It is not made: a typing error shall not make folders."""
    with pytest.raises(StoreError, match="No such file or directory"):
        await SqliteStore(tmp_path / "missing" / "store.db").open()


async def test_many_may_open_a_new_file_at_once(tmp_path):
    """Whoever comes first makes the tables; the others wait for them."""
    stores = [SqliteStore(tmp_path / "store.db") for _ in range(8)]
    await asyncio.gather(*(store.open() for store in stores))
    listener = RecordingListener(stores[0].changes)
    for store in stores:
        store.changes.publish(b"here")
    assert await listener.receive(8) == [b"here"] * 8
    await asyncio.gather(*(store.aclose() for store in stores))


async def test_a_locked_file_delays_and_loses_nothing(tmp_path):
    """While another process writes, nothing waits but who asked for an answer.

    Then all is there in order.
    """
    store = SqliteStore(tmp_path / "store.db")
    async with opened(store):
        other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for n in range(10):
            store.events.append("s", "t", n, b"%d" % n, last=False)
        answer = asyncio.create_task(store.events.read("s", "t", -1))
        assert await store.sessions.load("s", now=time.time()) is None  # reading waits for nobody
        assert not answer.done()
        other.execute("COMMIT")
        other.close()
        assert [data for _, data in (await answer).events] == [b"%d" % n for n in range(10)]


async def test_writes_that_nobody_waits_for_outlive_a_lock(tmp_path):
    """Another program locks the file for longer than the patience of a write. Callers that wait get
    an error; everything else is written afterwards, in order.
    """
    store = SqliteStore(tmp_path / "store.db")
    store._file.patience = 0.01
    async with opened(store):
        listener = RecordingListener(store.notes)
        other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for n in range(10):
            store.notes.publish(b"%d" % n)
            store.events.append("s", "t", n, b"%d" % n, last=n == 9)
        with pytest.raises(StoreError, match="locked"):
            await store.workers.heartbeat("w", until=9.0)
        with pytest.raises(StoreError, match="locked"):
            await store.notes.publish_confirmed(b"refused")
        other.execute("COMMIT")
        other.close()
        assert await listener.receive(10) == [b"%d" % n for n in range(10)]
        replay = await read(store, "s", "t")
        assert [data for _, data in replay.events] == [b"%d" % n for n in range(10)]
        assert replay.ended


async def test_writes_that_nobody_waits_for_outlive_a_full_disk(tmp_path):
    """The same while the file cannot grow."""
    store = SqliteStore(tmp_path / "store.db")
    store._file._max_bytes = 512 * 1024
    async with opened(store):
        listener = RecordingListener(store.notes)
        other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        other.execute("CREATE TABLE filler AS SELECT zeroblob(600000) AS data")
        for n in range(10):
            store.notes.publish(b"%d" % n * 5000)
        with pytest.raises(StoreError, match="disk is full"):
            await store.notes.publish_confirmed(b"refused" * 5000)
        other.execute("DROP TABLE filler")
        other.close()
        assert await listener.receive(10) == [b"%d" % n * 5000 for n in range(10)]


async def read(store: SqliteStore, session: str, stream: str) -> Replay:
    """The events of a stream, once the store can be used."""
    while True:
        try:
            replay = await store.events.read(session, stream, -1)
        except StoreError:
            await asyncio.sleep(0.01)
            continue
        assert replay is not None
        return replay


async def test_an_idle_store_reads_nothing(tmp_path):
    """A poll compares versions in shared memory, and executes statements only after a change. After
    a writer that was killed inside its transaction, each poll reads.
    """
    store, other = (SqliteStore(tmp_path / "store.db") for _ in range(2))
    async with opened(store, other):
        listener = RecordingListener(store.notes)
        other.notes.publish(b"1")
        assert await listener.receive(1) == [b"1"]
        statements: list[str] = []
        store._reader.set_trace_callback(statements.append)
        for _ in range(10):
            store._poll._look()
        assert statements == []
        other._versions.start_change("notes")
        store._poll._look()
        assert len(statements) == 1
        other.notes.publish(b"2")
        assert await listener.receive(2) == [b"1", b"2"]


async def test_a_failure_is_told_to_who_asked_and_harms_no_other(tmp_path):
    """One piece of work that cannot be done fails alone, in whatever company it was."""
    store = SqliteStore(tmp_path / "store.db")
    async with opened(store):
        kept = session("s")
        bad = store.workers.heartbeat("\udc80", until=1.0)  # no text that SQLite can take
        done = await asyncio.gather(
            store.sessions.create(kept, most=9, now=0.0),
            bad,
            store.workers.heartbeat("w", until=9.0),
            return_exceptions=True,
        )
        assert done[0] is True
        assert isinstance(done[1], StoreError)
        assert done[2] is None
        assert await store.sessions.load("s", now=kept.created) == kept
        with pytest.raises(StoreError):
            await store.sessions.load("\udc80", now=0.0)


async def test_what_another_version_wrote_counts_as_gone(tmp_path, caplog):
    """A session that cannot be read is not found, and the log says so without its id."""
    store = SqliteStore(tmp_path / "store.db")
    kept = session("secret")
    async with opened(store):
        await store.sessions.create(kept, most=9, now=kept.created)
        with sqlite3.connect(tmp_path / "store.db") as db:
            db.execute("UPDATE sessions SET data = '{\"id\":1}'")
        db.close()
        assert await store.sessions.load("secret", now=kept.created) is None
        assert await store.sessions.save(kept, was=kept) is False
    assert "cannot be read" in caplog.text
    assert "secret" not in caplog.text


async def test_notes_arrive_though_nothing_has_changed_for_long(tmp_path, monkeypatch):
    """Then a process polls less often; and often again, once there is a note."""
    monkeypatch.setattr(topics, "_BUSY_SECONDS", 0.0)
    one, other = SqliteStore(tmp_path / "store.db"), SqliteStore(tmp_path / "store.db")
    async with opened(one, other):
        listeners = [RecordingListener(store.notes) for store in (one, other)]
        async with asyncio.timeout(30):
            one.notes.publish(b"1")
            for listener in listeners:
                assert await listener.receive(1) == [b"1"]
            monkeypatch.setattr(topics, "_BUSY_SECONDS", 60.0)
            other.notes.publish(b"2")
            one.notes.publish(b"3")
            for listener in listeners:
                assert sorted(await listener.receive(3)) == [b"1", b"2", b"3"]
