"""Records of a client: its registration, and a server's grant."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from ...redaction.records import SecretRecord

Source = Literal["given", "document", "dynamic"]


class Member(SecretRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A client as one authorization server knows it.

    It is never used at another authorization server (2026-07-28, "Authorization Server Binding").

    Attributes:
        method: How the client authenticates at the token endpoint; empty if the server's metadata
            decides.
        until: When the secret expires, in seconds of the wall clock.
        scopes: All scopes that the client may request, if the server named them.
        source: How the client was registered: by the user ("given"), by its metadata document, or
            dynamically.
    """

    shows: ClassVar[tuple[str, ...]] = ("issuer", "client_id", "method", "source")

    issuer: str
    client_id: str
    client_secret: str | None = None
    method: str = ""
    redirect_uris: tuple[str, ...] = ()
    until: float | None = None
    scopes: tuple[str, ...] | None = None
    source: Source = "given"


class Grant(SecretRecord, frozen=True, kw_only=True, omit_defaults=True):
    """The tokens for one server.

    Attributes:
        issued: When the access token was issued, in seconds of the wall clock.
        expires: When the access token expires, in seconds of the wall clock; None if unknown.
        method: How the client authenticated, because a refresh has no metadata to decide it.
        asked: The requested scopes.
        scopes: The granted scopes.
        key: The private JWK that the tokens are bound to (RFC 9449), if they are.
    """

    shows: ClassVar[tuple[str, ...]] = ("resource", "issuer", "client_id", "expires", "scopes")

    resource: str
    issuer: str
    client_id: str
    token_endpoint: str
    access_token: str
    method: str = ""
    token_type: str = "Bearer"
    issued: float = 0.0
    expires: float | None = None
    refresh_token: str | None = None
    asked: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    key: dict[str, Any] | None = None
    revocation_endpoint: str | None = None

    def is_stale(self, now: float) -> bool:
        """Whether the access token has expired, or is so close to its expiry that a request might
        arrive too late.
        """
        return self.expires is not None and now >= self.expires - min(
            30.0, (self.expires - self.issued) / 10
        )
