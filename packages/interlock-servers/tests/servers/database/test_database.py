"""The database server over SQLite: its tools, resources, completions, prompt and notices, as
clients of all revisions see them.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import REVISIONS, Client, McpError, Stdio
from interlock.cursors import encode_cursor
from interlock_servers.database import DatabaseLimits, database_server, server_of
from tests.servers.calls import ON_THE_COMMAND_LINE, done, refusal, words
from tests.servers.database.shop import files, rows, shop
from tests.servers.roads import over_http, serving

PAGE = Path(__file__).parents[5] / "docs" / "servers" / "database.md"
ODD = 'odd "names" / here'

# -- what it offers --------------------------------------------------------------------------------


async def test_nobody_who_uses_it_is_broken(writer: Client, interlock_catalogue: Any) -> None:
    """Tools, prompts, resources and templates are those of the snapshot (`TOL-02`, `RES-02`)."""
    assert not (await interlock_catalogue(writer, "database_catalogue.json")).breaking


async def test_one_tool_changes_something(writer: Client) -> None:
    """And says so; all others read (`TOL-04`)."""
    hints = {tool.name: tool.annotations for tool in await writer.list_tools()}
    assert [name for name, known in hints.items() if known is None or not known.read_only_hint] == [
        "execute"
    ]


async def test_writing_is_offered_only_where_it_is_allowed(client: Client, shop: Path) -> None:
    """The tool that changes things is not there for a server that reads; with two databases it
    changes the one that it may.
    """
    assert "execute" not in {tool.name for tool in await client.list_tools()}
    with pytest.raises(McpError):
        await client.call_tool("execute", {"statements": [{"sql": "DELETE FROM orders"}]})
    async with Client(database_server([shop, f"other={shop}"], write=["other"])) as mixed:
        statements = [{"sql": "DELETE FROM orders WHERE id = 1"}]
        assert "is read-only" in await refusal(
            mixed, "execute", statements=statements, database="shop"
        )
        assert await rows(mixed, "SELECT count(*) FROM orders", database="shop") == [[4]]
        await done(mixed, "execute", statements=statements, database="other")
        assert await rows(mixed, "SELECT count(*) FROM orders", database="shop") == [[3]]


READS: dict[str, dict[str, Any]] = {
    "list_databases": {},
    "list_tables": {},
    "describe_tables": {"tables": ["orders"]},
    "query": {"sql": "SELECT * FROM orders"},
    "explain": {"sql": "SELECT * FROM orders"},
}


async def test_annotations_are_true(writer: Client, shop: Path) -> None:
    """What only reads changes no byte of any file, nor does a resource, a completion or the prompt;
    what destroys does (`TOL-04`).
    """
    before = files(shop.parent)
    tools = {tool.name: tool.annotations for tool in await writer.list_tools()}
    assert {name for name, hints in tools.items() if hints and hints.read_only_hint} == set(READS)
    for name, arguments in READS.items():
        first = await done(writer, name, **arguments)
        again = await done(writer, name, **arguments)
        assert {**first, "seconds": 0} == {**again, "seconds": 0}
    await writer.read_resource("database://shop/schema")
    await writer.read_resource("database://shop/tables/orders")
    await writer.complete("database://{database}/tables/{+table}", "table", "o")
    await writer.get_prompt("ask_database", {"question": "How many?"})
    assert files(shop.parent) == before
    hints = tools["execute"]
    assert hints is not None
    assert (hints.destructive_hint, hints.idempotent_hint) == (True, False)
    await done(writer, "execute", statements=[{"sql": "DELETE FROM orders"}])
    assert files(shop.parent) != before


# -- looking ---------------------------------------------------------------------------------------


async def test_databases(shop: Path, tmp_path: Path) -> None:
    """Several have names, their own or those they are given; which one is meant is asked, and what
    cannot be reached is said.
    """
    (tmp_path / "my shop.db").write_bytes(shop.read_bytes())
    targets = [str(shop), str(tmp_path / "my shop.db"), f"again=sqlite://{shop}"]
    async with Client(database_server(targets, write=["again"])) as client:
        found = await done(client, "list_databases")
        assert [(one["name"], one["kind"], one["writable"]) for one in found["databases"]] == [
            ("shop", "SQLite", False), ("my-shop", "SQLite", False), ("again", "SQLite", True),
        ]  # fmt: skip
        assert found["databases"][0]["size"] == shop.stat().st_size
        assert found["limits"]["rows"] == 1000
        assert "Which database? Available: shop, my-shop, again." in await refusal(
            client, "query", sql="SELECT 1"
        )
        assert "There is no database x" in await refusal(
            client, "query", sql="SELECT 1", database="x"
        )
        (tmp_path / "my shop.db").unlink()
        assert (
            "cannot be opened" in (await done(client, "list_databases"))["databases"][1]["problem"]
        )
        assert "cannot be opened" in await refusal(
            client, "query", sql="SELECT 1", database="my-shop"
        )


async def test_tables(client: Client) -> None:
    """By name, with what they are; those behind virtual tables and those of SQLite are left out; a
    part of a name finds them.
    """
    found = await done(client, "list_tables")
    assert [(one["name"], one.get("kind", "table")) for one in found["tables"]] == [
        ("broken", "view"),
        ("customers", "table"),
        ("notes", "virtual table"),
        (ODD, "table"),
        ("open_orders", "view"),
        ("orders", "table"),
        ("places", "virtual table"),
        ("refers", "table"),
    ]
    assert [one["name"] for one in (await done(client, "list_tables", like="ORDER"))["tables"]] == [
        "open_orders",
        "orders",
    ]


async def test_many_tables_come_in_pages(tmp_path: Path) -> None:
    """Five hundred at a time; a cursor leads on, and one of another call does not."""
    file = shop(tmp_path / "many.db", "".join(f"CREATE TABLE t{n:04} (x);" for n in range(1_100)))
    async with Client(database_server([file])) as client:
        names: list[str] = []
        page: dict[str, Any] = {}
        cursor: dict[str, str] = {}
        for size in (500, 500, 100):
            page = await done(client, "list_tables", **cursor)
            assert len(page["tables"]) == size
            names += [one["name"] for one in page["tables"]]
            cursor = {"cursor": page["next"]}
        assert names == [f"t{n:04}" for n in range(1_100)]
        assert page["next"] is None
        first = await done(client, "list_tables")
        assert "belongs to another call" in await refusal(
            client, "list_tables", cursor=first["next"], like="t"
        )
        text = (await client.read_resource("database://many/schema")).contents[0].text
        assert text is not None
        assert "... and 1000 more tables" in text


async def test_a_table_in_full(client: Client) -> None:
    """Columns with types, defaults and keys, foreign keys with what they point to, indexes, and the
    SQL of a view.
    """
    orders, odd, refers, view = (
        await done(client, "describe_tables", tables=["orders", ODD, "refers", "open_orders"])
    )["tables"]
    assert orders["columns"][:2] == [
        {"name": "id", "type": "INTEGER", "nullable": False, "key": 1},
        {"name": "customer_id", "type": "INTEGER", "nullable": False},
    ]
    assert orders["columns"][-1] == {"name": "year", "type": "", "generated": True}
    assert orders["foreign_keys"] == [
        {"columns": ["customer_id"], "table": "customers", "to": ["id"]}
    ]
    assert orders["indexes"] == [
        {"name": "orders_by_day", "columns": ["created", "(expression)"], "partial": True}
    ]
    assert [(column["name"], column.get("key")) for column in odd["columns"]] == [
        ("a b", 1),
        ("select", 2),
        ("?", None),
    ]
    assert refers["foreign_keys"] == [
        {"columns": ["x", "y"], "table": ODD, "to": ["a b", "select"]}
    ]
    assert view["definition"].startswith("CREATE VIEW open_orders")
    text = (await client.call_tool("describe_tables", {"tables": ["orders", "refers"]})).text
    assert "  customer_id INTEGER not null -> customers.id\n" in text
    assert f"  (x, y) -> {ODD} (a b, select)" in text
    assert "Did you mean orders" in await refusal(client, "describe_tables", tables=["order"])


async def test_how_many_rows_about(writer: Client) -> None:
    """After an ANALYZE it is known without counting."""
    await done(writer, "execute", statements=[{"sql": "ANALYZE"}])
    found = {one["name"]: one.get("rows") for one in (await done(writer, "list_tables"))["tables"]}
    assert (found["orders"], found["customers"], found["open_orders"]) == (4, 3, None)


# -- asking ----------------------------------------------------------------------------------------


async def test_rows(client: Client) -> None:
    """Columns with what is in them, rows as values, and a text for people; parameters by place and
    by name.
    """
    result = await client.call_tool(
        "query", {"sql": "SELECT id, name, email, 1.5 AS half FROM customers ORDER BY id"}
    )
    content: Any = result.structured_content
    assert content["columns"] == [
        {"name": "id", "type": "integer"},
        {"name": "name", "type": "text"},
        {"name": "email", "type": "text"},
        {"name": "half", "type": "real"},
    ]
    assert content["rows"][::2] == [[1, "Ada", "ada@example.com", 1.5], [3, "Cleo", None, 1.5]]
    assert (content["first"], content["ended"], content["next"]) == (0, "all", None)
    assert result.text.splitlines() == [
        "id | name | email | half",
        "1 | Ada | ada@example.com | 1.5",
        "2 | Ben | ben@example.com | 1.5",
        "3 | Cleo | NULL | 1.5",
        "(3 rows)",
    ]
    assert await rows(client, "SELECT name FROM customers WHERE id = ? OR name = ?", 1, "Cleo") == [
        ["Ada"],
        ["Cleo"],
    ]
    named = await done(
        client,
        "query",
        sql="SELECT :a, @b, $c",
        parameters={"a": 1, "@b": None, "c": [1, {"x": 2}]},
    )
    assert named["rows"] == [[1, None, '[1,{"x":2}]']]
    assert (await done(client, "query", sql="SELECT 1 AS x, 2 AS x"))["rows"] == [[1, 2]]
    hostile = await client.call_tool(
        "query", {"sql": "SELECT ? AS x", "parameters": ["a\x1b[2J\nb|c"]}
    )
    assert hostile.text.splitlines() == ["x", "a⟨U+001B⟩[2J\\nb\\|c", "(1 row)"]
    assert (await done(client, "query", sql="-- nothing"))["columns"] == []


@pytest.mark.parametrize(
    "sql, parameters, hint",
    [
        ("SELECT * FROM custmers", [], "no such table: custmers. Did you mean customers?"),
        ("SELECT nme FROM customers", [], "no such column: nme. Did you mean name?"),
        ("SELECT c.nme FROM customers c", [], "Did you mean name?"),
        ("SELECT * FROM zzzzzzzz", [], "describe_tables show"),
        ("SELEC 1", [], 'near "SELEC": syntax error'),
        ("SELECT * FROM broken", [], "no such table: main.gone"),
        ("SELECT ?", [], "uses 1, and there are 0 supplied"),
        ("SELECT ?", [1, 2], "uses 1, and there are 2 supplied"),
        ("SELECT :a", {"b": 1}, ":a"),
        ("SELECT ?", [2**63], "larger than SQLite's integers"),
        ("SELECT ?", [{"base64": "?"}], "Base64"),
        ("SELECT json('{')", [], "malformed JSON"),
    ],
)
async def test_what_is_wrong_is_said(client: Client, sql: str, parameters: Any, hint: str) -> None:
    """The engine's own words, and what to do."""
    assert hint in await refusal(client, "query", sql=sql, parameters=parameters)


