"""Tokens of several kinds at one server: each goes only to the verifiers that may know it."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from .interface import BadToken, Verified, Verifier, verifying

_claims = msgspec.json.Decoder(dict[str, Any]).decode


class AnyOf:
    """Accepts a token that one of several verifiers accepts.

    A token with an issuer is sent only to the verifiers of that issuer; if there are none, to the
    verifiers without issuers. No authorization server sees the tokens of another one. The verifiers
    try a token without an issuer in the given order.
    """

    def __init__(self, *verifiers: Verifier) -> None:
        if not verifiers:
            raise ValueError("give at least one verifier")
        self.verifiers = tuple(map(verifying, verifiers))
        self.issuers = tuple(
            dict.fromkeys(issuer for verifier in verifiers for issuer in verifier.issuers)
        )

    async def verify(self, token: str, *, resource: str, now: float) -> Verified:
        """See `Verifier.verify`.

        If no verifier accepts the token, the error is that of the last one.
        """
        said = BadToken("it is from another issuer")
        for verifier in self._asked(token):
            try:
                return await verifier.verify(token, resource=resource, now=now)
            except BadToken as bad:
                said = bad
        raise said

    def _asked(self, token: str) -> list[Verifier]:
        issuer = _issuer(token)
        if issuer is None:
            return list(self.verifiers)
        named = [verifier for verifier in self.verifiers if issuer in _names(verifier)]
        return named or [verifier for verifier in self.verifiers if not verifier.issuers]

    async def aclose(self) -> None:
        """Close all verifiers."""
        for verifier in self.verifiers:
            close = getattr(verifier, "aclose", None)
            if close is not None:
                await close()


def _names(verifier: Verifier) -> tuple[str, ...]:
    """The values of `iss` in a verifier's tokens: its issuers, and their other names."""
    reading = getattr(verifier, "reading", None)
    return (*verifier.issuers, *(reading.issuers if reading is not None else ()))


def _issuer(token: str) -> str | None:
    """The claimed issuer of a JWT. The claim is not verified yet."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        issuer = _claims(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))).get("iss")
    except (ValueError, binascii.Error, RecursionError):
        return None
    return issuer if isinstance(issuer, str) else None
