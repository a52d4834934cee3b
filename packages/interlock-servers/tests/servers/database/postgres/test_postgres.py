"""Explaining, changing, connecting, and the server's tools over a real PostgreSQL."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, ToolError
from interlock_servers.database import database_server
from interlock_servers.database.engine import PlanStep, Statement
from interlock_servers.database.limits import DatabaseLimits
from interlock_servers.database.postgres import engine_of
from interlock_servers.database.postgres.plans import plan_of
from interlock_servers.database.postgres.urls import PostgresUrl
from tests.ports import free_port
from tests.servers.database.cluster import Cluster, running
from tests.servers.database.postgres.scratch_database import (
    PASSWORD,
    ScratchDatabase,
    engine,
    execute,
    failure,
    refusal,
    rows,
    value,
)


async def test_explain(scratch: ScratchDatabase) -> None:
    """Plans as steps, with estimates; with `analyze` with what was measured.

    What changes something is explained, and not run.
    """
    async with engine(scratch.owner_url) as made:
        plan = await made.explain(
            Statement(
                "SELECT * FROM people JOIN orders ON person = people.id WHERE people.id = $1", [1]
            )
        )
        assert plan.steps[0].depth == 0
        assert any(
            "people_pkey on people; Index Cond: (id = 1)" in step.what for step in plan.steps
        )
        assert plan.steps[0].cost
        assert plan.steps[0].actual_rows is plan.seconds is None
        measured = await made.explain(
            Statement("SELECT * FROM orders WHERE total > 5"), analyze=True
        )
        assert measured.steps[0].actual_rows == 5
        assert measured.steps[0].loops == 1
        assert measured.seconds is not None
        deleted = await made.explain(Statement("DELETE FROM orders"))
        assert deleted.steps[0].what == "Delete on orders"
        with pytest.raises(ToolError, match="read-only transaction"):
            await made.explain(Statement("DELETE FROM orders"), analyze=True)
        with pytest.raises(ToolError, match="In line 1, column 15"):
            await made.explain(Statement("SELECT * FROM nowhere"))
        with pytest.raises(ToolError, match="One call runs one statement"):
            await made.explain(Statement("SELECT 1; DELETE FROM orders"))
        with pytest.raises(ToolError, match="syntax error"):
            await made.explain(Statement("ANALYZE SELECT 1"))


def test_plans() -> None:
    """Kinds of joins and aggregates, and what a rule makes of a statement."""
    inner = {
        "Node Type": "Seq Scan",
        "Relation Name": "a",
        "Alias": "b",
        "Plan Rows": 1,
        "Total Cost": 2.0,
    }
    join = {"Node Type": "Hash Join", "Join Type": "Left", "Hash Cond": "(x = y)", "Plans": [inner]}
    group = {
        "Node Type": "Aggregate",
        "Strategy": "Hashed",
        "Group Key": ["a", "b"],
        "Parallel Aware": True,
        "Plans": [join],
    }
    assert plan_of(
        [{"Plan": group}, "Utility Statement", {"Plan": inner, "Execution Time": 2.0}]
    ).steps == [
        PlanStep(0, "Parallel HashAggregate; Group Key: a, b"),
        PlanStep(1, "Hash Left Join; Hash Cond: (x = y)"),
        PlanStep(2, "Seq Scan on a b", rows=1, cost=2.0),
        PlanStep(0, "Utility statement, which has no plan"),
        PlanStep(0, "Seq Scan on a b", rows=1, cost=2.0),
    ]


async def test_execute(scratch: ScratchDatabase) -> None:
    """All of it or none; rows of RETURNING, how many were changed; a trial keeps nothing; who may
    not write is told so.
    """
    async with engine(scratch.owner_url, write=True) as made:
        before = await scratch.digest()
        made_one, changed, kept, asked = await execute(
            made,
            "CREATE TABLE t (a int PRIMARY KEY, b text)",
            "INSERT INTO t VALUES (1, 'x'), (2, 'y') RETURNING a, b",
            "UPDATE t SET b = 'z'",
            "SELECT * FROM t",
            keep=True,
        )
        assert (made_one.columns, made_one.rows, made_one.changed) == ([], [], None)
        assert (changed.rows, changed.changed, kept.changed, asked.changed) == (
            [[1, "x"], [2, "y"]],
            2,
            2,
            None,
        )
        assert (await rows(made, "SELECT b FROM t")).rows == [["z"], ["z"]]
        assert (await execute(made, "DELETE FROM t", keep=False))[0].changed == 2
        said = await failure(
            made, "DELETE FROM t", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)"
        )
        assert said.startswith("Statement 3 of 3: PostgreSQL: duplicate key")
        assert said.endswith("Nothing was changed.")
        for ending in (
            "COMMIT",
            "COMMIT AND CHAIN",
            "END",
            "PREPARE TRANSACTION 'x'",
            "ROLLBACK",
            "ROLLBACK AND CHAIN",
        ):
            assert await failure(made, "DELETE FROM t", ending, "DELETE FROM people"), ending
            assert await failure(made, ending, keep=False), ending
            assert await failure(made, "DELETE FROM t", f"DO $$ BEGIN {ending}; END $$"), ending
        assert await value(made, "SELECT count(*) FROM t") == 2
        assert "COPY FROM STDIN is not possible here" in await failure(made, "COPY t FROM STDIN")
        assert "One call runs one statement" in await failure(made, "SELECT 1; DELETE FROM t")
        assert "cannot run inside a transaction" in await failure(made, "VACUUM")
        deferred = "CREATE TABLE late (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)"
        assert "late_a_key" in await failure(made, deferred, "INSERT INTO late VALUES (1), (1)")
        await execute(made, "DROP TABLE t")
        assert await scratch.digest() == before
    async with engine(scratch.owner_url) as made:
        assert "is read-only" in await failure(made, "SELECT 1")


async def test_writing_without_temporary_tables(scratch: ScratchDatabase) -> None:
    """A role that may make none writes as well."""
    async with engine(scratch.reader_url, write=True) as made:
        await scratch.ask(f"REVOKE TEMPORARY ON DATABASE {scratch.database} FROM PUBLIC")
        try:
            (done,) = await execute(made, "UPDATE people SET name = name WHERE id = 1")
            assert done.changed == 1
        finally:
            await scratch.ask(f"GRANT TEMPORARY ON DATABASE {scratch.database} TO PUBLIC")


@pytest.mark.parametrize(
    "target",
    ["postgresql://u:open sesame@h:x/d", "postgresql://u:open/sesame@h/d",
        "postgresql://u:open#sesame@h/d", "http://h/d", "postgresql://[::1/d"],
)  # fmt: skip
def test_what_is_no_url(target: str) -> None:
    """It is said at once, without what may be a password."""
    with pytest.raises(ValueError, match="not a URL of PostgreSQL") as caught:
        engine_of(target, "x", DatabaseLimits(), write=False)
    assert "sesame" not in str(caught.value)


def test_a_password_is_taken_out() -> None:
    """Should somebody else's words have it, in any of the ways a URL gives it."""
    for url in ("postgresql://u:open%20sesame@h/d", "postgresql://u@h/d?password=open%20sesame"):
        assert PostgresUrl(url).clean("open sesame open%20sesame").count("sesame") == ("?" in url)
        assert "sesame" not in PostgresUrl(url).place


