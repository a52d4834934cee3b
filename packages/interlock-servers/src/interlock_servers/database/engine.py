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
    """What a database is: `version` of its engine, where it lies (never with a password), and its
    size in bytes where that is cheap to say.

    `schema` is the one in which a name without a schema is looked for first; empty where the engine
    has no schemas.
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
    """Rows of a result, each a list of values in the order of `columns`; `values.cell_of` says how
    values become JSON.

    `ended` says why there are no more of them here: that was all, or there was no room for another
    row, or not for its bytes. `seconds` is how long the engine took. `changed` is how many rows a
    statement changed, None where it was only read or where the engine does not say.
    """

    columns: list[ResultColumn]
    rows: list[list[Json]]
    ended: Ended
    seconds: float
    changed: int | None = None


class RowRange(Struct, frozen=True):
    """Which rows are wanted: `skip` of them are stepped over, and at most `most` are kept, of at
    most `size` bytes as JSON.

    The first `free` rows are kept whatever their size. A value of more than `cell` bytes is cut,
    and of a very wide row any value.
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

    Every method that waits may be called by several tasks at once, and stops what it does when its
    task is cancelled: the statement has ended by the time that CancelledError leaves the method, or
    will have without any further help, and the next call finds a free connection. Whatever goes
    wrong with a database is a ToolError: the engine's own message without passwords, where in the
    SQL it is where the engine says so, and what to do. Each statement runs for `Limits.seconds` at
    most, and waits `Limits.waiting` at most for a connection.

    `rows` and `explain` can change nothing: the engine itself refuses, whatever the SQL says, on an
    engine that may write as well. No method looks at the text of SQL to decide whether it may run.
    One call runs one statement; SQL with a second one is refused.

    An engine is made by a function of its module, `engine_of(target: str, name: str, limits:
    Limits, *, write: bool) -> Engine`, which connects to nothing and raises ValueError in words for
    a target that can be none.
    """

    name: str  # by which callers know the database
    kind: str  # the product, as people write it: "SQLite", "PostgreSQL"
    writable: bool  # whether the person who started the server lets callers change it
    # Sentences about its SQL, for a model that writes some: how parameters are written, and what
    # to mind.
    dialect: Sequence[str]

    async def open(self) -> None:
        """Get ready.

        A database that cannot be reached is no reason to raise: calls say so, and it may be there
        later.
        """

    async def close(self) -> None:
        """End what runs and let go of everything; no thread and no connection stays."""

    async def about(self) -> EngineInfo:
        """What it is. Raises ToolError where it cannot be reached or read."""
        ...

    async def version(self) -> str:
        """A text that is another one once tables were made, changed or dropped; cheap, since it is
        asked for every few seconds.

        Empty where it cannot be told at the moment. It raises nothing.
        """
        ...

    async def tables(self) -> list[TableName]:
        """All tables and views that the connection may read, by schema and name, without the
        engine's own.

        Raises ToolError.
        """
        ...

    async def describe(self, tables: Sequence[TableName]) -> list[Table]:
        """These tables in full, in their order; without those that are gone meanwhile.

        Raises ToolError.
        """
        ...

    async def rows(self, statement: Statement, page: RowRange) -> Rows:
        """Run a statement that reads, and keep the rows of a page.

        Raises ToolError, also for a statement that would change something.

        It is run anew for each page, without anything held open in between.
        """
        ...

    async def explain(self, statement: Statement, *, analyze: bool = False) -> Plan:
        """How the engine would carry a statement out. Raises ToolError.

        With `analyze` it is run as well, with the powers of `rows`; ToolError where the engine
        cannot measure it.
        """
        ...

    async def execute(
        self, statements: Sequence[Statement], page: RowRange, *, keep: bool = True
    ) -> list[Rows]:
        """Run statements in one transaction: all of them happen or none; with `keep` false none in
        any case, as a trial.

        Each gives its rows, as far as `page` has room (a statement without rows has no columns),
        and how many it changed. Raises ToolError where it is not `writable`, and for the first
        statement that fails, which it names by its number where there are several.
        """
        ...
