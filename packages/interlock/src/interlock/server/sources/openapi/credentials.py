"""API credentials: the secrets of the configuration, where the document's security schemes want
them.

The token of a caller is never one of them: it was issued for this server, and not for the API.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from .document import ApiDocument, OpenApiError, member
from .operations import ApiOperation


class ApiCredential(Struct, frozen=True):
    """One secret of a request.

    Attributes:
        place: "header", "query" or "cookie".
        name: The name of the header, the query parameter or the cookie.
        value: The secret.
    """

    place: str
    name: str
    value: str

    def __repr__(self) -> str:
        return f"ApiCredential({self.place!r}, {self.name!r})"


class ApiCredentials:
    """The secrets for the operations of a document.

    Args:
        document: The document.
        secrets: A bearer token, or secrets by the name of a security scheme. That of HTTP basic
            authentication is "user:password".

    Raises:
        OpenApiError: The document has no scheme of a name, or one of an unknown kind.
    """

    def __init__(self, document: ApiDocument, secrets: str | Mapping[str, str] | None) -> None:
        self._bearer = secrets if isinstance(secrets, str) else None
        named = {} if secrets is None or isinstance(secrets, str) else secrets
        schemes = member(member(document.content, "components"), "securitySchemes")
        self._secrets: dict[str, ApiCredential] = {}
        for name, secret in named.items():
            if name not in schemes:
                known = ", ".join(schemes) or "none"
                raise OpenApiError(f"the document has no security scheme {name!r}; it has: {known}")
            self._secrets[name] = _credential(name, document.resolve(schemes[name]), secret)
        security = document.content.get("security")
        self._default = security if isinstance(security, list) else None

    def names(self) -> frozenset[tuple[str, str]]:
        """Return where secrets are, as pairs of a place and a name in lower case."""
        found = {(secret.place, secret.name.lower()) for secret in self._secrets.values()}
        return frozenset(found)

    def of(self, operation: ApiOperation) -> list[ApiCredential]:
        """Return the secrets of an operation: those of the first alternative that is complete.

        An operation without any security, in a document without any, gets all secrets: the
        configuration has named them.
        """
        alternatives = operation.security if operation.security is not None else self._default
        if self._bearer is not None:
            is_open = alternatives == []
            return (
                [] if is_open else [ApiCredential("header", "Authorization", _bearer(self._bearer))]
            )
        if alternatives is None:
            return list(self._secrets.values())
        for alternative in alternatives:
            names = list(alternative) if isinstance(alternative, Mapping) else []
            if names and all(name in self._secrets for name in names):
                return [self._secrets[name] for name in names]
        return []


def _credential(name: str, scheme: Mapping[str, Any], secret: str) -> ApiCredential:
    kind = scheme.get("type")
    place = scheme.get("in")
    if kind == "apiKey" and place in ("header", "query", "cookie"):
        return ApiCredential(place, str(scheme.get("name", "")), secret)
    if kind == "http" and str(scheme.get("scheme", "")).lower() == "basic":
        return ApiCredential(
            "header", "Authorization", f"Basic {b64encode(secret.encode()).decode()}"
        )
    if kind in ("http", "oauth2", "openIdConnect"):
        return ApiCredential("header", "Authorization", _bearer(secret))
    raise OpenApiError(f"the security scheme {name!r} is of an unknown kind, {kind!r:.40}")


def _bearer(token: str) -> str:
    return f"Bearer {token}"
