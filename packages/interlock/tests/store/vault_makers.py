"""Vaults of every kind at fresh places, sealed and not."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from interlock.store import FileVault, KeyringVault, MemoryVault, RedisVault, SqliteVault, Vault
from tests.store.rings import FolderRing

KEY = "a key that is long enough for a vault"
KINDS = (
    "memory",
    "file",
    "file, sealed",
    "sqlite",
    "sqlite, sealed",
    "redis",
    "redis, sealed",
    "keyring",
    "keyring of Windows",
)
SHARED = KINDS[1:]


def fresh(
    kind: str, folder: Path, redis_url: str, clock: Callable[[], float] = time.time
) -> list[Vault]:
    """Two vaults at one place where nothing is kept, as two programs have them.

    One where they are not shared.
    """
    if kind == "memory":
        return [MemoryVault(clock=clock)]
    place = secrets.token_hex(8)
    return [at(kind, folder, place, redis_url, clock) for _ in range(2)]


def at(
    kind: str, folder: Path, place: str, redis_url: str, clock: Callable[[], float] = time.time
) -> Vault:
    """The vault of this kind at a place that has a name."""
    kind, _, how = kind.partition(", ")
    key = KEY if how else None
    match kind:
        case "file":
            return FileVault(
                folder / f"{place}.vault" / "file", key=key, keyring=False, clock=clock
            )
        case "sqlite":
            return SqliteVault(folder / f"{place}.db", key=key, keyring=False, clock=clock)
        case "redis":
            return RedisVault(redis_url, prefix=f"interlock-test:{place}:", key=key, clock=clock)
    ring = FolderRing(folder / f"{place}.ring", 1280 if "Windows" in kind else 1_000_000)
    return KeyringVault(
        keyring=ring,
        lock=folder / f"{place}.locks",
        clock=clock,
        **({"piece": 1000} if "Windows" in kind else {}),
    )


def maker(
    kind: str, folder: Path, redis_url: str
) -> Callable[[Callable[[], float]], Awaitable[Sequence[Vault]]]:
    """The same, as `check_vault` wants it."""

    async def make(clock: Callable[[], float]) -> Sequence[Vault]:
        return fresh(kind, folder, redis_url, clock)

    return make
