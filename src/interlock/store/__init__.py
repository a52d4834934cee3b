"""Where what workers share is kept: in memory, in a SQLite file for the workers of one machine, or in Redis or Valkey for many machines.

`open_store("memory:" | "sqlite:///path" | "redis://...")` gives the store that a URL names. The seams that every store fulfils are
those of `interlock.protocol.sessions`, and `interlock.testing.check_store` shows whether one does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..protocol.sessions import Board, EventLog, RateStore, Replay, Session, SessionStore, Store, StoreError, WorkerStore
    from .memory import MemoryStore
    from .places import open_store
    from .redis import RedisStore
    from .sqlite import SqliteStore

# Loaded at first use: who keeps everything in memory loads no sqlite3, and nobody loads redis without asking.
_SEAMS = "interlock.protocol.sessions"
_HOMES = {
    "Board": _SEAMS,
    "EventLog": _SEAMS,
    "MemoryStore": "interlock.store.memory",
    "RateStore": _SEAMS,
    "RedisStore": "interlock.store.redis",
    "Replay": _SEAMS,
    "Session": _SEAMS,
    "SessionStore": _SEAMS,
    "SqliteStore": "interlock.store.sqlite",
    "Store": _SEAMS,
    "StoreError": _SEAMS,
    "WorkerStore": _SEAMS,
    "open_store": "interlock.store.places",
}

__all__ = [
    "Board",
    "EventLog",
    "MemoryStore",
    "RateStore",
    "RedisStore",
    "Replay",
    "Session",
    "SessionStore",
    "SqliteStore",
    "Store",
    "StoreError",
    "WorkerStore",
    "open_store",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home at first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
