"""The log in a file: only added to, whole after a crash, and clear in words where it cannot be
written.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import sys
import tracemalloc
from asyncio.subprocess import PIPE
from contextlib import closing
from pathlib import Path

import pytest

from interlock.store import SqliteStore
from interlock_apps.fleet.events import CallEnded, Notice
from interlock_apps.fleet.log import LogError, SqliteLog, Tampered, records


def notice(words: str, session: str = "") -> Notice:
    return Notice(level="info", words=words, session=session)


async def written(path: Path, count: int = 5) -> None:
    """A log with so many entries, closed."""
    log = SqliteLog(path)
    await log.open()
    for number in range(1, count + 1):
        log.note(notice(f"entry {number}", session="s"))
    await log.aclose()


def change(path: Path, *statements: str) -> None:
    """What somebody does to the file by other means."""
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


async def words(log: SqliteLog) -> list[str]:
    return [noted.event.words for noted in await log.read() if isinstance(noted.event, Notice)]


# -- the file --------------------------------------------------------------------------------------


async def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Mode 0600, the files beside it as well, whatever the umask is."""
    was = os.umask(0)
    try:
        log = SqliteLog(tmp_path / "log.db")
        await log.open()
        log.note(notice("x"))
        await log.flush()
        assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
        await log.aclose()
    finally:
        os.umask(was)


async def test_it_is_there_when_opened_again(tmp_path: Path) -> None:
    """Numbers go on, in another billion, and never twice."""
    path = tmp_path / "log.db"
    await written(path)
    log = SqliteLog(path)
    await log.open()
    await log.open()
    noted = log.note(notice("entry 6"))
    assert noted.seq == 1_000_000_001
    assert await words(log) == [f"entry {number}" for number in range(1, 7)]
    assert [each.seq for each in await log.read(after=4)] == [5, 1_000_000_001]
    assert await log.verify() == 6
    await log.aclose()
    await log.aclose()


async def test_two_hosts_share_a_file(tmp_path: Path) -> None:
    """Each has numbers of its own, the entries stand in one chain, and both see all."""
    one = SqliteLog(tmp_path / "log.db")
    two = SqliteLog(tmp_path / "log.db")
    await one.open()
    await two.open()
    for number in range(300):
        (one if number % 2 else two).note(notice(str(number)))
        if number % 50 == 0:
            await asyncio.gather(one.flush(), two.flush())
    await one.flush()
    assert len({noted.seq for noted in await two.read()}) == 300
    assert await one.verify() == 300
    found = await one.search("", limit=300)
    before = [noted.seq for noted in await one.search("", before=found[99].seq, limit=300)]
    assert before == [noted.seq for noted in found[100:]]
    await one.aclose()
    await two.aclose()


async def test_nothing_is_kept_before_and_after(tmp_path: Path) -> None:
    """An event that cannot be kept has no number; who reads hears that the log is not open."""
    log = SqliteLog(tmp_path / "log.db")
    assert log.note(notice("early")).seq == 0
    for bad in (log.flush, log.read, log.search, log.sessions, log.verify, log.head):
        with pytest.raises(LogError, match="not open"):
            await bad()
    await log.open()
    await log.aclose()
    assert log.note(notice("late")).seq == 0


async def test_an_entry_of_another_version_is_shown_as_such(tmp_path: Path) -> None:
    """The others are read all the same."""
    path = tmp_path / "log.db"
    await written(path, 1)
    data = b'{"seq":77,"at":1.0,"event":{"type":"fromTheFuture","session":"s"}}'
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "INSERT INTO entries (seq, at, session, kind, server, data, digest) VALUES "
            "(77, 1.0, 's', 'x', '', ?, x'')",
            (data,),
        )
    log = SqliteLog(path)
    await log.open()
    first, second = await log.read("s")
    assert await words(log) == [
        "entry 1",
        "Entry 77 ('fromTheFuture') is of a kind that this version does not support.",
    ]
    assert (first.seq, second.seq, second.at, second.event.session) == (1, 77, 1.0, "s")
    await log.aclose()


