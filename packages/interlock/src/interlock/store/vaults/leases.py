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
# seconds between two attempts to be the holder
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
    """Be the only one inside for this name, among all tasks and processes that share the vault.

    Wait while another is.

    The lease is a record of the vault that ends after `seconds`, so it ends by itself when its
    holder dies; while the block lasts it is prolonged in good time. Where that fails (the vault is
    away, the process stood still) the block is cancelled when its lease ends, and TimeoutError
    raised, so that two are never inside. `clock` must be the vault's; `sleep` is for the time
    between two attempts. Raises StoreError where the vault cannot be used. There is no limit for
    the waiting but that of the caller.
    """
    own = secrets.token_bytes(16)
    pause = _SHORTEST
    asked = time.monotonic()
    while not await _enter(vault, name, own, clock() + seconds):
        await sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, _LONGEST)
        asked = time.monotonic()
    # The lease began before the answer came: what that took is not ours to stay in.
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
    """Whether the lease could be had; where we are cancelled meanwhile it is not kept."""
    adding = asyncio.ensure_future(vault.add(_KIND, name, own, until=until))
    try:
        return await asyncio.shield(adding)
    except asyncio.CancelledError:
        await asyncio.gather(adding, return_exceptions=True)
        await _leave(vault, name, own)
        raise


async def _leave(vault: Vault, name: str, own: bytes) -> None:
    """Give the lease back, if it is still ours; where that cannot be done it ends by itself."""
    with contextlib.suppress(Exception):
        # An end that has passed removes it: `remove` would not ask whose it is.
        await vault.swap(_KIND, name, own, own, until=0.0)


async def _prolong(
    vault: Vault,
    name: str,
    own: bytes,
    seconds: float,
    clock: Callable[[], float],
    limit: asyncio.Timeout,
) -> None:
    """Move the end of the lease, again and again, and with it the moment when the block would be
    cancelled.
    """
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(seconds / 3)
        with contextlib.suppress(
            Exception
        ):  # the limit stays where it is, and there is time for another attempt
            begun = loop.time()
            if not await vault.swap(_KIND, name, own, own, until=clock() + seconds):
                return
            limit.reschedule(begun + seconds)
