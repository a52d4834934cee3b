"""Options of an issuer, checked once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict
from urllib.parse import urlsplit

from msgspec import Struct

from interlock.auth.oauth import is_loopback, is_loopback_host, plain_resource

from .http.error_responses import OAuthError

Dpop = Literal["off", "allowed", "required"]
OFFLINE = "offline_access"
CODE = "authorization_code"
REFRESH = "refresh_token"
CREDENTIALS = "client_credentials"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_DAY = 86_400.0
_LONGEST_SCOPE = 2048
_SCOPE_CHARACTERS = frozenset(chr(c) for c in range(0x21, 0x7F)) - {'"', "\\"}  # RFC 6749, 3.3


class IssuerOptions(TypedDict, total=False):
    """The options of an `Issuer`. All times are seconds."""

    resources: Sequence[str] | None
    """Servers that it gives tokens for. None takes any https address and any on loopback: the user
    reads on the consent page for which server a token will be."""
    scopes: Mapping[str, str]
    """All scopes, with the sentence that the consent page says of each. Empty takes any scope."""
    registration: bool
    """Whether clients may register themselves (RFC 7591)."""
    cimd: bool
    """Whether a client id may be the address of a document about the client."""
    dpop: Dpop
    """Whether tokens may, or must, be bound to a key of the client (RFC 9449)."""
    dpop_nonces: bool
    """Whether DPoP proofs must carry a nonce of the issuer."""
    schemes: Sequence[str]
    """Private URI schemes that redirect URIs may have (RFC 8252, 7.1)."""
    algorithm: str
    """The algorithm that signs access tokens."""
    code_seconds: float
    """How long an authorization code is valid."""
    pending_seconds: float
    """How long a user may take to log in and to consent."""
    access_seconds: float
    """How long an access token is valid."""
    refresh_seconds: float
    """How long a refresh token is valid after its last use."""
    session_seconds: float
    """How long a grant is valid after the user was asked."""
    registration_seconds: float
    """How long a registration is valid after its last use."""
    registrations: int
    """The maximum number of clients that have registered themselves. When it is reached, unused
    registrations of the largest network make room."""
    key_seconds: float
    """How long a key signs before the next one does."""
    clock: Callable[[], float]
    """Returns the seconds of the wall clock; it must be the vault's clock."""
    random: Callable[[int], str]
    """Returns an unguessable text of so many random bytes."""


class Settings(Struct, frozen=True, kw_only=True):
    """The address and the options of an issuer, checked. See `IssuerOptions`."""

    url: str
    resources: tuple[str, ...] | None = None
    scopes: Mapping[str, str] = {}
    registration: bool = True
    cimd: bool = True
    dpop: Dpop = "allowed"
    dpop_nonces: bool = False
    schemes: tuple[str, ...] = ()
    algorithm: str = "ES256"
    code_seconds: float = 60.0
    pending_seconds: float = 600.0
    access_seconds: float = 600.0
    refresh_seconds: float = 30 * _DAY
    session_seconds: float = 180 * _DAY
    registration_seconds: float = 180 * _DAY
    registrations: int = 10_000
    key_seconds: float = 30 * _DAY
    clock: Callable[[], float] = time.time
    random: Callable[[int], str] = secrets.token_urlsafe

    @property
    def path(self) -> str:
        """The path of the issuer's address, without a slash at its end."""
        return urlsplit(self.url).path

    @property
    def is_loopback(self) -> bool:
        """Whether this issuer is one of development, on the machine itself."""
        return is_loopback(self.url)

    def endpoint(self, name: str) -> str:
        """The address of an endpoint."""
        return f"{self.url}/{name}"

    def now(self) -> float:
        """Seconds of the wall clock."""
        return self.clock()

    def wanted_scopes(
        self, asked: str | None, among: Iterable[str] | None = None
    ) -> tuple[str, ...]:
        """The scopes of a request, as far as there are such, and as they are `among` others where
        that is given.

        Raises Refusal where some were asked for and none of them can be had (RFC 6749, 3.3).
        """
        if asked is None:
            return ()
        words = asked.split(" ")
        if len(asked) > _LONGEST_SCOPE or not all(
            _SCOPE_CHARACTERS.issuperset(word) for word in words
        ):
            raise OAuthError("invalid_scope", "the scope cannot be read")
        wanted = dict.fromkeys(word for word in words if word)
        known = [
            word for word in wanted if not self.scopes or word in self.scopes or word == OFFLINE
        ]
        limits = None if among is None else {*among, OFFLINE}
        had = tuple(word for word in known if limits is None or word in limits)
        if wanted and not had:
            raise OAuthError(
                "invalid_scope",
                f"unknown scopes; known are: {' '.join(self.scopes) or 'none that fit'}",
            )
        return had

    def wanted_resource(self, asked: str | None) -> str:
        """The resource of a request as it will stand in the token (RFC 8707, 2): as configured, or
        as asked for.

        Where none is asked for it is the first of those configured, else this issuer itself, whose
        tokens no server takes. Raises Refusal.
        """
        if asked is None:
            return self.resources[0] if self.resources else self.url
        if " " in asked:
            raise OAuthError("invalid_target", "a token is for one resource: request one at a time")
        plain = plain_resource(asked)
        if plain is None or len(asked) > 2048:
            raise OAuthError(
                "invalid_target",
                "the resource must be an absolute http or https address without a fragment",
            )
        if self.resources is not None:
            found = next(
                (known for known in self.resources if plain_resource(known) == plain), None
            )
            if found is None:
                raise OAuthError("invalid_target", "this issuer issues no tokens for that resource")
            return found
        parts = urlsplit(plain)
        if parts.scheme != "https" and not is_loopback_host(parts.hostname or ""):
            raise OAuthError(
                "invalid_target", "the resource must be https, or on a loopback address"
            )
        return asked


def settled(url: str, options: IssuerOptions) -> Settings:
    """Check the address and the options of an issuer (AUT-11).

    Raises:
        ValueError: The address is not allowed for an issuer, or a resource is not an address.
        TypeError: There is no such option.
    """
    parts = urlsplit(url)
    is_plain = url.isascii() and "?" not in url and "#" not in url and "@" not in parts.netloc
    if not parts.hostname or not is_plain:
        raise ValueError(
            f"an issuer is an address without query and fragment (RFC 8414, 2): {url!r} is not one"
        )
    if parts.scheme != "https" and not (
        parts.scheme == "http" and is_loopback_host(parts.hostname)
    ):
        raise ValueError(
            f"an issuer is https, or http on a loopback address for development: {url!r}"
        )
    for resource in options.get("resources") or ():
        if plain_resource(resource) is None:
            raise ValueError(
                f"a resource is an absolute http or https address without a fragment: {resource!r}"
            )
    if options.get("registrations", 1) < 1:
        raise ValueError("registrations is a number above 0")
    given: dict[str, Any] = {**options}
    for name in ("resources", "schemes"):
        if given.get(name) is not None:
            given[name] = tuple(given[name])
    if "scopes" in given:
        given["scopes"] = dict(given["scopes"] or {})
    return Settings(url=url.rstrip("/"), **given)
