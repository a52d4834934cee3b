"""Backups of data files: stores that are written to meanwhile, vaults, and damaged files."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from interlock import types as t
from interlock.store import FileVault, SqliteStore, SqliteVault, StoreError
from interlock.store.backups import back_up_data, check_data, restore_data
from interlock.store.interface import Session
from tests.store.vault_makers import KEY

VAULTS = {"file": FileVault, "sqlite": SqliteVault}

# Writes two records in each transaction until killed, so that a copy of half a transaction shows.
WRITER = """
import asyncio, sys, time
from interlock.store import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    n = 0
    while True:
        body = n.to_bytes(8, "big") * 512
        await store._writer.ask(lambda db: [
            db.execute("INSERT INTO records (key, version, until, account, data, body)"
                       " VALUES (?, ?, ?, '', x'', ?)",
                (f"{side}{n}", n, time.time() + 3600, body))
            for side in "lr"
        ] and None)
        n += 1
        if n == 200:
            print("writing", flush=True)

asyncio.run(main())
"""


def session(id: str) -> Session:
    return Session(
        id=id,
        revision="2025-11-25",
        capabilities=t.ClientCapabilities(),
        created=time.time(),
        until=time.time() + 3600.0,
    )


def test_a_store_is_backed_up_while_another_process_writes(tmp_path: Path):
    """Each copy is complete, and as the store was at one point in time."""
    file = tmp_path / "store.db"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE, text=True
    ) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "writing\n"
            counts = []
            for number in range(5):
                copy = tmp_path / f"copy-{number}"
                assert back_up_data(file, copy).kind == "store"
                with closing(sqlite3.connect(copy)) as db:
                    rows = db.execute("SELECT key, version FROM records").fetchall()
                left = sorted(version for key, version in rows if key[0] == "l")
                assert left == sorted(version for key, version in rows if key[0] == "r")
                assert left == list(range(len(left)))
                counts.append(len(left))
            assert counts[0] >= 200
            assert counts == sorted(counts)
            assert writer.poll() is None
        finally:
            writer.kill()
    names = {each.name for each in tmp_path.iterdir() if not each.name.startswith("store.db")}
    assert names == {f"copy-{number}" for number in range(5)}
    assert (tmp_path / "copy-0").stat().st_mode & 0o777 == 0o600


async def test_a_restored_store_has_its_sessions_and_another_identity(tmp_path: Path):
    """It has forgotten what came after the backup, so states from before are not its own."""
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    assert await store.sessions.create(session("before"), most=10, now=time.time())
    await store.workers.heartbeat("w", until=time.time() + 3600.0)
    version = await store.records.swap(
        "used", b"x", was=0, until=time.time() + 3600.0, now=time.time()
    )
    copy = tmp_path / "copy"
    await asyncio.to_thread(back_up_data, tmp_path / "store.db", copy)
    assert await store.sessions.create(session("after"), most=10, now=time.time())
    store.notes.publish(b"a note")
    identity = store.records.identity
    await store.aclose()

    with pytest.raises(StoreError, match="move these files away"):
        restore_data(copy, tmp_path / "store.db")
    restore_data(copy, tmp_path / "restored.db")
    restored = SqliteStore(tmp_path / "restored.db")
    await restored.open()
    assert await restored.sessions.load("before", now=time.time()) is not None
    assert await restored.sessions.load("after", now=time.time()) is None
    assert not await restored.workers.is_alive("w", now=time.time())
    record = await restored.records.load("used", now=time.time())
    assert record is not None
    assert (record.data, record.version) == (b"x", version)
    assert restored.records.identity != identity
    again = await restored.records.swap(
        "new", b"y", was=0, until=time.time() + 3600.0, now=time.time()
    )
    assert again > version
    assert await restored.notes.replay(store.notes.position) is None
    await restored.aclose()


@pytest.mark.parametrize("kind", VAULTS)
@pytest.mark.parametrize("key", [None, KEY])
async def test_a_vault_is_backed_up_as_it_is(kind: str, key: str | None, tmp_path: Path):
    """An encrypted one stays encrypted, and needs its key."""
    folder = tmp_path / "vault"
    vault = VAULTS[kind](folder / "v", key=key, keyring=False)
    await vault.put("k", "a", b"a secret")
    found = back_up_data(folder / "v", tmp_path / "copy")
    assert (found.kind, found.version, found.newest) == ("vault", 1, 1)
    assert (b"a secret" in (tmp_path / "copy").read_bytes()) == (key is None)
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
    await vault.put("k", "b", b"another")
    await vault.aclose()
    restore_data(tmp_path / "copy", folder / "w")
    restored = VAULTS[kind](folder / "w", key=key, keyring=False)
    assert await restored.keys("k") == ["a"]
    assert await restored.get("k", "a") == b"a secret"
    await restored.aclose()


def make_file(path: Path, application: int, version: int) -> Path:
    """Write a SQLite file with marks."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA application_id = {application}")
        db.execute(f"PRAGMA user_version = {version}")
        db.execute("CREATE TABLE t (a)")
        db.commit()
    return path


