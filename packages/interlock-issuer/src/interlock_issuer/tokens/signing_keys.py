"""Rotating keys that sign access tokens, made once among all processes."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Struct

from interlock.auth.tokens import KeySet, SigningKey
from interlock.store import Vault

from ..repository import Repository
from ..settings import Settings


class _StoredKey(Struct, frozen=True):
    jwk: dict[str, Any]


class SigningKeys:
    """Time is cut in spans of `key_seconds`.

    Each has a key, which everybody makes who needs it first and only one succeeds to keep.
    """

    def __init__(self, settings: Settings, vault: Vault) -> None:
        self._settings = settings
        self._repository = Repository(vault, "key", _StoredKey, settings.clock)
        self._known: dict[int, SigningKey] = {}

    async def current(self) -> SigningKey:
        """The key that signs now."""
        return await self._key(self._span())

    async def public(self) -> dict[str, Any]:
        """The JWKS document: the key of now, the one before while its tokens live, the next one
        well before it signs (RFC 7517, 5).
        """
        return {"keys": [key.public() for key in await self._shown()]}

    async def verify(self, token: str, typ: str) -> dict[str, Any]:
        """The claims of a token of our own; its times are not looked at. Raises BadSignature."""
        keys = KeySet([key.public() for key in await self._shown()])
        return keys.verify(token, algorithms=(self._settings.algorithm,), typ=(typ,))[1]

    def _span(self) -> int:
        return int(self._settings.now() // self._settings.key_seconds)

    async def _shown(self) -> list[SigningKey]:
        span = self._span()
        now = self._settings.now()
        spans = [span]
        if now >= (span + 1) * self._settings.key_seconds - self._early():
            spans.append(span + 1)
        keys = [await self._key(number) for number in spans]
        before = await self._kept(span - 1)
        if before is not None and now < self._end(span - 1):
            keys.append(before)
        for old in [number for number in self._known if number < span - 1]:
            del self._known[old]
        return keys

    def _early(self) -> float:
        return min(self._settings.key_seconds / 10, 86_400.0)

    def _end(self, span: int) -> float:
        """When the last token that it signed has ended,
        with a little more for clocks that differ."""
        return (span + 1) * self._settings.key_seconds + self._settings.access_seconds + 300

    async def _key(self, span: int) -> SigningKey:
        kept = await self._kept(span)
        if kept is None:
            made = await asyncio.to_thread(
                SigningKey.generate, self._settings.algorithm
            )  # RSA takes a while
            await self._repository.add(
                self._name(span), _StoredKey(made.private()), self._end(span)
            )
            kept = await self._kept(span)  # ours, or that of who was faster
        if kept is None:
            raise RuntimeError(
                "the vault dropped the signing key at once: its clock and the issuer's "
                "clock must agree"
            )
        return kept

    async def _kept(self, span: int) -> SigningKey | None:
        if span not in self._known:
            record = await self._repository.get(self._name(span))
            if record is None:
                return None
            self._known[span] = SigningKey.from_jwk(record.jwk)
        return self._known[span]

    def _name(self, span: int) -> str:
        return f"{self._settings.algorithm}-{self._settings.key_seconds:g}-{span}"
