"""Where what workers share is kept: in memory, in a SQLite file for the workers of one machine, or in Redis or Valkey for many machines.

`open_store("memory:" | "sqlite:///path" | "redis://...")` gives the store that a URL names. The seams that every store fulfils are
those of `interlock.protocol.sessions`, and `interlock.testing.check_store` shows whether one does. Small secret things (tokens,
registrations, codes) are kept in a `Vault`: `open_vault` gives the one that a URL names, `interlock.testing.check_vault` checks one.
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
    from .vaults.file import FileVault
    from .vaults.keyring import KeyringVault
    from .vaults.leases import alone
    from .vaults.memory import MemoryVault
    from .vaults.places import open_vault
    from .vaults.redis import RedisVault
    from .vaults.seam import Vault
    from .vaults.sqlite import SqliteVault

# Loaded at first use: who keeps everything in memory loads no sqlite3, and nobody loads redis without asking.
_SEAMS = "interlock.protocol.sessions"
_HOMES = {
    "Board": _SEAMS,
    "EventLog": _SEAMS,
    "FileVault": "interlock.store.vaults.file",
    "KeyringVault": "interlock.store.vaults.keyring",
    "MemoryStore": "interlock.store.memory",
    "MemoryVault": "interlock.store.vaults.memory",
    "RateStore": _SEAMS,
    "RedisStore": "interlock.store.redis",
    "RedisVault": "interlock.store.vaults.redis",
    "Replay": _SEAMS,
    "Session": _SEAMS,
    "SessionStore": _SEAMS,
    "SqliteStore": "interlock.store.sqlite",
    "SqliteVault": "interlock.store.vaults.sqlite",
    "Store": _SEAMS,
    "StoreError": _SEAMS,
    "Vault": "interlock.store.vaults.seam",
    "WorkerStore": _SEAMS,
    "alone": "interlock.store.vaults.leases",
    "open_store": "interlock.store.places",
    "open_vault": "interlock.store.vaults.places",
}

__all__ = [
    "Board",
    "EventLog",
    "FileVault",
    "KeyringVault",
    "MemoryStore",
    "MemoryVault",
    "RateStore",
    "RedisStore",
    "RedisVault",
    "Replay",
    "Session",
    "SessionStore",
    "SqliteStore",
    "SqliteVault",
    "Store",
    "StoreError",
    "Vault",
    "WorkerStore",
    "alone",
    "open_store",
    "open_vault",
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
