"""Rate limits of the issuer: guesses at passwords, secrets and device codes, and requests that cost
much.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping

from msgspec import Struct

from interlock.store import MemoryStore, Vault, VaultRates

from ..repository import digest


class Limit(Struct, frozen=True):
    """A token bucket: `burst` at once, then one more every `seconds`."""

    burst: int
    seconds: float

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return 1.0 / self.seconds


# Wrong guesses. Each limit bounds what an attacker can try in a day.
NAME_HERE = Limit(5, 60.0)
"""Of one account's password, from one address."""
NAME = Limit(50, 900.0)
"""Of one account's password, from anywhere."""
ADDRESS = Limit(30, 60.0)
"""Of any password, from one address."""
CODES = Limit(10, 60.0)
"""Of device codes, from one address."""
SECRETS_HERE = Limit(10, 60.0)
"""Of one client's secret, from one address."""
SECRETS = Limit(30, 60.0)
"""Of any client's secret, from one address."""

REQUESTS = {
    "register": Limit(30, 2.0),
    "device": Limit(30, 2.0),
    "authorize": Limit(120, 0.5),
    "document": Limit(30, 2.0),
}
"""Requests that leave a record, or make the issuer fetch a document, from one address.

A whole office may share an address and log in at nine. Only documents that are fetched count.
"""


class RateLimited(Exception):
    """There were too many attempts; `seconds` is how long to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"too many attempts: wait {seconds:.0f} seconds")
        self.seconds = seconds


class AttemptLimiter:
    """Limits attempts, for all workers that share the vault.

    An attempt is counted before its outcome is known, so that many at the same time count as many.
    One that succeeds is given back.
    """

    def __init__(self, vault: Vault, clock: Callable[[], float]) -> None:
        self._rates = VaultRates(vault)
        self._clock = clock

    async def claim(self, limits: Mapping[str, Limit]) -> None:
        """Count one attempt for each key. Only digests of the keys are kept.

        Raises:
            RateLimited: A bucket is empty. The keys after it are not counted.
        """
        for key, limit in limits.items():
            wait = await self._rates.acquire(
                digest(key), rate=limit.rate, burst=limit.burst, now=self._clock()
            )
            if wait:
                raise RateLimited(wait)

    async def check(self, limits: Mapping[str, Limit]) -> bool:
        """Return whether an attempt of any key still counts, and count none.

        Raises:
            RateLimited: A bucket is empty.
        """
        found = False
        for key, limit in limits.items():
            full, wait = await self._rates.level(
                digest(key), rate=limit.rate, burst=limit.burst, now=self._clock()
            )
            if wait:
                raise RateLimited(wait)
            found = found or not full
        return found

    async def give_back(self, limits: Mapping[str, Limit]) -> None:
        """Give back the attempt of each key that has just been claimed.

        Those before it still count.
        """
        for key, limit in limits.items():
            await self._rates.give_back(digest(key), rate=limit.rate, now=self._clock())

    async def reset(self, key: str) -> None:
        """Forget all attempts of a key."""
        await self._rates.reset(digest(key))


class RequestLimiter:
    """Limits requests of one kind by address, in each process by itself."""

    def __init__(self, kind: str, clock: Callable[[], float]) -> None:
        self._limit = REQUESTS[kind]
        self._rates = MemoryStore().rates
        self._clock = clock

    async def is_over(self, address: str) -> bool:
        """Count one request, and return whether it is one too many."""
        wait = await self._rates.acquire(
            network_of(address),
            rate=self._limit.rate,
            burst=self._limit.burst,
            now=self._clock(),
        )
        return wait > 0.0


def password_limits(name: str, address: str) -> dict[str, Limit]:
    """Return the limits of an attempt to log in.

    The strictest belongs to the name and the address together, so that nobody is easily locked out
    by somebody elsewhere.
    """
    known = name.strip().casefold()
    network = network_of(address)
    return {
        f"{known}\n{network}": NAME_HERE,
        f"from\n{network}": ADDRESS,
        f"name\n{known}": NAME,
    }


def secret_limits(client: str, address: str) -> dict[str, Limit]:
    """Return the limits of a wrong client secret.

    Both belong to the address: guesses from elsewhere cannot lock a client out.
    """
    network = network_of(address)
    return {f"client\n{client}\n{network}": SECRETS_HERE, f"clients from\n{network}": SECRETS}


def code_limits(address: str) -> dict[str, Limit]:
    """Return the limit of guesses at the code of a device (RFC 8628, 5.1)."""
    return {f"codes\n{network_of(address)}": CODES}


def network_of(address: str) -> str:
    """Return the network that counts as one address: the whole /64 of an IPv6 address."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address):
        return str(known.ipv4_mapped or ipaddress.ip_network((known, 64), strict=False))
    return str(known)