async def test_what_cannot_be_connected_to(scratch: ScratchDatabase) -> None:
    """A server that is not there, a wrong database, role and password, a server without TLS: in
    words, with the place, without the password.
    """
    secret = PASSWORD.replace("/", "%2F").replace("#", "%23").replace(" ", "%20")
    port = free_port()
    words = {}
    words[f"postgresql://ada:{secret}@127.0.0.1:{port}/shop"] = (
        f"127.0.0.1:{port}/shop cannot be reached"
    )
    words[f"postgresql://ada:{secret}@127.0.0.1/shop?host=/nowhere&port=1"] = "cannot be reached"
    words[scratch.cluster.of("nowhere", scratch.reader, secret)] = (
        "There is no such database on that server."
    )
    words[scratch.cluster.of(scratch.database, "nobody_at_all", secret)] = "refused the connection"
    for url, said in words.items():
        async with engine(url, waiting=5) as made:
            found = await refusal(made, "SELECT 1")
            assert said in found, url
            assert "sesame" not in found
            with pytest.raises(ToolError):
                await made.about()
            assert await made.version() == ""
    if scratch.cluster.ours:
        port = int(scratch.cluster.url.rpartition("port=")[2])
        async with engine(
            f"postgresql://{scratch.reader}:{secret}@127.0.0.1:{port}/{scratch.database}?sslmode=require"
        ) as made:
            assert "SSL" in await refusal(made, "SELECT 1")
        async with engine(
            f"postgresql://{scratch.reader}:{secret}@127.0.0.1:{port}/{scratch.database}"
        ) as made:
            assert (await made.about()).place == f"127.0.0.1:{port}/{scratch.database}"


async def test_a_connection_that_is_gone_is_made_anew(scratch: ScratchDatabase) -> None:
    """After the server ended it, or was started again, the next call works; the one that was under
    way says what happened.
    """
    async with engine(scratch.owner_url, connections=1) as made:
        pid = await value(made, "SELECT pg_backend_pid()")
        await scratch.ask("SELECT pg_terminate_backend($1, 5000)", pid)
        assert await value(made, "SELECT pg_backend_pid()") != pid
        task = asyncio.create_task(rows(made, "SELECT pg_sleep(300)"))
        await scratch.until("FETCH", 1)
        pid = await scratch.ask(
            "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND application_name = "
            "'interlock'"
        )
        await scratch.ask("SELECT pg_terminate_backend($1, 5000)", pid)
        with pytest.raises(ToolError, match="closed the connection|was lost"):
            await task
        assert await value(made, "SELECT 1") == 1


