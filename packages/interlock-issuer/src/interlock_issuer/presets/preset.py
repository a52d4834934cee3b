"""A preset: data about an identity provider, and the verifier or provider made from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from interlock import Fetch
from interlock.auth.tokens import Verifier

from ..providers import Finding, Method, Provider

Kind = Literal["jwt", "api"]
Setup = Literal["guard", "proxy", "either"]

# What may stand in for each placeholder of an address: nothing that could make it the address of
# somebody else.
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,}"
_FITTING = {
    "domain": re.compile(_HOST),
    "base": re.compile(
        rf"(?:https://{_HOST}|http://(?:localhost|127\.0\.0\.1))(?::[0-9]{{1,5}})?(?:/[A-Za-z0-9._~-]+)*"
    ),
    "tenant": re.compile(rf"[0-9A-Fa-f-]{{36}}|{_HOST}"),
    "region": re.compile(r"[a-z]{2}(?:-[a-z]+)+-[0-9]"),
}
_PLAIN = re.compile(r"[A-Za-z0-9._~-]+")


class Preset(Struct, frozen=True, kw_only=True):
    """One identity provider.

    Addresses are templates over `needs`: the name of each value that is needed, and an example of
    it.

    - `setup`: whether a `Guard` with `verifier` is enough, the `proxy` is needed (it registers no
      clients, or gives no tokens for a server of ours), or `either`.
    - `kind`: its access tokens are JWTs, or opaque with an API of its own that knows them.
      `introspection` is where it can be asked about tokens in the common way (RFC 7662).
    - `audience`: what its tokens have in `aud`; empty for the server's own address.
    - `scope_claims`, `client_claims`, `subject_claims` and `required`: how its tokens are read.
    - `dcr`, `cimd`, `indicators`: whether clients register themselves (RFC 7591), whether client
      ids may be addresses of documents, whether `resource` (RFC 8707) is understood; None: not
      documented.
    - the rest is for logging in there: see `Provider`. `links` are where it is documented,
      `remarks` what one has to know.
    """

    name: str
    title: str
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    setup: Setup
    kind: Kind = "jwt"
    needs: Mapping[str, str] = {}
    # the authorization server that clients are sent to, where it is not the issuer of the tokens
    server: str = ""
    also: tuple[str, ...] = ()
    jwks_uri: str = ""
    introspection: str = ""
    audience: str = ""
    scope_claims: tuple[str, ...] = ("scope", "scp")
    client_claims: tuple[str, ...] = ("client_id", "azp", "cid", "appid")
    subject_claims: tuple[str, ...] = ("sub",)
    required: Mapping[str, str] = {}
    dcr: bool | None = None
    cimd: bool | None = None
    indicators: bool | None = None
    person: Finding = "id_token"
    person_url: str = ""
    subject: str = "sub"
    names: tuple[str, ...] = ("name", "preferred_username", "email")
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    extra: Mapping[str, str] = {}
    method: Method = "client_secret_post"
    sends_iss: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    links: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def verifier(
        self,
        *,
        audience: str | Sequence[str] | None = None,
        opaque: bool = False,
        client_id: str | None = None,
        client_secret: str | None = None,
        fetch: Fetch | None = None,
        **values: str,
    ) -> Verifier:
        """A verifier of its access tokens, from the values that it `needs`.

        `audience` is what tokens for this server have in `aud`, where it is not what the preset
        says. With `opaque` the provider is asked about each token, whatever it looks like; where it
        is asked, this server shows who it is by `client_id` and `client_secret`. Raises ValueError
        for a value that is missing or cannot be one.
        """
        # late: who only reads the table needs neither cryptography nor HTTP
        from interlock.auth.tokens import Introspection, Jwt

        # late: for the same reason
        from .opaque import CHECKS, Opaque

        known = self._checked(values)
        issuer = self._filled(self.issuer, known)
        if self.kind == "api":
            return Opaque(
                CHECKS[self.name](self._own(client_id), client_secret, fetch), issuers=(issuer,)
            )
        chosen = audience if audience is not None else self._filled(self.audience, known) or None
        if opaque:
            if not self.introspection:
                raise ValueError(f"{self.title} has no way to check opaque tokens")
            introspecting: Verifier = Introspection(
                issuer,
                client_id=self._own(client_id),
                client_secret=client_secret,
                endpoint=self._filled(self.introspection, known),
                audience=chosen,
                scope_claims=self.scope_claims,
                client_claims=self.client_claims,
                subject_claims=self.subject_claims,
                required=dict(self.required),
                fetch=fetch,
            )
            return introspecting
        verifier = Jwt(
            issuer,
            also=[self._filled(other, known) for other in self.also],
            audience=chosen,
            jwks_uri=self._filled(self.jwks_uri, known) or None,
            scope_claims=self.scope_claims,
            client_claims=self.client_claims,
            subject_claims=self.subject_claims,
            required=dict(self.required),
            fetch=fetch,
        )
        if self.server:
            verifier.issuers = (self._filled(self.server, known),)
        return verifier

    def provider(self, **values: str) -> Provider:
        """The provider as a proxy needs it, from the values that it `needs`.

        Raises ValueError for one that is missing or cannot be one.
        """
        known = self._checked(values)
        return Provider(
            name=self.title,
            issuer=self._filled(self.issuer, known),
            also=tuple(self._filled(other, known) for other in self.also),
            authorization_endpoint=self._filled(self.authorization_endpoint, known),
            token_endpoint=self._filled(self.token_endpoint, known),
            person=self.person,
            jwks_uri=self._filled(self.jwks_uri, known),
            person_url=self._filled(self.person_url, known),
            subject=self.subject,
            names=self.names,
            scopes=self.scopes,
            extra=self.extra,
            method=self.method,
            sends_iss=self.sends_iss,
            headers=self.headers,
        )

    def _checked(self, values: Mapping[str, str]) -> dict[str, str]:
        known = {
            name: value.removeprefix("https://").rstrip("/")
            if name == "domain"
            else value.rstrip("/")
            for name, value in values.items()
        }
        if strange := known.keys() - self.needs.keys():
            raise ValueError(
                f"{self.title} has no {', '.join(sorted(strange))}; it needs "
                f"{', '.join(self.needs) or 'nothing'}"
            )
        for name, example in self.needs.items():
            if name not in known:
                raise ValueError(f"{self.title} needs {name}, such as {example!r}")
            if not _FITTING.get(name, _PLAIN).fullmatch(known[name]):
                raise ValueError(
                    f"{known[name]!r} cannot be the {name} of {self.title}, which is such as "
                    f"{example!r}"
                )
        return known

    def _filled(self, template: str, known: Mapping[str, str]) -> str:
        return template.format_map(known)

    def _own(self, client_id: str | None) -> str:
        if client_id is None:
            raise ValueError(
                f"{self.title} must introspect its tokens: give client_id, and "
                "client_secret if there is one"
            )
        return client_id
