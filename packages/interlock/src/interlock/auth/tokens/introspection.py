"""Opaque tokens, verified by introspection at their issuer (RFC 7662)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from ... import types as t
from ...http11.fetch import Fetch, Request
from ...logs import limited
from ..oauth.addresses import checked_url, usable
from ..oauth.discovery import find_metadata
from ..oauth.grants import authenticated
from ..oauth.members import Member
from ..sender import HttpClients, named, perform
from .claims import CLIENTS, SCOPES, Reading
from .interface import BadToken, Unverifiable, Verified

if TYPE_CHECKING:
    from ..keys import SigningKey

_log = limited("interlock.auth")
_LIMIT = 256 * 1024  # bytes of an answer


class Introspection:
    """Verifies tokens by asking their issuer (RFC 7662).

    Args:
        issuer: The exact identifier of the issuer.
        client_id: The ID of this server as a client of the issuer.
        client_secret: Its secret.
        key: Signs in place of a secret.
        method: client_secret_basic, client_secret_post, private_key_jwt or none; by default the one
            that fits the other arguments.
        endpoint: The introspection endpoint; by default that of the issuer's metadata.
        also: Further values of `iss` that the issuer uses.
        audience: The audience of tokens for this server, or several; the server's own URI by
            default. A response without an audience is not accepted, unless `audience_claims` names
            another claim for it.
        audience_claims: See `Reading`.
        scope_claims: See `Reading`.
        subject_claims: See `Reading`.
        client_claims: See `Reading`.
        required: See `Reading`.
        leeway: See `Reading`.
        seconds: How long a response may be cached. A revoked token is accepted for at most that
            long.
        patience: Seconds that the issuer has to respond.
        most: The limit of concurrent requests to the issuer.
        fetch: Sends the requests.
    """

    def __init__(
        self,
        issuer: str,
        *,
        client_id: str,
        client_secret: str | None = None,
        key: SigningKey | None = None,
        method: str = "",
        endpoint: str | None = None,
        also: Sequence[str] = (),
        audience: str | Sequence[str] | None = None,
        audience_claims: Sequence[str] = ("aud",),
        scope_claims: Sequence[str] = SCOPES,
        subject_claims: Sequence[str] = ("sub",),
        client_claims: Sequence[str] = CLIENTS,
        required: Mapping[str, object] | None = None,
        leeway: float = 30.0,
        seconds: float = 30.0,
        patience: float = 10.0,
        most: int = 64,
        fetch: Fetch | None = None,
    ) -> None:
        self.issuers: Sequence[str] = (issuer,)
        self.endpoint = (
            None if endpoint is None else checked_url(endpoint, what="the introspection endpoint")
        )
        self.seconds = seconds
        self.patience = patience
        self.most = most
        self._key = key
        self._member = Member(
            issuer=issuer,
            client_id=client_id,
            client_secret=client_secret,
            method=method or _usual(client_secret, key is not None),
        )
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
        self._roads = HttpClients(issuer, named(endpoint), fetch)
        self._asking = 0

    async def verify(self, token: str, *, resource: str, now: float) -> Verified:
        """See `Verifier.verify`."""
        if self._asking >= self.most:
            raise Unverifiable(
                "Too many tokens are waiting for the authorization server.", seconds=1
            )
        self._asking += 1
        try:
            async with asyncio.timeout(self.patience):
                claims = await self._ask(token, now)
        except TimeoutError:
            raise self._away(f"no answer within {self.patience:g} seconds") from None
        except (t.InterlockError, OSError) as bad:
            raise self._away(str(bad)) from None
        finally:
            self._asking -= 1
        if claims.get("active") is not True:
            raise BadToken("it is unknown, has expired or was revoked")
        if claims.get("iss", self.issuers[0]) not in self.reading.issuers:
            raise BadToken("it is from another issuer")
        self._check_times(claims, now)
        verified = self.reading.read(claims, resource=resource, seconds=self.seconds)
        principal = verified.principal
        return replace(
            verified, principal=replace(principal, claims=_without(principal.claims, token))
        )

    async def _ask(self, token: str, now: float) -> dict[str, Any]:
        """The issuer's response about a token."""
        if self.endpoint is None:
            metadata, document = await perform(find_metadata(self.issuers[0]), self._roads)
            self.endpoint = usable(
                metadata.introspection_endpoint,
                what="introspection_endpoint",
                step="introspection",
                document=document,
            )
        form = {"token": token, "token_type_hint": "access_token"}
        own, whole = authenticated(
            form,
            self._member,
            None,
            None if self._key is None else lambda audience: self._assertion(audience, now),
        )
        headers = (
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Accept", "application/json"),
            *own,
        )
        answer = await self._roads.of(self.endpoint)(
            Request("POST", self.endpoint, headers, urlencode(whole).encode(), again=True)
        )
        try:
            if answer.status != 200:
                raise self._away(f"status {answer.status}")
            body = await answer.read(_LIMIT)
        finally:
            await answer.aclose()
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (ValueError, RecursionError):
            raise self._away("that is not a JSON object") from None

    def _assertion(self, audience: str, now: float) -> str:
        from ..keys import assertion  # optional extra `auth`

        assert self._key is not None
        client = self._member.client_id
        return assertion(self._key, issuer=client, subject=client, audience=audience, now=now)

    def _check_times(self, claims: Mapping[str, Any], now: float) -> None:
        """Raise BadToken if the response says that the token is not valid now. The times are
        optional.
        """
        for name in ("exp", "nbf"):
            value = claims.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise BadToken(f"its {name} is not a time")
            if (
                value <= now - self.reading.leeway
                if name == "exp"
                else value > now + self.reading.leeway
            ):
                raise BadToken("it has expired" if name == "exp" else "it is not valid yet")

    def _away(self, why: str) -> Unverifiable:
        _log.warning(
            "The authorization server %s cannot introspect tokens: %s", self.issuers[0], why
        )
        return Unverifiable("The authorization server cannot introspect this token now.")

    async def aclose(self) -> None:
        """Close the connections to the issuer."""
        await self._roads.aclose()


def _usual(secret: str | None, has_key: bool) -> str:
    if has_key:
        return "private_key_jwt"
    if secret is None:
        return "none"
    return "client_secret_basic"


def _without(claims: Mapping[str, Any], token: str) -> dict[str, Any]:
    """The claims without those that contain the token itself: the server must not receive the token
    (`SEC-06`).
    """
    return {name: value for name, value in claims.items() if token not in str(value)}