async def test_entries_written_without_a_table_of_words_are_filed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may move between machines of which one has an SQLite without full-text search."""
    path = tmp_path / "log.db"
    with monkeypatch.context() as patch:
        patch.setattr("interlock_apps.fleet.log.tables.make_words", lambda db: False)
        await written(path, 1203)
    log = SqliteLog(path)
    await log.open()
    assert len(await log.search("entry", limit=2000)) == 1203
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM words WHERE words MATCH 'entry'").fetchall() == [
            (1203,)
        ]
    await log.aclose()


# -- only added to ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET kind = 'x' WHERE place = 2",
        "UPDATE entries SET seq = 9 WHERE place = 2",
        "DELETE FROM entries WHERE place = 5",
        "DELETE FROM entries",
        "DELETE FROM contents WHERE place = 2",
        "UPDATE contents SET data = x'00' WHERE place = 2",
        "UPDATE contents SET place = 9, salt = NULL, data = NULL WHERE place = 2",
        "UPDATE entries SET data = x'', kind = 'x' WHERE place = 2",
    ],
)
async def test_the_file_refuses_to_forget(tmp_path: Path, statement: str) -> None:
    """Entries stay as they are, whoever asks."""
    path = tmp_path / "log.db"
    await written(path)
    with pytest.raises(sqlite3.DatabaseError, match="the log only grows"):
        change(path, statement)


async def test_our_own_connection_replaces_nothing(tmp_path: Path) -> None:
    """An INSERT OR REPLACE would delete unheard; on the writer's connection it is heard."""
    log = SqliteLog(tmp_path / "log.db")
    await log.open()
    log.note(notice("x"))
    await log.flush()
    replace = (
        "INSERT OR REPLACE INTO entries SELECT place, seq, at, session, kind, server, x'00', "
        "digest FROM entries"
    )
    with pytest.raises(LogError, match="the log only grows"):
        await log._ask(lambda db: db.execute(replace).fetchall())
    assert await log.verify() == 1
    await log.aclose()


DROPPED = (
    "DROP TRIGGER entries_stay",
    "DROP TRIGGER entries_are",
    "DROP TRIGGER contents_stay",
    "DROP TRIGGER contents_are",
)
ANEW = (
    "CREATE TRIGGER entries_stay BEFORE DELETE ON entries BEGIN SELECT 1; END",
    "CREATE TRIGGER entries_are BEFORE UPDATE ON entries BEGIN SELECT 1; END",
)


@pytest.mark.parametrize(
    "statements, place, seq, told",
    [
        (
            ["UPDATE contents SET data = replace(data, 'entry 3', 'entry 9') WHERE place = 3"],
            3,
            3,
            "Entry 3 (number 3) was changed",
        ),
        (
            [
                "UPDATE contents SET data = cast(replace(data, 'entry 3', 'entry 9') AS "
                "BLOB) WHERE place = 3"
            ],
            3,
            3,
            "was changed",
        ),
        (
            [
                "UPDATE entries SET data = NULL || x'', digest = x'' WHERE place = 1 AND 0",
                "DELETE FROM entries WHERE place = 2",
            ],
            3,
            3,
            "missing",
        ),
        (["DELETE FROM entries WHERE place IN (2, 3)"], 4, 4, "entries 2 to 3 are missing"),
        (["DELETE FROM entries WHERE place = 1"], 2, 2, "entry 1 is missing"),
        (
            ["DELETE FROM entries WHERE place = 5"],
            5,
            0,
            "missing at the end: there were 5, and 4 are left",
        ),
        (["DELETE FROM entries"], 1, 0, "there were 5, and 0 are left"),
        (
            ["UPDATE contents SET salt = x'' WHERE place = 2"],
            2,
            2,
            "was changed",
        ),
        (
            ["UPDATE contents SET salt = NULL, data = NULL WHERE place = 2"],
            2,
            2,
            "has lost its content, and no entry says that its conversation was deleted",
        ),
        (
            ["DELETE FROM contents WHERE place = 3"],
            3,
            3,
            "was changed",
        ),
        (
            [
                "DELETE FROM contents WHERE place = 1",
                "UPDATE entries SET data = x'' WHERE place = 1",
            ],
            1,
            1,
            "has lost its content",
        ),
        (["UPDATE entries SET session = 't' WHERE place = 4"], 4, 4, "The search index of Entry"),
        (
            ["UPDATE entries SET kind = 'turnEnded' WHERE place = 4"],
            4,
            4,
            "The search index of Entry",
        ),
        (["UPDATE entries SET server = 'x' WHERE place = 4"], 4, 4, "The search index of Entry"),
        (["UPDATE entries SET at = at + 1 WHERE place = 4"], 4, 4, "The search index of Entry"),
        (["UPDATE entries SET seq = 99 WHERE place = 4"], 4, 99, "The search index of Entry"),
        (
            ["UPDATE entries SET digest = zeroblob(32) WHERE place = 5"],
            5,
            5,
            "was changed",
        ),
        (
            [
                "INSERT INTO entries SELECT 6, 6, at, session, kind, server, data, digest "
                "FROM entries WHERE place = 5"
            ],
            6,
            6,
            "was changed",
        ),
        (["UPDATE entries SET place = 9 WHERE place = 5"], 9, 5, "entries 5 to 8 are missing"),
        ([], 5, 0, "no longer rejects changes"),
    ],
)
async def test_what_was_changed_is_found_and_named(
    tmp_path: Path, statements: list[str], place: int, seq: int, told: str
) -> None:
    """`TOL-25`: a change by another connection, the triggers gone, is found at the first entry that
    it concerns.
    """
    path = tmp_path / "log.db"
    await written(path)
    change(path, *DROPPED, *statements)
    log = SqliteLog(path)
    await log.open()
    with pytest.raises(Tampered) as caught:
        await log.verify()
    assert told in str(caught.value)
    assert (caught.value.place, caught.value.seq) == (place, seq)
    log.note(notice("the log goes on"))
    await log.flush()
    await log.aclose()


