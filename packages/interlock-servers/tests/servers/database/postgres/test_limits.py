"""Time, size and cancellation: a statement that is stopped runs nowhere any more, and the
connection after it is as good as new.
"""

from __future__ import annotations

import asyncio

import pytest

from interlock import ToolError
from interlock_servers.database.engine import RowRange, Statement
from interlock_servers.database.limits import DatabaseLimits
from interlock_servers.database.postgres.driver import driver
from interlock_servers.database.postgres.engine import PostgresEngine
from interlock_servers.database.postgres.pool import READING, ConnectionPool
from interlock_servers.database.postgres.urls import PostgresUrl
from tests.servers.database.postgres.scratch_database import (
    WHOLE,
    ScratchDatabase,
    engine,
    execute,
    failure,
    refusal,
    rows,
    value,
)

SLOW = "SELECT pg_sleep(300) -- slow"


async def begun(
    scratch: ScratchDatabase, made: PostgresEngine, sql: str, *, write: bool = False
) -> asyncio.Task[object]:
    """A statement that the server is busy with."""
    task: asyncio.Task[object] = asyncio.create_task(
        made.execute([Statement(sql)], WHOLE) if write else made.rows(Statement(sql), WHOLE)
    )
    await scratch.until(sql if write else "FETCH", 1)
    return task


@pytest.mark.parametrize("write", [False, True])
async def test_cancelling_stops_the_query(scratch: ScratchDatabase, write: bool) -> None:
    """The server is not busy with it by the time that the caller hears of it, and the only
    connection takes the next one (`CAN-03`).
    """
    async with engine(scratch.owner_url, write=write, connections=1) as made:
        task = await begun(scratch, made, SLOW, write=write)
        pid = await scratch.ask(
            "SELECT pid FROM pg_stat_activity WHERE datname = $1 AND application_name = "
            "'interlock'",
            scratch.database,
        )
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await scratch.backends("slow") == await scratch.backends("FETCH") == 0
        assert await value(made, "SELECT pg_backend_pid()") == pid


async def test_who_is_cancelled_twice_does_not_wait(scratch: ScratchDatabase) -> None:
    """A second cancellation comes through at once; the statement is stopped all the same."""
    async with engine(scratch.owner_url, connections=1) as made:
        task = await begun(scratch, made, SLOW)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await value(made, "SELECT 1") == 1
        assert await scratch.backends("FETCH") == 0


