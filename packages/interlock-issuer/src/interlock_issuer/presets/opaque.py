"""Opaque tokens of providers without introspection: the provider's own API is asked."""

from __future__ import annotations

import asyncio
import base64
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from interlock import Fetch, HttpFetch, Principal, Request
from interlock import types as t
from interlock.auth.tokens import BadToken, Unverifiable, Verified

Check = Callable[[str, float], Awaitable[Principal]]

_LONGEST = 256 * 1024  # bytes of an answer
_SECONDS = 10.0
_FORM = "application/x-www-form-urlencoded"
_GOOGLE = "https://oauth2.googleapis.com/tokeninfo"
_GITHUB = "https://api.github.com/applications/{client_id}/token"


def google(client_id: str, client_secret: str | None, fetch: Fetch | None) -> Check:
    """Who has a Google access token that was given to this client."""
    send = fetch if fetch is not None else HttpFetch()

    async def check(token: str, now: float) -> Principal:
        headers = (
            ("authorization", f"Bearer {token}"),
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "application/json"),
        )
        said = await _ask(send, Request("POST", _GOOGLE, headers, again=True), (400, 401), "Google")
        if said.get("aud") != client_id:
            raise BadToken("it was issued to another client")
        subject = said.get("sub") or said.get("user_id")
        seconds = _number(said.get("expires_in"))
        if not isinstance(subject, str) or not subject:
            raise BadToken("it does not name a user: request the scope openid")
        return Principal(
            subject=subject,
            issuer="https://accounts.google.com",
            client=client_id,
            scopes=frozenset(str(said.get("scope", "")).split()),
            expires=None if seconds is None else now + seconds,
            claims={name: said[name] for name in ("email", "email_verified") if name in said},
        )

    return check


def github(client_id: str, client_secret: str | None, fetch: Fetch | None) -> Check:
    """Who has a GitHub token that was given to this OAuth or GitHub app."""
    if client_secret is None:
        raise ValueError(
            "GitHub introspects a token only for the app that it was issued to: give client_secret"
        )
    send = fetch if fetch is not None else HttpFetch()
    pair = base64.b64encode(f"{client_id}:{client_secret}".encode()).decode()
    headers = (
        ("authorization", f"Basic {pair}"),
        ("accept", "application/vnd.github+json"),
        ("content-type", "application/json"),
        ("x-github-api-version", "2022-11-28"),
    )

    async def check(token: str, now: float) -> Principal:
        body = msgspec.json.encode({"access_token": token})
        said = await _ask(
            send,
            Request("POST", _GITHUB.format(client_id=client_id), headers, body, again=True),
            (404, 422),
            "GitHub",
        )
        app = said.get("app")
        user = said.get("user")
        if not isinstance(app, dict) or app.get("client_id") != client_id:
            raise BadToken("it was issued to another client")
        if not isinstance(user, dict) or not isinstance(user.get("id"), int):
            raise BadToken("it does not name a user")
        scopes = said.get("scopes")
        return Principal(
            subject=str(user["id"]),
            issuer="https://github.com/login/oauth",
            client=client_id,
            scopes=frozenset(scope for scope in scopes if isinstance(scope, str))
            if isinstance(scopes, list)
            else frozenset(),
            claims={"login": user.get("login")},
        )

    return check


CHECKS: dict[str, Callable[[str, str | None, Fetch | None], Check]] = {
    "google": google,
    "github": github,
}
"""By the name of the preset."""


class Opaque:
    """Verifies tokens by asking their provider about each, by one of the `CHECKS`.

    Its word is taken for `seconds`.
    """

    def __init__(self, check: Check, *, issuers: Sequence[str], seconds: float = 60.0) -> None:
        self.issuers: Sequence[str] = tuple(issuers)
        self.seconds = seconds
        self._check = check

    async def verify(self, token: str, *, resource: str, now: float) -> Verified:
        """See `Verifier.verify`.

        Tokens of such providers name no server: it is the client that has to be our own.
        """
        principal = await self._check(token, now)
        if principal.expires is not None and principal.expires <= now:
            raise BadToken("it has expired")
        return Verified(principal, None, self.seconds)


async def _ask(
    send: Fetch, request: Request, refusals: tuple[int, ...], name: str
) -> dict[str, Any]:
    """What the provider says of a token.

    Raises BadToken for one that it does not know, Unverifiable where it says nothing.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            response = await send(request)
            try:
                status = response.status
                body = await response.read(_LONGEST)
            finally:
                await response.aclose()
    except (TimeoutError, t.InterlockError, OSError):
        raise Unverifiable(f"{name} cannot introspect this token now.") from None
    if status in refusals:
        raise BadToken(f"{name} does not know it")
    if status != 200:
        raise Unverifiable(f"{name} cannot introspect this token now.")
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (ValueError, RecursionError):
        raise Unverifiable(f"{name} did not say whether this token is valid.") from None


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
