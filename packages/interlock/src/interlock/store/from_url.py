"""Opens the store of a URL."""

from __future__ import annotations

from .interface import Store
from .urls import path_in

_WHAT_THERE_IS = (
    "there are memory:, sqlite:///absolute/path, sqlite:relative/path, redis://host:port/db, "
    "rediss:// and unix:///path/of/socket"
)


def open_store(url: str) -> Store:
    """Return the store of a URL. Call its `open` before you use it.

    `memory:` is for one process. `sqlite:///absolute/path` or `sqlite:relative/path` is for the
    workers of one machine. `redis://`, `rediss://` (with TLS) or `unix://` (the socket of a Redis
    or Valkey server) is for many machines. Raises ValueError for other URLs, and StoreError if a
    package for the store is not installed.
    """
    scheme, colon, rest = url.partition(":")
    match scheme.lower():
        case "memory" if colon and not rest:
            # late: each kind of store loads only what it needs
            from .memory.store import MemoryStore

            return MemoryStore()
        case "sqlite" if path := path_in(rest):
            from .sqlite.store import SqliteStore  # late: as above

            return SqliteStore(path)
        case "redis" | "rediss" | "unix" if rest.startswith("//"):
            from .redis import RedisStore  # late: as above

            return RedisStore(url)
    # The URL itself is not shown: it may contain a password.
    raise ValueError(f"{scheme + colon if colon else 'that'} names no store: {_WHAT_THERE_IS}")
