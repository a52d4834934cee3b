"""Records of a client: its registration, and a server's grant."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from ...redaction.records import SecretRecord

Source = Literal["given", "document", "dynamic"]


class Member(SecretRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A client as one authorization server knows it.

    Never used at another one (2026-07-28, "Authorization Server Binding").

    `method` is how it authenticates at the token endpoint, empty where the metadata shall decide;
    `until` is when its secret ends, in seconds of the wall clock. `scopes` are all that it may ask
    for, where that was said. `source` is how it came to be: given by the user, a document of its
    own, or dynamic registration.
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
    """What was granted for one server.

    `asked` are the scopes that were asked for, `scopes` those that were granted.

    `expires` is the end of the access token in seconds of the wall clock, None where nobody said;
    `key` is the private JWK to which the tokens are bound (RFC 9449), where they are. `method` is
    how the client showed who it is, as at a refresh there is no metadata to ask.
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
        """Whether the access token has ended, or is so near its end that a request might not arrive
        in time.
        """
        return self.expires is not None and now >= self.expires - min(
            30.0, (self.expires - self.issued) / 10
        )
