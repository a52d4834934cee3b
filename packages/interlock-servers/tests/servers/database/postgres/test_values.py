"""Values of PostgreSQL as JSON and as parameters, and what is known of tables: all read from a real
server.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from interlock import ToolError
from interlock_servers.database.engine import (
    Column,
    ForeignKey,
    Index,
    RowRange,
    Statement,
    TableName,
)
from tests.servers.database.postgres.scratch_database import (
    WHOLE,
    ScratchDatabase,
    engine,
    execute,
    refusal,
    rows,
    value,
)

VALUES: list[tuple[str, Any]] = [
    ("NULL::int", None),
    ("true", True),
    ("1::int2", 1),
    ("9007199254740991", 9007199254740991),
    ("9007199254740993", "9007199254740993"),
    ("-9223372036854775808", "-9223372036854775808"),
    ("0.1::float4", 0.1),
    ("1e300::float8", 1e300),
    ("'NaN'::float8", "NaN"),
    ("'-Infinity'::float4", "-Infinity"),
    ("1.50::numeric", "1.50"),
    ("'NaN'::numeric", "NaN"),
    ("'Infinity'::numeric", "Infinity"),
    ("12345678901234567890.123456789::numeric", "12345678901234567890.123456789"),
    ("'é\u200b'::text", "é\u200b"),
    ("'x'::char(3)", "x  "),
    ("'a'::\"char\"", "a"),
    ("'2026-02-03'::date", "2026-02-03"),
    ("'infinity'::date", "infinity"),
    ("'0044-03-15 BC'::date", "0044-03-15 BC"),
    ("'2026-02-03 04:05:06.5'::timestamp", "2026-02-03T04:05:06.5"),
    ("'-infinity'::timestamptz", "-infinity"),
    ("'2026-02-03 04:05:06+02'::timestamptz AT TIME ZONE 'UTC'", "2026-02-03T02:05:06"),
    ("'24:00:00'::time", "24:00:00"),
    ("'04:05:06+02'::timetz", "04:05:06+02:00"),
    ("'1 year 2 months 3 days 04:05:06.7'::interval", "P1Y2M3DT4H5M6.7S"),
    ("'\\xdeadbeef'::bytea", {"base64": "3q2+7w==", "bytes": 4}),
    ("'{1,NULL,3}'::int[]", [1, None, 3]),
    ("'{{a,b},{c,d}}'::text[]", [["a", "b"], ["c", "d"]]),
    ("'[1,10)'::int4range", "[1,10)"),
    ("'(,5]'::numrange", "(,5]"),
    ("'empty'::int4range", "empty"),
    ("'{[1,2),[5,6)}'::int4multirange", "{[1,2),[5,6)}"),
    ("'[2026-01-01,infinity)'::daterange", "[2026-01-01,infinity)"),
    (
        "'{\"a\": [1, 2.5, 12345678901234567890, 0.12345678901234567890]}'::jsonb",
        {"a": [1, 2.5, "12345678901234567890", "0.12345678901234567890"]},
    ),
    ("'null'::json", None),
    ("'\"x\"'::json", "x"),
    ("'00000000-0000-0000-0000-000000000001'::uuid", "00000000-0000-0000-0000-000000000001"),
    ("'10.0.0.1/8'::inet", "10.0.0.1/8"),
    ("'::1'::inet", "::1"),
    ("'08:00:2b:01:02:03'::macaddr", "08:00:2b:01:02:03"),
    ("'10.0.0.0/8'::cidr", "10.0.0.0/8"),
    ("'cross'::mood", "cross"),
    ("ROW(1, 'x', '2000-01-01'::date)", "(1,x,2000-01-01)"),
    ("ARRAY[ROW(1, 2.5)]", ["(1,2.5)"]),
    ("(SELECT x FROM (SELECT 2 AS id, 'Bob' AS name) AS x)", "(2,Bob)"),
    ("(SELECT n FROM named n)", {"id": 1, "name": "Bob"}),
    (
        "(SELECT to_json(p) FROM people p WHERE id = 2)",
        {"id": 2, "name": "Bob", "mood": "cross", "born": None},
    ),
    ("ARRAY['2026-01-01'::date]", ["2026-01-01"]),
    ("B'101'", "101"),
    ("'(1,2)'::point", "(1,2)"),
    ("'a b'::tsvector", "'a' 'b'"),
    ("'people'::regclass", "people"),
    ("12.34::money", "$12.34"),
    ("'(1,2)'::tid", "(1,2)"),
    ("'$.a'::jsonpath", '$."a"'),
    ("'0/10'::pg_lsn", "0/10"),
    ("pg_current_snapshot() IS NULL", False),
    ("pg_sleep(0)", None),
    ("repeat('x', 200000)", {"text": "x" * 100_000, "characters": 200_000}),
]
PARAMETERS: list[tuple[str, Any, Any]] = [
    ("$1::int + 1", 2, 3),
    ("$1::text", "x", "x"),
    ("$1::numeric * 2", 0.1, "0.2"),
    ("$1::numeric", "1.10", "1.10"),
    ("$1::date + 1", "2026-01-31", "2026-02-01"),
    ("$1::timestamptz IS NOT NULL", "2026-01-31T10:00:00Z", True),
    ("extract(day FROM $1::interval)", "P2D", "2"),
    ("$1::jsonb -> 'a'", {"a": [1]}, [1]),
    ("$1::jsonb", "x", "x"),
    ("$1::daterange", "[2026-01-01,2026-02-01)", "[2026-01-01,2026-02-01)"),
    ("ARRAY[$1::int4range]", "[1,2)", ["[1,2)"]),
    ("$1::uuid", "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000001"),
    ("2 = ANY ($1::int[])", [1, 2], True),
    ("length($1::bytea)", {"base64": "3q2+7w=="}, 4),
    ("$1::mood", "calm", "calm"),
    ("$1::inet", "10.0.0.1", "10.0.0.1"),
    ("$1::bool", True, True),
    ("$1::float8", 1.5, 1.5),
    ("$1::int IS NULL", None, True),
    ("$1::text", "'; DROP TABLE people; --", "'; DROP TABLE people; --"),
]


async def test_values(scratch: ScratchDatabase) -> None:
    """Every type there is becomes JSON that has all of it; so do the settings of the role who
    reads.
    """
    async with engine(scratch.reader_url) as made:
        for sql, expected in VALUES:
            assert await value(made, f"SELECT {sql}") == expected, sql


async def test_parameters(scratch: ScratchDatabase) -> None:
    """JSON as parameters, of the type that the server wants; what does not fit is said, and no
    parameter is read as SQL.
    """
    async with engine(scratch.reader_url) as made:
        for sql, given, expected in PARAMETERS:
            assert await value(made, f"SELECT {sql}", given) == expected, sql
        assert "'x'" in await refusal(made, "SELECT $1::int", "x")
        assert "a text or a number is expected" in await refusal(made, "SELECT $1::date", [1])
        assert "expects 1 argument" in await refusal(made, "SELECT $1::int")
        with pytest.raises(ToolError, match="have no names"):
            await made.rows(Statement("SELECT 1", {"a": 1}), WHOLE)
        assert (await made.rows(Statement("SELECT 1", {}), WHOLE)).rows == [[1]]


async def test_columns_and_odd_queries(scratch: ScratchDatabase) -> None:
    """Types as PostgreSQL writes them, names that come twice, no columns at all, and everything a
    query may be.
    """
    async with engine(scratch.reader_url) as made:
        found = await rows(
            made,
            "SELECT 1 AS a, 'x'::varchar AS a, now() AS b, '{1}'::int[] AS c, 'calm'::mood AS d",
        )
        assert [column.name for column in found.columns] == ["a", "a", "b", "c", "d"]
        assert [column.type for column in found.columns] == [
            "integer",
            "character varying",
            "timestamp with time zone",
            "integer[]",
            "mood",
        ]
        assert (await rows(made, "SELECT FROM people")).rows == [[], []]
        assert (await rows(made, "SELECT 1 WHERE false")).rows == []
        for sql in (
            "VALUES (1)",
            "TABLE people",
            "WITH x AS (SELECT 1) SELECT * FROM x",
            "(SELECT 1) UNION SELECT 2",
            "SELECT 1;",
            "/* a */ SELECT 1 -- b",
        ):
            assert (await rows(made, sql)).rows
        for sql, words in {
            "": "no SQL",
            "SELECT 1\0": "NUL",
            "SELECT '\ud800'": "not Unicode",
            "SELECT 1 2": "In line 1, column 10",
            "SELECT 1,\n  nope": "In line 2, column 3",
            "SELECT 1; SELECT 2": "One call runs one statement",
            "SHOW work_mem": "Only SELECT",
            "SELECT 1/0": "division by zero (22012)",
            "SELECT * FROM nowhere": "list_tables",
            "SELECT p FROM people p": "to_json(column)",
        }.items():
            assert words in await refusal(made, sql), sql


async def test_pages(scratch: ScratchDatabase) -> None:
    """Pages of a long result hold all of it once; they end for rows, for bytes and because that was
    all.
    """
    async with engine(scratch.reader_url) as made:
        query = "SELECT n, repeat('x', 10) FROM generate_series(1, 1000) n"
        seen: list[Any] = []
        while True:
            page = await rows(made, query, page=RowRange(len(seen), 300, 1_000_000, 1_000))
            seen += [row[0] for row in page.rows]
            if page.ended == "all":
                break
            assert page.ended == "rows"
        assert seen == list(range(1, 1001))
        small = await rows(made, query, page=RowRange(10, 300, 200, 1_000))
        assert small.ended == "bytes"
        assert small.rows[0][0] == 11
        assert len(small.rows) == 11
        assert (await rows(made, query, page=RowRange(5 * 10**9, 10, 1_000, 100))).rows == []
        assert (await rows(made, query, page=RowRange(0, 1000, 1_000_000, 100))).ended == "all"
        assert (await rows(made, query, page=RowRange(0, 999, 1_000_000, 100))).ended == "rows"


async def test_tables(scratch: ScratchDatabase) -> None:
    """What the role may read: kinds, columns, keys, indexes, comments, labels; partitions and what
    may not be read are left out.
    """
    async with engine(scratch.reader_url) as made:
        names = {table.name: table for table in await made.tables()}
        kinds = {
            "people": "table",
            "orders": "table",
            "spent": "view",
            "named": "view",
            "kept": "materialized view",
            "parts": "partitioned table",
        }
        assert {name: table.kind for name, table in names.items()} == kinds
        assert names["orders"] == TableName("orders", "table", "public", None, "What people bought")
        people, orders, spent, kept = await made.describe(
            [
                names["people"],
                names["orders"],
                TableName("gone", schema="public"),
                names["spent"],
                names["kept"],
            ]
        )
        assert people.columns == [
            Column("id", "integer", nullable=False, key=1),
            Column("name", "text", nullable=False),
            Column("mood", "mood", default="'calm'::mood", values=["calm", "cross"]),
            Column("born", "date"),
        ]
        assert orders.columns[0] == Column(
            "id", "integer", nullable=False, default="generated by default as identity", key=1
        )
        assert orders.columns[2] == Column(
            "total", "numeric(10,2)", nullable=False, comment="In pounds"
        )
        assert orders.columns[3].generated
        assert "total * 0.2" in str(orders.columns[3].default)
        assert orders.foreign_keys == [ForeignKey(["person"], "people", ["id"], "public")]
        assert orders.indexes == [
            Index("orders_by_person", ["person", "lower(total::text)"], partial=True),
            Index("orders_pkey", ["id"], unique=True),
        ]
        assert "sum(total)" in str(spent.definition)
        assert kept.kind == "materialized view"


async def test_the_version_changes_with_the_schema(scratch: ScratchDatabase) -> None:
    """A new table, a renamed column, a comment and an index are seen by it; data is not."""
    async with engine(scratch.owner_url, write=True) as made:
        seen = [await made.version()]
        for sql in (
            "CREATE TABLE changing (a int)",
            "ALTER TABLE changing RENAME a TO b",
            "COMMENT ON COLUMN changing.b IS 'x'",
            "CREATE INDEX ON changing (b)",
            "ALTER TABLE changing ADD CHECK (b > 0)",
            "DROP TABLE changing",
        ):
            await execute(made, sql)
            seen.append(await made.version())
        assert all(before != after for before, after in itertools.pairwise(seen))
        assert all(seen)
        await execute(made, "UPDATE people SET name = name")
        assert await made.version() == seen[-1]


async def test_what_a_role_may_not_read_is_not_there(scratch: ScratchDatabase) -> None:
    """Tables, columns and whole schemas: those without a grant are neither listed nor described."""
    async with engine(scratch.owner_url, write=True) as owner, engine(scratch.reader_url) as made:
        await execute(
            owner,
            "CREATE SCHEMA closed",
            "CREATE TABLE closed.hidden (a int)",
            f"GRANT SELECT ON closed.hidden TO {scratch.reader}",
            "CREATE TABLE secret (a int)",
            "CREATE TABLE half (a int, b int)",
            f"GRANT SELECT (b) ON half TO {scratch.reader}",
        )
        try:
            names = {table.name for table in await made.tables()}
            assert "half" in names
            assert not names & {"hidden", "secret", "parts_old"}
            (half,) = await made.describe(
                [
                    TableName(name, schema=schema)
                    for schema, name in (
                        ("closed", "hidden"),
                        ("public", "secret"),
                        ("public", "half"),
                    )
                ]
            )
            assert [column.name for column in half.columns] == ["b"]
        finally:
            await execute(owner, "DROP SCHEMA closed CASCADE", "DROP TABLE secret, half")
