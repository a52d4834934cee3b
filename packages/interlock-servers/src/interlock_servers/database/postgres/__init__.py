"""PostgreSQL engine of the database server, on the driver asyncpg (extra `postgres`)."""

from __future__ import annotations

from ..limits import DatabaseLimits
from .driver import driver
from .engine import PostgresEngine
from .urls import PostgresUrl

__all__ = ["engine_of"]


def engine_of(target: str, name: str, limits: DatabaseLimits, *, write: bool) -> PostgresEngine:
    """The engine for a URL, `postgresql://user@host:port/database`.

    Raises ValueError for an invalid URL, or without the driver.
    """
    return PostgresEngine(PostgresUrl(target), name, limits, driver(), write=write)
