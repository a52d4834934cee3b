"""Interfaces between the issuer and its login pages: clients, users, and requests that wait for
consent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import force_setattr
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from interlock.store import Vault

from .clients.redirect_uris import is_loopback
from .settings import Settings

Source = Literal["configured", "registered", "document"]


class Client(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A client, as this issuer knows it.

    `method` is how it authenticates: "none", "client_secret_basic", "client_secret_post" or
    "private_key_jwt"; a `secret` or keys alone say it too. `secret` is told in the clear when a
    client is configured, and kept as a digest. `scopes` are all it may ever have, None for no such
    limit. `resource` says which of our resources it is itself, where it is a server that asks about
    tokens that it was given, or exchanges them. `dpop` refuses it tokens that are not bound to a
    key. `source` is who vouches for it: the configuration, nobody (it registered itself), or the
    document behind its id.
    """

    id: str
    name: str | None = None
    uri: str | None = None
    logo: str | None = None
    redirect_uris: tuple[str, ...] = ()
    grants: tuple[str, ...] = ("authorization_code", "refresh_token")
    method: str = ""
    secret: str | None = None
    jwks: dict[str, Any] | None = None
    jwks_uri: str | None = None
    scopes: tuple[str, ...] | None = None
    resource: str | None = None
    dpop: bool = False
    source: Source = "configured"
    issued: float | None = None  # when it registered itself, and
    until: float | None = None  # when that ends, seconds of the wall clock
    used: bool = True  # whether it ever got a token; others make room for new registrations
    network: str = ""  # whence it registered itself

    def __post_init__(self) -> None:
        if not self.method:
            force_setattr(self, "method", self._usual_method())

    def _usual_method(self) -> str:
        if self.secret is not None:
            return "client_secret_basic"
        if self.jwks is not None or self.jwks_uri is not None:
            return "private_key_jwt"
        return "none"

    @property
    def is_public(self) -> bool:
        """Whether it cannot prove that it is this client."""
        return self.method == "none"

    @property
    def is_dynamic(self) -> bool:
        """Whether it registered itself: its name and its logo are what it says they are."""
        return self.source == "registered"

    @property
    def is_document(self) -> bool:
        """Whether its id is the address of a document about it: the host of that address is what
        vouches for it.
        """
        return self.source == "document"

    @property
    def host(self) -> str:
        """The host of a client id that is an address; nothing for any other."""
        return (urlsplit(self.id).hostname or "") if self.is_document else ""


class User(Struct, frozen=True):
    """A person who logs in and consents.

    Args:
        subject: Names the person for ever.
        name: How the person is called.
        claims: Go into access tokens. They never replace claims of the issuer itself.
    """

    subject: str
    name: str | None = None
    claims: Mapping[str, Any] = {}


class PendingRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request that is valid as it stands and waits for a person, until `until` (seconds of the
    wall clock).

    `scopes` are what may be granted, `resource` the server it is for. A device has no
    `redirect_uri`, and a `user_code` that the person types or compares. `prompt` and `login_hint`
    are those of OpenID Connect, as the client sent them.
    """

    id: str
    client: Client
    until: float
    scopes: tuple[str, ...] = ()
    resource: str = ""
    redirect_uri: str = ""
    state: str | None = None
    challenge: str = ""
    thumbprint: str | None = None  # the DPoP key to which the code will be bound (RFC 9449, 10)
    user_code: str = ""
    prompt: str = ""
    login_hint: str = ""

    @property
    def is_device(self) -> bool:
        """Whether it is a device that asks, with no browser to be sent back to."""
        return bool(self.user_code)

    @property
    def redirect_host(self) -> str:
        """Where the person will be sent: the host, to be shown to them (AUR-09)."""
        return urlsplit(self.redirect_uri).netloc

    @property
    def is_loopback(self) -> bool:
        """Whether they will be sent to a program on their own machine."""
        return bool(self.redirect_uri) and is_loopback(self.redirect_uri)


class AuthorizationServer(Protocol):
    """What login pages may ask of the issuer."""

    settings: Settings
    vault: Vault

    async def pending(self, id: str) -> PendingRequest | None:
        """Return a request that waits for a decision; None if there is none, or it has ended."""
        ...

    async def device(self, user_code: str) -> PendingRequest | None:
        """Return the request of the device that shows a code (RFC 8628, 3.3)."""
        ...

    async def grant(self, id: str, user: User, scopes: Sequence[str]) -> Response:
        """The user consents to these scopes, once.
        The browser returns to the client with a code."""
        ...

    async def deny(self, id: str, error: str = "access_denied", words: str = "") -> Response:
        """The user refuses, or cannot be asked, once. The browser returns with the error."""
        ...


class Users(Protocol):
    """Who the users are, and the pages on which they log in and consent.

    Calls `grant` or `deny` of the server once a user has decided.
    """

    def routes(self, server: AuthorizationServer) -> Sequence[BaseRoute]:
        """Return its own routes (`/login`, `/consent`, `/device` ...), with the issuer's path."""
        ...

    async def start(
        self, server: AuthorizationServer, request: Request, pending: PendingRequest
    ) -> Response:
        """Return the first page for a valid request, a redirect to log in, or the grant itself."""
        ...

    async def is_active(self, user: User) -> bool:
        """Return whether tokens may still be given on behalf of a user who once consented.

        It is asked at each refresh, exchange and introspection.
        """
        ...

    def error_page(self, title: str, words: str, onward: str | None = None) -> Response:
        """Return a page (400) for an error that may not be redirected.

        Args:
            title: The heading.
            words: What went wrong. They may quote untrusted text: escape them.
            onward: An address that the user may choose to go on to.
        """
        ...

    def device_page(self, pending: PendingRequest, granted: bool) -> Response:
        """Return the last page for a device, where no browser can be redirected."""
        ...