@pytest.mark.parametrize(
    "application,kind",
    [(0x494C4B41, "account file"), (0x494C4C47, "log"), (0x494C4D47, "memory")],
)
def test_files_of_other_distributions(application: int, kind: str, tmp_path: Path):
    """Their programs check the version."""
    file = make_file(tmp_path / "f", application, 7)
    found = back_up_data(file, tmp_path / "copy")
    assert (found.kind, found.version, found.newest) == (kind, 7, None)
    assert check_data(tmp_path / "copy") == found


def test_an_older_store_is_backed_up_and_restored_as_it_is(tmp_path: Path):
    """It is migrated when it is used."""
    file = tmp_path / "f"
    with closing(sqlite3.connect(file)) as db:
        from interlock.store.sqlite.schema import SCHEMA

        SCHEMA.migrations[0](db)
        db.execute(f"PRAGMA application_id = {SCHEMA.application}")
        db.execute("PRAGMA user_version = 1")
        db.commit()
    back_up_data(file, tmp_path / "copy")
    found = restore_data(tmp_path / "copy", tmp_path / "restored")
    assert (found.version, found.newest) == (1, SCHEMA.version)

    async def use() -> None:
        store = SqliteStore(tmp_path / "restored")
        await store.open()
        assert store.records.identity
        await store.aclose()

    asyncio.run(use())
    assert check_data(tmp_path / "restored").version == SCHEMA.version


def test_what_is_not_a_data_file_is_refused(tmp_path: Path):
    """Nothing is written."""
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").touch()
    make_file(tmp_path / "other", 0x12345678, 1)
    make_file(tmp_path / "newer", 0x494C4B53, 99)
    vault = b'{"interlock_vault":1,"id":"x","digest":"0"}\nbody'
    (tmp_path / "damaged vault").write_bytes(vault)
    (tmp_path / "newer vault").write_bytes(vault.replace(b":1", b":2"))
    for name, words in {
        "text": "not a data file",
        "empty": "not a data file",
        "other": "not a data file",
        "newer": "newer version of Interlock wrote the store",
        "damaged vault": "damaged",
        "newer vault": "another version of Interlock",
        "missing": "cannot be read",
    }.items():
        with pytest.raises(StoreError, match=words):
            check_data(tmp_path / name)
        for work in (back_up_data, restore_data):
            with pytest.raises(StoreError, match=words):
                work(tmp_path / name, tmp_path / "copy")
        assert not (tmp_path / "copy").exists()
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


async def test_a_damaged_store_is_found(tmp_path: Path):
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    for number in range(200):
        assert await store.sessions.create(session(f"s{number}"), most=1000, now=time.time())
    await store.aclose()
    data = bytearray((tmp_path / "store.db").read_bytes())
    for at in range(4096, len(data), 4096):
        data[at + 100 : at + 600] = b"\xff" * 500
    (tmp_path / "store.db").write_bytes(data)
    for work in (
        lambda: check_data(tmp_path / "store.db"),
        lambda: back_up_data(tmp_path / "store.db", tmp_path / "copy"),
    ):
        with pytest.raises(StoreError, match="damaged|malformed"):
            work()
    assert not (tmp_path / "copy").exists()


def test_a_backup_replaces_no_file(tmp_path: Path):
    file = make_file(tmp_path / "f", 0x494C4C47, 1)
    (tmp_path / "copy").write_text("precious")
    with pytest.raises(StoreError, match="exists: choose another name"):
        back_up_data(file, tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "precious"
    (tmp_path / "new-wal").touch()  # left by the file that was there before
    with pytest.raises(StoreError, match="new-wal"):
        restore_data(file, tmp_path / "new")
    assert not (tmp_path / "new").exists()