async def test_a_connection_that_is_about_to_go_is_made_anew(scratch: ScratchDatabase) -> None:
    """The server has said that it ends an idle connection, and the end itself has not come yet: the
    call gets another connection.
    """
    said = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
    async with engine(scratch.owner_url, connections=1) as made:
        pid = await value(made, "SELECT pg_backend_pid()")
        ((_, link),) = made._connections._idle._kept
        link.connection._protocol.data_received(b"E" + (len(said) + 4).to_bytes(4, "big") + said)
        assert await value(made, "SELECT pg_backend_pid()") != pid


@pytest.mark.database
async def test_a_server_that_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls work again once it is back. A cluster of its own."""
    monkeypatch.delenv("POSTGRES_URL", raising=False)
    monkeypatch.setenv("INTERLOCK_DATABASE_ANY_ROLE", "1")
    with running() as own:
        async with engine(own.url) as made:
            started = await value(made, "SELECT pg_postmaster_start_time()::text")
            await asyncio.to_thread(own.restart)
            assert await value(made, "SELECT pg_postmaster_start_time()::text") != started


@pytest.mark.database
def test_the_cluster_goes_with_its_keeper(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests start ends with them, and its folder is gone."""
    monkeypatch.delenv("POSTGRES_URL", raising=False)
    with running() as own:
        folder = Path(own.url.partition("host=")[2].partition("&")[0].replace("%2F", "/"))
        assert (folder / "data").is_dir()
    assert not folder.exists()


@pytest.fixture
async def stock(scratch: ScratchDatabase) -> Any:
    """A table of two hundred thousand rows."""
    async with engine(scratch.owner_url, write=True) as made:
        await execute(
            made,
            "CREATE TABLE stock AS SELECT n AS id, n % 7 AS shelf, 'thing ' || n AS name FROM "
            "generate_series(1, 200000) n",
            "ALTER TABLE stock ADD PRIMARY KEY (id)",
            "ANALYZE stock",
            f"GRANT SELECT ON stock TO {scratch.reader}",
        )
        yield
        await execute(made, "DROP TABLE stock")


async def test_the_tools(scratch: ScratchDatabase, cluster: Cluster, stock: None) -> None:
    """The server's tools over a large table: what there is, pages, an aggregate, a plan, changes,
    and a call that is cancelled (`CAN-03`).
    """
    async with Client(database_server([f"shop={scratch.owner_url}"], write=["shop"])) as client:
        await client.list_tools()

        async def call(tool: str, **arguments: Any) -> Any:
            done = await client.call_tool(tool, arguments)
            assert not done.is_error, done.text
            return done.structured_content

        assert "stock" in {table["name"] for table in (await call("list_tables"))["tables"]}
        assert (await call("describe_tables", tables=["stock"]))["tables"][0]["rows"] == 200_000
        first = await call("query", sql="SELECT id FROM stock ORDER BY id", limit=500)
        second = await call(
            "query", sql="SELECT id FROM stock ORDER BY id", limit=500, cursor=first["next"]
        )
        assert [row[0] for row in first["rows"] + second["rows"]] == list(range(1, 1001))
        count = await call(
            "query",
            sql="SELECT shelf, count(*) FROM stock WHERE id <= $1 GROUP BY 1 ORDER BY 1",
            parameters=[140_000],
        )
        assert count["rows"] == [[shelf, 20_000] for shelf in range(7)]
        assert (
            "Index Only Scan"
            in (
                await client.call_tool("explain", {"sql": "SELECT id FROM stock WHERE id = 5"})
            ).text
        )
        refused = await client.call_tool("query", {"sql": "DELETE FROM stock"})
        assert refused.is_error
        await call(
            "execute",
            statements=[{"sql": "UPDATE stock SET shelf = 0 WHERE id = $1", "parameters": [1]}],
        )
        task = asyncio.create_task(
            client.call_tool("query", {"sql": "SELECT count(*) FROM stock a, stock b"})
        )
        await scratch.until("FETCH", 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await scratch.until("FETCH", 0)
        schema = (await client.read_resource("database://shop/schema")).contents[0].text
        assert "stock" in schema


async def test_from_the_command_line(scratch: ScratchDatabase) -> None:
    """`interlock serve database URL` over stdio; the driver is there and asks a real server."""
    async with Client(
        [sys.executable, "-m", "interlock", "serve", "database", f"shop={scratch.reader_url}"]
    ) as client:
        done = await client.call_tool(
            "query", {"sql": "SELECT name FROM people WHERE id = $1", "parameters": [1]}
        )
        assert done.structured_content is not None
        assert done.structured_content["rows"] == [["Ada"]]
        refused = await client.call_tool(
            "query", {"sql": "WITH gone AS (DELETE FROM orders RETURNING 1) SELECT 1"}
        )
        assert refused.is_error
        assert "execute" not in {tool.name for tool in await client.list_tools()}
