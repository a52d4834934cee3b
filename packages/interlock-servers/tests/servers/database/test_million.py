"""A SQLite file of a million rows: found by an index, read through in pages, added up, explained,
watched over by the clock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interlock import Client
from interlock_servers.database import DatabaseLimits, database_server
from tests.servers.calls import done, refusal
from tests.servers.database.shop import rows

pytestmark = pytest.mark.endurance(seconds=2)
MANY = 1_000_000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, made by SQLite itself."""
    path = tmp_path_factory.mktemp("million") / "sales.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        f"""
        PRAGMA synchronous = OFF;
        CREATE TABLE shops (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE sales (id INTEGER PRIMARY KEY, shop INTEGER REFERENCES shops, status TEXT,
            cents INTEGER, day TEXT, note TEXT);
        INSERT INTO shops SELECT value, 'shop ' || value FROM json_each('[0,1,2,3,4,5,6,7,8,9]');
        WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT {MANY})
        INSERT INTO sales SELECT i, i % 10, 'status ' || (i % 3), i,
            date('2020-01-01', (i % 2000) || ' days'), 'note ' || i FROM n;
        CREATE INDEX sales_by_cents ON sales (cents);
        ANALYZE;
        """
    )
    connection.close()
    return path


@pytest.fixture
async def sales(file: Path) -> AsyncIterator[Client]:
    """A client of a server over it, with limits as they are unless told otherwise."""
    async with Client(database_server([file])) as client:
        yield client


async def test_found_by_an_index(sales: Client) -> None:
    """One row of the million, and the plan says how."""
    assert await rows(sales, "SELECT id FROM sales WHERE cents = ?", 765_432) == [[765_432]]
    assert (
        "USING INDEX sales_by_cents"
        in (
            await sales.call_tool("explain", {"sql": "SELECT note FROM sales WHERE cents = 1"})
        ).text
    )
    assert (
        await sales.call_tool("explain", {"sql": "SELECT * FROM sales WHERE note = 'x'"})
    ).text == "SCAN sales"
    assert [one.get("rows") for one in (await done(sales, "list_tables"))["tables"]] == [MANY, 10]


async def test_added_up(sales: Client) -> None:
    """Groups, joins and sorting of all of it, without an index to help, within the memory that
    there is.
    """
    sql = (
        "SELECT name, count(*), sum(cents) FROM sales JOIN shops ON shops.id = shop GROUP BY name "
        "ORDER BY name LIMIT 2"
    )
    assert await rows(sales, sql) == [
        ["shop 0", MANY // 10, 49_999_500_000],
        ["shop 1", MANY // 10, 49_999_600_000],
    ]
    assert await rows(sales, "SELECT id FROM sales ORDER BY note DESC", limit=1) == [[999_999]]
    assert await rows(sales, "SELECT count(DISTINCT note) FROM sales") == [[MANY]]


async def test_read_through_in_pages(sales: Client) -> None:
    """By cursors from anywhere, and by the key through all of it."""
    sql = "SELECT id FROM sales ORDER BY id"
    page = await done(sales, "query", sql=sql, limit=1000)
    for first in (1000, 2000):
        page = await done(sales, "query", sql=sql, limit=1000, cursor=page["next"])
        assert page["rows"] == [[n] for n in range(first, first + 1000)]
    last = -1
    seen = 0
    for _ in range(20):
        found = await rows(sales, "SELECT id FROM sales WHERE id > ? ORDER BY id", last, limit=1000)
        last = found[-1][0]
        seen = seen + len(found)
    assert (last, seen) == (19_999, 20_000)
    late = await done(
        sales,
        "query",
        sql="SELECT id FROM sales WHERE id >= ? ORDER BY id",
        parameters=[MANY - 2],
        limit=1000,
    )
    assert (late["rows"], late["next"]) == ([[MANY - 2], [MANY - 1]], None)


@pytest.mark.parametrize(
    "sql, seconds, why",
    [
        ("SELECT count(*) FROM sales a, sales b WHERE a.note < b.note", 2.0, "was stopped"),
        ("SELECT a.id FROM sales a, sales b ORDER BY a.note || b.note", 600.0, "needs more memory"),
    ],
)
async def test_a_cross_join_of_a_million_rows(
    file: Path, sql: str, seconds: float, why: str
) -> None:
    """It is stopped, be it by the clock or by the memory that sorting takes, and the next query is
    answered.
    """
    limits = DatabaseLimits(seconds=seconds, memory=64 * 1024 * 1024)
    async with Client(database_server([file], limits=limits)) as client:
        assert why in await refusal(client, "query", sql=sql)
        assert await rows(client, "SELECT count(*) FROM sales") == [[MANY]]


async def test_what_the_prompt_says_of_it(sales: Client) -> None:
    """Each of its examples is answered."""
    content = (await sales.get_prompt("ask_database", {"question": "?"})).messages[0].content
    found = [
        line[5:] for line in getattr(content, "text", "").splitlines() if line.startswith("SQL: ")
    ]
    assert len(found) == 4
    for sql in found:
        assert await rows(sales, sql)
