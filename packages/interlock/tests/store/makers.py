"""Stores of every kind at fresh places."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from interlock.store import MemoryStore, RedisStore, SqliteStore, Store

KINDS = ("memory", "sqlite", "redis")
SHARED = ("sqlite", "redis")


def fresh(kind: str, folder: Path, redis_url: str) -> list[Store]:
    """Two stores at one place where nothing is kept, as two workers have them.

    One where they are not shared.
    """
    place = secrets.token_hex(8)
    match kind:
        case "sqlite":
            return [SqliteStore(folder / f"{place}.db") for _ in range(2)]
        case "redis":
            return [
                RedisStore(redis_url, prefix=f"interlock-test:{place}:", patience=60.0)
                for _ in range(2)
            ]
    return [MemoryStore()]


def maker(kind: str, folder: Path, redis_url: str) -> Callable[[], Awaitable[Sequence[Store]]]:
    """The same, as `check_store` wants it."""

    async def make() -> Sequence[Store]:
        return fresh(kind, folder, redis_url)

    return make


@asynccontextmanager
async def opened(*stores: Store) -> AsyncIterator[None]:
    """Stores that are open for as long as the block lasts."""
    for store in stores:
        await store.open()
    try:
        yield
    finally:
        for store in stores:
            await store.aclose()