async def test_pages(client: Client) -> None:
    """A cursor leads on to the end; each row comes once, and the last page has no cursor."""
    sql = (
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 25) SELECT i, ? "
        "FROM n"
    )
    found: list[int] = []
    page: dict[str, Any] = {}
    cursor: dict[str, str] = {}
    for first, size, ended in ((0, 10, "rows"), (10, 10, "rows"), (20, 5, "all")):
        page = await done(client, "query", sql=sql, parameters=["x"], limit=10, **cursor)
        assert (page["first"], len(page["rows"]), page["ended"]) == (first, size, ended)
        found += [row[0] for row in page["rows"]]
        cursor = {"cursor": page["next"]}
    assert (found, page["next"]) == ([*range(1, 26)], None)
    exact = await done(client, "query", sql="SELECT id FROM customers", limit=3)
    assert (exact["ended"], exact["next"]) == ("all", None)


async def test_a_cursor_belongs_to_its_call_and_to_its_rows(writer: Client) -> None:
    """It is refused with other arguments, forged, and where the rows before it are no longer those
    that were seen.
    """
    sql = "SELECT id FROM orders ORDER BY id"
    cursor = (await done(writer, "query", sql=sql, limit=2))["next"]
    assert "belongs to another call" in await refusal(
        writer, "query", sql=f"{sql} DESC", cursor=cursor
    )
    assert "belongs to another call" in await refusal(
        writer, "query", sql=sql, cursor=cursor, parameters=[1]
    )
    made_up = [encode_cursor(place, "database") for place in ({}, ["a", 1, 2], ["a", -1, ""])]
    for forged in ("x", "!!!", *made_up):
        assert "This is not a cursor" in await refusal(writer, "query", sql=sql, cursor=forged)
    await done(
        writer,
        "execute",
        statements=[{"sql": "INSERT INTO orders (customer_id, status) VALUES (1, 'new')"}],
    )
    assert (await done(writer, "query", sql=sql, limit=2, cursor=cursor))["rows"] == [[3], [4]]
    await done(writer, "execute", statements=[{"sql": "DELETE FROM orders WHERE id = 1"}])
    assert "have changed, or their order has" in await refusal(
        writer, "query", sql=sql, limit=2, cursor=cursor
    )
    await done(writer, "execute", statements=[{"sql": "DELETE FROM orders"}])
    assert "have changed, or their order has" in await refusal(
        writer, "query", sql=sql, limit=2, cursor=cursor
    )