async def test_the_head_shows_what_the_chain_alone_cannot(tmp_path: Path) -> None:
    """A file of which the end was written anew is whole in itself; its head is another one."""
    one = SqliteLog(tmp_path / "one.db", clock=lambda: 1.0)
    two = SqliteLog(tmp_path / "two.db", clock=lambda: 1.0)
    heads = []
    for log, last in ((one, "true"), (two, "false")):
        await log.open()
        log.note(notice("same"))
        heads.append(await log.head())
        log.note(notice(last))
        heads.append(await log.head())
        assert await log.verify() == 2
        await log.aclose()
    assert heads[0] == heads[2]
    assert heads[1] != heads[3]


# -- what can go wrong -----------------------------------------------------------------------------

CRASH = """
import asyncio, os, signal, sys
from interlock_apps.fleet.events import Notice
from interlock_apps.fleet.log import SqliteLog

async def main():
    log = SqliteLog(sys.argv[1])
    await log.open()
    for number in range(2000):
        log.note(Notice(level="info", words=f"entry {number}"))
        if number == 1499:
            await log.flush()
    print("flushed", flush=True)
    while True:
        log.note(Notice(level="info", words="more"))
        await asyncio.sleep(0)

asyncio.run(main())
"""


async def test_what_was_flushed_is_there_after_a_crash(tmp_path: Path) -> None:
    """Killed in the middle of writing: the file opens, the chain is whole, and goes on."""
    path = tmp_path / "log.db"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CRASH, str(path), stdout=PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"flushed\n"
    process.kill()
    await process.wait()
    log = SqliteLog(path)
    await log.open()
    found = await words_of_all(log)
    assert found[:1500] == [f"entry {number}" for number in range(1500)]
    log.note(notice("after"))
    assert await log.verify() == len(found) + 1
    await log.aclose()


async def words_of_all(log: SqliteLog) -> list[str]:
    lines: list[bytes] = []
    await log.export(lines.append)
    return [
        event.words for line in lines if isinstance(event := records.decode(line).event, Notice)
    ]


async def test_what_is_no_log_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """In words that say what is wrong with which file."""
    text, store, other, later = (
        tmp_path / name for name in ("text.db", "store.db", "other.db", "later.db")
    )
    text.write_bytes(b"This is no database. " * 100)
    shared = SqliteStore(store)
    await shared.open()
    await shared.aclose()
    change(other, "CREATE TABLE t (x)")
    await written(later, 1)
    change(later, "PRAGMA user_version = 4")
    for path, why in {
        text: "not a SQLite database",
        store: "it is the database of another program",
        other: "it is the database of another program",
        later: "a newer version of Interlock wrote it",
        tmp_path: "directory",
        tmp_path / "nowhere" / "log.db": "No such file",
    }.items():
        before = path.read_bytes() if path.is_file() else None
        log = SqliteLog(path)
        with pytest.raises(LogError, match=f"The log cannot be written: .*{path.name}.*{why}"):
            await log.open()
        assert (path.read_bytes() if path.is_file() else None) == before
        assert log.note(notice("x")).seq == 0
        await log.aclose()


async def fill(log: SqliteLog) -> None:
    """Let the file grow no more: what SQLite says then is what it says of a full disk."""
    await log._ask(lambda db: db.execute("PRAGMA max_page_count = 1").fetchall())


async def make_room(log: SqliteLog) -> None:
    await log._ask(lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchall())


