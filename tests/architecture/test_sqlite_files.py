"""SQLite files of every kind: one function opens them, older files are migrated, newer ones are
rejected."""

from __future__ import annotations

import asyncio
import gzip
import re
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import interlock_issuer.login.accounts
import interlock_servers.memory.schema
import interlock_servers.travel.database
from interlock import ToolError
from interlock.store import SqliteFile, SqliteSchema, SqliteStore, SqliteVault, StoreError
from interlock.store.sqlite import schema as store_schema
from interlock.store.vaults import sqlite as vault_module
from interlock_apps.fleet.log import LogError, SqliteLog, tables
from interlock_issuer.login.accounts import Accounts
from interlock_servers.memory.graph import Graph
from interlock_servers.travel.database import TravelDatabase
from tests.architecture.source import SourceTree

OLD = Path(__file__).parent / "sqlite_files"
"""Files that Interlock wrote before one module opened all of them."""


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        schema: Its tables.
        open: Opens a file as the product does, reads in it, and closes it.
        query: Reads the data of the old file.
        found: The expected data.
    """

    schema: SqliteSchema
    open: Callable[[Path], Awaitable[object]]
    query: str
    found: Any


async def _store(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.aclose()


async def _vault(path: Path) -> None:
    vault = SqliteVault(path, keyring=False)
    try:
        await vault.get("k", "a")
    finally:
        await vault.aclose()


async def _log(path: Path) -> None:
    log = SqliteLog(path)
    await log.open()
    await log.aclose()


async def _memory(path: Path) -> None:
    def read() -> None:
        graph = Graph(path)
        try:
            with graph.raw() as db:
                db.execute("SELECT count(*) FROM entities").fetchall()
        finally:
            graph.close()

    await asyncio.to_thread(read)


async def _travel(path: Path) -> None:
    await asyncio.to_thread(TravelDatabase(path).prepare)


KINDS = {
    "store": Kind(store_schema.SCHEMA, _store, "SELECT id, state FROM sessions", ("s", b"state")),
    "vault": Kind(vault_module.SCHEMA, _vault, "SELECT value FROM records", (b"v",)),
    "accounts": Kind(
        interlock_issuer.login.accounts.SCHEMA,
        lambda path: Accounts(path).list(),
        "SELECT name FROM accounts",
        ("alice",),
    ),
    "log": Kind(tables.SCHEMA, _log, "SELECT place, kind FROM entries", (1, "notice")),
    "memory": Kind(
        interlock_servers.memory.schema.SCHEMA,
        _memory,
        "SELECT name, kind FROM entities",
        ("Ada", "person"),
    ),
    "travel": Kind(
        interlock_servers.travel.database.SCHEMA,
        _travel,
        "SELECT reference FROM bookings",
        ("REF",),
    ),
}


def marks(path: Path) -> tuple[int, int]:
    """The mark of the kind in a file, and the version of its tables."""
    with closing(sqlite3.connect(path)) as db:
        ((application,),) = db.execute("PRAGMA application_id").fetchall()
        ((version,),) = db.execute("PRAGMA user_version").fetchall()
    return application, version


def statements(path: Path) -> dict[str, str]:
    """The tables, indexes and triggers of a file."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {name: " ".join(sql.replace('"', "").split()) for name, sql in rows}


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, except lock files."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.match("*.lock")}


@pytest.mark.parametrize("name", KINDS)
async def test_a_newer_file_is_refused_named_and_untouched(name: str, tmp_path: Path) -> None:
    """Version + 1: the error names the file and says what to do, and no byte of the file
    changes."""
    kind = KINDS[name]
    path = tmp_path / "file.db"
    await kind.open(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {kind.schema.version + 1}")
    before = contents(tmp_path)
    with pytest.raises((StoreError, LogError, ToolError)) as caught:
        await kind.open(path)
    words = str(caught.value)
    assert str(path) in words
    assert f"version {kind.schema.version + 1} of its tables" in words
    assert f"knows up to {kind.schema.version}" in words
    assert f"upgrade Interlock, or {kind.schema.instead}" in words
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", KINDS)
async def test_the_file_of_another_kind_is_refused_and_untouched(name: str, tmp_path: Path) -> None:
    """One of our files that belongs to another component is rejected like the file of another
    program."""
    path = tmp_path / "file.db"
    other = "vault" if name != "vault" else "store"
    path.write_bytes(gzip.decompress((OLD / f"{other}.db.gz").read_bytes()))
    path.chmod(0o600)
    before = contents(tmp_path)
    with pytest.raises((StoreError, LogError, ToolError), match="of another program") as caught:
        await KINDS[name].open(path)
    assert str(path) in str(caught.value)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", KINDS)
async def test_a_file_of_the_first_edition_still_opens(name: str, tmp_path: Path) -> None:
    """Its data is preserved, and it gets the mark of its kind."""
    kind = KINDS[name]
    path = tmp_path / "file.db"
    path.write_bytes(gzip.decompress((OLD / f"{name}.db.gz").read_bytes()))
    path.chmod(0o600)
    await kind.open(path)
    assert marks(path) == (kind.schema.application, kind.schema.version)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute(kind.query).fetchall() == [kind.found]


@pytest.mark.parametrize(
    "name, version",
    [(name, n) for name, kind in KINDS.items() for n in range(1, kind.schema.version)],
)
async def test_each_older_version_is_migrated(name: str, version: int, tmp_path: Path) -> None:
    """After the migration, the file has the tables of a new one."""
    kind = KINDS[name]
    old = SqliteSchema(
        name=name,
        application=kind.schema.application,
        migrations=kind.schema.migrations[:version],
    )
    path = tmp_path / "old.db"
    SqliteFile(path, old).connect().close()
    assert marks(path) == (kind.schema.application, version)
    await kind.open(path)
    await kind.open(tmp_path / "new.db")
    assert marks(path) == (kind.schema.application, kind.schema.version)
    assert statements(path) == statements(tmp_path / "new.db")


def test_kinds_have_marks_of_their_own() -> None:
    """Two kinds of files cannot be confused."""
    assert len({kind.schema.application for kind in KINDS.values()}) == len(KINDS)


def test_sqlite_files_are_opened_in_one_place(source_tree: SourceTree) -> None:
    """Only the helper calls sqlite3.connect, except for databases in memory."""
    calls = [
        f"{source.where}:{number}"
        for source in source_tree.sources
        for number, line in enumerate(source.text.splitlines(), 1)
        if re.search(r"sqlite3\.(dbapi2\.)?(connect|Connection)\((?!\":memory:\")", line)
    ]
    assert [call.rpartition(":")[0].rpartition("interlock/")[2] for call in calls] == [
        "store/sqlite/file.py"
    ]
