"""Limits of the database server. Each can be set by an environment variable."""

from __future__ import annotations

from msgspec import Struct

PREFIX = "INTERLOCK_DATABASE_"


class DatabaseLimits(Struct, frozen=True, kw_only=True):
    """Sizes are in bytes, times in seconds. `INTERLOCK_DATABASE_ROWS` sets `rows`, and so on."""

    rows: int = 1_000  # in one page, whatever a call asks for
    page: int = 100  # rows in one page where a call does not say
    bytes: int = 256 * 1024  # of the rows of one page, as JSON
    cell: int = 4 * 1024  # of one value; a longer one is cut and marked
    value: int = 16 * 1024 * 1024  # of one value while a statement runs, inside the engine
    memory: int = 256 * 1024 * 1024  # that SQLite may take for one connection
    statement: int = 100_000  # of the text of one statement
    statements: int = 50  # in one transaction that changes something
    tables: int = 100  # that are described in one answer
    seconds: float = 30.0  # that a statement may run
    waiting: float = 10.0  # for a free connection, and for others who have locked the database
    connections: int = 4  # to each database; as many statements run at once
    idle: float = 60.0  # that a connection, or a process with one, is kept for the next call
    telling: float = 1.0  # between two notices of how far a statement is
    # between two looks at whether a schema has changed, while somebody wants to know
    polling: float = 5.0
