"""Limits of the database server. Each can be set by an environment variable."""

from __future__ import annotations

from msgspec import Struct

PREFIX = "INTERLOCK_DATABASE_"


class DatabaseLimits(Struct, frozen=True, kw_only=True):
    """Sizes are in bytes, times in seconds. `INTERLOCK_DATABASE_ROWS` sets `rows`, and so on."""

    rows: int = 1_000  # in one page, regardless of the call
    page: int = 100  # rows in one page by default
    bytes: int = 256 * 1024  # of the rows of one page, as JSON
    cell: int = 4 * 1024  # of one value; a longer one is cut and marked
    value: int = 16 * 1024 * 1024  # of one value while a statement runs, inside the engine
    memory: int = 256 * 1024 * 1024  # SQLite's memory for one connection
    statement: int = 100_000  # of the text of one statement
    statements: int = 50  # in one writing transaction
    tables: int = 100  # described in one answer
    seconds: float = 30.0  # for which a statement may run
    waiting: float = 10.0  # for a free connection, and for locks of others
    connections: int = 4  # to each database, which is also the number of parallel statements
    idle: float = 60.0  # for which a connection or worker process is kept for the next call
    telling: float = 1.0  # between two progress notifications of a statement
    # between two checks of a schema, while a client is subscribed
    polling: float = 5.0