async def test_pages_of_rows_that_are_larger_than_a_page(shop: Path) -> None:
    """There is always one more row, so that the way has an end."""
    sql = "SELECT id, hex(zeroblob(400)) FROM orders ORDER BY id"
    async with Client(database_server([shop], limits=DatabaseLimits(bytes=100))) as client:
        page: dict[str, Any] = {}
        cursor: dict[str, str] = {}
        for number in (1, 2, 3, 4):
            page = await done(client, "query", sql=sql, **cursor)
            assert [row[0] for row in page["rows"]] == [number]
            cursor = {"cursor": page["next"]}
        assert page["next"] is None


async def test_a_plan(client: Client) -> None:
    """What is read by an index and what as a whole; also of what would change something, which is
    not run.
    """
    result = await client.call_tool(
        "explain", {"sql": "SELECT * FROM orders JOIN customers ON customers.id = customer_id"}
    )
    assert result.text.splitlines() == [
        "SCAN orders",
        "SEARCH customers USING INTEGER PRIMARY KEY (rowid=?)",
    ]
    plan: Any = result.structured_content
    assert [step["depth"] for step in plan["steps"]] == [0, 0]
    nested = await done(
        client,
        "explain",
        sql="SELECT * FROM (SELECT id FROM orders UNION SELECT id FROM customers)",
    )
    assert max(step["depth"] for step in nested["steps"]) > 0
    assert (
        await client.call_tool(
            "explain", {"sql": "DELETE FROM orders WHERE id = ?", "parameters": [1]}
        )
    ).text.startswith("SEARCH orders")
    assert await rows(client, "SELECT count(*) FROM orders") == [[4]]
    assert "cannot measure" in await refusal(client, "explain", sql="SELECT 1", analyze=True)


