"""Shared state of workers: in memory, in SQLite, or in Redis or Valkey; and vaults.

`open_store("memory:" | "sqlite:///path" | "redis://...")` returns the store of a URL. Every store
implements the interfaces of `interlock.store.interface`; `interlock.testing.check_store` checks an
implementation. A `Vault` stores small secrets (tokens, registrations, codes): `open_vault` returns
the vault of a URL, and `interlock.testing.check_vault` checks an implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazily

if TYPE_CHECKING:
    from ..wire.seal import BadSeal, Seal
    from .audit_log import AuditLog
    from .circuit_breaker import CircuitBreaker
    from .errors import AccountFull, StoreError
    from .files import file_lock, try_lock, write_atomic, write_new
    from .folders import own_path
    from .from_url import open_store
    from .interface import (
        EventLog,
        RateStore,
        Record,
        RecordStore,
        Replay,
        Session,
        SessionStore,
        Store,
        Topic,
        WorkerStore,
    )
    from .memory.store import MemoryStore
    from .redis import RedisStore
    from .sqlite.file import (
        SqliteError,
        SqliteFile,
        SqliteSchema,
        connect_sqlite,
        primary_code,
        retry_locked,
        sqlite_reason,
        write_transaction,
    )
    from .sqlite.store import SqliteStore
    from .sqlite.writer import Writer
    from .vaults.file import FileVault
    from .vaults.from_url import open_vault
    from .vaults.interface import Vault
    from .vaults.keyring import KeyringVault
    from .vaults.leases import hold_lease
    from .vaults.memory import MemoryVault
    from .vaults.privacy import make_folder
    from .vaults.rates import VaultRates
    from .vaults.redis import RedisVault
    from .vaults.sqlite import SqliteVault
    from .vaults.user_folder import data_folder

# Loaded at first use: a program with a memory store loads neither sqlite3 nor redis.
_ROOMS = {
    ".audit_log": ("AuditLog",),
    ".circuit_breaker": ("CircuitBreaker",),
    ".errors": ("AccountFull", "StoreError"),
    ".interface": (
        "EventLog",
        "RateStore",
        "Record",
        "RecordStore",
        "Replay",
        "Session",
        "SessionStore",
        "Store",
        "Topic",
        "WorkerStore",
    ),
    "..wire.seal": ("BadSeal", "Seal"),
    ".files": ("file_lock", "try_lock", "write_atomic", "write_new"),
    ".folders": ("own_path",),
    ".memory.store": ("MemoryStore",),
    ".from_url": ("open_store",),
    ".redis": ("RedisStore",),
    ".sqlite.store": ("SqliteStore",),
    ".sqlite.file": (
        "SqliteError",
        "SqliteFile",
        "SqliteSchema",
        "connect_sqlite",
        "primary_code",
        "retry_locked",
        "sqlite_reason",
        "write_transaction",
    ),
    ".sqlite.writer": ("Writer",),
    ".vaults.file": ("FileVault",),
    ".vaults.keyring": ("KeyringVault",),
    ".vaults.leases": ("hold_lease",),
    ".vaults.memory": ("MemoryVault",),
    ".vaults.from_url": ("open_vault",),
    ".vaults.user_folder": ("data_folder",),
    ".vaults.privacy": ("make_folder",),
    ".vaults.rates": ("VaultRates",),
    ".vaults.redis": ("RedisVault",),
    ".vaults.interface": ("Vault",),
    ".vaults.sqlite": ("SqliteVault",),
}

__all__ = [
    "AccountFull",
    "AuditLog",
    "BadSeal",
    "CircuitBreaker",
    "EventLog",
    "FileVault",
    "KeyringVault",
    "MemoryStore",
    "MemoryVault",
    "RateStore",
    "Record",
    "RecordStore",
    "RedisStore",
    "RedisVault",
    "Replay",
    "Seal",
    "Session",
    "SessionStore",
    "SqliteError",
    "SqliteFile",
    "SqliteSchema",
    "SqliteStore",
    "SqliteVault",
    "Store",
    "StoreError",
    "Topic",
    "Vault",
    "VaultRates",
    "WorkerStore",
    "Writer",
    "connect_sqlite",
    "data_folder",
    "file_lock",
    "hold_lease",
    "make_folder",
    "open_store",
    "open_vault",
    "own_path",
    "primary_code",
    "retry_locked",
    "sqlite_reason",
    "try_lock",
    "write_atomic",
    "write_new",
    "write_transaction",
]

__getattr__, __dir__ = lazily(__name__, _ROOMS)
