"""Vaults in files: who may read them, what is refused, what becomes of damage, and that waiting for
a lock stops nobody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from interlock.store import FileVault, SqliteVault, StoreError, Vault, file_lock
from tests.store.vault_makers import KEY

KINDS = {"file": FileVault, "sqlite": SqliteVault}


def vault(kind: str, path: Path, key: str | None = None, **more) -> Vault:
    """A vault in this file."""
    return KINDS[kind](path, key=key, keyring=False, **more)


def mode(path: Path) -> int:
    """What may be done with it."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("kind", KINDS)
async def test_files_and_folders_are_their_owners_alone(kind: str, tmp_path):
    """0600 and 0700 whatever the process allows itself, also of the folders on the way and of all
    that lies beside the file (`AUT-10`).
    """
    path = tmp_path / "one" / "two" / "vault"
    before = os.umask(0)
    try:
        one = vault(kind, path)
        await one.put("k", "a", b"v")
        await one.aclose()
    finally:
        os.umask(before)
    assert mode(tmp_path / "one") == mode(tmp_path / "one" / "two") == 0o700
    assert {mode(each) for each in path.parent.iterdir()} == {0o600}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wide", [0o644, 0o640, 0o660, 0o602, 0o604])
async def test_files_that_others_may_read_are_refused(kind: str, wide: int, tmp_path):
    """Neither read nor written, with words that say what to do.

    Once it is done, all is there (`AUT-10`).
    """
    path = tmp_path / "vault"
    one = vault(kind, path)
    await one.put("k", "a", b"v")
    await one.aclose()
    path.chmod(wide)
    before = path.read_bytes()
    other = vault(kind, path)
    for ask in (
        other.get("k", "a"),
        other.put("k", "a", b"w"),
        other.pop("k", "a"),
        other.keys("k"),
    ):
        with pytest.raises(StoreError, match=f"{wide:04o}.*chmod 600 {path}.*revoked"):
            await ask
    assert (path.read_bytes(), mode(path)) == (before, wide)
    path.chmod(0o600)
    assert await other.get("k", "a") == b"v"
    await other.aclose()


@pytest.mark.parametrize(
    "kind, wide",
    [("file", 0o755), ("file", 0o750), ("file", 0o777), ("sqlite", 0o777), ("sqlite", 0o770)],
)
async def test_folders_that_are_too_open_are_refused(kind: str, wide: int, tmp_path):
    """A folder in which others may look (for a file), or write (for SQLite), with words that say
    what to do.
    """
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(wide)
    one = vault(kind, folder / "vault")
    with pytest.raises(
        StoreError,
        match=(
            f"folder of the vault, {folder} .*{wide:04o}.*chmod (700|go-w) {folder}.*will be made"
        ),
    ):
        await one.put("k", "a", b"v")
    assert list(folder.iterdir()) == []
    folder.chmod(0o700)
    await one.put("k", "a", b"v")
    folder.chmod(wide)
    with pytest.raises(StoreError, match="folder of the vault"):
        await vault(kind, folder / "vault").get("k", "a")
    await one.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_links_and_folders_are_refused(kind: str, tmp_path):
    """What is no plain file is neither followed nor replaced."""
    aim = tmp_path / "aim"
    link = tmp_path / "link"
    folder = tmp_path / "folder"
    await vault(kind, aim).put("k", "a", b"v")
    link.symlink_to(aim)
    folder.mkdir(mode=0o700)
    for path in (link, folder):
        with pytest.raises(StoreError, match=f"{path}.*(link|folder|directory)"):
            await vault(kind, path).get("k", "a")
        with pytest.raises(StoreError, match=str(path)):
            await vault(kind, path).put("k", "a", b"w")
    assert link.is_symlink()
    assert await vault(kind, aim).get("k", "a") == b"v"


async def test_reading_makes_nothing(tmp_path):
    """Who asks a file that is not there is told that nothing is kept, and leaves no trace.

    Neither does a change that changes nothing.
    """
    one = vault("file", tmp_path / "folder" / "vault")
    assert await one.get("k", "a") is None
    assert await one.keys("k") == []
    assert list(tmp_path.iterdir()) == []
    assert await one.pop("k", "a") is None
    assert not (tmp_path / "folder" / "vault").exists()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_mebibyte_is_kept(kind: str, tmp_path):
    """The largest value, and not one byte more."""
    one = vault(kind, tmp_path / "vault", KEY)
    await one.put("k", "a", b"x" * 1_048_576)
    assert await one.get("k", "a") == b"x" * 1_048_576
    with pytest.raises(ValueError, match="at most 1048576 bytes"):
        await one.put("k", "a", b"x" * 1_048_577)
    with pytest.raises(TypeError, match="keeps bytes"):
        await one.put("k", "a", "text")
    await one.aclose()


async def test_a_file_is_bounded(tmp_path, monkeypatch):
    """Beyond its bound (here 1 MiB) the words say so, and all that was kept before stays.

    So it is for a database.
    """
    monkeypatch.setattr("interlock.store.vaults.file.FILE_BYTES", 1_048_576)
    monkeypatch.setattr("interlock.store.vaults.sqlite.DATABASE_BYTES", 1_048_576)
    for kind in KINDS:
        one = vault(kind, tmp_path / kind)
        await one.put("k", "a", b"x" * 700_000)
        with pytest.raises(StoreError, match="is full"):
            await one.put("k", "b", b"x" * 400_000)
        assert await one.keys("k") == ["a"]
        await one.put("k", "a", b"small")
        await one.put("k", "b", b"x" * 400_000)
        await one.aclose()


DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "cut to its first line": lambda data: data[: data.index(b"\n")],
    "empty": lambda data: b"",
    "longer": lambda data: data + b"x",
    "a changed byte": lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
    "something else": lambda data: b"\x7fELF\0\0\0",
    "another's body": lambda data: data[: data.index(b"\n") + 1] + b"\x90",
}


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])
@pytest.mark.parametrize("case", DAMAGE)
async def test_a_damaged_file_is_kept_aside(case: str, key: str | None, tmp_path):
    """One error says so and where it went; not a byte of it is lost; then a new one begins."""
    path = tmp_path / "vault"
    one = vault("file", path, key)
    await one.put("k", "a", b"value")
    damaged = DAMAGE[case](path.read_bytes())
    for number, ask in enumerate((lambda: one.get("k", "a"), lambda: one.put("k", "b", b"new")), 1):
        path.write_bytes(damaged)
        path.chmod(0o600)
        with pytest.raises(
            StoreError, match=f"damaged.*kept as vault.damaged-{number}.*log in again"
        ):
            await ask()
        aside = tmp_path / f"vault.damaged-{number}"
        assert (aside.read_bytes(), mode(aside), path.exists()) == (damaged, 0o600, False)
    assert await one.get("k", "a") is None
    await one.put("k", "a", b"new")
    assert await one.get("k", "a") == b"new"


async def test_a_later_versions_file_is_left_alone(tmp_path):
    """What we cannot read is not damaged for that."""
    path = tmp_path / "vault"
    one = vault("file", path)
    await one.put("k", "a", b"v")
    path.write_bytes(path.read_bytes().replace(b'"interlock_vault":1', b'"interlock_vault":2'))
    before = path.read_bytes()
    for ask in (one.get("k", "a"), one.put("k", "a", b"w")):
        with pytest.raises(StoreError, match="another version"):
            await ask
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "contents", [b"no database at all, " * 100, b"SQLite format 3\0" + b"\xff" * 4096]
)
async def test_what_is_no_database_is_left_alone(contents: bytes, tmp_path):
    """The words say what to do, and not a byte is changed."""
    path = tmp_path / "vault"
    path.write_bytes(contents)
    path.chmod(0o600)
    one = vault("sqlite", path)
    for ask in (one.get("k", "a"), one.put("k", "a", b"w")):
        with pytest.raises(
            StoreError, match="damaged, or not a SQLite.*it was not changed: move it away, and log"
        ):
            await ask
    assert path.read_bytes() == contents


async def test_another_programs_database_is_left_alone(tmp_path):
    """A store's file is no vault's."""
    path = tmp_path / "vault"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")
        db.commit()
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="database of another program: choose another place"):
        await vault("sqlite", path).put("k", "a", b"v")
    assert path.read_bytes() == before


async def test_a_write_that_fails_changes_nothing(tmp_path, monkeypatch):
    """A full disk: the words say so, the old file stays, no piece of a new one is left."""
    path = tmp_path / "vault"
    one = vault("file", path)
    await one.put("k", "a", b"v")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="as it was: No space left"):
            await one.put("k", "a", b"w")
    assert await one.get("k", "a") == b"v"
    assert {each.name for each in tmp_path.iterdir()} == {"vault", "vault.lock"}


async def test_who_waits_for_the_lock_stops_nobody_else(tmp_path):
    """While another holds the lock the event loop goes on, readers read, and in the end the writer
    writes.
    """
    one = vault("file", tmp_path / "vault")
    await one.put("k", "a", b"v")
    async with asyncio.timeout(30):
        with file_lock(tmp_path / "vault.lock", patience=1.0):
            writing = asyncio.create_task(one.put("k", "a", b"w"))
            for _ in range(3):
                assert await one.get("k", "a") == b"v"
            assert not writing.done()
        await writing
    assert await one.get("k", "a") == b"w"


async def test_a_lock_that_is_never_let_go_is_named(tmp_path):
    """After the vault's patience the words say which lock."""
    one = vault("file", tmp_path / "vault", patience=0.02)
    with (
        file_lock(tmp_path / "vault.lock", patience=1.0),
        pytest.raises(StoreError, match=r"held the lock .*vault\.lock for 0\.02 seconds"),
    ):
        await one.put("k", "a", b"v")


async def test_a_database_that_is_never_let_go_is_named(tmp_path):
    """Likewise for SQLite, and afterwards all is well."""
    one = vault("sqlite", tmp_path / "vault", patience=0.02)
    await one.put("k", "a", b"v")
    with contextlib.closing(sqlite3.connect(tmp_path / "vault", isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(
            StoreError, match=f"{tmp_path}.*another process has locked it for 0.02 seconds"
        ):
            await one.put("k", "a", b"w")
        db.execute("ROLLBACK")
    await one.put("k", "a", b"w")
    assert await one.get("k", "a") == b"w"
    await one.aclose()


async def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    """A file stands in its place."""
    (tmp_path / "file").write_text("")
    for kind in KINDS:
        with pytest.raises(
            StoreError, match=f"folder {tmp_path}/file/sub.*(cannot be made|cannot be used)"
        ):
            await vault(kind, tmp_path / "file" / "sub" / "vault").put("k", "a", b"v")
