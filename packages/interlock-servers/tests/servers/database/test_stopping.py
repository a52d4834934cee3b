"""Statements that do not end by themselves: stopped by the clock, by whoever asked, by the end of
the server, and by the end of its process.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Client, Server, ToolError
from interlock_servers.database import (
    DatabaseLimits,
    Databases,
    database_server,
    sqlite_worker,
    sqlite_worker_pool,
)
from interlock_servers.database.engine import RowRange, Statement
from interlock_servers.database.sqlite_worker import (
    HEAD,
    OpenDatabase,
    SqliteWorker,
    StopCall,
    WorkerCall,
)
from tests.servers.calls import done, refusal
from tests.servers.database.shop import files, rows

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
# One call of one function: SQLite looks neither at the clock nor at anything else before it has
# ended, in an hour or so.
STUBBORN = (
    "SELECT instr(replace(hex(zeroblob(4000000)), '0', 'a'), replace(hex(zeroblob(2000000)), '0', "
    "'a') || 'b')"
)
EAGER = DatabaseLimits(telling=0.02, waiting=0.5)


def pids(made: Server, kind: str = "_readers") -> set[int]:
    """The processes that read, or write, the shop."""
    lanes = getattr(made.lifespan_state.engines["shop"], kind)
    return {lane._process.pid for lane in lanes._all}


async def readers(made: Server, count: int) -> set[int]:
    """The processes that read the shop, once there are so many: a call tells how far it is while
    its process still begins.
    """
    async with asyncio.timeout(60):
        while len(pids(made)) < count:  # noqa: ASYNC110 # nothing tells of it
            await asyncio.sleep(0)
    return pids(made)


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and not only what is left of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        if sys.platform == "linux":
            return False
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


async def gone(pid: int) -> None:
    """Wait for the end of a process that is not ours."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(fd, ended.set)
        await ended.wait()
    finally:
        asyncio.get_running_loop().remove_reader(fd)
        os.close(fd)


async def begun(client: Client, tool: str, **arguments: Any) -> asyncio.Task[Any]:
    """A call of which is known that it has begun: it has told how far it is."""
    going = asyncio.Event()
    call = asyncio.create_task(client.call_tool(tool, arguments, on_progress=lambda _: going.set()))
    async with asyncio.timeout(60):
        await going.wait()
    return call


@pytest.mark.parametrize(
    "sql, same",
    [(ENDLESS, True), (STUBBORN, False)],
    ids=["that looks at the clock", "that does not"],
)
async def test_the_clock(shop: Path, monkeypatch: pytest.MonkeyPatch, sql: str, same: bool) -> None:
    """A statement is stopped at its limit, if need be with its process, and the next one is
    answered.
    """
    if same:  # a process on a busy machine has all the time it needs to say that it stopped
        monkeypatch.setattr(sqlite_worker_pool, "_SLACK", 60.0)
        monkeypatch.setattr(sqlite_worker_pool, "GRACE", 600.0)
    made = database_server([shop], limits=DatabaseLimits(seconds=0.3, connections=1))
    async with Client(made) as client:
        assert await rows(client, "SELECT 1") == [[1]]
        before = pids(made)
        assert "ran for more than 0.3 seconds and was stopped" in await refusal(
            client, "query", sql=sql
        )
        assert await rows(client, "SELECT 1") == [[1]]
        assert (pids(made) == before) is same
        assert same or not any(map(is_alive, before))


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    "sql, same", [(ENDLESS, True), (STUBBORN, False)], ids=["that listens", "that does not"]
)
async def test_who_cancels_stops_it(
    shop: Path, monkeypatch: pytest.MonkeyPatch, sql: str, same: bool, revision: str
) -> None:
    """The statement ends, not only the wait for it: the one connection that there is answers the
    next query (`CAN-01`).
    """
    if same:  # as above
        monkeypatch.setattr(sqlite_worker_pool, "GRACE", 600.0)
    made = database_server(
        [shop], limits=DatabaseLimits(telling=0.02, waiting=5.0, connections=1, seconds=600)
    )
    async with Client(made, revision=revision) as client:
        await rows(client, "SELECT 1")
        before = pids(made)
        call = await begun(client, "query", sql=sql)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await rows(client, "SELECT 1") == [[1]]
        assert (pids(made) == before) is same
        assert same or not any(map(is_alive, before))


