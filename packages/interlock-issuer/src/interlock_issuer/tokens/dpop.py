"""DPoP at the token endpoint: the key to which tokens are bound (RFC 9449, 5 and 8)."""

from __future__ import annotations

from starlette.requests import Request

from interlock.auth.tokens import BadDpopProof, DpopVerifier, Unverifiable
from interlock.store import Vault

from ..http.error_responses import OAuthError, unavailable
from ..http.parameters import header
from ..interfaces import Client
from ..settings import Settings


class DpopProofs:
    """Asks for proofs as the configuration wants them, and has the nonces that they must carry
    where it wants that.
    """

    def __init__(self, settings: Settings, vault: Vault) -> None:
        self._settings = settings
        self._proofs = DpopVerifier(
            vault=vault, clock=settings.clock, nonces=settings.dpop_nonces, place=settings.url
        )

    async def thumbprint(self, request: Request, client: Client | None) -> str | None:
        """The thumbprint of the key to which tokens shall be bound; None where none is.

        Raises Refusal (DPP-08).
        """
        settings = self._settings
        proof = header(request, "dpop")
        if settings.dpop == "off":
            return None
        if proof is None:
            if settings.dpop == "required" or (client is not None and client.dpop):
                raise OAuthError(
                    "invalid_dpop_proof",
                    "this issuer binds tokens to a key: the request needs a DPoP proof",
                )
            return None
        try:
            return await self._proofs.check(
                proof, method=request.method, urls=[settings.endpoint("token")], now=settings.now()
            )
        except BadDpopProof as bad:
            raise OAuthError(bad.error, str(bad), headers=await self.headers()) from None
        except Unverifiable as bad:
            raise unavailable(str(bad)) from bad

    async def headers(self) -> list[tuple[str, str]]:
        """The nonce to use next, as a header; nothing where nonces are not asked for.

        Raises Refusal.
        """
        if not self._settings.dpop_nonces:
            return []
        try:
            await self._proofs.agree()
        except Unverifiable as bad:
            raise unavailable(str(bad)) from bad
        return [("dpop-nonce", self._proofs.nonce(self._settings.now()))]