# -- changing --------------------------------------------------------------------------------------


async def test_a_transaction(writer: Client) -> None:
    """Statements happen together; each says how many rows it changed, and what it returned."""
    made = await done(
        writer,
        "execute",
        statements=[
            {
                "sql": "INSERT INTO customers (name) VALUES (?), (:b) RETURNING id, name",
                "parameters": ["Dora", "Emil"],
            },
            {
                "sql": "UPDATE orders SET status = :to WHERE status = :old",
                "parameters": {"to": "paid", "old": "open"},
            },
            {"sql": "CREATE TABLE extra (x)"},
        ],
    )
    assert made == {
        "database": "shop",
        "kept": True,
        "outcomes": [
            {
                "changed": 2,
                "columns": [{"name": "id"}, {"name": "name"}],
                "rows": [[4, "Dora"], [5, "Emil"]],
            },
            {"changed": 2},
            {},
        ],
    }
    assert await rows(writer, "SELECT count(*) FROM orders WHERE status = 'paid'") == [[3]]


async def test_all_or_nothing(writer: Client, shop: Path) -> None:
    """One that fails takes the others with it, and says which it was; keys that point nowhere are
    refused; a trial keeps nothing.
    """
    before = await rows(writer, "SELECT * FROM customers")
    add = {"sql": "INSERT INTO customers (name) VALUES ('x')"}
    for wrong, why in (
        ("INSERT INTO orders (customer_id, status) VALUES (99, 'x')", "FOREIGN KEY"),
        ("INSERT INTO customers (name, email) VALUES ('y', 'ada@example.com')", "UNIQUE"),
        ("DELETE FROM nowhere", "no such table"),
    ):
        said = await refusal(writer, "execute", statements=[add, {"sql": wrong}, add])
        assert said.startswith("Statement 2 of 3: ")
        assert why in said
        assert await rows(writer, "SELECT * FROM customers") == before
    trial = await done(
        writer, "execute", statements=[add, {"sql": "DELETE FROM orders"}], dry_run=True
    )
    assert (trial["kept"], [one["changed"] for one in trial["outcomes"]]) == (False, [1, 4])
    assert await rows(writer, "SELECT * FROM customers") == before
    many = await done(
        writer,
        "execute",
        statements=[
            {
                "sql": "INSERT INTO customers (name) SELECT 'z' FROM json_each(?) RETURNING id",
                "parameters": [list(range(2_000))],
            }
        ],
    )
    assert (
        many["outcomes"][0]["changed"],
        len(many["outcomes"][0]["rows"]),
        many["outcomes"][0]["complete"],
    ) == (2000, 1000, False)
    assert "more than 50 statements" in await refusal(writer, "execute", statements=[add] * 51)