async def test_a_full_disk_is_told_once_and_nothing_is_lost(tmp_path: Path) -> None:
    """The host goes on; what could not be written is, once there is room."""
    log = SqliteLog(tmp_path / "log.db", again=3600)
    told: list[Notice] = []
    log.publish = told.append
    await log.open()
    log.note(notice("first"))
    await log.flush()
    await fill(log)
    for number in range(20):
        log.note(notice(f"{number} {'x' * 5000}"))
    for _ in range(2):
        with pytest.raises(LogError, match=r"log\.db cannot be written: the disk is full"):
            await log.flush()
    log.note(notice("later"))
    assert await words(log) == ["first"]
    assert [each.level for each in told] == ["error"]
    await make_room(log)
    await log.flush()
    assert [each.level for each in told] == ["error", "info"]
    assert "can be written again" in told[1].words
    assert [word[:5].strip() for word in await words(log)] == [
        "first",
        *(f"{n} {'x' * 5}"[:5].strip() for n in range(20)),
        "later",
    ]
    assert await log.verify() == 22
    await log.aclose()


async def test_it_is_tried_again_without_being_asked(tmp_path: Path) -> None:
    """The task that writes goes on by itself once the file can be written."""
    log = SqliteLog(tmp_path / "log.db", again=0.001)
    again = asyncio.Event()
    log.publish = lambda notice: again.set() if notice.level == "info" else None
    await log.open()
    await fill(log)
    log.note(notice("x" * 5000))
    with pytest.raises(LogError, match="full"):
        await log.flush()
    await make_room(log)
    await again.wait()
    assert await words(log) == ["x" * 5000]
    await log.aclose()


async def test_what_waits_for_a_broken_file_does_not_grow_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond a bound events are not kept, have no number, and are counted."""
    monkeypatch.setattr("interlock_apps.fleet.log.sqlite._MOST_WAITING", 10_000)
    log = SqliteLog(tmp_path / "log.db", again=3600)
    told: list[Notice] = []
    log.publish = told.append
    await log.open()
    await fill(log)
    kept = [log.note(notice("x" * 1000)).seq for _ in range(20)]
    assert kept == [*range(1, 10), *[0] * 11]
    with pytest.raises(LogError):
        await log.flush()
    await make_room(log)
    assert len(await words(log)) == 9
    assert told[-1].level == "warning"
    assert "11 entries are lost" in told[-1].words
    assert log.note(notice("y")).seq == 21  # who looks at the numbers sees the gap
    await log.aclose()


async def test_closing_a_log_that_cannot_be_written_says_what_is_lost(tmp_path: Path) -> None:
    """And does not raise: the host has to end."""
    log = SqliteLog(tmp_path / "log.db", again=3600)
    told: list[Notice] = []
    log.publish = told.append
    await log.open()
    await log._ask(lambda db: db.execute("PRAGMA query_only = ON").fetchall())
    log.note(notice("x"))
    log.note(notice("y"))
    await log.aclose()
    assert told[-1].level == "error"
    assert "The last 2 entries are lost." in told[-1].words


async def test_writing_that_is_cancelled_writes_nothing_twice(tmp_path: Path) -> None:
    """What was handed to the thread is written; who tries again passes it over."""
    log = SqliteLog(tmp_path / "log.db")
    await log.open()
    for number in range(100):
        log.note(notice(str(number)))
        for _ in range(number % 4):
            await asyncio.sleep(0)
        if (task := log._task) is not None:
            task.cancel()
            await asyncio.wait([task])
    await log.flush()
    assert await words(log) == [str(number) for number in range(100)]
    assert await log.verify() == 100
    await log.aclose()


# -- many ------------------------------------------------------------------------------------------


@pytest.mark.endurance(seconds=2)
async def test_twenty_thousand_entries(tmp_path: Path) -> None:
    """All of them are found and exported, and at no time are they all in memory."""
    log = SqliteLog(tmp_path / "log.db")
    await log.open()
    for number in range(20_000):
        log.note(
            CallEnded(
                session=f"s{number % 100}",
                server="a",
                call=str(number),
                error=f"answer {number} needle{number % 1000:03}",
            )
        )
        if number % 2000 == 0:
            await log.flush()
    await log.flush()
    tracemalloc.start()
    try:
        size = 0

        def write(line: bytes) -> None:
            nonlocal size
            size += len(line)

        assert await log.export(write) == 20_000
        assert await log.verify() == 20_000
        found = await log.search("needle007 answer", limit=10)
        assert tracemalloc.get_traced_memory()[1] < size / 3
    finally:
        tracemalloc.stop()
    assert [noted.seq for noted in found] == [19_008 - step * 1000 for step in range(10)]
    await log.aclose()
