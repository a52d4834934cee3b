"""SqliteFile: private files, migrations in one transaction, and one set of error messages."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from interlock.store import (
    SqliteError,
    SqliteFile,
    SqliteSchema,
    connect_sqlite,
    sqlite_reason,
    write_transaction,
)
from interlock.store.sqlite import file as sqlite_file

APPLICATION = 0x54455354


def _make_notes(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE notes (text TEXT NOT NULL)")


def _add_author(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE notes ADD COLUMN author TEXT NOT NULL DEFAULT ''")


def schema(*migrations: Callable[[sqlite3.Connection], None], **more: frozenset[str]):
    return SqliteSchema(name="notebook", application=APPLICATION, migrations=migrations, **more)


def notebook(path: Path, **more: float) -> SqliteFile:
    return SqliteFile(path, schema(_make_notes), **more)


def add(file: SqliteFile, text: str) -> None:
    with file.transaction() as db:
        db.execute("INSERT INTO notes VALUES (?)", (text,))


def texts(file: SqliteFile) -> list[str]:
    with file.transaction(write=False) as db:
        return [text for (text,) in db.execute("SELECT text FROM notes").fetchall()]


# -- transactions ----------------------------------------------------------------------------------


def test_a_transaction_is_kept_if_its_block_ends_well_and_else_not_at_all(tmp_path: Path) -> None:
    file = notebook(tmp_path / "notes.db")
    add(file, "kept")

    def fail() -> None:
        with file.transaction() as db:
            db.execute("INSERT INTO notes VALUES ('lost')")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert texts(file) == ["kept"]


def test_a_transaction_that_reads_cannot_write(tmp_path: Path) -> None:
    file = notebook(tmp_path / "notes.db")
    with (
        pytest.raises(SqliteError, match="it is read-only"),
        file.transaction(write=False) as db,
    ):
        db.execute("INSERT INTO notes VALUES ('x')")
    assert texts(file) == []


async def test_a_function_runs_in_a_thread(tmp_path: Path) -> None:
    """The event loop goes on meanwhile."""
    file = notebook(tmp_path / "notes.db")

    def work(db: sqlite3.Connection) -> int:
        db.execute("INSERT INTO notes VALUES ('x')")
        return threading.get_ident()

    assert await file.run(work) != threading.get_ident()
    assert texts(file) == ["x"]


def test_a_writer_waits_for_another_and_then_writes(tmp_path: Path) -> None:
    """BEGIN IMMEDIATE waits for the lock; nothing is lost."""
    file = notebook(tmp_path / "notes.db", patience=60.0)
    add(file, "first")
    began = threading.Event()

    def write() -> None:
        began.set()
        add(file, "second")

    with closing(connect_sqlite(file.path)) as other:
        with write_transaction(other):
            writer = threading.Thread(target=write)
            writer.start()
            began.wait()
            other.execute("INSERT INTO notes VALUES ('meanwhile')")
        writer.join()
    assert texts(file) == ["first", "meanwhile", "second"]


def test_a_stopped_statement_leaves_no_transaction_behind(tmp_path: Path) -> None:
    """A progress handler that interrupts a statement does not interrupt the rollback."""
    file = notebook(tmp_path / "notes.db")
    endless = """INSERT INTO notes WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL
        SELECT x + 1 FROM n) SELECT x FROM n"""

    def stop(db: sqlite3.Connection) -> None:
        with write_transaction(db):
            db.set_progress_handler(lambda: 1, 1000)
            db.execute(endless)

    with closing(file.connect()) as db:
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            stop(db)
        assert not db.in_transaction
    assert texts(file) == []


# -- the file --------------------------------------------------------------------------------------


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_only_the_owner_may_read_it_and_what_lies_beside_it(tmp_path: Path, journal: str) -> None:
    """Mode 0600 whatever the umask, also behind a link to a file that is not there yet."""
    target = tmp_path / "target.db"
    link = tmp_path / "link.db"
    link.symlink_to(target)
    before = os.umask(0)
    try:
        file = SqliteFile(link, schema(_make_notes), journal=journal)
        with closing(file.connect()) as db, write_transaction(db):
            db.execute("INSERT INTO notes VALUES ('x')")
            found = [path for path in tmp_path.iterdir() if path != link]
            assert len(found) > 1
            assert {path.stat().st_mode & 0o777 for path in found} == {0o600}
    finally:
        os.umask(before)


def test_settings_hold_for_each_connection(tmp_path: Path) -> None:
    file = SqliteFile(
        tmp_path / "notes.db",
        schema(_make_notes),
        journal="wal",
        pragmas=("synchronous = NORMAL", "recursive_triggers = ON"),
        max_bytes=1_000_000,
    )
    for _ in range(2):
        with closing(file.connect()) as db:
            found = {
                pragma: db.execute(f"PRAGMA {pragma}").fetchone()[0]
                for pragma in (
                    "journal_mode",
                    "synchronous",
                    "recursive_triggers",
                    "trusted_schema",
                )
            }
            assert found == {
                "journal_mode": "wal",
                "synchronous": 1,
                "recursive_triggers": 1,
                "trusted_schema": 0,
            }
            assert db.execute("PRAGMA max_page_count").fetchone()[0] <= 1_000_000 // 512


# -- migrations ------------------------------------------------------------------------------------


def test_an_older_file_gets_the_missing_migrations_in_order(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    add(SqliteFile(path, schema(_make_notes)), "old")
    newer = SqliteFile(path, schema(_make_notes, _add_author))
    with newer.transaction(write=False) as db:
        assert db.execute("SELECT text, author FROM notes").fetchall() == [("old", "")]
        assert db.execute("PRAGMA user_version").fetchone() == (2,)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    """The migrations before it are undone with it, and the version stays."""
    path = tmp_path / "notes.db"
    add(SqliteFile(path, schema(_make_notes)), "old")
    before = path.read_bytes()

    def fail(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO missing VALUES (1)")

    with pytest.raises(SqliteError, match="no such table: missing"):
        SqliteFile(path, schema(_make_notes, _add_author, fail)).connect()
    assert path.read_bytes() == before
    assert texts(SqliteFile(path, schema(_make_notes))) == ["old"]


def test_many_may_migrate_at_once(tmp_path: Path) -> None:
    """One migrates; the others wait for it and find the work done."""
    path = tmp_path / "notes.db"
    add(SqliteFile(path, schema(_make_notes)), "old")
    at_once = threading.Barrier(8)
    failures: list[Exception] = []

    def connect() -> None:
        at_once.wait()
        try:
            file = SqliteFile(path, schema(_make_notes, _add_author), journal="wal", patience=60.0)
            file.connect().close()
        except Exception as bad:
            failures.append(bad)

    threads = [threading.Thread(target=connect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("unmarked", [True, False])
def test_a_file_without_a_mark_is_ours_if_it_has_our_tables(tmp_path: Path, unmarked: bool) -> None:
    path = tmp_path / "notes.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE notes (text TEXT NOT NULL)")
        if not unmarked:
            db.execute("CREATE TABLE more (text)")
    file = SqliteFile(path, schema(_make_notes, _add_author, unmarked=frozenset({"notes"})))
    if unmarked:
        with file.transaction(write=False) as db:
            assert db.execute("SELECT text, author FROM notes").fetchall() == []
            assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    else:
        with pytest.raises(SqliteError, match="of another program: choose another file"):
            file.connect()


# -- errors ----------------------------------------------------------------------------------------


def _full(file: SqliteFile) -> None:
    with closing(file.connect()) as db, file.errors(), write_transaction(db):
        db.execute("PRAGMA max_page_count = 1").fetchall()
        db.execute("INSERT INTO notes VALUES (?)", ("x" * 100_000,))


def _locked(file: SqliteFile) -> None:
    with closing(file.connect()) as db, write_transaction(db):
        add(file, "x")


def _damaged(file: SqliteFile) -> None:
    file.connect().close()
    file.path.write_bytes(b"no database, but a text that is long enough to be one " * 100)
    add(file, "x")


def _torn(file: SqliteFile) -> None:
    add(file, "x" * 100_000)
    with file.path.open("r+b") as opened:
        opened.seek(4096)
        opened.write(b"\xff" * 8192)
    texts(file)


def _removed(file: SqliteFile) -> None:
    with closing(file.connect()) as db, file.errors():
        file.path.unlink()
        db.execute("INSERT INTO notes VALUES ('x')")


def _read_only(file: SqliteFile) -> None:
    file.connect().close()
    with closing(connect_sqlite(file.path, write=False)) as db, file.errors():
        db.execute("INSERT INTO notes VALUES ('x')")


def _folder(file: SqliteFile) -> None:
    file.path.mkdir()
    file.connect()


def _nowhere(file: SqliteFile) -> None:
    notebook(file.path / "missing" / "notes.db").connect()


REASONS = {
    "full": (_full, "the disk is full, or the file has reached its largest size"),
    "locked": (_locked, "another process has locked it for 0.05 seconds: try again later"),
    "damaged": (_damaged, "it is damaged, or not a SQLite database .*it was not changed: move it"),
    "torn": (_torn, "it is damaged, or not a SQLite database"),
    "removed": (_removed, "the file was moved or removed while it was in use"),
    "read-only": (_read_only, "it is read-only: check the permissions"),
    "a folder": (_folder, "it is a directory"),
    "nowhere": (_nowhere, "No such file or directory"),
}


@pytest.mark.parametrize("kind", REASONS)
def test_each_failure_is_named_with_what_to_do(tmp_path: Path, kind: str) -> None:
    """The message has the name of the file, `reason` has not."""
    fail, words = REASONS[kind]
    file = notebook(tmp_path / "notes.db", patience=0.05)
    with pytest.raises(SqliteError, match=words) as caught:
        fail(file)
    assert f"the notebook {file.path}" in str(caught.value)
    assert str(file.path) not in caught.value.reason


def test_a_failure_without_a_code_is_told_as_it_is() -> None:
    assert sqlite_reason(sqlite3.ProgrammingError("closed")) == "closed"
    assert sqlite_reason(OSError(28, "No space left on device")) == "No space left on device"


def test_tables_that_appear_while_a_file_is_examined_are_not_those_of_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes open the same new file: one reads its marks, then the other creates the
    tables.
    """
    path = tmp_path / "notes.db"
    marks = sqlite_file._marks
    seen: list[tuple[int, int]] = []

    def interrupted(db: sqlite3.Connection) -> tuple[int, int]:
        found = marks(db)
        seen.append(found)
        if len(seen) == 2:  # the marks that are compared with the tables
            with suppress(SqliteError):  # it waits for the first process, which waits for it here
                notebook(path, patience=0.01).connect().close()
        return found

    monkeypatch.setattr(sqlite_file, "_marks", interrupted)
    file = notebook(path)
    add(file, "first")
    assert texts(file) == ["first"]
