"""Trusted issuers: assertions about users (ID-JAG) and workloads (RFC 7523, 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from interlock import Fetch
from interlock.auth.oauth import checked_url, same_resource
from interlock.auth.tokens import (
    ASYMMETRIC,
    BadSignature,
    KeySet,
    RemoteKeys,
    Unverifiable,
    check_times,
    peek,
)
from interlock.store import Vault

from ..clients.authentication import meant_for
from ..http.error_responses import OAuthError, invalid_grant, unavailable
from ..interfaces import Client, User
from ..repository import SeenSet
from ..settings import Settings
from ..tokens.access_tokens import TokenSpec

ID_JAG = "oauth-id-jag+jwt"
ID_JAG_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag"
_LONGEST_LIFE = 86_400.0  # seconds: for so long a jti is remembered
_WORKLOAD_TYPES = ("", "jwt")


class Workload(Struct, frozen=True, kw_only=True):
    """What a workload may have.

    `subject` is what it is called in our tokens: `<issuer>|<sub>` where nothing is said.
    """

    scopes: tuple[str, ...] = ()
    resources: tuple[str, ...] | None = None
    subject: str | None = None


class TrustedIssuer(Struct, frozen=True, kw_only=True):
    """An issuer of assertions, by configuration (EMA-08 to EMA-14, WIF-04).

    Its keys are `jwks`, or at `jwks_uri`, or where its metadata says. With `users` its ID-JAGs are
    accepted: `user` makes our user of their claims, or None for nobody; unless it is given the
    subject is `<issuer>|<sub>`, which is nobody else's. Its JWTs for `workloads` are taken by their
    `sub`; a name that ends in `*` is that of all that begin so.
    """

    issuer: str
    jwks: Mapping[str, Any] | None = None
    jwks_uri: str | None = None
    algorithms: tuple[str, ...] = ASYMMETRIC
    users: bool = False
    user: Callable[[Mapping[str, Any]], User | None] | None = None
    workloads: Mapping[str, Workload] = {}


class TrustedIssuers:
    """The grant of JWTs (RFC 7523, 2.1): both profiles of it."""

    def __init__(
        self,
        settings: Settings,
        vault: Vault,
        fetch: Fetch | None,
        trusted: Sequence[TrustedIssuer],
    ) -> None:
        self._settings = settings
        self._trusted = {one.issuer: one for one in trusted}
        self._seen = SeenSet(vault, "jwt", settings.clock)
        self._keys: dict[str, KeySet | RemoteKeys] = {}
        for one in trusted:
            if one.jwks is not None:
                self._keys[one.issuer] = KeySet.read(one.jwks)
            else:
                place = checked_url(
                    one.jwks_uri or one.issuer, what=f"the address of the keys of {one.issuer!r}"
                )
                self._keys[one.issuer] = RemoteKeys(
                    one.issuer, jwks_uri=None if one.jwks_uri is None else place, fetch=fetch
                )
            if one.users and settings.resources is None:
                raise ValueError(
                    "an issuer that accepts ID-JAGs must list its resources (EMA-09): "
                    "resources=[...]"
                )

    @property
    def profiles(self) -> list[str]:
        """What is said of it in the metadata."""
        return [ID_JAG_PROFILE] if any(one.users for one in self._trusted.values()) else []

    def __bool__(self) -> bool:
        return bool(self._trusted)

    def is_id_jag(self, token: str) -> bool:
        """Whether a token says that it is about a person.

        What it says decides only how strictly it is looked at.
        """
        try:
            typ = peek(token)[0].get("typ")
        except BadSignature as bad:
            raise invalid_grant(f"the assertion is invalid: {bad}") from None
        return isinstance(typ, str) and typ.lower().removeprefix("application/") == ID_JAG

    async def person(
        self, token: str, client: Client, scope: str | None, resource: str | None
    ) -> TokenSpec:
        """What an ID-JAG gives a client that has shown who it is (EMA-08 to EMA-11).

        Raises Refusal.
        """
        if client.is_public:
            raise OAuthError(
                "unauthorized_client", "only clients that authenticate can use an ID-JAG"
            )
        issuer, claims = await self._read(token, (ID_JAG,), [self._settings.url], ("exp", "iat"))
        if not issuer.users:
            raise invalid_grant("this issuer is not trusted to identify users")
        if claims.get("client_id") != client.id:
            raise invalid_grant("the ID-JAG was issued to another client")
        meant = self._resource(claims.get("resource"))
        if resource is not None and not same_resource(resource, meant):
            raise OAuthError("invalid_target", "the resource is not the one of the ID-JAG")
        person = (
            User(f"{issuer.issuer}|{claims['sub']}") if issuer.user is None else issuer.user(claims)
        )
        if person is None:
            raise invalid_grant("the user of the ID-JAG is unknown")
        given = claims.get("scope")
        scopes = self._scopes(scope, given.split(" ") if isinstance(given, str) else (), client)
        await self._once(issuer, claims)
        return TokenSpec(
            client=client,
            subject=person.subject,
            resource=meant,
            scopes=scopes,
            claims=person.claims,
        )

    async def workload(self, token: str, scope: str | None, resource: str | None) -> TokenSpec:
        """What the JWT of a workload gives it (WIF-04). Raises Refusal."""
        issuer, claims = await self._read(
            token,
            _WORKLOAD_TYPES,
            [self._settings.endpoint("token"), self._settings.url],
            ("exp", "iat"),
        )
        subject = claims["sub"]
        workload = next(
            (one for name, one in issuer.workloads.items() if _names(name, subject)), None
        )
        if workload is None:
            raise invalid_grant("this workload is not trusted")
        meant = self._settings.wanted_resource(resource)
        if workload.resources is not None and not any(
            same_resource(meant, known) for known in workload.resources
        ):
            raise OAuthError("invalid_target", "this workload may not get tokens for that resource")
        name = workload.subject or f"{issuer.issuer}|{subject}"
        client = Client(id=name, name=name)
        scopes = self._scopes(scope, workload.scopes, client)
        await self._once(issuer, claims)
        return TokenSpec(client=client, subject=name, resource=meant, scopes=scopes)

    async def _read(
        self, token: str, typ: Sequence[str], audiences: Sequence[str], times: Sequence[str]
    ) -> tuple[TrustedIssuer, dict[str, Any]]:
        """The claims of an assertion that a trusted issuer has signed, for us and for now.

        Raises Refusal.
        """
        now = self._settings.now()
        try:
            issuer = self._trusted.get(str(peek(token)[1].get("iss")))
            if issuer is None:
                raise invalid_grant("the issuer of the assertion is not trusted")
            keys = self._keys[issuer.issuer]
            if isinstance(keys, KeySet):
                claims = keys.verify(token, algorithms=issuer.algorithms, typ=typ)[1]
            else:
                claims = await keys.claims(token, now, algorithms=issuer.algorithms, types=typ)
            check_times(claims, now=now, needs=times)
        except BadSignature as bad:
            raise invalid_grant(f"the assertion is invalid: {bad}") from None
        except Unverifiable:
            raise unavailable("the keys of its issuer are not available now") from None
        if claims.get("iss") != issuer.issuer or not meant_for(claims.get("aud"), *audiences):
            raise invalid_grant("the assertion is not for this issuer, or not only for it")
        if not all(isinstance(claims.get(name), str) and claims[name] for name in ("sub", "jti")):
            raise invalid_grant("the assertion needs a sub and a jti")
        if claims["exp"] > now + _LONGEST_LIFE:
            raise invalid_grant(f"the assertion must expire within {_LONGEST_LIFE:g} seconds")
        return issuer, claims

    async def aclose(self) -> None:
        """Fetch nothing more."""
        for keys in self._keys.values():
            if isinstance(keys, RemoteKeys):
                await keys.aclose()

    async def _once(self, issuer: TrustedIssuer, claims: Mapping[str, Any]) -> None:
        """Raise Refusal where the assertion was used before (EMA-10)."""
        if not await self._seen.first(issuer.issuer, claims["jti"], until=claims["exp"] + 60):
            raise invalid_grant("the assertion was used before")

    def _resource(self, named: object) -> str:
        """The resource of an ID-JAG, which must be one of ours (EMA-09)."""
        if not isinstance(named, str):
            raise invalid_grant("the ID-JAG names no resource")
        try:
            return self._settings.wanted_resource(named)
        except OAuthError as bad:
            raise invalid_grant(f"the resource of the ID-JAG: {bad.words}") from None

    def _scopes(self, asked: str | None, given: Sequence[str], client: Client) -> tuple[str, ...]:
        """What was asked for, of what is given, of what the client may have.

        All of it where nothing was asked for.
        """
        allowed = [name for name in given if client.scopes is None or name in client.scopes]
        wanted = self._settings.wanted_scopes(
            " ".join(allowed) if asked is None else asked, allowed
        )
        return tuple(name for name in wanted if name in allowed)


def _names(name: str, subject: str) -> bool:
    return subject.startswith(name[:-1]) if name.endswith("*") else subject == name
