"""Access tokens: signed JWTs for one resource (RFC 9068), issued, read and revoked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from interlock.auth.oauth import same_resource
from interlock.auth.tokens import BadSignature, check_times, peek
from interlock.store import Vault

from ..http.responses import json_response
from ..interfaces import Client, User
from ..repository import SeenSet
from ..settings import Settings
from .signing_keys import SigningKeys

TYPE = "at+jwt"
# What only the issuer says in a token, by whatever name a server may look for it.
_OURS = frozenset(
    [
        "iss",
        "aud",
        "sub",
        "client_id",
        "azp",
        "cid",
        "iat",
        "nbf",
        "exp",
        "jti",
        "scope",
        "scp",
        "scopes",
        "permissions",
        "roles",
        "sid",
        "cnf",
        "act",
        "may_act",
        "token_use",
        "typ",
        "auth_time",
    ]
)


class TokenSpec(Struct, frozen=True, kw_only=True):
    """One access token: to whom, about whom, for what.

    `until` bounds its end, `sid` names the grant behind it, `actor` who acts.
    """

    client: Client
    subject: str
    resource: str
    scopes: Sequence[str] = ()
    claims: Mapping[str, Any] = {}
    thumbprint: str | None = None
    sid: str | None = None
    until: float | None = None
    actor: Mapping[str, Any] | None = None


class AccessTokens:
    """Makes access tokens, and knows those of its own."""

    def __init__(self, settings: Settings, vault: Vault, keyring: SigningKeys) -> None:
        self._settings = settings
        self._keyring = keyring
        self._ended = SeenSet(vault, "ended", settings.clock)

    async def answer(
        self, order: TokenSpec, *, refresh: str | None = None, issued_type: str | None = None
    ) -> Response:
        """The answer of the token endpoint with a new access token (RFC 6749, 5.1)."""
        token, seconds = await self._token(order)
        said: dict[str, Any] = {
            "access_token": token,
            "token_type": "Bearer" if order.thumbprint is None else "DPoP",
            "expires_in": seconds,
        }
        if order.scopes:
            said["scope"] = " ".join(order.scopes)
        if refresh is not None:
            said["refresh_token"] = refresh
        if issued_type is not None:
            said["issued_token_type"] = issued_type
        return json_response(said)

    async def _token(self, order: TokenSpec) -> tuple[str, int]:
        now = int(self._settings.now())
        seconds = int(self._settings.access_seconds)
        if order.until is not None:
            seconds = min(seconds, int(order.until) - now)
        claims: dict[str, Any] = {
            name: value for name, value in order.claims.items() if name not in _OURS
        }
        claims |= {
            "iss": self._settings.url,
            "aud": order.resource,
            "sub": order.subject,
            "client_id": order.client.id,
            "iat": now,
            "exp": now + seconds,
            "jti": self._settings.random(16),
        }
        if order.scopes:
            claims["scope"] = " ".join(order.scopes)
        if order.sid is not None:
            claims["sid"] = order.sid
        if order.thumbprint is not None:
            claims["cnf"] = {"jkt": order.thumbprint}
        if order.actor is not None:
            claims["act"] = dict(order.actor)
        key = await self._keyring.current()
        return key.sign(claims, typ=TYPE), seconds

    async def read(self, token: str) -> dict[str, Any] | None:
        """The claims of a token of our own that holds now; None for any other."""
        try:
            if peek(token)[1].get("iss") != self._settings.url:
                return None
            claims = await self._keyring.verify(token, TYPE)
            check_times(claims, now=self._settings.now(), leeway=0)
        except BadSignature:
            return None
        return None if await self._ended.has(str(claims["jti"])) else claims

    async def end(self, claims: Mapping[str, Any]) -> None:
        """Let a token be no longer valid, for those who ask."""
        await self._ended.note(str(claims["jti"]), until=float(claims["exp"]) + 60)


def for_person(person: User) -> dict[str, Any]:
    """What a token says of a person."""
    return dict(person.claims)


def is_party(client: Client, claims: Mapping[str, Any]) -> bool:
    """Whether a token concerns a client: it is its own, or it is meant for the resource that the
    client is.
    """
    meant = client.resource is not None and same_resource(client.resource, str(claims.get("aud")))
    return meant or claims.get("client_id") == client.id
