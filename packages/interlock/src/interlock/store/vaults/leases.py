"""Leases: one holder at a time, among all tasks and processes that share a vault."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from .interface import Vault

_KIND = "lease"
# seconds between two attempts to get the lease
_SHORTEST = 0.01
_LONGEST = 0.25


@asynccontextmanager
async def hold_lease(
    vault: Vault,
    name: str,
    *,
    seconds: float = 30.0,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> AsyncIterator[None]:
    """Hold a lease for this name while the block runs: only one holder at a time, among all tasks
    and processes that share the vault. Other callers wait.

    The lease is a record in the vault that expires after `seconds`, so it ends if its holder dies.
    While the block runs, the lease is renewed. If the renewal fails (the vault is unreachable, the
    process was suspended), the block is cancelled when the lease expires, and TimeoutError is
    raised. So two holders never run at once. The wait has no limit of its own.

    Args:
        vault: The vault.
        name: What only one holder may do at a time.
        seconds: How long the lease lasts without a renewal.
        clock: The clock of the vault.
        sleep: Waits between two attempts.

    Raises:
        TimeoutError: The lease expired while the block ran.
        StoreError: The vault cannot be used.
    """
    own = secrets.token_bytes(16)
    pause = _SHORTEST
    asked = time.monotonic()
    while not await _enter(vault, name, own, clock() + seconds):
        await sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, _LONGEST)
        asked = time.monotonic()
    # The lease began before the vault responded, so the response time is subtracted.
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout_at(loop.time() + seconds - (time.monotonic() - asked)) as limit:
            prolonging = asyncio.create_task(_prolong(vault, name, own, seconds, clock, limit))
            try:
                yield
            finally:
                prolonging.cancel()
                await asyncio.gather(prolonging, return_exceptions=True)
    finally:
        await _leave(vault, name, own)


async def _enter(vault: Vault, name: str, own: bytes, until: float) -> bool:
    """Try to get the lease. If the caller is cancelled meanwhile, the lease is released."""
    adding = asyncio.ensure_future(vault.add(_KIND, name, own, until=until))
    try:
        return await asyncio.shield(adding)
    except asyncio.CancelledError:
        await asyncio.gather(adding, return_exceptions=True)
        await _leave(vault, name, own)
        raise


async def _leave(vault: Vault, name: str, own: bytes) -> None:
    """Release the lease if this caller still holds it. If that fails, the lease expires."""
    with contextlib.suppress(Exception):
        # An expiry in the past removes it; `remove` would not check the holder.
        await vault.swap(_KIND, name, own, own, until=0.0)


async def _prolong(
    vault: Vault,
    name: str,
    own: bytes,
    seconds: float,
    clock: Callable[[], float],
    limit: asyncio.Timeout,
) -> None:
    """Renew the lease repeatedly, and postpone the cancellation of the block each time."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(seconds / 3)
        with contextlib.suppress(
            Exception
        ):  # the deadline stays, and there is time for another attempt
            begun = loop.time()
            if not await vault.swap(_KIND, name, own, own, until=clock() + seconds):
                return
            limit.reschedule(begun + seconds)