# -- resources, completions, the prompt ------------------------------------------------------------


async def test_resources(client: Client) -> None:
    """The schema to be read, and each table as data, whatever its name (`RES-02`)."""
    assert [one.uri for one in await client.list_resources()] == ["database://shop/schema"]
    text = (await client.read_resource("database://shop/schema")).contents[0].text
    assert text is not None
    assert "customer_id INTEGER not null -> customers.id" in text
    uri = "database://shop/tables/odd%20%22names%22%20%2F%20here"
    table = msgspec.json.decode((await client.read_resource(uri)).contents[0].text or "")
    assert (table["name"], [column["name"] for column in table["columns"]]) == (
        ODD,
        ["a b", "select", "?"],
    )
    for missing in (
        "database://shop/tables/gone",
        "database://other/tables/orders",
        "database://other/schema",
    ):
        with pytest.raises(McpError):
            await client.read_resource(missing)


async def test_completions(client: Client) -> None:
    """Names of databases and tables, those first that begin so (`CMP-01`)."""
    template = "database://{database}/tables/{+table}"
    assert (await client.complete(template, "database", "s")).values == ["shop"]
    assert (
        await client.complete(template, "table", "or", arguments={"database": "shop"})
    ).values == ["orders", "open_orders"]
    assert (
        await client.complete(template, "table", "or", arguments={"database": "x"})
    ).values == []
    assert (await client.complete("ask_database", "database", "")).values == ["shop"]


