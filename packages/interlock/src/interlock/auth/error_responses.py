"""Metadata and error responses of a guarded server (RFC 9728; RFC 6750, 3; RFC 9449, 7.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from .oauth.addresses import origin, plain_url
from .oauth.challenges import write_challenge
from .oauth.documents import ProtectedResource
from .tokens.dpop import ALGORITHMS

Headers = list[tuple[bytes, bytes]]

WELL_KNOWN = "/.well-known/oauth-protected-resource"
# a scope between a client and its authorization server; no server may require it (`AUS-14`)
_OFFLINE = "offline_access"
_SCOPE = re.compile(r"[!#-\[\]-~]+")  # RFC 6749, 3.3


class Refusal(Struct, frozen=True):
    """An error response: its status, its headers (without those of the body), and the JSON body.

    `usual` marks the refusal that every client receives at first, which is not worth a log line.
    """

    status: int
    headers: Headers
    body: bytes
    usual: bool = False


class Terms(Struct, frozen=True, kw_only=True):
    """The published terms of a guard; see `Guard`.

    `features` returns the scopes of the server's features.
    """

    issuers: tuple[str, ...]
    scopes: tuple[str, ...]
    supported: tuple[str, ...] | None
    features: Callable[[], Iterable[str]]
    name: str | None
    documentation: str | None
    bearer: bool
    dpop: bool

    @property
    def all_scopes(self) -> list[str]:
        """The scopes that clients may request."""
        known = (
            self.supported
            if self.supported is not None
            else dict.fromkeys((*self.scopes, *sorted(self.features())))
        )
        return [scope for scope in known if scope != _OFFLINE]


class GuardedServer:
    """One server as its clients know it: its canonical URI, and the URL of its metadata."""

    def __init__(self, terms: Terms, resource: str, metadata: str) -> None:
        self.terms = terms
        self.resource = resource
        self.metadata = metadata
        self.origin = origin(resource)
        self.path = urlsplit(resource).path.rstrip("/")

    def document(self) -> bytes:
        """The metadata of the server (RFC 9728, 2; `AU3-01`)."""
        terms = self.terms
        return msgspec.json.encode(
            ProtectedResource(
                resource=self.resource,
                authorization_servers=list(terms.issuers),
                scopes_supported=terms.all_scopes or None,
                bearer_methods_supported=["header"],
                resource_name=terms.name,
                resource_documentation=terms.documentation,
                dpop_signing_alg_values_supported=list(ALGORITHMS) if terms.dpop else None,
                dpop_bound_access_tokens_required=True if not terms.bearer else None,
            )
        )

    def unauthorized(
        self,
        words: str = "",
        *,
        error: str = "invalid_token",
        dpop: bool = False,
        nonce: str | None = None,
    ) -> Refusal:
        """401: a token is needed, or (`words`) the given one is invalid.

        `dpop` if the DPoP proof is invalid.
        """
        said = {} if not words else {"error": error, "error_description": words}
        headers = self._challenges(self.terms.scopes, said, bearer=not (dpop and self.terms.dpop))
        if nonce is not None:
            headers += [(b"dpop-nonce", nonce.encode())]
        return _refusal(
            401,
            error if words else "unauthorized",
            words or "An access token is required.",
            headers,
            usual=not words or nonce is not None,
        )

    def forbidden(self, scopes: Sequence[str]) -> Refusal:
        """403: the token does not have the scopes."""
        return _refusal(
            403,
            "insufficient_scope",
            f"This needs the scope {' '.join(scopes)}.",
            self.challenge(scopes),
        )

    def challenge(self, scopes: Sequence[str]) -> Headers:
        """The headers of a 403 for an operation that needs `scopes` (`AUS-04`).

        They include the scopes that every request needs, so that a client that requests exactly
        these scopes gets a sufficient token (`AUS-02`, `AUS-08`).
        """
        said = {
            "error": "insufficient_scope",
            "error_description": "the token lacks scopes that this request needs",
        }
        return self._challenges(dict.fromkeys((*self.terms.scopes, *scopes)), said, bearer=True)

    def _challenges(
        self, scopes: Iterable[str], said: Mapping[str, str], *, bearer: bool
    ) -> Headers:
        """One header for all challenges, because some clients keep only one header of a name.

        Bearer comes first, because some clients read only the first challenge.
        """
        wanted = " ".join(scope for scope in scopes if scope != _OFFLINE)
        where = (
            {"resource_metadata": self.metadata}
            if self.terms.issuers
            else {"realm": self.terms.name or self.resource}
        )
        parameters = {**said, **({"scope": wanted} if wanted else {}), **where}
        challenges = []
        if bearer and self.terms.bearer:
            challenges.append(write_challenge("Bearer", parameters))
        if self.terms.dpop:
            challenges.append(write_challenge("DPoP", {**parameters, "algs": " ".join(ALGORITHMS)}))
        return [(b"www-authenticate", ", ".join(challenges).encode("ascii"))]


def malformed(words: str) -> Refusal:
    """400: the request sends its token in a forbidden way (`AUT-06`)."""
    return _refusal(400, "invalid_request", words, [])


def unavailable(words: str, seconds: float) -> Refusal:
    """503: the token cannot be verified now."""
    return _refusal(
        503, "temporarily_unavailable", words, [(b"retry-after", b"%d" % max(1, round(seconds)))]
    )


def misconfigured(words: str) -> Refusal:
    """500: the URI of this server is not configured."""
    return _refusal(500, "server_error", words, [])


def _refusal(
    status: int, error: str, words: str, headers: Headers, *, usual: bool = False
) -> Refusal:
    body = msgspec.json.encode({"error": error, "error_description": words})
    return Refusal(
        status,
        [*headers, (b"cache-control", b"no-store"), (b"content-type", b"application/json")],
        body,
        usual,
    )


def checked_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    """Check the scopes that a server requires. Raises ValueError, TypeError."""
    if isinstance(scopes, str):
        raise TypeError("scopes are a list of strings, not one string")
    for scope in scopes:
        if not _SCOPE.fullmatch(scope):
            raise ValueError(
                f"{scope!r} is not a scope: use printable ASCII characters without "
                "spaces, quotes and backslashes"
            )
        if scope == _OFFLINE:
            raise ValueError(
                "a server cannot require offline_access: that scope is between a client "
                "and its authorization server"
            )
    return tuple(dict.fromkeys(scopes))


def checked_resource(resource: str) -> str:
    """Return the canonical URI of a server, without a trailing slash. Raises ValueError."""
    if plain_url(resource) is None or "#" in resource or not resource.isascii():
        raise ValueError(
            "resource is the server's own address as clients know it, such as "
            f"https://mcp.example.com/mcp; not {resource!r}"
        )
    parts = urlsplit(resource)
    return f"{origin(resource)}{parts.path.rstrip('/')}" + (
        f"?{parts.query}" if parts.query else ""
    )
