"""Throttling of guesses: passwords, client secrets and codes of devices, counted in the vault, for all workers that share it."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from ...store.vaults.seam import Vault
from .shelves import digest

_KIND = "tries"
_SHORTEST, _LONGEST = 2.0, 900.0  # seconds of the first wait, which doubles, and of the longest
_FORGOTTEN = 3600.0  # seconds without a try after which all is forgiven
_COLLISIONS = 50  # swaps that may fail because others count at the same time

# Free tries.
NAME_HERE = 5  # of a name from one address
NAME = 50  # of a name from anywhere
ADDRESS = 30  # from one address
CODES = 10  # of codes from one address
SECRETS_HERE = 10  # of one client's secret from one address
SECRETS = 30  # of any client's secret from one address


class Throttled(Exception):
    """Too many tries; `seconds` is how long to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"too many tries: wait {seconds:.0f} seconds")
        self.seconds = seconds


class _Tries(Struct, array_like=True):
    """How many there were that did not succeed, and until when there may be no more."""

    count: int
    until: float


class Throttle:
    """Counts a try before its outcome is known, so that many at once are many; one that succeeded is taken back."""

    def __init__(self, vault: Vault, clock: Callable[[], float]) -> None:
        self._vault, self._clock = vault, clock

    async def claim(self, free: Mapping[str, int]) -> None:
        """Count one try for each key, which has so many free; the waits double from there. Raises Throttled, and then counts nothing more.

        The keys are words of ours and of strangers: only their digests are kept.
        """
        for key, allowed in free.items():
            await self._claim(digest(key), allowed)

    async def check(self, *keys: str) -> bool:
        """Return whether a try of any key is remembered, and count none. Raises Throttled while one of them has to wait."""
        now = self._clock()
        found = False
        for key in keys:
            was = await self._vault.get(_KIND, digest(key))
            if was is None:
                continue
            found = True
            tries = msgspec.json.decode(was, type=_Tries)
            if tries.until > now:
                raise Throttled(tries.until - now)
        return found

    async def release(self, *keys: str) -> None:
        """Take back the one try of each key that has just been claimed and has succeeded; those before it still count."""
        for key in keys:
            await self._change(digest(key), lambda tries, now: _Tries(max(tries.count - 1, 0), 0.0))

    async def forgive(self, key: str) -> None:
        """Forget all tries of a key."""
        await self._vault.remove(_KIND, digest(key))

    async def _claim(self, key: str, allowed: int) -> None:
        def counted(tries: _Tries, now: float) -> _Tries:
            if tries.until > now:
                raise Throttled(tries.until - now)
            count = tries.count + 1
            wait = (
                0.0 if count < allowed else min(_SHORTEST * 2 ** min(count - allowed, 20), _LONGEST)
            )
            return _Tries(count, now + wait)

        if not await self._change(key, counted):
            raise Throttled(_SHORTEST)  # so many at once that nobody can count them

    async def _change(self, key: str, change: Callable[[_Tries, float], _Tries]) -> bool:
        """Change what is known of a key, whoever else does at the same time; whether it could be."""
        for _ in range(_COLLISIONS):
            now = self._clock()
            was = await self._vault.get(_KIND, key)
            tries = change(
                msgspec.json.decode(was, type=_Tries) if was is not None else _Tries(0, 0.0), now
            )
            value, until = msgspec.json.encode(tries), max(tries.until, now) + _FORGOTTEN
            if was is None and await self._vault.add(_KIND, key, value, until=until):
                return True
            if was is not None and await self._vault.swap(_KIND, key, was, value, until=until):
                return True
        return False


def log_in(name: str, address: str) -> dict[str, int]:
    """The keys of a try to log in, with how many of them are free: one person cannot easily be locked out by another elsewhere."""
    known, place = name.strip().casefold(), place_of(address)
    return {f"{known}\n{place}": NAME_HERE, f"from\n{place}": ADDRESS, f"name\n{known}": NAME}


def client_secrets(client: str, address: str) -> dict[str, int]:
    """The keys of a wrong client secret, with how many are free.

    Both belong to the address: a client cannot be locked out by guesses that come from elsewhere.
    """
    place = place_of(address)
    return {f"client\n{client}\n{place}": SECRETS_HERE, f"clients from\n{place}": SECRETS}


def codes(address: str) -> dict[str, int]:
    """The key of a try to guess the code of a device (RFC 8628, 5.1), with how many are free."""
    return {f"codes\n{place_of(address)}": CODES}


def place_of(address: str) -> str:
    """Who shares an address: of IPv6 a whole network belongs to one."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address):
        return str(known.ipv4_mapped or ipaddress.ip_network((known, 64), strict=False))
    return str(known)
