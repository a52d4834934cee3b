"""Results of the database server's tools."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from .engine import PlanStep, ResultColumn, Table, TableName


class Database(Struct, omit_defaults=True):
    """A database: its name here, product, state and whether it is writable.

    `problem` says why it cannot be reached.
    """

    name: str
    kind: str
    writable: bool
    version: str = ""
    place: str = ""
    schema: str = ""
    size: int | None = None
    problem: str = ""


class DatabaseList(Struct):
    """All databases, and the limits that apply to each."""

    databases: list[Database]
    limits: dict[str, Any]


class TableList(Struct):
    """Tables and views. `next` is the cursor of the next page."""

    database: str
    tables: list[TableName]
    next: str | None = None


class TableDescriptions(Struct):
    """Tables with their columns, keys, indexes and foreign keys."""

    database: str
    tables: list[Table]


class QueryResult(Struct):
    """Rows of a result, each a list of values in the order of `columns`, from the one with the
    number `first` (counted from 0).

    `next` is the cursor of the page after, where there is one. `ended` says why this page ends:
    "all" rows were there, or it has as many "rows" as were asked for, or as many "bytes" as an
    answer may have. Whole numbers beyond 2**53 and decimals are texts. Bytes are an object with
    `base64` and the number of `bytes`, a text that was cut one with `text` and the number of
    `characters`.
    """

    database: str
    columns: list[ResultColumn]
    rows: list[list[Any]]
    first: int
    ended: str
    seconds: float
    next: str | None = None


class QueryPlan(Struct):
    """The steps of an execution plan, top down. `depth` shows which step belongs to which."""

    database: str
    steps: list[PlanStep]
    seconds: float | None = None


class StatementResult(Struct, omit_defaults=True):
    """Number of rows that a statement changed, and the rows that it returned.

    `complete` is false if it returned more.
    """

    changed: int | None = None
    columns: list[ResultColumn] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    complete: bool = True


class TransactionResult(Struct):
    """Results of the statements of a transaction.

    `kept` is false for a dry run, which changes nothing.
    """

    database: str
    kept: bool
    outcomes: list[StatementResult]
