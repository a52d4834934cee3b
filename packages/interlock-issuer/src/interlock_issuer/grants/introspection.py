"""Introspection and revocation of tokens (RFC 7662, RFC 7009)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import Response

from interlock.auth.oauth import same_resource

from ..http.error_responses import OAuthError, invalid_client
from ..http.responses import json_response
from ..interfaces import Client, User
from ..tokens.access_tokens import AccessTokens, is_party
from .user_grants import Grants

_SHOWN = ("iss", "aud", "sub", "client_id", "iat", "exp", "jti", "scope", "cnf", "act")


class TokenStatus:
    """Knows of each token whether it holds.

    `is_active` says of a person whether anything may be done on their behalf.
    """

    def __init__(
        self,
        access_tokens: AccessTokens,
        grants: Grants,
        is_active: Callable[[User], Awaitable[bool]],
    ) -> None:
        self._access_tokens = access_tokens
        self._grants = grants
        self._is_active = is_active

    async def claims(self, token: str) -> dict[str, Any] | None:
        """The claims of an access token that holds, with all that is behind it;
        None for any other."""
        claims = await self._access_tokens.read(token)
        if claims is None or "sid" not in claims:
            return claims
        grant = await self._grants.get(claims["sid"])
        if grant is None:
            return None
        if not await self._is_active(grant.person):
            await self._grants.end(claims["sid"])
            return None
        return claims

    async def introspect(self, form: Mapping[str, str], client: Client) -> Response:
        """What a token is, for the server that it is meant for and the client that it was given to.

        Raises Refusal.
        """
        if client.is_public:
            raise invalid_client("only authenticated clients may introspect tokens")
        claims = await self.claims(_token(form))
        if claims is None or not is_party(client, claims):
            return json_response({"active": False})
        kind = "DPoP" if "cnf" in claims else "Bearer"
        return json_response(
            {"active": True, "token_type": kind}
            | {name: claims[name] for name in _SHOWN if name in claims}
        )

    async def revoke(self, form: Mapping[str, str], client: Client) -> Response:
        """End a token of the client; nothing is said of one that is not (RFC 7009, 2.2).

        Raises Refusal.
        """
        token = _token(form)
        claims = await self._access_tokens.read(token)
        if claims is not None:
            if claims["client_id"] == client.id:
                await self._access_tokens.end(claims)
            return json_response({})
        try:
            sid, _ = await self._grants.find(token, client)
        except OAuthError:
            return json_response({})
        await self._grants.end(sid)
        return json_response({})


def is_for(client: Client, claims: Mapping[str, Any]) -> bool:
    """Whether a token was sent to the server that the client is, so that it may exchange it for its
    next one.
    """
    return client.resource is not None and same_resource(client.resource, str(claims.get("aud")))


def _token(form: Mapping[str, str]) -> str:
    token = form.get("token")
    if token is None:
        raise OAuthError("invalid_request", "the token is missing")
    return token