async def test_the_prompt(client: Client) -> None:
    """It has the schema, the dialect and the question, and examples of each kind that the engine
    can run, with nothing of the data (`PRM-01`).
    """
    message = (
        (await client.get_prompt("ask_database", {"question": "Who buys most?"}))
        .messages[0]
        .content
    )
    text: str = getattr(message, "text", "")
    examples = dict(re.findall(r"^Question: (.*)\nSQL: (.*)$", text, re.MULTILINE))
    assert list(examples) == [
        "How many rows does orders have?",
        "Which row of customers does each row of orders belong to?",
        "How many rows of orders are there for each status, the most first?",
        "How many rows of orders have a created in January 2026?",
    ]
    answers = [await rows(client, sql) for sql in examples.values()]
    assert answers == [
        [[4]],
        [[1, "Ada"], [2, "Ada"], [3, "Ben"], [4, "Cleo"]],
        [["open", 2], ["sent", 1], ["paid", 1]],
        [[2]],
    ]
    assert text.endswith("Question: Who buys most?")
    assert "ada@example.com" not in text
    assert "parameters are ?" in text
    with pytest.raises(McpError, match="no database x"):
        await client.get_prompt("ask_database", {"question": "?", "database": "x"})


async def test_the_prompt_of_odd_schemas(tmp_path: Path) -> None:
    """Examples of names that need quotes are right as well, what the engine would refuse is left
    out, and without tables there are none.
    """
    file = shop(
        tmp_path / "x.db",
        'CREATE TABLE "gr""oup" ("or der" INTEGER PRIMARY KEY, "status" TEXT); CREATE VIEW v AS '
        "SELECT * FROM gone",
    )
    lost = shop(
        tmp_path / "lost.db",
        "CREATE TABLE a (id INTEGER PRIMARY KEY, b REFERENCES b (gone)); CREATE TABLE b (id "
        "INTEGER PRIMARY KEY)",
    )
    async with Client(
        database_server([file, lost, f"empty={shop(tmp_path / 'empty.db', '')}"])
    ) as client:
        message = (
            (await client.get_prompt("ask_database", {"question": "?", "database": "x"}))
            .messages[0]
            .content
        )
        found = re.findall(r"^SQL: (.*)$", getattr(message, "text", ""), re.MULTILINE)
        assert len(found) == 2
        for sql in found:
            await rows(client, sql, database="x")
        content = (
            (await client.get_prompt("ask_database", {"question": "?", "database": "lost"}))
            .messages[0]
            .content
        )
        assert re.findall(r"^SQL: (.*)$", getattr(content, "text", ""), re.MULTILINE) == [
            'SELECT count(*) FROM "a"',
            'SELECT "b", count(*) AS n FROM "a" GROUP BY "b" ORDER BY n DESC LIMIT 20',
        ]
        empty = (
            (await client.get_prompt("ask_database", {"question": "?", "database": "empty"}))
            .messages[0]
            .content
        )
        assert "There is no table." in getattr(empty, "text", "")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_changed_schema_is_told(shop: Path, revision: str) -> None:
    """Whoever watches the schema hears of what other programs change in it, and of what the tools
    do (`SUB-02`).
    """
    made = database_server([shop], write=True, limits=DatabaseLimits(polling=0.02))
    uris = ["database://shop/schema", "database://shop/tables/orders"]
    async with (
        Client(made, revision=revision) as client,
        client.watch(resources=uris) as changes,
        asyncio.timeout(30),
    ):
        watcher = made.lifespan_state.announce_changes.__self__
        async with watcher.looks:
            await watcher.looks.wait_for(lambda: "shop" in watcher._versions)
        with sqlite3.connect(shop) as other:
            other.execute("CREATE TABLE more (x)")
        other.close()
        assert {(await anext(changes)).uri, (await anext(changes)).uri} == set(uris)
        await done(client, "execute", statements=[{"sql": "DROP TABLE more"}])
        assert {(await anext(changes)).uri, (await anext(changes)).uri} == set(uris)


