"""PostgreSQL engine: each statement runs in its own transaction, read-only unless writing is
allowed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from interlock import ToolError

from ..engine import EngineInfo, Plan, ResultColumn, RowRange, Rows, Statement, Table, TableName
from ..limits import DatabaseLimits
from ..values import RowCollector
from . import catalogue
from .driver import Attribute, Connection, Driver
from .errors import ResponseTooLarge
from .plans import plan_of
from .pool import GUARD, LOOKING, READING, WRITING, ConnectionPool, PooledConnection
from .urls import PostgresUrl
from .values import arguments_of, plain

# A cursor can only be declared for a query: PostgreSQL's grammar rejects COPY, DO, CALL, SET, LOCK
# and COMMIT there.
_CURSOR = "DECLARE page NO SCROLL CURSOR WITHOUT HOLD FOR "
# Rows fetched at a time; if they are too large together, one by one in a second run
_AT_ONCE = 64
_MOST_AT_ONCE = 512
_SLACK = 64 * 1024  # bytes for the messages around rows
_FARTHEST = 2**31 - 1  # rows skipped by one MOVE
_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE", "COPY")


class PostgresEngine:
    """A database of a PostgreSQL server; see Engine."""

    kind = "PostgreSQL"
    dialect: Sequence[str] = (
        "PostgreSQL: parameters are $1, $2, ... and a list of values; if the type is not "
        "clear, write $1::date.",
        "Values for json and jsonb are given as the JSON itself; times, intervals and numerics as "
        "texts; bytes as an object with base64.",
        "A query is one SELECT, VALUES, TABLE or WITH ... SELECT; instead of SHOW, write "
        "SELECT current_setting('name').",
        "Put names that are not all lower case in double quotes. Integers divide to "
        "integers. LIKE is case-sensitive, ILIKE is not.",
    )

    def __init__(
        self, target: PostgresUrl, name: str, limits: DatabaseLimits, driver: Driver, *, write: bool
    ) -> None:
        self.name = name
        self.writable = write
        self._target = target
        self._limits = limits
        self._driver = driver
        self._connections: ConnectionPool | None = None
        self._types: dict[int, str] = {}

    async def open(self) -> None:
        """Prepare for calls; connections are opened on demand."""
        self._connections = ConnectionPool(self._target, self._limits, self._driver)

    async def close(self) -> None:
        """Close all connections and stop their statements."""
        connections = self._connections
        self._connections = None
        if connections is not None:
            await connections.close()

    def _ready(self) -> ConnectionPool:
        if self._connections is None:
            raise ToolError("The server is not running.")
        return self._connections

    async def about(self) -> EngineInfo:
        """Its version, address, default schema and size."""
        query = """SELECT pg_catalog.current_setting('server_version'),
                   coalesce(pg_catalog.current_schema(), ''),
                   pg_catalog.pg_database_size(pg_catalog.current_database())"""
        connections = self._ready()
        async with (
            connections.transaction(READING) as link,
            connections.running(link) as connection,
        ):
            (row,) = await connection.fetch(query)
        version, schema, size = row.values()
        return EngineInfo(f"PostgreSQL {version}", self._target.place, schema, size)

    async def version(self) -> str:
        """A text that changes with the catalogue."""
        try:
            connections = self._ready()
            async with (
                connections.transaction(LOOKING) as link,
                connections.running(link) as connection,
            ):
                return await catalogue.version(connection)
        except ToolError:
            return ""

    async def tables(self) -> list[TableName]:
        """The tables that the role may read, without partitions and objects of extensions."""
        connections = self._ready()
        async with (
            connections.transaction(LOOKING) as link,
            connections.running(link) as connection,
        ):
            link.meter.start(self._limits.value + _SLACK)
            return await catalogue.tables(connection)

    async def describe(self, tables: Sequence[TableName]) -> list[Table]:
        """The details of tables, as far as the role may read them."""
        connections = self._ready()
        async with (
            connections.transaction(LOOKING) as link,
            connections.running(link) as connection,
        ):
            link.meter.start(self._limits.value + _SLACK)
            return await catalogue.described(connection, tables)

    async def rows(self, statement: Statement, page: RowRange) -> Rows:
        """The rows of a page, read through a server-side cursor."""
        _checked(statement)
        try:
            return await self._rows(statement, page, _AT_ONCE)
        except ResponseTooLarge:
            return await self._rows(statement, page, 1)

    async def _rows(self, statement: Statement, page: RowRange, at_once: int) -> Rows:
        began = time.monotonic()
        connections = self._ready()
        arguments = arguments_of(statement)
        async with (
            connections.transaction(READING) as link,
            connections.running(link, statement.sql, len(_CURSOR)) as connection,
        ):
            link.meter.start(
                self._limits.value + _SLACK
            )  # error messages of the server may contain values
            declared = await connection.prepare(_CURSOR + statement.sql)
            await declared.fetch(*arguments)
            skip = page.skip
            while skip > 0:
                await connection.execute(f"MOVE FORWARD {min(skip, _FARTHEST)} IN page")
                skip -= _FARTHEST
            columns, collected = await self._fetched(link, page, at_once)
        return Rows(columns, collected.rows, collected.ended, round(time.monotonic() - began, 6))

    async def _fetched(
        self, link: PooledConnection, page: RowRange, at_once: int
    ) -> tuple[list[ResultColumn], RowCollector]:
        """The cursor's rows until the page is full, plus one row to see whether there are more."""
        columns: list[ResultColumn] = []
        collected: RowCollector | None = None
        wanted = min(at_once, page.most + 1)
        room = page.most + 1
        while True:
            link.meter.start(self._limits.value + _SLACK)
            batch = await link.connection.prepare(f"FETCH FORWARD {wanted} FROM page")
            found = await batch.fetch()
            if collected is None:
                link.meter.start(0)
                columns = await self._columns(link.connection, batch.get_attributes())
                collected = RowCollector(page, len(columns))
            for row in found:
                if not collected.add([plain(value, self._driver) for value in row]):
                    return columns, collected
            if len(found) < wanted:
                return columns, collected
            room -= wanted
            wanted = min(room, _MOST_AT_ONCE if at_once > 1 else 1)

    async def explain(self, statement: Statement, *, analyze: bool = False) -> Plan:
        """EXPLAIN, or with `analyze` EXPLAIN ANALYZE, in a read-only transaction."""
        _checked(statement)
        before = f"EXPLAIN (FORMAT JSON{', ANALYZE' if analyze else ''}) "
        connections = self._ready()
        arguments = arguments_of(statement)
        async with (
            connections.transaction(READING) as link,
            connections.running(link, statement.sql, len(before)) as connection,
        ):
            link.meter.start(self._limits.value + _SLACK)
            explained = await (await connection.prepare(before + statement.sql)).fetch(*arguments)
            return plan_of(explained[0][0])

    async def execute(
        self, statements: Sequence[Statement], page: RowRange, *, keep: bool = True
    ) -> list[Rows]:
        """Run statements in one read-write transaction."""
        if not self.writable:
            raise ToolError(
                f"The database {self.name} is read-only. Only the person who starts the "
                "server can change that."
            )
        for statement in statements:
            _checked(statement)
        connections = self._ready()
        done = []
        async with connections.transaction(WRITING) as link:
            guarded = await connections.guard(link)
            for number, statement in enumerate(statements, 1):
                try:
                    done.append(await self._executed(link, statement, page))
                except ToolError as error:
                    if len(statements) == 1:
                        raise
                    raise ToolError(
                        f"Statement {number} of {len(statements)}: {error} Nothing was changed."
                    ) from error
            if keep:
                async with connections.running(link, reading=False) as connection:
                    link.meter.start(self._limits.value + _SLACK)
                    await connection.execute(
                        f"DELETE FROM pg_temp.{GUARD}; COMMIT" if guarded else "COMMIT"
                    )
        return done

    async def _executed(self, link: PooledConnection, statement: Statement, page: RowRange) -> Rows:
        began = time.monotonic()
        arguments = arguments_of(statement)
        async with self._ready().running(link, statement.sql, reading=False) as connection:
            link.meter.start(self._limits.value + _SLACK)
            prepared = await connection.prepare(statement.sql)
            found = await prepared.fetch(*arguments)
            link.meter.start(0)
            if not connection.is_in_transaction() or prepared.get_statusmsg() == "ROLLBACK":
                raise ToolError("It ended the transaction: leave out COMMIT and ROLLBACK.")
            columns = await self._columns(connection, prepared.get_attributes())
        collected = RowCollector(page, len(columns))
        for row in found:
            if not collected.add([plain(value, self._driver) for value in row]):
                break
        return Rows(
            columns,
            collected.rows,
            collected.ended,
            round(time.monotonic() - began, 6),
            _changed(prepared.get_statusmsg()),
        )

    async def _columns(
        self, connection: Connection, attributes: Sequence[Attribute]
    ) -> list[ResultColumn]:
        unknown = {one.type.oid for one in attributes} - self._types.keys()
        if unknown:
            self._types |= await catalogue.types(connection, sorted(unknown))
        return [
            ResultColumn(one.name, self._types.get(one.type.oid, one.type.name))
            for one in attributes
        ]


def _checked(statement: Statement) -> None:
    """Raise ToolError for text that cannot be sent: the protocol ends a text at its first NUL."""
    if "\0" in statement.sql:
        raise ToolError("There is a NUL in the SQL.")
    if not statement.sql.strip():
        raise ToolError("There is no SQL.")


def _changed(status: Any) -> int | None:
    """The number of changed rows in the server's status, such as "INSERT 0 5"."""
    first, _, rest = (status or "").partition(" ")
    return int(rest.split()[-1]) if first in _CHANGES and rest else None
