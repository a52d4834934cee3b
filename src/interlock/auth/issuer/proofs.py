"""DPoP at the token endpoint: whether a request proves that its sender has a key, once only (RFC 9449, 5 and 8)."""

from __future__ import annotations

from msgspec import Struct

from ...store.vaults.seam import Vault
from ..keys import ASYMMETRIC, BadSignature, WantsNonce, check_dpop
from .refusals import Refusal
from .seam import Client
from .settings import Settings
from .shelves import Marks, Shelf
from .web import Asked

_WINDOW = 300.0  # seconds that a proof may be away from now
_NONCE_SECONDS = 300.0  # how long a nonce is the one to give; it is taken for as long again


class _Nonce(Struct, frozen=True):
    nonce: str


class Proofs:
    """Checks proofs, and has the nonces that they must carry where the configuration wants that."""

    def __init__(self, settings: Settings, vault: Vault) -> None:
        self._settings = settings
        self._seen = Marks(vault, "dpop", settings.clock)
        self._nonces = Shelf(vault, "nonce", _Nonce, settings.clock)

    async def thumbprint(self, asked: Asked, client: Client | None) -> str | None:
        """The thumbprint of the key to which tokens shall be bound; None where none is. Raises Refusal (DPP-08)."""
        proof = asked.headers.get("dpop")
        mode = self._settings.dpop
        if mode == "off":
            return None
        if proof is None:
            if mode == "required" or (client is not None and client.dpop):
                raise Refusal("invalid_dpop_proof", "tokens are bound to a key here: the request needs a DPoP proof")
            return None
        fresh = await self._fresh() if self._settings.dpop_nonces else None
        try:
            shown = check_dpop(
                proof,
                method=asked.method,
                url=self._settings.endpoint("token"),
                now=self._settings.now(),
                algorithms=ASYMMETRIC,
                window=_WINDOW,
                nonce_ok=None if fresh is None else lambda nonce: nonce in fresh,
            )
        except WantsNonce:
            raise Refusal("use_dpop_nonce", "the proof must carry the nonce given here", headers=await self.headers()) from None
        except BadSignature as bad:
            raise Refusal("invalid_dpop_proof", str(bad)) from None
        if not await self._seen.first(shown.thumbprint, shown.jti, until=self._settings.now() + 2 * _WINDOW):
            raise Refusal("invalid_dpop_proof", "the DPoP proof was used before")
        return shown.thumbprint

    async def headers(self) -> list[tuple[str, str]]:
        """The nonce to use next, as a header; nothing where nonces are not asked for."""
        return [("dpop-nonce", (await self._fresh())[0])] if self._settings.dpop_nonces else []

    async def _fresh(self) -> list[str]:
        """The nonces that hold, the one to give first; all processes that share the vault have the same."""
        span = int(self._settings.now() // _NONCE_SECONDS)
        until = (span + 2) * _NONCE_SECONDS
        kept = await self._nonces.get(str(span))
        if kept is None:
            made = _Nonce(self._settings.random(16))
            kept = made if await self._nonces.add(str(span), made, until) else await self._nonces.get(str(span)) or made
        before = await self._nonces.get(str(span - 1))
        return [kept.nonce, *([] if before is None else [before.nonce])]
