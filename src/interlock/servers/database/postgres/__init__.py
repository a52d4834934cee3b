"""PostgreSQL for the database server, by the driver asyncpg of the extra `postgres`."""

from __future__ import annotations

from ..limits import Limits
from .driver import driver
from .engine import PostgresEngine
from .targets import Target

__all__ = ["engine_of"]


def engine_of(target: str, name: str, limits: Limits, *, write: bool) -> PostgresEngine:
    """The engine for a URL, `postgresql://user@host:port/database`. Raises ValueError for one that can be none, or without the driver."""
    return PostgresEngine(Target(target), name, limits, driver(), write=write)