async def test_who_cancels_over_stdio(shop: Path) -> None:
    """Also where the server is a process of its own."""
    serve = {
        "command": sys.executable,
        "args": ["-m", "interlock", "serve", "database", str(shop)],
        "env": {
            "INTERLOCK_DATABASE_CONNECTIONS": "1",
            "INTERLOCK_DATABASE_SECONDS": "600",
            "INTERLOCK_DATABASE_TELLING": "0.02",
        },
    }
    for revision in ("2025-11-25", "2026-07-28"):
        async with Client(serve, revision=revision) as client:
            call = await begun(client, "query", sql=ENDLESS)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await rows(client, "SELECT 1") == [[1]]


def test_the_clock_of_the_process_itself(shop: Path) -> None:
    """A statement looks at the clock by itself, though nobody is there to stop it."""
    worker = SqliteWorker(OpenDatabase(os.fsencode(shop), DatabaseLimits(memory=0), write=False))
    answer = worker.answer(
        WorkerCall(1, "rows", 0.05, [Statement(ENDLESS)], page=RowRange(0, 1, 1000, 1000))
    )
    assert "was stopped" in answer.error
    worker.close()


def test_a_call_that_is_stopped_before_it_begins(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop that overtakes its call, as on a busy machine, is not lost."""
    monkeypatch.setattr(sqlite_worker, "GRACE", 0.0)
    monkeypatch.setattr(os, "_exit", lambda status: None)  # at the end of the input
    worker = SqliteWorker(OpenDatabase(os.fsencode(shop), DatabaseLimits(memory=0), write=False))
    endless = WorkerCall(1, "rows", 600, [Statement(ENDLESS)], page=RowRange(0, 1, 1000, 1000))
    following = WorkerCall(2, "rows", 600, [Statement("SELECT 7")], page=RowRange(0, 1, 1000, 1000))
    frames = [msgspec.json.encode(one) for one in (endless, StopCall(1), following)]
    worker.receive(io.BytesIO(b"".join(HEAD.pack(len(frame)) + frame for frame in frames)))
    first, second = worker.calls.get(), worker.calls.get()
    assert first is not None
    assert second is not None
    assert "was stopped" in worker.answer(first).error
    assert not worker.answer(second).error
    worker.close()


async def test_several_at_once(shop: Path) -> None:
    """As many as there are connections; one more waits, and is told when it has waited long
    enough.
    """
    made = database_server(
        [shop], limits=DatabaseLimits(telling=0.02, waiting=0.5, connections=2, seconds=600)
    )
    async with Client(made) as client:
        first = await begun(client, "query", sql=ENDLESS)
        assert await rows(client, "SELECT 1") == [[1]]
        second = await begun(client, "query", sql=ENDLESS)
        assert "All 2 connections to the database are busy" in await refusal(
            client, "query", sql="SELECT 1"
        )
        assert len(pids(made)) == 2
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert await rows(client, "SELECT 1") == [[1]]
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)


async def test_many_at_once(shop: Path) -> None:
    """Twenty callers over two connections all get what they asked for, page by page, and no third
    process is begun.
    """
    made = database_server([shop], limits=DatabaseLimits(connections=2))
    async with Client(made) as client:

        async def ask(number: int) -> list[Any]:
            call = {
                "sql": "SELECT ?, id FROM orders ORDER BY id",
                "parameters": [number],
                "limit": 3,
            }
            page = await done(client, "query", **call)
            return [
                *page["rows"],
                *(await done(client, "query", **call, cursor=page["next"]))["rows"],
            ]

        found = await asyncio.gather(*map(ask, range(20)))
        assert found == [[[number, id] for id in (1, 2, 3, 4)] for number in range(20)]
        assert len(pids(made)) == 2


async def test_how_long_it_takes_is_told(shop: Path) -> None:
    """The seconds that have gone, of those that it may run (`PRG-02`)."""
    told: list[tuple[float, float | None]] = []
    async with Client(
        database_server([shop], limits=DatabaseLimits(telling=0.02, seconds=0.3))
    ) as client:
        await client.call_tool(
            "query", {"sql": ENDLESS}, on_progress=lambda p: told.append((p.progress, p.total))
        )
    assert told
    assert told == sorted(told)
    assert told[0][1] == 0.3


async def test_the_end_of_the_server(shop: Path) -> None:
    """It ends what still runs, and leaves no process."""
    made = database_server([shop], write=True, limits=EAGER)
    async with Client(made) as client:
        await done(client, "execute", statements=[{"sql": "DELETE FROM orders WHERE id = 1"}])
        await rows(client, "SELECT 1")
        call = await begun(client, "query", sql=STUBBORN)
        started = pids(made) | pids(made, "_writers")
        assert len(started) == 2
    with suppress(Exception):
        await call
    assert not any(map(is_alive, started))


async def test_the_end_of_the_server_while_a_process_begins(shop: Path) -> None:
    """None comes up after the server has gone; who waits for it is told, or still gets an
    answer.
    """
    databases = Databases([shop])
    await databases.open()
    engine: Any = databases.engines["shop"]
    lanes = engine._readers
    calls = [asyncio.create_task(engine.tables()) for _ in range(3)]
    for _ in range(3):  # turns of the loop: they have begun to begin
        await asyncio.sleep(0)
    await databases.close()
    for ended in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(ended, list | ToolError)
    assert not any(is_alive(lane._process.pid) for lane in lanes._all)


async def test_the_end_of_its_process(shop: Path, tmp_path: Path) -> None:
    """A server that is killed leaves no statement running behind it."""
    program = tmp_path / "host.py"
    program.write_text(
        "import asyncio, sys\n"
        "from interlock_servers.database import Databases\n"
        "from interlock_servers.database.engine import RowRange, Statement\n"
        "async def main():\n"
        "    databases = Databases([sys.argv[1]])\n"
        "    await databases.open()\n"
        "    engine = databases.engines['shop']\n"
        "    await engine.rows(Statement('SELECT 1'), RowRange(0, 1, 1000, 1000))\n"
        "    running = asyncio.create_task(engine.rows(Statement(sys.argv[2]), RowRange(0, 1, "
        "1000, 1000)))\n"
        "    for _ in range(50):\n"  # turns of the loop: it was sent
        "        await asyncio.sleep(0)\n"
        "    print(*[lane._process.pid for lane in engine._readers._all], flush=True)\n"
        "    await running\n"
        "asyncio.run(main())\n"
    )
    for sql in (ENDLESS, STUBBORN):
        host = await asyncio.create_subprocess_exec(
            sys.executable, str(program), str(shop), sql, stdout=asyncio.subprocess.PIPE
        )
        assert host.stdout is not None
        async with asyncio.timeout(60):
            (reader,) = map(int, (await host.stdout.readline()).split())
            assert is_alive(reader)
            host.kill()
            await host.communicate()
            await gone(reader)


async def test_a_reader_that_ends_by_itself(shop: Path) -> None:
    """Whatever a file does to SQLite, the server stays: the call is told, and the next one has
    another process.
    """
    made = database_server([shop], limits=DatabaseLimits(telling=0.02, connections=1, seconds=600))
    async with Client(made) as client:
        await rows(client, "SELECT 1")
        (pid,) = pids(made)
        call = await begun(client, "query", sql=ENDLESS)
        os.kill(pid, signal.SIGKILL)
        assert "ended during this call" in (await call).text
        assert await rows(client, "SELECT 1") == [[1]]
        assert pid not in pids(made)


async def test_a_reader_that_nobody_needs(shop: Path) -> None:
    """It is ended after a while, but not one that is at work; the next call has another."""
    made = database_server([shop], limits=DatabaseLimits(telling=0.02, idle=0.5, seconds=600))
    async with Client(made) as client:
        call = await begun(client, "query", sql=ENDLESS)
        (busy,) = await readers(made, 1)
        await rows(client, "SELECT 1")
        (spare,) = pids(made) - {busy}
        async with asyncio.timeout(60):
            await gone(spare)
        assert is_alive(busy)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert await rows(client, "SELECT 1") == [[1]]


async def test_what_the_processes_know(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They get nothing of the environment that could be secret: one who takes over SQLite by a
    hostile file finds no passwords.
    """
    monkeypatch.setenv("INTERLOCK_DATABASE_URLS", "postgresql://ada:hidden@host/x")
    made = database_server([shop])
    async with Client(made) as client:
        await rows(client, "SELECT 1")
        (pid,) = pids(made)
        environment = Path(f"/proc/{pid}/environ")
        if environment.exists():
            assert b"hidden" not in environment.read_bytes()


# -- writing, and others who write -----------------------------------------------------------------


@pytest.mark.parametrize("then", [ENDLESS, STUBBORN], ids=["that listens", "that does not"])
async def test_a_change_that_is_cancelled(shop: Path, then: str) -> None:
    """Nothing of it is kept, nothing is locked, and readers are not left with what has to be rolled
    back first.
    """
    before = files(shop.parent)
    made = database_server([shop], write=True, limits=DatabaseLimits(telling=0.02, seconds=600))
    async with Client(made) as client:
        changes = [
            {"sql": "DELETE FROM orders"},
            {
                "sql": (
                    "INSERT INTO customers (name) SELECT hex(randomblob(5000)) FROM json_each(?)"
                ),
                "parameters": [list(range(2_000))],
            },
            {"sql": then},
        ]
        call = await begun(client, "execute", statements=changes)
        async with asyncio.timeout(30):
            while "shop.db-journal" not in files(shop.parent):  # it has not begun to write
                await rows(client, "SELECT 1")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await rows(client, "SELECT count(*) FROM orders") == [[4]]
        assert (await done(client, "execute", statements=[{"sql": "UPDATE orders SET total = 1"}]))[
            "outcomes"
        ] == [{"changed": 4}]
    assert set(files(shop.parent)) == set(before)


async def test_who_only_reads_is_told_of_a_journal(shop: Path) -> None:
    """Changes that a program left half done cannot be rolled back by readers: they say so, and
    touch nothing.
    """
    connection = sqlite3.connect(shop, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN")
    connection.execute(
        "INSERT INTO customers (name) SELECT hex(randomblob(9000)) FROM customers, orders, "
        "customers c, orders o"
    )
    left = files(shop.parent)
    connection.execute("ROLLBACK")
    connection.close()
    for name, content in left.items():
        (shop.parent / name).write_bytes(content)
    assert "shop.db-journal" in left
    async with Client(database_server([shop])) as client:
        assert "left a journal" in await refusal(
            client, "query", sql="SELECT count(*) FROM customers"
        )
        assert files(shop.parent) == left
    async with Client(database_server([shop], write=True)) as client:
        assert await rows(client, "SELECT count(*) FROM customers") == [[3]]


async def test_others_who_lock(shop: Path) -> None:
    """A call waits for a while, says who is in the way, and goes on once nobody is."""
    async with Client(
        database_server([shop], write=True, limits=DatabaseLimits(waiting=0.2))
    ) as client:
        other = sqlite3.connect(shop, isolation_level=None)
        for lock, reads in (("BEGIN IMMEDIATE", True), ("BEGIN EXCLUSIVE", False)):
            other.execute(lock)
            assert "another process has locked it" in await refusal(
                client, "execute", statements=[{"sql": "DELETE FROM orders"}]
            )
            result = await client.call_tool("query", {"sql": "SELECT count(*) FROM orders"})
            assert bool(result.is_error) is not reads
            assert reads or "another process has locked it" in result.text
            other.execute("ROLLBACK")
            assert await rows(client, "SELECT count(*) FROM orders") == [[4]]
        other.close()


async def test_another_file_in_its_place(shop: Path, tmp_path: Path) -> None:
    """Who replaces the file is noticed at the next call."""
    async with Client(database_server([shop])) as client:
        assert await rows(client, "SELECT count(*) FROM orders") == [[4]]
        new = tmp_path / "new.db"
        new.write_bytes(shop.read_bytes())
        connection = sqlite3.connect(new)
        connection.execute("DELETE FROM orders")
        connection.commit()
        connection.close()
        new.replace(shop)
        assert await rows(client, "SELECT count(*) FROM orders") == [[0]]


async def test_a_file_in_wal_mode(shop: Path) -> None:
    """It is read while another program writes to it, and what that has not committed is not
    seen.
    """
    other = sqlite3.connect(shop, isolation_level=None)
    other.execute("PRAGMA journal_mode = wal")
    async with Client(database_server([shop])) as client:
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM orders")
        assert await rows(client, "SELECT count(*) FROM orders") == [[4]]
        other.execute("COMMIT")
        assert await rows(client, "SELECT count(*) FROM orders") == [[0]]
        content = shop.read_bytes()
        assert await refusal(client, "query", sql="INSERT INTO orders DEFAULT VALUES")
        assert await refusal(client, "query", sql="PRAGMA wal_checkpoint(truncate)")
        assert shop.read_bytes() == content
    other.close()
