"""Interface between the tools and the database engines: methods, and the records they return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct, field

Json: TypeAlias = Any  # null, a boolean, a number, a text, a list or an object of these
Parameters: TypeAlias = Sequence[Json] | Mapping[str, Json]
TableKind = Literal[
    "table", "view", "virtual table", "materialized view", "foreign table", "partitioned table"
]
Ended = Literal["all", "rows", "bytes"]


class EngineInfo(Struct, omit_defaults=True):
    """A database: its engine's version, its place (never with a password), and its size in bytes.

    The size is None if it is expensive to determine. `schema` is the default schema for names
    without one; empty if the engine has no schemas.
    """

    version: str
    place: str
    schema: str = ""
    size: int | None = None


class TableName(Struct, omit_defaults=True):
    """A table or view. `schema` is empty if the engine has none; `rows` is an estimate."""

    name: str
    kind: TableKind = "table"
    schema: str = ""
    rows: int | None = None
    comment: str = ""


class Column(Struct, omit_defaults=True):
    """A column: its type as declared, the text of its default, and its place in the primary key,
    counted from 1 (0: not in it).

    `values` are the labels of an enumerated type; `generated` is true where the database computes
    the value.
    """

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    key: int = 0
    generated: bool = False
    values: list[str] = field(default_factory=list)
    comment: str = ""


class ForeignKey(Struct, omit_defaults=True):
    """Columns that reference columns of another table, in the same order."""

    columns: list[str]
    table: str
    to: list[str]
    schema: str = ""


class Index(Struct, omit_defaults=True):
    """An index.

    Expressions are given in the engine's words; `partial` means that it covers some rows only.
    """

    name: str
    columns: list[str]
    unique: bool = False
    partial: bool = False


class Table(Struct, omit_defaults=True):
    """A table with all its details. `definition` is the SQL of a view."""

    name: str
    columns: list[Column]
    kind: TableKind = "table"
    schema: str = ""
    rows: int | None = None
    comment: str = ""
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)
    definition: str | None = None


class ResultColumn(Struct, omit_defaults=True):
    """A column of a result, with its declared type if the engine knows it. Names may repeat."""

    name: str
    type: str = ""


class Rows(Struct):
    """Rows of a result, each a list of values in the order of `columns`; `values.cell_of` converts
    values to JSON.

    `ended` says why the rows end: there are no more, or the limit of rows or bytes is reached.
    `seconds` is the engine's time. `changed` is how many rows a statement changed; None for a read,
    or if the engine does not report it.
    """

    columns: list[ResultColumn]
    rows: list[list[Json]]
    ended: Ended
    seconds: float
    changed: int | None = None


class RowRange(Struct, frozen=True):
    """The requested rows: `skip` rows are skipped, then at most `most` are kept, up to `size` bytes
    of JSON.

    The first `free` rows are kept regardless of size. A value of more than `cell` bytes is cut, and
    in a very wide row any value.
    """

    skip: int
    most: int
    size: int
    cell: int
    free: int = 1


class Statement(Struct, frozen=True):
    """One SQL statement and its parameters, by position or by name."""

    sql: str
    parameters: Parameters = ()


class PlanStep(Struct, omit_defaults=True):
    """A step of a plan, `depth` levels below the top.

    Rows and cost are estimates, the rest is measured.
    """

    depth: int
    what: str
    rows: float | None = None
    cost: float | None = None
    actual_rows: float | None = None
    actual_ms: float | None = None
    loops: float | None = None


class Plan(Struct, omit_defaults=True):
    """How a statement is executed, top down. `seconds` is its run time if it was run."""

    steps: list[PlanStep]
    seconds: float | None = None


class Engine(Protocol):
    """One database.

    Several tasks may call every async method at the same time. If a task is cancelled, its
    statement is stopped: it has ended when CancelledError leaves the method, or ends without
    further help, and the next call gets a free connection. Every failure of a database is a
    ToolError: the engine's message without passwords, the position in the SQL if known, and what to
    do. A statement runs for at most `DatabaseLimits.seconds`, and waits for a connection for at
    most `DatabaseLimits.waiting`.

    `rows` and `explain` cannot change anything, even if writing is allowed: the engine itself
    refuses, whatever the SQL. No method inspects the text of SQL to decide whether it may run. One
    call runs one statement; SQL with a second statement is refused.

    The module of an engine has a function `engine_of(target: str, name: str, limits:
    DatabaseLimits, *, write: bool) -> Engine`. It does not connect, and raises ValueError for an
    invalid target.
    """

    name: str  # the name that callers use
    kind: str  # the product name: "SQLite", "PostgreSQL"
    writable: bool  # whether the owner of the server allows callers to change it
    # Sentences about its SQL dialect for a model: how to write parameters, and what to avoid.
    dialect: Sequence[str]

    async def open(self) -> None:
        """Prepare for calls.

        This does not raise if the database cannot be reached: calls report that, and it may be
        available later.
        """

    async def close(self) -> None:
        """Stop running statements and release everything; no thread and no connection stays."""

    async def about(self) -> EngineInfo:
        """Describe the database. Raises ToolError if it cannot be reached or read."""
        ...

    async def version(self) -> str:
        """A text that changes when tables are created, changed or dropped; cheap, because it is
        polled.

        Empty if it is unknown at the moment. It never raises.
        """
        ...

    async def tables(self) -> list[TableName]:
        """All tables and views that the connection may read, by schema and name, without system
        tables.

        Raises ToolError.
        """
        ...

    async def describe(self, tables: Sequence[TableName]) -> list[Table]:
        """The details of tables, in their order; tables that no longer exist are left out.

        Raises ToolError.
        """
        ...

    async def rows(self, statement: Statement, page: RowRange) -> Rows:
        """Run a read-only statement, and keep the rows of a page.

        Each page runs the statement again; nothing is held open in between.

        Raises ToolError, also for a statement that would change something.
        """
        ...

    async def explain(self, statement: Statement, *, analyze: bool = False) -> Plan:
        """The engine's plan for a statement. Raises ToolError.

        With `analyze` the statement also runs, with the same restrictions as `rows`; ToolError if
        the engine cannot measure it.
        """
        ...

    async def execute(
        self, statements: Sequence[Statement], page: RowRange, *, keep: bool = True
    ) -> list[Rows]:
        """Run statements in one transaction: all of them take effect, or none.

        With `keep=False` the transaction is rolled back: a dry run. Each statement returns its
        rows, as far as `page` allows, and how many rows it changed (a statement without rows has no
        columns). Raises ToolError if the database is not `writable`, and for the first statement
        that fails, with its number if there are several.
        """
        ...
