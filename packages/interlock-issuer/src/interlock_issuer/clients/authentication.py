"""Client authentication: none, a secret, or a signed assertion (RFC 6749, 2.3; RFC 7523, 2.2)."""

from __future__ import annotations

import base64
import binascii
import hmac
import math
from collections.abc import Mapping
from urllib.parse import unquote_plus

from msgspec import Struct
from starlette.requests import Request

from interlock.auth.tokens import BadSignature, check_times, peek
from interlock.store import Vault

from ..http.error_responses import OAuthError, invalid_client, too_many_requests
from ..http.parameters import address_of, header
from ..http.rate_limit import AttemptLimiter, RateLimited, secret_limits
from ..interfaces import Client
from ..repository import SeenSet, digest
from ..settings import Settings
from .keys import ClientKeys
from .registry import Clients

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_TYPES = ("", "jwt", "client-authentication+jwt")
# seconds that an assertion may still have: what lives longer is more a password than a proof
_LONGEST_LIFE = 3600.0


class _Shown(Struct, frozen=True):
    """What a request shows: who it says that it is, and by what."""

    id: str | None
    secrets: tuple[str, ...] = ()
    assertion: str | None = None


class Authentication:
    """Tells which client sends a request."""

    def __init__(
        self, settings: Settings, vault: Vault, clients: Clients, keys: ClientKeys
    ) -> None:
        self._settings = settings
        self._clients = clients
        self._keys = keys
        self._attempts = AttemptLimiter(vault, settings.clock)
        self._seen = SeenSet(vault, "assertion", settings.clock)

    async def client(self, request: Request, form: Mapping[str, str]) -> Client:
        """The client, which has shown that it is. Raises Refusal."""
        shown = _shown(request, form)
        try:
            client = await self._clients.find(shown.id, address_of(request))
        except OAuthError as bad:
            raise invalid_client(bad.words) from None
        if client.method == "none":
            if shown.secrets or shown.assertion is not None:
                raise invalid_client("this client has no secret and no keys here")
        elif client.method == "private_key_jwt":
            if shown.assertion is None:
                raise invalid_client("this client authenticates with private_key_jwt")
            await self._verify(client, shown.assertion)
        else:
            await self._check_secret(client, shown.secrets, address_of(request))
        return client

    async def _check_secret(self, client: Client, secrets: tuple[str, ...], address: str) -> None:
        """Raise Refusal unless one of the secrets is the client's, and while there were too many
        wrong ones from that address.

        A right secret does not count and is not written down, so that a token costs no more than
        before.
        """
        if not secrets:
            raise invalid_client("the secret of the client is missing or wrong")
        right = any(hmac.compare_digest(digest(secret), client.secret or "") for secret in secrets)
        limits = secret_limits(client.id, address)
        here = next(iter(limits))
        try:
            if not right:
                await self._attempts.claim(limits)
                raise invalid_client("the secret of the client is missing or wrong")
            # While there is a wait the right secret is refused too, or guessing could go on.
            if await self._attempts.check(limits):
                await self._attempts.reset(here)
        except RateLimited as limited:
            raise too_many_requests(
                "there were too many wrong client secrets from this address",
                math.ceil(limited.seconds),
            ) from None

    async def _verify(self, client: Client, assertion: str) -> None:
        """Raise Refusal unless the assertion is the client's own, for us, for now, and comes for
        the first time (RFC 7523, 3).
        """
        now = self._settings.now()
        try:
            claims = await self._keys.claims(client, assertion, _TYPES)
            check_times(claims, now=now, needs=("exp",))
        except BadSignature as bad:
            raise invalid_client(f"the client assertion is invalid: {bad}") from None
        if claims.get("iss") != client.id or claims.get("sub") != client.id:
            raise invalid_client("iss and sub of the client assertion must be the client_id")
        if not meant_for(claims.get("aud"), self._settings.url, self._settings.endpoint("token")):
            raise invalid_client(
                "the client assertion is for another server: aud must be this issuer"
            )
        jti = claims.get("jti")
        if not isinstance(jti, str) or not jti or claims["exp"] > now + _LONGEST_LIFE:
            raise invalid_client(
                f"the client assertion needs a jti, and an exp within {_LONGEST_LIFE:g} seconds"
            )
        if not await self._seen.first(client.id, jti, until=claims["exp"] + 60):
            raise invalid_client("the client assertion was used before")


def meant_for(audience: object, *us: str) -> bool:
    """Whether an audience is us, and nobody else besides: who else it is for could use it here."""
    names = [audience] if isinstance(audience, str) else audience
    return isinstance(names, list) and bool(names) and all(name in us for name in names)


def _shown(request: Request, form: Mapping[str, str]) -> _Shown:
    """What the request shows, in one way only (RFC 6749, 2.3). Raises Refusal."""
    authorization = header(request, "authorization")
    id = form.get("client_id")
    ways = [
        authorization is not None,
        "client_secret" in form,
        "client_assertion" in form or "client_assertion_type" in form,
    ]
    if sum(ways) > 1:
        raise OAuthError("invalid_request", "a client must use one authentication method at a time")
    if authorization is not None:
        name, secrets = _basic(authorization)
        if id is not None and id not in name:
            raise OAuthError("invalid_request", "the request has two different client ids")
        return _Shown(id or name[0], secrets)
    if ways[2]:
        assertion = form.get("client_assertion")
        if form.get("client_assertion_type") != ASSERTION or assertion is None:
            raise OAuthError(
                "invalid_request",
                f"a client assertion requires client_assertion_type={ASSERTION}",
            )
        try:
            subject = peek(assertion)[1].get("sub")
        except BadSignature as bad:
            raise invalid_client(f"the client assertion is invalid: {bad}") from None
        if not isinstance(subject, str) or id not in (None, subject):
            raise invalid_client("the sub of the client assertion must be the client_id")
        return _Shown(subject, (), assertion)
    return _Shown(id, (form["client_secret"],) if "client_secret" in form else ())


def _basic(header: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Id and secret of a Basic header: form-encoded as RFC 6749, 2.3.1 has it, or bare, as many
    send it.
    """
    scheme, _, blob = header.partition(" ")
    try:
        pair = base64.b64decode(blob.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        pair = ""
    name, colon, secret = pair.partition(":")
    if scheme.lower() != "basic" or not colon:
        raise invalid_client("the Authorization header is not Basic with a client id and a secret")
    return (unquote_plus(name), name), tuple(
        text for text in (unquote_plus(secret), secret) if text
    )
