"""SQLite engine: readers open the file read-only; there is one writer if writing is allowed."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec

from interlock import ToolError
from interlock.untrusted.invisible import one_line as line

from .engine import EngineInfo, Plan, RowRange, Rows, Statement, Table, TableName
from .limits import DatabaseLimits
from .sqlite_queries import bound_of
from .sqlite_worker import WorkerCall, WorkerReply
from .sqlite_worker_pool import WorkerPool

T = TypeVar("T")
_WRITERS = 1  # SQLite has one writer at a time


def engine_of(target: str, name: str, limits: DatabaseLimits, *, write: bool) -> SqliteEngine:
    """The engine for a file: its path, or `sqlite:///` and its path.

    Raises ValueError if there is no such file.
    """
    if target.startswith("sqlite:"):
        target = unquote(target.removeprefix("sqlite:").removeprefix("//"))
    path = Path(target).expanduser().absolute()
    if not target or not path.is_file():
        # The full path, because a host often starts programs in an unexpected folder.
        where = line(str(path)) if target else "without a name"
        raise ValueError(
            f"{where} is not a file." if target and path.exists() else f"There is no file {where}."
        )
    return SqliteEngine(path, name, limits, write=write)


class SqliteEngine:
    """A SQLite file; see Engine."""

    kind = "SQLite"
    dialect: Sequence[str] = (
        "SQLite: parameters are ? for a list, or :name for an object; a nested list or "
        "object is bound as its JSON.",
        "Dates are texts (ISO 8601) or numbers, depending on the column: compare texts "
        "with texts, and use date(), datetime(), strftime().",
        "A column may hold any type, regardless of its declared type. Integers divide to "
        "integers. LIKE ignores the case of ASCII letters.",
        "There is no ILIKE and no ::cast: write CAST(x AS REAL), lower(x) LIKE lower(?), || to "
        "join texts.",
    )

    def __init__(self, path: Path, name: str, limits: DatabaseLimits, *, write: bool) -> None:
        self.name = name
        self.writable = write
        self._path = path
        self._limits = limits
        self._readers: WorkerPool | None = None
        self._writers: WorkerPool | None = None

    async def open(self) -> None:
        """Prepare for calls; the file is opened on demand."""
        self._readers = WorkerPool(self._path, self._limits, self._limits.connections, write=False)
        self._writers = (
            WorkerPool(self._path, self._limits, _WRITERS, write=True) if self.writable else None
        )

    async def close(self) -> None:
        """Close all connections and end their processes."""
        lanes = [one for one in (self._readers, self._writers) if one is not None]
        self._readers = self._writers = None
        for one in lanes:
            await one.close()

    async def about(self) -> EngineInfo:
        """Its version, path and size."""
        await self._read(int, what="check")
        try:
            size = self._path.stat().st_size
        except OSError:
            size = None
        return EngineInfo(
            f"SQLite {sqlite3.sqlite_version}", line(str(self._path), 1_000), size=size
        )

    async def version(self) -> str:
        """A text that changes with the schema."""
        try:
            return await self._read(str, what="version")
        except ToolError:
            return ""

    async def tables(self) -> list[TableName]:
        """The tables and views of the file."""
        return await self._read(list[TableName], what="tables")

    async def describe(self, tables: Sequence[TableName]) -> list[Table]:
        """The details of tables."""
        return await self._read(list[Table], what="describe", tables=list(tables))

    async def rows(self, statement: Statement, page: RowRange) -> Rows:
        """The rows of a page."""
        bound_of(statement.parameters)
        return await self._read(Rows, what="rows", statements=[statement], page=page)

    async def explain(self, statement: Statement, *, analyze: bool = False) -> Plan:
        """SQLite's query plan. Raises ToolError for `analyze`."""
        if analyze:
            raise ToolError(
                "SQLite cannot measure the steps of a plan. Ask without `analyze`; query says how "
                "long it took."
            )
        bound_of(statement.parameters)
        return await self._read(Plan, what="explain", statements=[statement])

    async def execute(
        self, statements: Sequence[Statement], page: RowRange, *, keep: bool = True
    ) -> list[Rows]:
        """Run statements in one transaction."""
        if not self.writable:
            raise ToolError(
                f"The database {self.name} is read-only. Only the person who starts the "
                "server can change that."
            )
        for statement in statements:
            bound_of(statement.parameters)
        answer = await self._ask(
            self._writers, what="execute", statements=list(statements), page=page, keep=keep
        )
        return _result(answer, list[Rows])

    async def _read(self, kind: type[T], **given: Any) -> T:
        answer = await self._ask(self._readers, **given)
        if answer.journal and self._writers is not None:
            # A crashed program left an unfinished transaction, which a read-only connection cannot
            # roll back.
            await self._ask(self._writers, what="check")
            answer = await self._ask(self._readers, **given)
        return _result(answer, kind)

    async def _ask(self, lanes: WorkerPool | None, **given: Any) -> WorkerReply:
        if lanes is None:
            raise ToolError("The server is not running.")
        return await lanes.ask(WorkerCall(number=0, seconds=self._limits.seconds, **given))


def _result(answer: WorkerReply, kind: type[T]) -> T:
    if answer.error:
        raise ToolError(answer.error)
    return msgspec.json.decode(answer.result, type=kind)
