"""Errors that stop a client from using a token."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from ..http11.fetch import Request
from ..store.errors import StoreError
from .oauth.addresses import origin
from .oauth.challenges import Challenge
from .oauth.errors import Unauthorized
from .oauth.members import Grant


@contextlib.contextmanager
def vaulted() -> Iterator[None]:
    """Convert the error of a vault that cannot be used to Unauthorized."""
    try:
        yield
    except StoreError as bad:
        raise Unauthorized(
            "vault",
            str(bad),
            advice="Repair the vault, or pass another one as vault=.",
            culprit="client",
        ) from bad


def token_of(request: Request) -> str | None:
    """The token that a request was sent with."""
    sent = next((value for name, value in request.headers if name.lower() == "authorization"), None)
    return None if sent is None else sent.partition(" ")[2]


def leads_to(url: str, server: str) -> bool:
    """Whether a request goes to a server: to its origin, or from http to https at the same host."""
    one = urlsplit(url)
    other = urlsplit(server)
    return origin(url) == origin(server) or (
        other.scheme == "http" and one.scheme == "https" and one.hostname == other.hostname
    )


def too_little(url: str, needed: Iterable[str], grant: Grant) -> Unauthorized:
    """The error for a server that still demands scopes that were already requested."""
    return Unauthorized(
        "request",
        f"the server wants {' '.join(sorted(needed)) or 'other scopes'}; they were "
        "requested, and the server still refuses",
        document=url,
        expected=f"access with the scopes that were granted ({' '.join(grant.scopes) or 'none'})",
        advice="The operator of the authorization server can grant more scopes to this user or "
        "client.",
        culprit="authorization server",
        code="insufficient_scope",
        status=403,
    )


def useless(url: str, challenge: Challenge | None) -> Unauthorized:
    """The error for a server that refuses a token that its own authorization server has just
    issued.
    """
    said = (
        "" if challenge is None else challenge.parameters.get("error_description", challenge.error)
    )
    shown = "".join(c if c.isprintable() else "?" for c in said[:200])
    return Unauthorized(
        "request",
        f"the server refuses a token that was just issued{f' ({shown})' if shown else ''}",
        document=url,
        expected="that it accepts tokens of the authorization server that it names",
        advice=(
            "The operator of the server must find the reason: usually it is the "
            "audience, the issuer, the keys or the clock."
        ),
        status=401,
    )