# -- all ways --------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_over_http(shop: Path, revision: str) -> None:
    """Asking, being refused and changing in every revision."""
    async with (
        over_http(database_server([shop], write=True)) as address,
        Client(address, revision=revision) as client,
    ):
        await everything_once(client)


@pytest.mark.parametrize("revision", ON_THE_COMMAND_LINE)
async def test_from_the_command_line(shop: Path, revision: str) -> None:
    """`interlock serve database FILE` over stdio; a name in the environment lets it be changed."""
    program = Stdio(serving("database", f"store={shop}"), env={"INTERLOCK_DATABASE_WRITE": "store"})
    async with Client(program, revision=revision) as client:
        await everything_once(client)


async def everything_once(client: Client) -> None:
    """A look, a query with a refusal, a change, a resource and the prompt."""
    await client.list_tools()
    assert "orders" in await words(client, "list_tables")
    assert (
        await words(client, "query", sql="SELECT name FROM customers WHERE id = ?", parameters=[1])
        == "name\nAda\n(1 row)"
    )
    assert "refuses DELETE" in await refusal(client, "query", sql="DELETE FROM orders")
    assert "1 row changed" in await words(
        client, "execute", statements=[{"sql": "DELETE FROM orders WHERE id = 1"}]
    )
    (schema,) = [one.uri for one in await client.list_resources()]
    assert "customers" in ((await client.read_resource(schema)).contents[0].text or "")
    assert (await client.get_prompt("ask_database", {"question": "?"})).messages


def test_what_is_no_database(tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said before anything is served, and without what may be secret."""
    monkeypatch.delenv("INTERLOCK_DATABASE_WRITE", raising=False)
    for targets, why in (
        ((str(tmp_path / "gone.db"),), "There is no file"),
        ((str(tmp_path),), "is not a file"),
        (("mysql://ada:secret@host/x",), "mysql:// is not supported"),
        ((str(shop), str(shop)), "Two databases are called shop"),
        (
            ("postgresql://ada:secret@host/x", "postgresql://ada:secret@host/x"),
            "Two databases are called x",
        ),
        ((str(shop), "--write=other"), "no database other"),
        ((str(shop), "--wirte=shop"), "Unknown option --wirte"),
    ):
        with pytest.raises(ValueError, match=why) as refused:
            server_of(*targets)
        assert "secret" not in str(refused.value)


async def test_without_a_database(monkeypatch: pytest.MonkeyPatch, shop: Path) -> None:
    """There is a server that says how to give it one; the environment names databases where no
    arguments do.
    """
    monkeypatch.delenv("INTERLOCK_DATABASE_WRITE", raising=False)
    monkeypatch.delenv("INTERLOCK_DATABASE_URLS", raising=False)
    async with Client(server_of()) as client:
        assert "No database was given" in await refusal(client, "query", sql="SELECT 1")
    monkeypatch.setenv("INTERLOCK_DATABASE_URLS", f"one={shop} two={shop}")
    monkeypatch.setenv("INTERLOCK_DATABASE_WRITE", "two")
    monkeypatch.setenv("INTERLOCK_DATABASE_PAGE", "7")
    async with Client(server_of()) as client:
        found = await done(client, "list_databases")
        assert [(one["name"], one["writable"]) for one in found["databases"]] == [
            ("one", False),
            ("two", True),
        ]
        assert found["limits"]["page"] == 7


@pytest.mark.parametrize("limit", [known.name for known in msgspec.structs.fields(DatabaseLimits)])
def test_limits_are_as_stated(limit: str) -> None:
    """The page has each of them with what it is unless told otherwise."""
    rows_ = [
        line.split("|")
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| `{limit.upper()}`")
    ]
    assert [row[2].strip() for row in rows_] == [f"{int(getattr(DatabaseLimits(), limit)):,}"]
