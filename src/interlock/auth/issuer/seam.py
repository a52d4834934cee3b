"""What the engine of the issuer and the people behind it say to each other: clients, persons, requests that wait for a decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import force_setattr

from .redirects import is_loopback
from .web import Asked, Reply

if TYPE_CHECKING:
    from .app import Issuer

Source = Literal["configured", "registered", "document"]


class Client(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A client, as this issuer knows it.

    `method` is how it authenticates: "none", "client_secret_basic", "client_secret_post" or "private_key_jwt"; a `secret` or keys alone
    say it too. `secret` is told in the clear when a client is configured, and kept as a digest. `scopes` are all it may ever have, None
    for no such limit. `resource` says which of our resources it is itself, where it is a server that asks about tokens that it was
    given, or exchanges them. `dpop` refuses it tokens that are not bound to a key. `source` is who vouches for it: the configuration,
    nobody (it registered itself), or the document behind its id.
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

    def __post_init__(self) -> None:
        if not self.method:
            keys = self.jwks is not None or self.jwks_uri is not None
            method = (
                "client_secret_basic"
                if self.secret is not None
                else "private_key_jwt"
                if keys
                else "none"
            )
            force_setattr(self, "method", method)

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
        """Whether its id is the address of a document about it: the host of that address is what vouches for it."""
        return self.source == "document"

    @property
    def host(self) -> str:
        """The host of a client id that is an address; nothing for any other."""
        return (urlsplit(self.id).hostname or "") if self.is_document else ""


class Person(Struct, frozen=True):
    """Who decides: `subject` is who that is for ever, `claims` go into access tokens (never over those of the issuer itself)."""

    subject: str
    name: str | None = None
    claims: Mapping[str, Any] = {}


class Pending(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request that is valid as it stands and waits for a person, until `until` (seconds of the wall clock).

    `scopes` are what may be granted, `resource` the server it is for. A device has no `redirect_uri`, and a `user_code` that the person
    types or compares. `prompt` and `login_hint` are those of OpenID Connect, as the client sent them.
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


class People(Protocol):
    """Who the persons are, how they are recognised and asked. Calls `issuer.grant` or `issuer.deny` once they have decided."""

    async def begin(self, issuer: Issuer, asked: Asked, pending: Pending) -> Reply:
        """The first page for a request that has just been found valid; also a redirect to log in, or the grant itself."""
        ...

    async def answer(self, issuer: Issuer, asked: Asked) -> Reply | None:
        """Its own routes (`/login`, `/consent`, `/device`, ..., below the issuer's path); None for a path that is not its."""
        ...

    async def stands(self, person: Person) -> bool:
        """Whether tokens may still be given on behalf of who once decided: asked at each refresh, exchange and introspection."""
        ...

    def misfortune(self, title: str, words: str, onward: str | None = None) -> Reply:
        """A page (400) for an error that may not be redirected; `onward` is an address that the person may choose to go on to.

        The words may quote what a stranger sent: escape them.
        """
        ...

    def done(self, pending: Pending, granted: bool) -> Reply:
        """The last page for a device, where there is nowhere to send the browser."""
        ...
