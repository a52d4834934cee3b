"""Claims of a token, signed or introspected: audience, expiry, scopes and subject."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ...exchange import Principal
from ..oauth.addresses import same_resource
from .interface import BadToken, Verified

SCOPES = ("scope", "scp")
CLIENTS = ("client_id", "azp", "cid", "appid")
# Claims that are fields of a principal, or concern only the token.
_SPENT = frozenset(
    ("iss", "sub", "aud", "exp", "nbf", "iat", "jti", "cnf", "act", "scope", "active", "token_type")
)


class Reading(Struct, frozen=True, kw_only=True):
    """How the claims of an issuer's tokens are read. Most verifiers have a parameter for each
    attribute.

    Attributes:
        issuers: The accepted values of `iss`.
        audience: The accepted audiences, of which a token must name one. Empty for the server's own
            URI.
        audience_claims: The claims that name the audience.
        scope_claims: The claims that hold scopes; the scopes of all of them are added up.
        subject_claims: The claims that may name the subject; the first one present is used.
        client_claims: The claims that may name the client; the first one present is used.
        required: Claims that must be present and have this value, or contain it if they are lists.
            None accepts any value.
        leeway: The tolerance for times, in seconds.
    """

    issuers: tuple[str, ...]
    audience: tuple[str, ...] = ()
    audience_claims: tuple[str, ...] = ("aud",)
    scope_claims: tuple[str, ...] = SCOPES
    subject_claims: tuple[str, ...] = ("sub",)
    client_claims: tuple[str, ...] = CLIENTS
    required: Mapping[str, object] = {}
    leeway: float = 30.0

    def read(self, claims: Mapping[str, Any], *, resource: str, seconds: float) -> Verified:
        """Return the principal that the claims describe.

        The caller checks the times, because it knows which ones are mandatory. Raises BadToken.
        """
        self._check_audience(claims, resource)
        for name, wanted in self.required.items():
            found = claims.get(name)
            if found is None or (
                wanted is not None
                and found != wanted
                and not (isinstance(found, list) and wanted in found)
            ):
                raise BadToken(f"it does not have the required {name}")
        client = _first(claims, self.client_claims)
        subject = _first(claims, self.subject_claims) or client
        if not subject:
            raise BadToken("it does not name a subject")
        principal = Principal(
            subject=subject,
            issuer=claims["iss"]
            if claims.get("iss") in self.issuers
            else self.issuers[0],  # a subject is unique only at its issuer
            client=client,
            scopes=frozenset(
                scope for name in self.scope_claims for scope in _words(claims.get(name))
            ),
            actor=_first(actor, ("sub",))
            if isinstance(actor := claims.get("act"), Mapping)
            else "",
            expires=_time(claims.get("exp")),
            claims={name: value for name, value in claims.items() if name not in _SPENT},
        )
        return Verified(principal, _thumbprint(claims), seconds)

    def _check_audience(self, claims: Mapping[str, Any], resource: str) -> None:
        """Raise BadToken unless the token was issued for this server (`AUT-07`, `SEC-06`)."""
        named = [audience for name in self.audience_claims for audience in _names(claims.get(name))]
        if not named:
            raise BadToken("it does not name its audience")
        mine = any(audience in self.audience for audience in named)
        if not mine and not (
            not self.audience and any(same_resource(audience, resource) for audience in named)
        ):
            raise BadToken("it is for another server")


def _first(claims: Mapping[str, Any], names: Sequence[str]) -> str:
    return next(
        (value for name in names if isinstance(value := claims.get(name), str) and value), ""
    )


def _words(value: object) -> list[str]:
    """Scopes from one string or from a list."""
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list):
        return [word for word in value if isinstance(word, str)]
    return []


def _names(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [name for name in value if isinstance(name, str)]
    return []


def _time(value: object) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if good and isinstance(value, int | float) else None


def _thumbprint(claims: Mapping[str, Any]) -> str | None:
    """The thumbprint of the key that the token is bound to.

    Raises BadToken if the token is bound in a way that is not supported.
    """
    bond = claims.get("cnf")
    if bond is None:
        return None
    thumbprint = bond.get("jkt") if isinstance(bond, Mapping) else None
    if not isinstance(thumbprint, str) or not thumbprint:
        raise BadToken(
            "it is bound to its sender in an unsupported way"
        )  # such as a client certificate, which the server does not see
    return thumbprint
