"""Finds the database and the tables that a caller names among the configured ones."""

from __future__ import annotations

import asyncio
import difflib
import os
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from urllib.parse import quote, unquote, urlsplit

from interlock import ToolError, settings_of
from interlock.untrusted.invisible import one_line as line

from . import sqlite
from .engine import Engine, Table, TableName
from .limits import PREFIX, DatabaseLimits

URLS = "INTERLOCK_DATABASE_URLS"
WRITE = "INTERLOCK_DATABASE_WRITE"
_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,63})=(.+)", re.DOTALL)
_POSTGRES = ("postgres://", "postgresql://")


class Databases:
    """The databases of a server. `open` connects to them."""

    def __init__(
        self,
        targets: Sequence[str | os.PathLike[str]],
        write: bool | Collection[str] = False,
        limits: DatabaseLimits | None = None,
    ) -> None:
        """Each target is a file or a URL, or a name, `=` and one of these; `write` lists the names
        of writable databases, or is True for all.

        Raises ValueError for an invalid target, a duplicate name, and an unknown name in `write`.
        """
        self.limits = limits or settings_of(DatabaseLimits, PREFIX)
        self.engines: dict[str, Engine] = {}
        # While the server runs: notifies clients of schema changes at once.
        self.announce_changes: Callable[[], Awaitable[None]] = _nothing
        self._schemas: dict[str, str] = {}
        named = [_named(os.fspath(target)) for target in targets]
        for name, target in named:
            if name in self.engines:
                raise ValueError(
                    f"Two databases are called {name}. Give them names: "
                    f"one={line(_place(target))} other=..."
                )
            allowed = write if isinstance(write, bool) else name in write
            self.engines[name] = _engine(target, name, self.limits, write=allowed)
        unknown = (
            [] if isinstance(write, bool) else [name for name in write if name not in self.engines]
        )
        if unknown:
            raise ValueError(
                f"There is no database {', '.join(map(line, unknown))}that can be "
                f"writable; available: {self._listed()}."
            )

    def _listed(self) -> str:
        return ", ".join(self.engines) or "none"

    @property
    def writable(self) -> bool:
        """Whether any database is writable."""
        return any(engine.writable for engine in self.engines.values())

    async def open(self) -> None:
        """Open all databases."""
        for engine in self.engines.values():
            await engine.open()

    async def close(self) -> None:
        """Close all databases."""
        await asyncio.gather(*(engine.close() for engine in self.engines.values()))

    def find(self, name: str | None) -> Engine:
        """The database with a name; without a name the only database.

        Raises ToolError.
        """
        if not self.engines:
            raise ToolError(
                f"No database was given. Run `interlock serve database FILE_OR_URL`, or set {URLS}."
            )
        if name is None and len(self.engines) == 1:
            return next(iter(self.engines.values()))
        if name is None:
            raise ToolError(f"Which database? Available: {self._listed()}.")
        if name not in self.engines:
            raise ToolError(f"There is no database {line(name)}; available: {self._listed()}.")
        return self.engines[name]

    async def labels(self, engine: Engine) -> dict[str, TableName]:
        """The tables of a database by their labels: the name, with its schema unless that is the
        default.
        """
        if engine.name not in self._schemas:
            self._schemas[engine.name] = (await engine.about()).schema
        names = self.names(engine)
        return {names(found.schema, found.name): found for found in await engine.tables()}

    def names(self, engine: Engine) -> Callable[[str, str], str]:
        """A function that returns the label of a table; call `labels` first."""
        first = self._schemas.get(engine.name, "")
        return lambda schema, name: name if schema in ("", first) else f"{schema}.{name}"

    async def described(self, engine: Engine, wanted: Iterable[str]) -> list[Table]:
        """The details of tables, by their labels or full names.

        Raises ToolError for an unknown table.
        """
        known = await self.labels(engine)
        whole = {f"{one.schema}.{one.name}": one for one in known.values() if one.schema}
        found = []
        for name in wanted:
            table = known.get(name) or whole.get(name)
            if table is None:
                near = difflib.get_close_matches(name, known, n=3)
                hint = (
                    f"Did you mean {' or '.join(map(line, near))}?"
                    if near
                    else "list_tables lists the tables."
                )
                raise ToolError(f"There is no table {line(name)} in {engine.name}. {hint}")
            found.append(table)
        return await engine.describe(found)


async def _nothing() -> None:
    """Do nothing: no client is subscribed."""


def schema_uri(database: str) -> str:
    """The URI of a database's schema."""
    return f"database://{quote(database, safe='')}/schema"


def table_uri(database: str, table: str) -> str:
    """The URI of a table, by its label."""
    return f"database://{quote(database, safe='')}/tables/{quote(table, safe='')}"


def given_of(
    words: Sequence[str], environment: Mapping[str, str] = os.environ
) -> tuple[list[str], list[str]]:
    """The targets, and the names of the writable ones, from the command line or the environment.

    Raises ValueError.
    """
    write = [name for name in re.split(r"[\s,]+", environment.get(WRITE, "")) if name]
    targets = []
    for word in words:
        option, equals, names = word.partition("=")
        if option == "--write" and equals:
            write += [name for name in names.split(",") if name]
        elif word.startswith("--"):
            raise ValueError(f"Unknown option {option}; the only option is --write=NAME,NAME.")
        else:
            targets.append(word)
    return targets or environment.get(URLS, "").split(), write


def _named(given: str) -> tuple[str, str]:
    """Split a target into name and target."""
    found = _NAMED.fullmatch(given)
    if found and not os.path.exists(given):
        return found[1], found[2]
    if given.startswith(_POSTGRES):
        try:
            last = unquote(urlsplit(given).path.strip("/"))
        except ValueError:
            last = ""  # the engine reports what is wrong with it
    else:
        last = os.path.splitext(os.path.basename(given))[0]
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", last).strip("-.") or "database", given


def _place(target: str) -> str:
    """A target without possible secrets."""
    return "postgresql://..." if "://" in target and not target.startswith("sqlite:") else target


def _engine(target: str, name: str, limits: DatabaseLimits, *, write: bool) -> Engine:
    if target.startswith(_POSTGRES):
        from .postgres import engine_of  # optional extra `postgres`

        return engine_of(target, name, limits, write=write)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", target)
    if scheme and scheme[1] != "sqlite":
        raise ValueError(
            f"{scheme[1]}:// is not supported. Supported are a file of SQLite, "
            "sqlite:/// or postgresql://."
        )
    return sqlite.engine_of(target, name, limits, write=write)
