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
# between a client and its authorization server: no server needs it (`AUS-14`)
_OFFLINE = "offline_access"
_SCOPE = re.compile(r"[!#-\[\]-~]+")  # RFC 6749, 3.3


class Refusal(Struct, frozen=True):
    """An answer in place of the server's: its status, its headers but for those of the body, and
    the JSON body.

    `usual` is a refusal with which every client begins, and nothing for whoever runs the server to
    look at.
    """

    status: int
    headers: Headers
    body: bytes
    usual: bool = False


class Terms(Struct, frozen=True, kw_only=True):
    """The terms on which a guard lets in, as far as they are told; see `Guard`.

    `features` gives the scopes of the server's features.
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
        """The scopes that may be asked for."""
        known = (
            self.supported
            if self.supported is not None
            else dict.fromkeys((*self.scopes, *sorted(self.features())))
        )
        return [scope for scope in known if scope != _OFFLINE]


class GuardedServer:
    """One server as its clients know it: the URI that identifies it, and where its metadata is."""

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
        """401: a token is needed, or with `words` what is wrong with the one that came.

        `dpop` where it is about a proof.
        """
        said = {} if not words else {"error": error, "error_description": words}
        headers = self._challenges(self.terms.scopes, said, bearer=not (dpop and self.terms.dpop))
        if nonce is not None:
            headers += [(b"dpop-nonce", nonce.encode())]
        return _refusal(
            401,
            error if words else "unauthorized",
            words or "A token is needed.",
            headers,
            usual=not words or nonce is not None,
        )

    def forbidden(self, scopes: Sequence[str]) -> Refusal:
        """403: the token does not allow it."""
        return _refusal(
            403,
            "insufficient_scope",
            f"This needs the scope {' '.join(scopes)}.",
            self.challenge(scopes),
        )

    def challenge(self, scopes: Sequence[str]) -> Headers:
        """The headers of a 403 for an operation that needs `scopes` (`AUS-04`): with those that
        every request needs, so that a client that takes the challenge by the word gets a token
        that will do (`AUS-02`, `AUS-08`).
        """
        said = {
            "error": "insufficient_scope",
            "error_description": "the token does not have the scopes that this needs",
        }
        return self._challenges(dict.fromkeys((*self.terms.scopes, *scopes)), said, bearer=True)

    def _challenges(
        self, scopes: Iterable[str], said: Mapping[str, str], *, bearer: bool
    ) -> Headers:
        """One header, as some clients keep only one of a name.

        Bearer comes first in it, as some only read that.
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
    """400: the request shows its token in a way that no request may (`AUT-06`)."""
    return _refusal(400, "invalid_request", words, [])


def unavailable(words: str, seconds: float) -> Refusal:
    """503: it cannot be found out now whether the token is good."""
    return _refusal(
        503, "temporarily_unavailable", words, [(b"retry-after", b"%d" % max(1, round(seconds)))]
    )


def misconfigured(words: str) -> Refusal:
    """500: nobody said which server this is."""
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
    """Scopes that a server may ask for. Raises ValueError, TypeError."""
    if isinstance(scopes, str):
        raise TypeError("scopes are a list of strings, not one string")
    for scope in scopes:
        if not _SCOPE.fullmatch(scope):
            raise ValueError(
                f"{scope!r} is no scope: printable ASCII characters, without spaces, quotes and "
                "backslashes"
            )
        if scope == _OFFLINE:
            raise ValueError(
                "a server cannot ask for offline_access: that is between a client and its "
                "authorization server"
            )
    return tuple(dict.fromkeys(scopes))


def checked_resource(resource: str) -> str:
    """The URI of a server as its clients are told it, without a trailing slash.
    Raises ValueError."""
    if plain_url(resource) is None or "#" in resource or not resource.isascii():
        raise ValueError(
            "resource is the server's own address, as clients have it: "
            f"https://mcp.example.com/mcp, say; not {resource!r}"
        )
    parts = urlsplit(resource)
    return f"{origin(resource)}{parts.path.rstrip('/')}" + (
        f"?{parts.query}" if parts.query else ""
    )
