"""Opens the store that a URL names."""

from __future__ import annotations

from .interface import Store
from .urls import path_in

_WHAT_THERE_IS = (
    "there are memory:, sqlite:///absolute/path, sqlite:relative/path, redis://host:port/db, "
    "rediss:// and unix:///path/of/socket"
)


def open_store(url: str) -> Store:
    """The store that a URL names; `open` it before it is used.

    `memory:` for one process; `sqlite:///absolute/path` or `sqlite:relative/path` for the workers
    of one machine; `redis://`, `rediss://` (with TLS) or `unix://` (the socket of a Redis or Valkey
    server) for many machines. Raises ValueError where it is none of these, and StoreError where the
    package for it is not installed.
    """
    scheme, colon, rest = url.partition(":")
    match scheme.lower():
        case "memory" if colon and not rest:
            from .memory import (
                MemoryStore,  # late: each kind of store loads what it needs, and only that
            )

            return MemoryStore()
        case "sqlite" if path := path_in(rest):
            from .sqlite.store import SqliteStore  # late: as above

            return SqliteStore(path)
        case "redis" | "rediss" | "unix" if rest.startswith("//"):
            from .redis import RedisStore  # late: as above

            return RedisStore(url)
    # Not the URL itself: it may hold a password.
    raise ValueError(f"{scheme + colon if colon else 'that'} names no store: {_WHAT_THERE_IS}")
