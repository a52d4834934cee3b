"""The back channel to the provider behind the proxy: tokens, and who logged in."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from interlock import Fetch, Request
from interlock import types as t
from interlock.auth import Unauthorized
from interlock.auth.oauth import TokenAnswer, read_document, read_error
from interlock.auth.tokens import ASYMMETRIC, RemoteKeys, Unverifiable, check_times

from ..providers import Provider

_LONGEST = 1024 * 1024  # bytes of an answer
_SECONDS = 20.0
_PAUSE = 5.0  # seconds between two requests for the provider's keys: a person waits
_JSON = ("accept", "application/json")


class UpstreamUser(Struct, frozen=True):
    """Who has logged in at the provider: the lasting identifier, the name,
    and all that was said."""

    subject: str
    name: str | None
    claims: Mapping[str, Any]


class ProviderClient:
    """The provider as a client with this id and secret talks to it.

    No answer is an error with words: Unreachable, or Unauthorized.
    """

    def __init__(
        self,
        provider: Provider,
        client_id: str,
        client_secret: str | None,
        fetch: Fetch,
        clock: Callable[[], float],
    ) -> None:
        if client_secret is None and provider.method != "none":
            raise ValueError(
                f"{provider.name} authenticates clients with a secret: give client_secret"
            )
        self.provider = provider
        self.client_id = client_id
        self._secret = client_secret
        self._fetch = fetch
        self._clock = clock
        self._keys = RemoteKeys(
            provider.issuer, jwks_uri=provider.jwks_uri or None, fetch=fetch, pause=_PAUSE
        )

    async def aclose(self) -> None:
        """Ask for nothing more."""
        await self._keys.aclose()

    async def redeem(self, code: str, redirect_uri: str, verifier: str) -> TokenAnswer:
        """The tokens for a code (RFC 6749, 4.1.3)."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        if self.provider.pkce:
            form["code_verifier"] = verifier
        return await self._token(form, "token")

    async def refresh(self, refresh_token: str) -> TokenAnswer:
        """New tokens for a refresh token (RFC 6749, 6).

        Raises Unauthorized with the code invalid_grant where it is worth nothing more.
        """
        return await self._token(
            {"grant_type": "refresh_token", "refresh_token": refresh_token}, "refresh"
        )

    async def who(self, answer: TokenAnswer, nonce: str) -> UpstreamUser:
        """Who has logged in. Raises Unauthorized where that is not shown."""
        if self.provider.person == "id_token":
            claims = await self._verified(answer.id_token, nonce)
        else:
            status, body = await self._asked(answer.access_token)
            claims = _object(body) if status == 200 else {}
        subject, name = self.provider.identified(claims)
        return UpstreamUser(subject, name, claims)

    async def takes(self, access_token: str) -> bool:
        """Whether the provider still takes an access token.

        Where it cannot be asked about one, it is believed.
        """
        if not self.provider.person_url:
            return True
        status, _ = await self._asked(access_token)
        return status not in (401, 403)

    async def _asked(self, access_token: str) -> tuple[int, bytes]:
        headers = (_JSON, ("authorization", f"Bearer {access_token}"), *self.provider.headers)
        return await self._send(Request("GET", self.provider.person_url, headers))

    async def _verified(self, token: str | None, nonce: str) -> dict[str, Any]:
        """The claims of an ID token that is for us, for this log-in, and from the provider (OpenID
        Connect Core, 3.1.3.7).
        """
        if token is None:
            raise self._failed(
                "log-in", "there is no ID token; does the request have the scope openid?"
            )
        now = self._clock()
        try:
            claims = await self._keys.claims(token, now, algorithms=ASYMMETRIC, types=None)
            check_times(claims, now=now)
        except Unverifiable:
            raise self._failed("log-in", "its keys are not available now") from None
        except ValueError as bad:
            raise self._failed("log-in", f"its ID token is invalid: {bad}") from None
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        wrong = {
            "iss": claims.get("iss") not in (self.provider.issuer, *self.provider.also),
            "aud": self.client_id not in audiences,
            "azp": (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != self.client_id,
            "nonce": claims.get("nonce") != nonce,
        }
        for name, is_wrong in wrong.items():
            if is_wrong:
                raise self._failed(
                    "log-in",
                    f"its ID token is for another client or from another issuer: {name} "
                    "is not the expected value",
                )
        return claims

    async def _token(self, form: dict[str, str], step: str) -> TokenAnswer:
        headers = [_JSON, ("content-type", "application/x-www-form-urlencoded")]
        if self.provider.method == "client_secret_basic":
            # RFC 6749, 2.3.1
            pair = f"{quote(self.client_id, safe='')}:{quote(self._secret or '', safe='')}"
            headers.append(("authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
        else:
            form["client_id"] = self.client_id
            if self.provider.method == "client_secret_post" and self._secret is not None:
                form["client_secret"] = self._secret
        status, body = await self._send(
            Request("POST", self.provider.token_endpoint, tuple(headers), urlencode(form).encode())
        )
        refused = read_error(
            body
        )  # whatever the status is: there are providers that refuse with 200
        if refused is not None:
            raise self._failed(
                step,
                f"it says {refused.error}: {refused.error_description or 'no more'}",
                code=refused.error,
            )
        if status != 200:
            raise t.Unreachable(
                f"{self.provider.name} answered {self.provider.token_endpoint} with the status "
                f"{status}.",
                status=status,
            )
        return read_document(body, TokenAnswer, step=step, document=self.provider.token_endpoint)

    async def _send(self, request: Request) -> tuple[int, bytes]:
        try:
            async with asyncio.timeout(_SECONDS):
                response = await self._fetch(request)
                try:
                    return response.status, await response.read(_LONGEST)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise t.TimedOut(
                f"{self.provider.name} did not answer {request.url} within {_SECONDS:g} seconds."
            ) from None

    def _failed(self, step: str, what: str, *, code: str = "") -> Unauthorized:
        return Unauthorized(
            step, f"{self.provider.name}: {what}", culprit="authorization server", code=code
        )


def _object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