async def test_a_statement_that_is_cancelled_changed_nothing(scratch: ScratchDatabase) -> None:
    """Neither it nor those before it in the same transaction."""
    async with engine(scratch.owner_url, write=True, connections=1) as made:
        before = await scratch.digest()
        statements = [Statement("DELETE FROM orders"), Statement("SELECT pg_sleep(300) -- later")]
        task = asyncio.create_task(made.execute(statements, WHOLE))
        await scratch.until("later", 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await scratch.digest() == before


async def test_what_catches_its_cancellation_is_ended(scratch: ScratchDatabase) -> None:
    """A function that goes on when it is told to stop loses its connection, after the patience of a
    moment.
    """
    limits = DatabaseLimits(connections=1)
    connections = ConnectionPool(PostgresUrl(scratch.owner_url), limits, driver(), patience=0.2)

    async def stubborn() -> None:
        async with (
            connections.transaction(READING) as link,
            connections.running(link) as connection,
        ):
            await connection.execute(
                "SET LOCAL client_connection_check_interval = 0"
            )  # the server's own way to notice, from 14 on
            await connection.fetch("SELECT stubborn()")

    task = asyncio.create_task(stubborn())
    await scratch.until("stubborn()", 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await scratch.until("stubborn()", 0)
    async with connections.transaction(READING) as link:
        assert await link.connection.fetchval("SELECT 1") == 1
    await connections.close()


async def test_time(scratch: ScratchDatabase) -> None:
    """The limit holds for all of a statement, whatever it does to the server's own; so it does for
    explain and execute.
    """
    async with engine(scratch.owner_url, write=True, connections=1, seconds=0.3) as made:
        for sql in (
            SLOW,
            "SELECT set_config('statement_timeout', '0', false), pg_sleep(n) FROM "
            "generate_series(0, 100) n",
        ):
            assert "longer than 0.3 seconds" in await refusal(made, sql)
        with pytest.raises(ToolError, match="longer than"):
            await made.explain(Statement(SLOW), analyze=True)
        assert "longer than" in await failure(made, SLOW)
        assert "longer than" in await failure(made, "SET LOCAL statement_timeout = 0", SLOW)
        assert await scratch.backends("slow") == await scratch.backends("FETCH") == 0
        assert await value(made, "SELECT current_setting('statement_timeout')") == "300ms"


async def test_locks_and_busy_connections(scratch: ScratchDatabase) -> None:
    """Who waits for others waits so long and no longer, and is told for what."""
    async with (
        engine(scratch.owner_url, write=True, seconds=60) as holder,
        engine(scratch.owner_url, write=True, connections=1, waiting=0.2) as made,
    ):
        task = asyncio.create_task(
            holder.execute(
                [Statement("LOCK TABLE people"), Statement("SELECT pg_sleep(300) -- held")], WHOLE
            )
        )
        await scratch.until("held", 1)
        assert "Another session holds a lock" in await refusal(made, "SELECT * FROM people")
        other = await begun(scratch, made, SLOW)
        assert "All 1 connections" in await refusal(made, "SELECT 1")
        for one in (task, other):
            one.cancel()
        await asyncio.gather(task, other, return_exceptions=True)


async def test_what_is_too_large_is_cut_off(scratch: ScratchDatabase) -> None:
    """A value that would fill the memory is not let in, in a query, a plan and an answer of
    execute; rows that are large together are.
    """
    async with engine(scratch.owner_url, write=True, connections=1, value=100_000) as made:
        assert "more than 100000 bytes" in await refusal(made, "SELECT repeat('x', 5000000)")
        assert "more than 100000 bytes" in await refusal(
            made, "SELECT n, repeat('x', 40000 * n) FROM generate_series(1, 10) n"
        )
        assert "more than 100000 bytes" in await failure(made, "SELECT repeat('x', 200000)")
        assert "more than 100000 bytes" in await failure(
            made, "DELETE FROM orders", "SELECT repeat('x', 1000) FROM generate_series(1, 1000)"
        )
        found = await rows(
            made,
            "SELECT n, repeat('x', 60000) FROM generate_series(1, 50) n",
            page=RowRange(0, 20, 10_000_000, 100),
        )
        assert [row[0] for row in found.rows] == list(range(1, 21))
        assert found.rows[0][1]["characters"] == 60_000
        assert await value(made, "SELECT count(*) FROM orders") == 10


async def test_connections_come_back_clean(scratch: ScratchDatabase) -> None:
    """Locks, settings, cursors and listeners of a statement end with it, also with one that was
    kept.
    """
    async with engine(scratch.owner_url, write=True, connections=1) as made:
        await execute(
            made,
            "SELECT pg_advisory_lock(1)",
            "SET work_mem = '77MB'",
            "LISTEN x",
            "CREATE TEMPORARY TABLE mine (a int)",
            "PREPARE p AS SELECT 1",
        )
        clean = """SELECT concat_ws(' ', current_setting('work_mem'),
          (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
          (SELECT count(*) FROM pg_listening_channels()), to_regclass('mine'),
          (SELECT count(*) FROM pg_prepared_statements WHERE from_sql))"""
        assert await value(made, clean) == f"{await scratch.ask('SHOW work_mem')} 0 0 0"


async def test_closing_ends_what_runs(scratch: ScratchDatabase) -> None:
    """No connection is left, not even one that computes; and the engine says that it is not
    running.
    """
    async with engine(scratch.owner_url) as made:
        task = await begun(scratch, made, SLOW)
        await rows(made, "SELECT 1")
        await made.close()
        with pytest.raises(ToolError):
            await task
        await scratch.until("FETCH", 0)
        assert "not running" in await refusal(made, "SELECT 1")


async def test_many_at_once(scratch: ScratchDatabase) -> None:
    """Forty queries over four connections all get what they asked for."""
    async with engine(scratch.owner_url, connections=4) as made:
        found = await asyncio.gather(
            *(value(made, "SELECT $1::int + pg_backend_pid() * 0", n) for n in range(40))
        )
        assert found == list(range(40))
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name = "
            "'interlock'"
        )
        assert await scratch.ask(query, scratch.database) <= 4
