"""The flow of a client from a 401 response to a token, without I/O ("Authorization Flow Steps")."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from ... import types as t
from .addresses import canonical, is_protected, usable
from .challenges import Challenge
from .codes import address, authorization_request, code_from
from .discovery import Site, find_resource, find_site
from .documents import TokenAnswer
from .errors import Unauthorized
from .grants import (
    CODE,
    CREDENTIALS,
    EXCHANGE,
    ID_JAG_PROFILE,
    ID_JAG_TYPE,
    ID_TOKEN_TYPE,
    JWT_BEARER,
    Means,
    ask,
    by_device,
    granted,
    method_of,
    token_answer,
)
from .members import Grant, Member
from .registration import ClientIdentity, member_of
from .steps import CallFunction, Listen, Note, Procedure, SaveRegistration, Visit

Ask = Callable[[], Awaitable[str] | str]
"""Returns a token or an assertion that another program keeps up to date."""


class GrantFlow(Protocol):
    """How a client gets a token from a known authorization server."""

    @property
    def issuer(self) -> str | None:
        """The only authorization server that the client can use, or None."""
        ...

    @property
    def label(self) -> str:
        """Separates the stored tokens of this grant type from those of others.

        Empty if a person logs in.
        """
        ...

    def obtain(self, site: Site, scopes: Sequence[str], means: Means) -> Procedure[Grant]:
        """Obtain a token with these scopes for the server of this site. Raises Unauthorized."""
        ...


def choose_scopes(
    site: Site,
    challenge: Challenge | None,
    wanted: Sequence[str],
    before: Grant | None,
    *,
    lasting: bool,
) -> tuple[str, ...]:
    """Choose the scopes to request (`AUS-02`, `AUS-03`, `AUS-06`, `AUS-12`).

    Args:
        site: The server and its authorization server.
        challenge: The challenge of the server. Its scopes are requested; without them, all scopes
            that the server lists.
        wanted: Scopes that the user always requests.
        before: The earlier grant, whose scopes are requested too.
        lasting: Adds `offline_access` if the authorization server supports it.
    """
    challenged = challenge.scopes if challenge is not None else None
    listed = site.protected.scopes_supported if site.protected is not None else None
    chosen = [*(before.asked if before is not None else ()), *wanted]
    if challenged is not None:
        chosen += challenged
    elif not chosen:
        chosen += listed or ()
    if lasting and chosen and "offline_access" in (site.metadata.scopes_supported or ()):
        chosen.append("offline_access")
    return tuple(dict.fromkeys(chosen))


def authorize(
    server: str,
    way: GrantFlow,
    means: Means,
    *,
    challenge: Challenge | None = None,
    wanted: Sequence[str] = (),
    before: Grant | None = None,
    known: Sequence[str] = (),
    assume_pkce: bool = False,
) -> Procedure[Grant]:
    """Run the whole flow from the refusal of a server to a token for it.

    Args:
        server: The URL of the MCP endpoint.
        way: The grant type.
        means: The clock, random source and keys.
        challenge: The challenge of the server.
        wanted: Scopes that the user always requests.
        before: The earlier grant.
        known: The authorization servers at which the client is registered.
        assume_pkce: Accepts an authorization server that does not declare PKCE.

    Raises:
        Unauthorized: The flow failed; it names the step.
    """
    if not is_protected(server):
        raise Unauthorized(
            "request",
            f"{canonical(server)} requires a token, which must not be sent unencrypted",
            expected="an https address",
            culprit="server",
        )
    site = yield from find_site(
        server,
        challenge,
        issuer=way.issuer,
        known=known,
        no_pkce_word=assume_pkce or not _has_code(way),
    )
    scopes = choose_scopes(site, challenge, wanted, before, lasting=isinstance(way, LogIn))
    yield Note("scopes", f"asking for {' '.join(scopes) or 'no particular scopes'}")
    return (yield from way.obtain(site, scopes, means))


def _has_code(way: GrantFlow) -> bool:
    """Whether the flow gets an authorization code by a redirect."""
    return isinstance(way, LogIn) and not way.device


def still_trusted(server: str, challenge: Challenge | None, grant: Grant) -> Procedure[bool]:
    """Whether a server still trusts the authorization server that issued a grant (`AUR-18`,
    `AUT-09`).
    """
    protected, _ = yield from find_resource(server, challenge)
    return protected is None or (
        grant.issuer in protected.authorization_servers and grant.resource == protected.resource
    )


def _endpoint(site: Site) -> str:
    return usable(
        site.metadata.token_endpoint,
        what="token_endpoint",
        step="discovery",
        document=site.document,
    )


def _granted(
    site: Site, answer: TokenAnswer, member: Member, scopes: Sequence[str], means: Means
) -> Grant:
    return granted(
        answer,
        member,
        resource=site.resource,
        endpoint=_endpoint(site),
        asked=scopes,
        means=means,
        revocation=site.metadata.revocation_endpoint,
        method=method_of(member, site.metadata, means.assertion),
    )


class LogIn(Struct, frozen=True, kw_only=True):
    """A person logs in: in a browser, whose redirect brings a code, or with a code that the person
    enters on another device.
    """

    identity: ClientIdentity
    device: bool = False
    prompt: str | None = None

    @property
    def issuer(self) -> str | None:
        """The authorization server at which the client is registered, if the user named it."""
        return self.identity.given.issuer or None if self.identity.given is not None else None

    @property
    def label(self) -> str:
        """Empty: the tokens of a person have no label."""
        return ""

    def obtain(self, site: Site, scopes: Sequence[str], means: Means) -> Procedure[Grant]:
        """See `GrantFlow`."""
        return (
            yield from (
                self._by_device(site, scopes, means)
                if self.device
                else self._by_code(site, scopes, means)
            )
        )

    def _by_code(self, site: Site, scopes: Sequence[str], means: Means) -> Procedure[Grant]:
        place = usable(
            site.metadata.authorization_endpoint,
            what="authorization_endpoint",
            step="discovery",
            document=site.document,
        )
        endpoint = _endpoint(site)
        redirect_uri: str = yield Listen(site.metadata.issuer)
        member = yield from member_of(
            site, self.identity, redirect_uri, scopes=scopes, now=means.now()
        )
        request = authorization_request(
            site.metadata,
            state=means.random(),
            verifier=means.random() + means.random(),
            redirect_uri=redirect_uri,
        )
        url = address(
            place,
            request,
            client_id=member.client_id,
            resource=site.resource,
            scopes=scopes,
            thumbprint=means.thumbprint,
            prompt=self.prompt,
        )
        try:
            query: str = yield Visit(url, redirect_uri)
        except t.TimedOut:
            if member.source == "dynamic":
                yield SaveRegistration(
                    member.issuer, None
                )  # an unknown client gets no redirect: the next login registers again
            raise
        code = code_from(query, request)
        form = {
            "grant_type": CODE,
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": request.verifier,
            "resource": site.resource,
        }
        try:
            answer = token_answer(
                (yield from ask(endpoint, form, member, site.metadata, means)), endpoint
            )
        except Unauthorized as bad:
            if bad.code in ("invalid_client", "unauthorized_client") and member.source == "dynamic":
                yield SaveRegistration(
                    member.issuer, None
                )  # the server has deleted the client: the next login registers again
            raise
        return _granted(site, answer, member, scopes, means)

    def _by_device(self, site: Site, scopes: Sequence[str], means: Means) -> Procedure[Grant]:
        if site.metadata.device_authorization_endpoint is None:
            raise Unauthorized(
                "log-in",
                "the authorization server does not support the device flow",
                document=site.document,
                expected="`device_authorization_endpoint`",
                advice="Log in with a browser, or paste the address that the browser shows at "
                "the end.",
                culprit="authorization server",
            )
        place = usable(
            site.metadata.device_authorization_endpoint,
            what="device_authorization_endpoint",
            step="discovery",
            document=site.document,
        )
        member = yield from member_of(site, self.identity, "", scopes=scopes, now=means.now())
        form = {"resource": site.resource, **({"scope": " ".join(scopes)} if scopes else {})}
        answer = yield from by_device(place, _endpoint(site), form, member, site.metadata, means)
        return _granted(site, answer, member, scopes, means)


class OwnBehalf(Struct, frozen=True, kw_only=True):
    """A program acts on its own behalf, as a client that was registered beforehand: the extension
    io.modelcontextprotocol/oauth-client-credentials.
    """

    member: Member

    @property
    def issuer(self) -> str | None:
        """The authorization server at which the client is registered, if the user named it."""
        return self.member.issuer or None

    @property
    def label(self) -> str:
        """Names the client."""
        return f"client {self.member.client_id}"

    def obtain(self, site: Site, scopes: Sequence[str], means: Means) -> Procedure[Grant]:
        """See `GrantFlow` (`CCR-01` to `CCR-04`)."""
        member = yield from member_of(
            site, ClientIdentity(given=self.member), "", scopes=scopes, now=means.now()
        )
        form = _scoped({"grant_type": CREDENTIALS, "resource": site.resource}, scopes)
        answer = token_answer(
            (yield from ask(_endpoint(site), form, member, site.metadata, means)), _endpoint(site)
        )
        return _granted(site, answer, member, scopes, means)


class Workload(Struct, frozen=True, kw_only=True):
    """A workload that the platform authenticates: `assertion` returns its JWT (SEP-1933)."""

    assertion: Ask
    client_id: str = ""
    issuer: str | None = None

    @property
    def label(self) -> str:
        """Names the workload."""
        return f"workload {self.client_id}".rstrip()

    def obtain(self, site: Site, scopes: Sequence[str], means: Means) -> Procedure[Grant]:
        """See `GrantFlow`.

        A refused assertion is not sent again, and no other grant type is tried (`WIF-01` to
        `WIF-03`).
        """
        assertion: str = yield CallFunction(self.assertion)
        member = Member(issuer=site.metadata.issuer, client_id=self.client_id, method="none")
        form = _scoped(
            {"grant_type": JWT_BEARER, "assertion": assertion, "resource": site.resource}, scopes
        )
        answer = token_answer(
            (yield from ask(_endpoint(site), form, member, site.metadata, means)), _endpoint(site)
        )
        return _granted(site, answer, member, scopes, means)


class Enterprise(Struct, frozen=True, kw_only=True):
    """A person is logged in at their company, whose identity provider confirms this to the server's
    authorization server (ID-JAG; the extension
    io.modelcontextprotocol/enterprise-managed-authorization).

    Attributes:
        id_token: Returns the ID token of that login.
        provider: The client at the identity provider.
        provider_endpoint: The token endpoint of the identity provider.
        member: The client at the server's authorization server.
        subject_type: The type of the ID token.
    """

    id_token: Ask
    provider: Member
    provider_endpoint: str
    member: Member
    subject_type: str = ID_TOKEN_TYPE

    @property
    def issuer(self) -> str | None:
        """The authorization server at which the client is registered, if the user named it."""
        return self.member.issuer or None

    @property
    def label(self) -> str:
        """Names the two clients."""
        return f"enterprise {self.provider.client_id} {self.member.client_id}"

    def obtain(self, site: Site, scopes: Sequence[str], means: Means) -> Procedure[Grant]:
        """See `GrantFlow` (`EMA-01` to `EMA-04`)."""
        profiles = site.metadata.authorization_grant_profiles_supported
        if profiles is not None and ID_JAG_PROFILE not in profiles:
            raise Unauthorized(
                "discovery",
                "the authorization server does not accept assertions of a company's "
                "identity provider",
                document=site.document,
                expected=f"{ID_JAG_PROFILE} in `authorization_grant_profiles_supported`",
                culprit="authorization server",
            )
        member = yield from member_of(
            site, ClientIdentity(given=self.member), "", scopes=scopes, now=means.now()
        )
        assertion = yield from self._assertion(site, scopes, means)
        form = _scoped(
            {"grant_type": JWT_BEARER, "assertion": assertion, "resource": site.resource}, scopes
        )
        answer = token_answer(
            (yield from ask(_endpoint(site), form, member, site.metadata, means)), _endpoint(site)
        )
        return _granted(site, answer, member, scopes, means)

    def _assertion(self, site: Site, scopes: Sequence[str], means: Means) -> Procedure[str]:
        place = usable(
            self.provider_endpoint,
            what="the identity provider's token endpoint",
            step="token exchange",
            document="",
            culprit="client",
        )
        id_token: str = yield CallFunction(self.id_token)
        form = _scoped(
            {
                "grant_type": EXCHANGE,
                "requested_token_type": ID_JAG_TYPE,
                "audience": site.metadata.issuer,
                "resource": site.resource,
                "subject_token": id_token,
                "subject_token_type": self.subject_type,
            },
            scopes,
        )
        plain = Means(
            now=means.now, random=means.random
        )  # the key belongs to the other client, and the assertion is not bound to a key
        answer = token_answer(
            (yield from ask(place, form, self.provider, None, plain, step="token exchange")),
            place,
            step="token exchange",
        )
        if answer.issued_token_type not in (None, ID_JAG_TYPE):
            raise Unauthorized(
                "token exchange",
                f"the identity provider issued {answer.issued_token_type}",
                document=place,
                expected=ID_JAG_TYPE,
                culprit="client",
            )
        return answer.access_token


def _scoped(form: dict[str, str], scopes: Sequence[str]) -> dict[str, str]:
    return {**form, "scope": " ".join(scopes)} if scopes else form
