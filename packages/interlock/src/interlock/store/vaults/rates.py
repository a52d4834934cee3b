"""Rate limits in a vault: token buckets that all workers share, changed by compare-and-swap."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ... import rates
from .interface import Vault

_KIND = "rate"
_COLLISIONS = 50  # compare-and-swap attempts that may fail because of concurrent changes
_BUSY = 1.0  # seconds to wait after too many concurrent changes


class VaultRates:
    """Token buckets by key, kept in a vault. It is a `RateStore`, and can also give tokens back.

    All times are seconds of the wall clock, which must be the vault's clock.
    """

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def acquire(self, key: str, *, rate: float, burst: float, now: float) -> float:
        """Take one token from a bucket.

        Args:
            key: Names the bucket.
            rate: Tokens that the bucket gains a second.
            burst: Tokens that it holds when it is full.
            now: The time.

        Returns:
            0.0 if a token was available, else the seconds until one is.

        Raises:
            StoreError: The vault cannot be used.
        """
        wait = 0.0

        def taken(full: float | None) -> float | None:
            nonlocal wait
            full, wait = rates.acquire(full, rate=rate, burst=burst, now=now)
            return None if wait else full

        return wait if await self._change(key, now, taken) else _BUSY

    async def level(self, key: str, *, rate: float, burst: float, now: float) -> tuple[bool, float]:
        """Return the state of a bucket without taking a token.

        Returns:
            Whether the bucket is full, and the seconds until `acquire` would succeed.
        """
        full = await self._full(key)
        if full is None or full <= now:
            return True, 0.0
        return False, rates.acquire(full, rate=rate, burst=burst, now=now)[1]

    async def give_back(self, key: str, *, rate: float, now: float) -> None:
        """Put one token back into a bucket."""
        await self._change(key, now, lambda full: None if full is None else full - 1.0 / rate)

    async def reset(self, key: str) -> None:
        """Fill a bucket."""
        await self._vault.remove(_KIND, key)

    async def _full(self, key: str) -> float | None:
        kept = await self._vault.get(_KIND, key)
        return None if kept is None else msgspec.json.decode(kept, type=float)

    async def _change(
        self, key: str, now: float, change: Callable[[float | None], float | None]
    ) -> bool:
        """Change the time when a bucket is full, with compare-and-swap.

        None changes nothing.

        Returns:
            False after too many concurrent changes.
        """
        for _ in range(_COLLISIONS):
            was = await self._vault.get(_KIND, key)
            full = change(None if was is None else msgspec.json.decode(was, type=float))
            if full is None:
                return True
            value = msgspec.json.encode(full)
            if was is None:
                changed = await self._vault.add(_KIND, key, value, until=full)
            else:
                changed = await self._vault.swap(_KIND, key, was, value, until=full)
            if changed:
                return True
        return False
