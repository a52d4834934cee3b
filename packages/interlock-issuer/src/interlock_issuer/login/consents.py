"""Remembered consent: what a user has allowed which client."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from interlock.auth.oauth import is_loopback
from interlock.store import Vault

from ..interfaces import PendingRequest
from ..repository import digest

_KIND = "consent"
SECONDS = 90 * 86_400.0  # that an answer is remembered


class _Allowed(Struct):
    """What was allowed."""

    scopes: list[str]


def may_remember(pending: PendingRequest) -> bool:
    """Whether an answer to such a request may be remembered: only where nobody else could make it
    in the client's name.

    A client that vouches for itself and is answered on the person's own machine, or by a private
    scheme, may be any program there (SEC-26); and a device has to be looked at each time.
    """
    if pending.is_device:
        return False
    back = pending.redirect_uri
    return pending.client.source == "configured" or (
        back.startswith("https:") and not is_loopback(back)
    )


async def remember(vault: Vault, subject: str, pending: PendingRequest, now: float) -> None:
    """Remember that this person has allowed this, if it may be remembered.

    What they allowed the same client before stays.
    """
    if not may_remember(pending):
        return
    key = _key(subject, pending)
    known = await _allowed(vault, key)
    value = msgspec.json.encode(_Allowed(sorted({*known, *pending.scopes})))
    await vault.put(_KIND, key, value, until=now + SECONDS)


async def covers(vault: Vault, subject: str, pending: PendingRequest) -> bool:
    """Whether this person has already allowed all of this: to the same client, at the same redirect
    URI, for the same server (SEC-07).
    """
    if not may_remember(pending) or "consent" in pending.prompt.split():
        return False
    key = _key(subject, pending)
    return await vault.get(_KIND, key) is not None and set(pending.scopes) <= await _allowed(
        vault, key
    )


async def _allowed(vault: Vault, key: str) -> set[str]:
    kept = await vault.get(_KIND, key)
    return set() if kept is None else set(msgspec.json.decode(kept, type=_Allowed).scopes)


def _key(subject: str, pending: PendingRequest) -> str:
    """The whole of what was agreed to, so that a client with another name, address or server is
    another client.
    """
    parts = (
        subject,
        pending.client.id,
        pending.client.source,
        _stable_redirect_uri(pending),
        pending.resource,
    )
    return digest(msgspec.json.encode(parts).decode())


def _stable_redirect_uri(pending: PendingRequest) -> str:
    """The redirect URI without the port of a loopback address, which is another each time (RFC
    8252, 7.3).
    """
    if not pending.is_loopback:
        return pending.redirect_uri
    parts = urlsplit(pending.redirect_uri)
    return parts._replace(netloc=parts.hostname or "").geturl()
