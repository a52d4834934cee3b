"""A login provider as its client must know it: endpoints, options, and who the user is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from interlock.auth import Unauthorized
from interlock.auth.oauth import ServerMetadata, checked_url

Finding = Literal["id_token", "userinfo", "api"]
Method = Literal["client_secret_basic", "client_secret_post", "none"]


class Provider(Struct, frozen=True, kw_only=True):
    """One authorization server, and how a client of it gets along.

    `person` says how it is found who has logged in: by the ID token (whose signature `jwks_uri`
    shows), by `userinfo`, or by another `api` at `person_url`, whose answer has the lasting
    identifier under `subject` and what people call themselves under one of `names`. `scopes` are
    asked for unless others are given, joined by `separator`; `extra` goes with each authorization
    request. `sends_iss` says that an authorization response without `iss` is refused (RFC 9207);
    one with another `iss` is refused in any case. Raises ValueError for an address that is neither
    https nor on loopback.
    """

    name: str
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    also: tuple[str, ...] = ()  # more values of `iss` in its ID tokens
    person: Finding = "id_token"
    jwks_uri: str = ""
    person_url: str = ""
    subject: str = "sub"
    names: tuple[str, ...] = ("name", "preferred_username", "email")
    scopes: tuple[str, ...] = ("openid", "profile")
    separator: str = " "
    extra: Mapping[str, str] = {}
    pkce: bool = True
    method: Method = "client_secret_post"
    sends_iss: bool = False
    headers: tuple[tuple[str, str], ...] = ()  # of requests to `person_url`

    def __post_init__(self) -> None:
        for url in (
            self.issuer,
            self.authorization_endpoint,
            self.token_endpoint,
            self.jwks_uri,
            self.person_url,
        ):
            if url:
                checked_url(url, what=f"an address of {self.name}")
        if self.person == "id_token" and not self.jwks_uri:
            raise ValueError(
                f"the ID tokens of {self.name} cannot be verified without its jwks_uri"
            )
        if self.person != "id_token" and not self.person_url:
            raise ValueError(f"users of {self.name} cannot be looked up without its person_url")

    def visit(
        self,
        *,
        client_id: str,
        redirect_uri: str,
        state: str,
        challenge: str,
        nonce: str,
        scopes: tuple[str, ...],
        prompt: str = "",
    ) -> str:
        """The address at which a person logs in and agrees (RFC 6749, 4.1.1; RFC 7636, 4.3).

        `prompt` is one of OpenID Connect's, and takes the place of the provider's own where it is
        given.
        """
        asked = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": redirect_uri,
            "state": state,
        }
        if scopes:
            asked["scope"] = self.separator.join(scopes)
        if self.pkce:
            asked |= {"code_challenge": challenge, "code_challenge_method": "S256"}
        if self.person == "id_token":
            asked |= {"nonce": nonce} | ({"prompt": prompt} if prompt else {})
        joint = "&" if urlsplit(self.authorization_endpoint).query else "?"
        return f"{self.authorization_endpoint}{joint}{urlencode({**self.extra, **asked})}"

    def identified(self, claims: Mapping[str, Any]) -> tuple[str, str | None]:
        """Who claims, or an API's answer, are about: the lasting identifier, and the name.

        Raises Unauthorized where they do not say.
        """
        subject = claims.get(self.subject)
        if isinstance(subject, bool) or not isinstance(subject, str | int) or subject == "":
            raise Unauthorized(
                "log-in",
                f"{self.name} does not say who logged in: {self.subject} is missing",
                culprit="authorization server",
            )
        named = (claims.get(name) for name in self.names)
        return str(subject), next((name for name in named if isinstance(name, str) and name), None)


def provider_of(
    metadata: ServerMetadata | bytes,
    *,
    name: str = "",
    scopes: tuple[str, ...] = ("openid", "profile"),
) -> Provider:
    """A provider from the metadata that it publishes (OpenID Connect Discovery 1.0, 3).

    Raises ValueError where that is not enough.
    """
    known = (
        msgspec.json.decode(metadata, type=ServerMetadata)
        if isinstance(metadata, bytes)
        else metadata
    )
    if known.authorization_endpoint is None or known.token_endpoint is None:
        raise ValueError(f"{known.issuer} has no authorization_endpoint or no token_endpoint")
    methods = known.token_endpoint_auth_methods_supported or [
        "client_secret_basic"
    ]  # RFC 8414, 2: the default
    order: tuple[Method, ...] = ("client_secret_post", "client_secret_basic", "none")
    return Provider(
        name=name or urlsplit(known.issuer).hostname or known.issuer,
        issuer=known.issuer,
        authorization_endpoint=known.authorization_endpoint,
        token_endpoint=known.token_endpoint,
        person="id_token" if known.jwks_uri else "userinfo",
        jwks_uri=known.jwks_uri or "",
        person_url=known.userinfo_endpoint or "",
        scopes=scopes,
        pkce="S256"
        in (known.code_challenge_methods_supported or ["S256"]),  # harmless where it is not known
        method=next((method for method in order if method in methods), "client_secret_basic"),
        sends_iss=known.authorization_response_iss_parameter_supported is True,
    )
