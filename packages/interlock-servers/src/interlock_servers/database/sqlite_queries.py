"""Runs queries, plans and transactions on a SQLite connection, and renders their errors."""

from __future__ import annotations

import difflib
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import msgspec

from interlock import ToolError
from interlock.store import primary_code, retry_locked, sqlite_reason
from interlock.untrusted.invisible import one_line as line

from .engine import Json, Parameters, Plan, PlanStep, ResultColumn, RowRange, Rows, Statement
from .limits import DatabaseLimits
from .sqlite_authorizer import Authorizer
from .sqlite_schema import described, tables_of
from .values import RowCollector, bytes_of

T = TypeVar("T")
_CLASSES = {int: "integer", float: "real", str: "text", bytes: "blob"}
_MISSING = re.compile(r"no such (table|column): (?:.*\.)?(.+)")
_MOST_LOOKED_AT = 50  # tables examined for a hint


class RunningCall:
    """A running call: its deadline, and whether it was stopped."""

    def __init__(self, number: int, seconds: float) -> None:
        self.number = number
        self.seconds = seconds
        self._ends = time.monotonic() + seconds
        self.stopped = threading.Event()

    def over(self) -> bool:
        """Whether the call must end now."""
        return self.stopped.is_set() or time.monotonic() > self._ends

    def wait(self, seconds: float) -> bool:
        """Wait so many seconds, or until the call must end. Returns whether it must end."""
        self.stopped.wait(seconds)
        return self.over()


