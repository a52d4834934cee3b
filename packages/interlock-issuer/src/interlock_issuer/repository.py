"""Repositories: typed records of one kind in the vault, bounded in number."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from interlock.store import Vault

R = TypeVar("R", bound=Struct)
_encode = msgspec.json.Encoder().encode
_COUNTED_FOR = 15.0  # seconds for which a count of records is believed


def digest(secret: str) -> str:
    """What is kept of a secret: it is long and random, so that nobody comes back from here."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Repository(Generic[R]):
    """The records of one kind. `most` bounds how many strangers can make."""

    def __init__(
        self,
        vault: Vault,
        kind: str,
        of: type[R],
        clock: Callable[[], float],
        most: int | None = None,
    ) -> None:
        self._vault = vault
        self._kind = f"issuer-{kind}"
        self._clock = clock
        self._most = most
        self._decode = msgspec.json.Decoder(of).decode
        self._counted = 0
        self._counted_at = float("-inf")

    async def get(self, key: str) -> R | None:
        """What is kept under a key."""
        raw = await self._vault.get(self._kind, key)
        return None if raw is None else self._decode(raw)

    async def put(self, key: str, record: R, until: float | None) -> None:
        """Keep, in the place of what was there."""
        await self._vault.put(self._kind, key, self._bytes(record), until=until)

    async def add(self, key: str, record: R, until: float | None) -> bool:
        """Keep where nothing is kept; whether it was so."""
        return await self._vault.add(self._kind, key, self._bytes(record), until=until)

    async def swap(self, key: str, was: R, record: R, until: float | None) -> bool:
        """Keep this if what is kept still is `was`, as it was got; whether it was so."""
        return await self._vault.swap(
            self._kind, key, _encode(was), self._bytes(record), until=until
        )

    async def all(self) -> AsyncIterator[R]:
        """Every record; slow, because each is read."""
        for key in await self._vault.keys(self._kind):
            record = await self.get(key)
            if record is not None:
                yield record

    async def expire(self, key: str, was: R) -> bool:
        """Remove a record if it still is `was`; whether it was so."""
        is_over = await self.swap(key, was, was, self._clock())
        if is_over:
            self._counted -= 1
        return is_over

    async def pop(self, key: str) -> R | None:
        """Get and remove a record. Of several callers one gets it."""
        raw = await self._vault.pop(self._kind, key)
        return None if raw is None else self._decode(raw)

    async def remove(self, key: str) -> bool:
        """Remove; whether there was something."""
        return await self._vault.remove(self._kind, key)

    def _bytes(self, record: R) -> bytes:
        """A record as it reads when it has been read, so that `swap` knows it again: 1 for a float
        comes back as 1.0.
        """
        return _encode(self._decode(_encode(record)))

    async def count(self) -> int:
        """Return the number of records."""
        return len(await self._vault.keys(self._kind))

    async def is_full(self) -> bool:
        """Whether there are as many as there may be.

        The count is a few seconds old, give or take what was added here.
        """
        if self._most is None:
            return False
        now = self._clock()
        if not self._counted_at <= now < self._counted_at + _COUNTED_FOR:
            self._counted = await self.count()
            self._counted_at = now
        self._counted += 1
        return self._counted > self._most


class _Seen(Struct, frozen=True):
    """A record that says nothing but that it is there."""


class SeenSet:
    """What was seen, or ended, until it does not matter any more."""

    def __init__(self, vault: Vault, kind: str, clock: Callable[[], float]) -> None:
        self._repository = Repository(vault, kind, _Seen, clock)

    async def first(self, *words: str, until: float) -> bool:
        """Note it; whether it is the first time."""
        return await self._repository.add(digest("\0".join(words)), _Seen(), until)

    async def note(self, *words: str, until: float) -> None:
        """Note it, for the first time or not."""
        await self._repository.put(digest("\0".join(words)), _Seen(), until)

    async def has(self, *words: str) -> bool:
        """Whether it was noted."""
        return await self._repository.get(digest("\0".join(words))) is not None
