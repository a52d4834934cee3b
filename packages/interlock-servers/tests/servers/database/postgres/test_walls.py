"""Each wall of the PostgreSQL engine by itself, a role whose search_path leads astray, and what a
connection leaves to the next caller.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from interlock import REVISIONS, Client, Http, ToolError
from interlock_servers.database import DatabaseLimits, database_server
from interlock_servers.database.engine import RowRange, TableName
from interlock_servers.database.postgres.driver import driver
from interlock_servers.database.postgres.pool import LOOKING, READING, WRITING, ConnectionPool
from interlock_servers.database.postgres.urls import PostgresUrl
from tests.servers.calls import refusal as refused
from tests.servers.calls import words
from tests.servers.database.postgres.scratch_database import (
    ScratchDatabase,
    engine,
    execute,
    failure,
    refusal,
    rows,
    value,
)
from tests.servers.roads import over_http

READ_ONLY = "read-only transaction"


def connections_of(url: str, **limits: Any) -> ConnectionPool:
    """Connections, without an engine over them."""
    return ConnectionPool(PostgresUrl(url), DatabaseLimits(**limits), driver())


async def test_the_default_alone(scratch: ScratchDatabase) -> None:
    """A transaction that does not say what it is reads only, on each of our connections."""
    connections = connections_of(scratch.owner_url)
    async with connections.transaction("BEGIN ISOLATION LEVEL REPEATABLE READ") as link:
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await link.connection.execute("DELETE FROM orders")
    await connections.close()


@pytest.mark.parametrize("begin", [READING, LOOKING])
async def test_the_transaction_alone(scratch: ScratchDatabase, begin: str) -> None:
    """On a connection that would write by default it reads only, and cannot be made to write once
    it has its snapshot.
    """
    connection = await asyncpg.connect(scratch.owner_url, statement_cache_size=0)
    for sql in (
        "DELETE FROM orders",
        "SET TRANSACTION READ WRITE",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT tries()",
    ):
        await connection.execute(f"{begin}; SELECT 1")
        with pytest.raises(
            (asyncpg.ReadOnlySQLTransactionError, asyncpg.ActiveSQLTransactionError)
        ):
            await connection.execute(sql)
        await connection.execute("ROLLBACK")
    await connection.close()


async def test_the_cursor_alone(scratch: ScratchDatabase) -> None:
    """In a transaction that may write PostgreSQL's grammar still takes nothing but a query, and the
    protocol nothing behind it.
    """
    from interlock_servers.database.postgres.engine import (
        _CURSOR,  # late: the one place that the private name is for
    )

    before = await scratch.digest()
    connections = connections_of(scratch.owner_url)
    for sql in (
        "DELETE FROM orders",
        "WITH gone AS (DELETE FROM orders RETURNING 1) SELECT * FROM gone",
        "COPY people TO STDOUT",
        "SET work_mem = '1GB'",
        "SELECT 1; DELETE FROM orders",
        "SELECT 1 INTO loot",
        "CALL proceeds()",
        "COMMIT",
        "LOCK TABLE people",
        "EXPLAIN ANALYZE DELETE FROM orders",
    ):
        async with connections.transaction(WRITING) as link:
            with pytest.raises(asyncpg.PostgresError):
                await (await link.connection.prepare(_CURSOR + sql)).fetch()
    await connections.close()
    assert await scratch.digest() == before


@pytest.fixture
async def astray(scratch: ScratchDatabase) -> AsyncIterator[None]:
    """The reader's search_path begins with a schema of somebody else's, whose operators, functions
    and types fit better than PostgreSQL's.
    """
    traps = [
        "CREATE SCHEMA evil",
        f"GRANT USAGE ON SCHEMA evil TO {scratch.reader}",
        "CREATE DOMAIN evil.text AS pg_catalog.text CHECK (false)",
        "CREATE DOMAIN evil.oid AS pg_catalog.oid CHECK (false)",
        "CREATE DOMAIN evil.regclass AS pg_catalog.regclass CHECK (false)",
        "CREATE VIEW evil.pg_class AS SELECT * FROM pg_catalog.pg_class WHERE false",
    ]
    for name, left, right in (
        ("=", "oid", "regclass"),
        ("=", "oid", "int4"),
        ("=", "oid", "oid"),
        ("=", "oid", "regnamespace"),
        ("!~", "name", "name"),
        ("!~", "name", "text"),
        ("=", "name", "text"),
        ("=", "name", "name"),
        ("=", "text", "text"),
        (">=", "float4", "int4"),
        (">=", "float4", "float4"),
        ("=", "int2", "int2"),
        (">", "int2", "int4"),
        ("||", "text", "text"),
        ("||", "text", "name"),
        ("=", '"char"', '"char"'),
        ("<>", "name", "name"),
    ):
        function = f"evil.trap_{len(traps)}"
        sort = "text" if name == "||" else "bool"
        types = [f"pg_catalog.{one}" for one in (left, right)]
        traps.append(
            f"CREATE FUNCTION {function}({types[0]}, {types[1]}) RETURNS pg_catalog.{sort} "
            "LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$"
        )
        traps.append(
            f"CREATE OPERATOR evil.{name} (leftarg = {types[0]}, rightarg = {types[1]}, function "
            f"= {function})"
        )
    for signature in (
        "unnest(pg_catalog.text[])",
        "unnest(pg_catalog.int2[])",
        "unnest(pg_catalog.oid[])",
        "unnest(pg_catalog.int4[])",
        "generate_series(int, int)",
        "hashtextextended(pg_catalog.text, int)",
        "concat(pg_catalog.text, pg_catalog.name)",
        "concat_ws(pg_catalog.text, bigint, numeric)",
        "set_config(pg_catalog.text, pg_catalog.text, bool)",
        "format_type(pg_catalog.oid, int)",
        "current_schema()",
        "has_schema_privilege(pg_catalog.oid, pg_catalog.text)",
        "pg_has_role(pg_catalog.name, pg_catalog.oid, pg_catalog.text)",
    ):
        traps.append(
            f"CREATE FUNCTION evil.{signature} RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE "
            "'trapped'; END $$"
        )

    path = f"ALTER ROLE {scratch.reader} IN DATABASE {scratch.database}"
    await scratch.run(*traps, f"{path} SET search_path = evil, pg_catalog, public")
    yield
    await scratch.run(f"{path} RESET search_path", "DROP SCHEMA evil CASCADE")


async def test_a_search_path_that_leads_astray(scratch: ScratchDatabase, astray: None) -> None:
    """Our own questions are answered by PostgreSQL's catalogue alone, and names of types are as the
    role's own path has them.
    """
    async with engine(scratch.reader_url) as made:
        assert (await made.about()).schema == "evil"
        assert {"people", "orders"} <= {table.name for table in await made.tables()}
        people, orders = await made.describe(
            [TableName("people", schema="public"), TableName("orders", schema="public")]
        )
        assert [column.type for column in people.columns] == ["integer", "text", "mood", "date"]
        assert orders.foreign_keys[0].table == "people"
        assert orders.indexes[-1].name == "orders_pkey"
        assert await made.version()
        assert (await rows(made, "SELECT name FROM people")).columns[0].type.endswith("text")


STATE = """SELECT concat_ws(' ', current_setting('default_transaction_read_only'),
  current_setting('transaction_read_only'), current_setting('search_path'),
  current_setting('session_replication_role'),
  (SELECT count(*) FROM pg_catalog.pg_cursors WHERE is_holdable),
  (SELECT count(*) FROM pg_prepared_statements WHERE from_sql),
  to_regclass('pg_temp.people'), current_user,
  (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
  nullif(current_setting('my.secret', true), ''))"""


async def test_what_one_caller_leaves_the_next_does_not_find(scratch: ScratchDatabase) -> None:
    """Not by what was kept, nor by what was tried, failed, or read: whoever has the connection next
    finds it as new.
    """
    poison = [
        "SET default_transaction_read_only = off",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        "SET search_path = nowhere",
        "DECLARE mine CURSOR WITH HOLD FOR SELECT 1",
        "PREPARE mine AS SELECT 1",
        "SELECT pg_advisory_lock(4711)",
        "SET my.secret = 'x'",
        "CREATE TEMPORARY TABLE people AS SELECT 'Mallory' AS name",
    ]
    async with engine(scratch.owner_url, write=True, connections=1) as made:
        before = await value(made, STATE)
        for keep in (True, False):
            await execute(made, *poison, keep=keep)
            assert await value(made, STATE) == before, keep
        assert await failure(made, *poison, "SELECT 1/0")
        assert await value(made, STATE) == before
        await rows(
            made,
            "SELECT set_config('search_path', 'nowhere', false), pg_advisory_lock(1), "
            "set_config('my.secret', 'x', false)",
        )
        assert await value(made, STATE) == before
        assert READ_ONLY in await refusal(made, "SELECT writes()")


async def test_a_password_that_the_server_repeats(scratch: ScratchDatabase) -> None:
    """Whatever the server makes of it, it is taken out of what is said: here it is the name of the
    role as well.
    """
    async with engine(scratch.cluster.of(scratch.database, "sesame", "sesame")) as made:
        said = await refusal(made, "SELECT 1")
        assert "refused the connection" in said
        assert "sesame" not in said


async def test_comments_without_measure(scratch: ScratchDatabase) -> None:
    """They are cut by the server, and what is still too much is not let in."""
    async with engine(scratch.owner_url, value=200_000) as made:
        (name,) = [table for table in await made.tables() if table.name == "orders"]
        try:
            await scratch.run(
                f"COMMENT ON TABLE orders IS '{'x' * 1_000_000}'",
                f"COMMENT ON COLUMN orders.total IS '{'y' * 1_000_000}'",
            )
            (found,) = [table for table in await made.tables() if table.name == "orders"]
            assert len(found.comment) == 4096
            (orders,) = await made.describe([name])
            assert len(orders.columns[2].comment) == 4096
            await scratch.run(
                *(f"CREATE VIEW wide_{n} AS SELECT '{'z' * 20_000}' AS x" for n in range(20))
            )
            wide = [TableName(f"wide_{n}", schema="public") for n in range(20)]
            await scratch.run(*(f"GRANT SELECT ON {one.name} TO {scratch.owner}" for one in wide))
            assert len((await made.describe(wide[:1]))[0].definition or "") == 16 * 1024
            with pytest.raises(ToolError, match="more than 200000 bytes"):
                await made.describe(wide)
        finally:
            await scratch.run(
                "COMMENT ON TABLE orders IS 'What people bought'",
                "COMMENT ON COLUMN orders.total IS 'In pounds'",
            )
            await scratch.run(*(f"DROP VIEW IF EXISTS wide_{n}" for n in range(20)))


async def test_a_server_that_cannot_watch_its_client(scratch: ScratchDatabase) -> None:
    """Not every system that PostgreSQL runs on can; where the server does not take the setting, it
    does without.
    """
    for patience, watched in ((5.0, "5s"), (-1.0, "0")):
        connections = ConnectionPool(
            PostgresUrl(scratch.reader_url), DatabaseLimits(), driver(), patience=patience
        )
        async with connections.transaction(READING) as link:
            assert (
                await link.connection.fetchval(
                    "SELECT current_setting('client_connection_check_interval')"
                )
                == watched
            )
        await connections.close()


async def test_limits_that_postgresql_cannot_count(scratch: ScratchDatabase) -> None:
    """A limit of years is one that PostgreSQL takes."""
    async with engine(scratch.reader_url, seconds=10.0**9, waiting=10.0**9) as made:
        assert await value(made, "SELECT 1") == 1


async def test_a_connection_that_nobody_needs(scratch: ScratchDatabase) -> None:
    """It is ended after a while, and the next call has another."""
    async with engine(scratch.reader_url, idle=0.1) as made:
        pids = [await value(made, "SELECT pg_backend_pid()")]
        while await scratch.ask("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pids[0]):
            pass  # each look waits for the server
        pids.append(await value(made, "SELECT pg_backend_pid()"))
        assert pids[0] != pids[1]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_over_http(scratch: ScratchDatabase, revision: str) -> None:
    """Asking in pages, being refused, and the schema, in every revision."""
    async with (
        over_http(database_server([f"shop={scratch.reader_url}"])) as address,
        Client(Http(address), revision=revision) as client,
    ):
        await client.list_tools()
        page = await words(client, "query", sql="SELECT name FROM people ORDER BY id", limit=1)
        assert page.startswith("name\nAda\n(1 row)\nMore rows")
        cursor = page.rpartition("cursor=")[2]
        assert "\nBob\n" in await words(
            client, "query", sql="SELECT name FROM people ORDER BY id", limit=1, cursor=cursor
        )
        assert READ_ONLY in await refused(client, "query", sql="SELECT writes()")
        assert "orders" in (await client.read_resource("database://shop/schema")).contents[0].text
        assert (await client.get_prompt("ask_database", {"question": "?"})).messages


@pytest.mark.parametrize(
    "sql, skip",
    [
        ("SELECT repeat('x', 5000000)::int", 0),
        (
            "SELECT CASE WHEN n = 5 THEN repeat('x', 5000000)::int ELSE 1 END FROM "
            "generate_series(1, 10) n",
            9,
        ),
        ("SELECT repeat('x', 5000000)::int FROM people", 0),
    ],
    ids=["when it is planned", "when rows are stepped over", "when rows come"],
)
async def test_an_error_without_measure(scratch: ScratchDatabase, sql: str, skip: int) -> None:
    """What the server says is counted as well, whenever it says it: values stand in its
    messages.
    """
    async with engine(scratch.reader_url, value=100_000, connections=1) as made:
        assert "more than 100000 bytes" in await refusal(
            made, sql, page=RowRange(skip, 10, 10_000, 100)
        )
        assert await value(made, "SELECT 1") == 1


async def test_what_is_said_at_the_end_without_measure(scratch: ScratchDatabase) -> None:
    """So are the notices and errors of what was put off to the end of a transaction."""
    async with engine(scratch.owner_url, write=True, value=100_000) as made:
        before = await scratch.digest()
        late = (
            "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE '%', "
            "repeat('x', 5000000); END $$"
        )
        tied = (
            "CREATE CONSTRAINT TRIGGER tied AFTER DELETE ON orders DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION late()"
        )
        assert "more than 100000 bytes" in await failure(made, late, tied, "DELETE FROM orders")
        assert await scratch.digest() == before