class SqliteSession:
    """A connection with its authorizer, for one call."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        authorizer: Authorizer,
        limits: DatabaseLimits,
        job: RunningCall,
    ) -> None:
        self.connection = connection
        self.authorizer = authorizer
        self.limits = limits
        self.job = job

    def rows(self, statement: Statement, page: RowRange) -> Rows:
        """The rows of a page. Raises sqlite3.Error and ToolError."""
        return self._retry_locked(
            lambda: self._rows(statement.sql, bound_of(statement.parameters), page)
        )

    def _rows(self, sql: str, bound: Any, page: RowRange) -> Rows:
        began = time.monotonic()
        cursor = self.connection.execute(sql, bound)
        try:
            for _ in islice(cursor, page.skip):
                pass
            names = [column[0] for column in cursor.description or ()]
            collected = RowCollector(page, len(names))
            seen: list[set[str]] = [set() for _ in names]
            for row in cursor:
                if not collected.add(row):
                    break
                for classes, value in zip(seen, row, strict=True):
                    if value is not None:
                        classes.add(_CLASSES[type(value)])
            columns = [
                ResultColumn(line(name), min(one) if len(one) == 1 else "")
                for name, one in zip(names, seen, strict=True)
            ]
            return Rows(columns, collected.rows, collected.ended, time.monotonic() - began)
        finally:
            cursor.close()

    def plan(self, statement: Statement) -> Plan:
        """SQLite's query plan. A writing statement can be explained too, because it does not run.

        Raises sqlite3.Error.
        """
        self.authorizer.enter("explain")
        depths: dict[int, int] = {}
        steps = []
        explained = self.connection.execute(
            f"EXPLAIN QUERY PLAN {statement.sql}", bound_of(statement.parameters)
        )
        for number, above, _, what in explained:
            depths[number] = depths.get(above, -1) + 1
            steps.append(PlanStep(depths[number], line(str(what), 1_000)))
        return Plan(steps)

    def transaction(
        self, statements: Sequence[Statement], page: RowRange, *, keep: bool
    ) -> list[Rows]:
        """Run all statements, or none of them.

        Raises ToolError; sqlite3.Error if the transaction cannot begin.
        """
        self.authorizer.enter("own")
        self._retry_locked(lambda: self.connection.execute("BEGIN IMMEDIATE"))
        results: list[Rows] = []
        try:
            for statement in statements:
                self.authorizer.enter("write")
                results.append(self._changed(statement, page))
            self.authorizer.enter("own")
            if keep:
                self._retry_locked(lambda: self.connection.execute("COMMIT"))
            return results
        except (*FAILURES, ToolError) as bad:
            tool_error = bad if isinstance(bad, ToolError) else self.failure(bad)
            number = (
                f"Statement {len(results) + 1} of {len(statements)}: "
                if 1 < len(statements) > len(results)
                else ""
            )
            raise ToolError(f"{number}{tool_error} Nothing was changed.") from None
        finally:
            if self.connection.in_transaction:
                self.authorizer.enter("own")
                self.connection.set_progress_handler(
                    None, 0
                )  # the rollback must also run after the deadline
                self.connection.execute("ROLLBACK")

    def _changed(self, statement: Statement, page: RowRange) -> Rows:
        """Run a statement to its end, and keep the returned rows that fit."""
        began = time.monotonic()
        cursor = self.connection.execute(statement.sql, bound_of(statement.parameters))
        try:
            names = [column[0] for column in cursor.description or ()]
            collected = RowCollector(page, len(names))
            room = True
            for row in cursor:
                room = room and collected.add(row)
            changed = cursor.rowcount if cursor.rowcount >= 0 else None
            columns = [ResultColumn(line(name)) for name in names]
            return Rows(columns, collected.rows, collected.ended, time.monotonic() - began, changed)
        finally:
            cursor.close()

    def _retry_locked(self, action: Callable[[], T]) -> T:
        """Repeat an action while the database is locked, until the waiting limit or the end of the
        call.
        """
        return retry_locked(action, self.limits.waiting, wait=self.job.wait)

    def failure(self, bad: Exception) -> ToolError:
        """The error of a statement, in words for the model."""
        code = primary_code(bad)
        if code == sqlite3.SQLITE_INTERRUPT or (code and self.job.over()):
            return too_long(self.job.seconds)
        if self.authorizer.refused is not None and code in (
            sqlite3.SQLITE_AUTH,
            sqlite3.SQLITE_ERROR,
        ):
            why = (
                "it is not allowed here"
                if self.authorizer.mode == "write"
                else "only statements that read are allowed here"
            )
            return ToolError(f"SQLite refuses {line(self.authorizer.refused)}: {why}.")
        found = _MISSING.search(str(bad))
        return tool_error(bad, self.limits, self._near(*found.groups()) if found else "")

    def _near(self, what: str, name: str) -> str:
        """A hint for an unknown table or column."""
        self.authorizer.enter("read")
        try:
            tables = tables_of(self.connection)
            known = [one.name for one in tables]
            if what == "column":
                known = sorted(
                    {
                        column.name
                        for table in described(self.connection, tables[:_MOST_LOOKED_AT])
                        for column in table.columns
                    }
                )
        except sqlite3.Error:
            return ""
        by_letters = {one.lower(): one for one in known}
        near = [by_letters[one] for one in difflib.get_close_matches(name.lower(), by_letters, n=3)]
        return (
            f" Did you mean {' or '.join(map(line, near))}?"
            if near
            else " list_tables and describe_tables show the names."
        )


# The exceptions of the sqlite3 module for a statement; the built-in ones concern parameters and
# multiple statements.
FAILURES = (sqlite3.Error, sqlite3.Warning, MemoryError, OverflowError, ValueError)


_UNUSABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
    }
)


def has_journal(bad: BaseException) -> bool:
    """Whether a reader fails because a crashed program left a transaction that a writer must roll
    back.
    """
    return getattr(bad, "sqlite_errorcode", 0) in (
        sqlite3.SQLITE_READONLY_ROLLBACK,
        sqlite3.SQLITE_READONLY_RECOVERY,
        sqlite3.SQLITE_CANTOPEN,
    )


def tool_error(bad: Exception, limits: DatabaseLimits, more: str = "") -> ToolError:
    """A SQLite error in words, with a hint."""
    code = primary_code(bad)
    if isinstance(bad, MemoryError):
        said = (
            f"This needs more memory than the {limits.memory:,} bytes of SQLite here. Ask for "
            "less, or sort by an index."
        )
    elif isinstance(bad, UnicodeError):
        said = (
            "The file holds a name that is not Unicode: it is damaged, or was not "
            "written by SQLite."
        )
    elif code in _UNUSABLE:
        reason = line(sqlite_reason(bad, patience=limits.waiting), 500)
        said = f"The database cannot be used: {reason}."
    elif has_journal(bad):
        said = (
            "SQLite cannot open the file. It may lack the right to read it, or, if other "
            "programs write to it (WAL), the right to create files beside it. Or a "
            "program that crashed left a journal, which the next program that writes "
            "rolls back."
        )
    elif code == sqlite3.SQLITE_READONLY:
        said = "SQLite refuses to write: only statements that read are allowed here."
    elif code == sqlite3.SQLITE_TOOBIG:
        said = (
            f"A value has more than {limits.value:,} bytes. Leave out its column, or "
            "select only its length()."
        )
    else:
        said = f"SQLite: {line(str(bad), 500).rstrip('.')}.{more}"
    return ToolError(said)


def too_long(seconds: float) -> ToolError:
    """The error for a statement that ran for too long."""
    return ToolError(
        f"The statement ran for more than {seconds:g} seconds and was stopped. Ask for "
        "less: a WHERE that an index serves, a LIMIT, fewer joins. The tool explain "
        "shows its plan."
    )


def bound_of(parameters: Parameters) -> tuple[Any, ...] | dict[str, Any]:
    """Parameters for SQLite; names may include the prefix that they have in SQL.

    Raises ToolError.
    """
    if isinstance(parameters, Mapping):
        return {name.lstrip(":@$"): _bound(value) for name, value in parameters.items()}
    return tuple(map(_bound, parameters))


def _bound(value: Json) -> Any:
    data = bytes_of(value)
    if data is not None:
        return data
    if isinstance(value, Mapping | list):
        return msgspec.json.encode(value).decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ToolError(f"The parameter {value} is larger than SQLite's integers. Send it as text.")
    return value
