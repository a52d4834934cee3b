"""DPoP at servers and issuers: proofs, replay checks and nonces (RFC 9449, 4.3, 8 and 11.1)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence

from ...store.errors import StoreError
from ...store.vaults.interface import Vault
from ...store.vaults.memory import MemoryVault
from .interface import Unverifiable

# The algorithms that clients are told; the same as in `interlock.auth.keys`, which is imported only
# when the first proof arrives.
ALGORITHMS = (
    "ES256",
    "ES384",
    "ES512",
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "EdDSA",
    "Ed25519",
)
_KIND = "dpop proof"
_MOST = 500_000  # proofs of the last ten minutes


class BadDpopProof(Exception):
    """The DPoP proof is invalid.

    Attributes:
        error: The error code (RFC 9449, 7.1).
        nonce: The nonce that the client needs for the next proof.
    """

    def __init__(
        self, words: str, *, error: str = "invalid_dpop_proof", nonce: str | None = None
    ) -> None:
        super().__init__(words)
        self.error = error
        self.nonce = nonce


class DpopVerifier:
    """Verifies the DPoP proofs of one server.

    Args:
        vault: Records used proofs; shared if several processes serve.
        clock: Returns the time in seconds of the wall clock.
        nonces: Whether a proof needs a nonce of this server that is not older than `window`.
        window: The tolerance for a proof's time, in seconds.
        place: Separates several verifiers that share a vault.
    """

    def __init__(
        self,
        *,
        vault: Vault | None,
        clock: Callable[[], float],
        nonces: bool,
        window: float = 300.0,
        place: str = "",
    ) -> None:
        self._vault: Vault = vault if vault is not None else MemoryVault(clock=clock, most=_MOST)
        self._shared = vault is not None
        self.nonces = nonces
        self.window = window
        self._place = place
        # Generated before a server forks, so that all workers have the same secret. With a shared
        # vault, all processes use the secret in the vault.
        self._secret = secrets.token_bytes(32)
        self._agreed = not (nonces and self._shared)

    async def check(
        self,
        proof: str,
        *,
        method: str,
        urls: Sequence[str],
        now: float,
        token: str | None = None,
        thumbprint: str | None = None,
    ) -> str:
        """Verify the proof of a request, and return the thumbprint of the sender's key.

        Args:
            proof: The value of the header.
            method: The method of the request.
            urls: The URLs that clients may use for it.
            now: The time, in seconds of the wall clock.
            token: The access token of the request.
            thumbprint: The thumbprint of the key that the token is bound to, if it is.

        Raises:
            BadDpopProof: The proof is invalid, or a replay.
            Unverifiable: The vault cannot tell whether it is a replay.
        """
        from ..keys import BadSignature, WantsNonce, check_dpop  # optional extra `auth`

        await self.agree()
        nonce_ok = (lambda nonce: self._is_ours(nonce, now)) if self.nonces else None
        try:
            shown = check_dpop(
                proof,
                method=method,
                url=urls,
                now=now,
                window=self.window,
                nonce_ok=nonce_ok,
                access_token=token,
            )
        except WantsNonce as bad:
            raise BadDpopProof(str(bad), error="use_dpop_nonce", nonce=self.nonce(now)) from None
        except BadSignature as bad:
            raise BadDpopProof(str(bad)) from None
        if thumbprint is not None and not hmac.compare_digest(shown.thumbprint, thumbprint):
            raise BadDpopProof(
                "the DPoP proof was made with a different key than the one the token is bound to"
            )
        seen = hashlib.sha256(f"{self._place} {shown.thumbprint} {shown.jti}".encode()).hexdigest()
        try:
            first = await self._vault.add(
                _KIND, seen, b"", until=max(now, shown.iat) + self.window + 1
            )
        except StoreError as bad:
            raise Unverifiable(
                "The server cannot check now whether this DPoP proof was used before."
            ) from bad
        if not first:
            raise BadDpopProof("the DPoP proof was used before")
        return shown.thumbprint

    def nonce(self, now: float) -> str:
        """A nonce that is valid from now on. It is the signed time, so nothing is stored."""
        moment = int(now).to_bytes(8, "big", signed=True)
        return urlsafe_b64encode(moment + self._mac(moment)).decode()

    def _is_ours(self, nonce: str | None, now: float) -> bool:
        try:
            raw = urlsafe_b64decode((nonce or "").encode("ascii"))
        except ValueError:
            return False
        moment = int.from_bytes(raw[:8], "big", signed=True)
        return (
            len(raw) == 24
            and hmac.compare_digest(raw[8:], self._mac(raw[:8]))
            and abs(now - moment) <= self.window
        )

    def _mac(self, moment: bytes) -> bytes:
        return hmac.digest(self._secret, b"dpop nonce" + moment, "sha256")[:16]

    async def agree(self) -> None:
        """Load the secret that all processes with the same vault use. `nonce` needs it.

        Raises Unverifiable.
        """
        if self._agreed:
            return
        try:
            await self._vault.add("dpop secret", "", self._secret)
            self._secret = await self._vault.get("dpop secret", "") or self._secret
        except StoreError as bad:
            raise Unverifiable("The server cannot check nonces of DPoP proofs now.") from bad
        self._agreed = True
