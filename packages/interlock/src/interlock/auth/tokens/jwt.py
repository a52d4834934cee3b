"""JWT access tokens, verified with the issuer's keys (RFC 9068, RFC 7519)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...http11.fetch import Fetch
from ..keys import ASYMMETRIC, BadSignature, KeySet, check_times, peek
from ..oauth.addresses import checked_url
from .claims import CLIENTS, SCOPES, Reading
from .interface import BadToken, Verified
from .remote_keys import RemoteKeys

TYPES = (
    "at+jwt",
    "jwt",
    "",
    # many issuers do not use the first one; other tokens that are signed with the same keys have
    # their own types
)


class Jwt:
    """Verifies JWTs of one issuer.

    Signature, times and audience are always checked; no parameter turns that off.

    Args:
        issuer: The exact identifier of the issuer.
        also: Further values of `iss` that it uses.
        audience: The `aud` of tokens for this server, or several; the server's own URI by default.
        jwks_uri: The URL of the keys; by default that of the issuer's metadata.
        keys: The keys themselves, or how they are fetched.
        algorithms: The accepted algorithms; never `none`, never one with a shared secret.
        types: The accepted values of `typ`; "" for a token without one.
        audience_claims: See `Reading`.
        scope_claims: See `Reading`.
        subject_claims: See `Reading`.
        client_claims: See `Reading`.
        required: See `Reading`.
        leeway: See `Reading`.
        seconds: How long a result may be cached before the token is verified again.
        fetch: Sends the requests.
    """

    def __init__(
        self,
        issuer: str,
        *,
        also: Sequence[str] = (),
        audience: str | Sequence[str] | None = None,
        jwks_uri: str | None = None,
        keys: KeySet | RemoteKeys | Mapping[str, Any] | None = None,
        algorithms: Sequence[str] = ASYMMETRIC,
        types: Sequence[str] = TYPES,
        audience_claims: Sequence[str] = ("aud",),
        scope_claims: Sequence[str] = SCOPES,
        subject_claims: Sequence[str] = ("sub",),
        client_claims: Sequence[str] = CLIENTS,
        required: Mapping[str, object] | None = None,
        leeway: float = 30.0,
        seconds: float = 60.0,
        fetch: Fetch | None = None,
    ) -> None:
        if isinstance(algorithms, str):
            raise TypeError("algorithms are a list of strings, not one string")
        if keys is None and jwks_uri is None:
            checked_url(issuer, what="an issuer whose keys are fetched")
        if bad := [name for name in algorithms if name not in ASYMMETRIC]:
            raise ValueError(
                f"{', '.join(map(repr, bad))} cannot be allowed; choose from "
                f"{', '.join(ASYMMETRIC)}"
            )
        self.issuers: Sequence[str] = (issuer,)
        self.algorithms = tuple(algorithms)
        self.types = tuple(kind.lower() for kind in types)
        self.seconds = seconds
        self.reading = Reading(
            issuers=(issuer, *also),
            audience=(audience,) if isinstance(audience, str) else tuple(audience or ()),
            audience_claims=tuple(audience_claims),
            scope_claims=tuple(scope_claims),
            subject_claims=tuple(subject_claims),
            client_claims=tuple(client_claims),
            required=dict(required or {}),
            leeway=leeway,
        )
        self._fixed: KeySet | None = None
        if isinstance(keys, RemoteKeys):
            self._keys = keys
        else:
            self._keys = RemoteKeys(issuer, jwks_uri=jwks_uri, fetch=fetch)
            if keys is not None:
                self._fixed = keys if isinstance(keys, KeySet) else KeySet.read(keys)

    async def verify(self, token: str, *, resource: str, now: float) -> Verified:
        """See `Verifier.verify`."""
        try:
            if (
                peek(token)[1].get("iss")
            ) not in self.reading.issuers:  # checked before keys are fetched
                raise BadToken("it is from another issuer")
            claims = await self._signed(token, now)
            check_times(claims, now=now, leeway=self.reading.leeway)
        except BadSignature as bad:
            raise BadToken(str(bad)) from None
        return self.reading.read(claims, resource=resource, seconds=self.seconds)

    async def _signed(self, token: str, now: float) -> dict[str, Any]:
        if self._fixed is not None:
            return self._fixed.verify(token, algorithms=self.algorithms, typ=self.types)[1]
        return await self._keys.claims(token, now, algorithms=self.algorithms, types=self.types)

    async def aclose(self) -> None:
        """Close the connections that fetch keys."""
        await self._keys.aclose()
