"""The flow of a client from a refusal to a token, without I/O ("Authorization Flow Steps")."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from ... import types as t
from .addresses import canonical, is_protected, usable
from .challenges import Challenge
from .codes import address, code_from, errand_to
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
from .steps import CallFunction, Listen, Note, Procedure, Remember, Visit

Ask = Callable[[], Awaitable[str] | str]
"""Gives a token or an assertion that another program keeps fresh."""


class GrantFlow(Protocol):
    """How a client comes to a token, once it is known where."""

    @property
    def issuer(self) -> str | None:
        """The only authorization server that will do, or None."""
        ...

    @property
    def label(self) -> str:
        """What tells its tokens apart from those that other ways brought.

        Nothing where a person logs in.
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
    """Which scopes to ask for (`AUS-02`, `AUS-03`, `AUS-06`, `AUS-12`).

    What the challenge says, else all that the server lists, else none; what the user `wanted`, and
    what was asked for `before`, comes on top. `lasting` adds `offline_access` where the
    authorization server knows it.
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
    """Everything from a server's refusal to a token for it.

    Raises Unauthorized, with the step that failed.

    `server` is the URL of the MCP endpoint, `before` what was granted earlier, `known` the
    authorization servers where the client is registered, `wanted` scopes that the user wants in any
    case.
    """
    if not is_protected(server):
        raise Unauthorized(
            "request",
            f"{canonical(server)} wants a token, which must not travel unprotected",
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
    """Whether it is a way by which a browser brings a code."""
    return isinstance(way, LogIn) and not way.device


def still_trusted(server: str, challenge: Challenge | None, grant: Grant) -> Procedure[bool]:
    """Whether a server still trusts the authorization server that a grant is from (`AUR-18`,
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
    """A person logs in: in a browser that comes back with a code, or with a code that they enter on
    another device.
    """

    identity: ClientIdentity
    device: bool = False
    prompt: str | None = None

    @property
    def issuer(self) -> str | None:
        """Where the client is registered, if it said so."""
        return self.identity.given.issuer or None if self.identity.given is not None else None

    @property
    def label(self) -> str:
        """Nothing: a person's tokens are the server's."""
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
        errand = errand_to(
            site.metadata,
            state=means.random(),
            verifier=means.random() + means.random(),
            redirect_uri=redirect_uri,
        )
        url = address(
            place,
            errand,
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
                yield Remember(
                    member.issuer, None
                )  # who is unknown there gets no answer: the next time begins with a registration
            raise
        code = code_from(query, errand)
        form = {
            "grant_type": CODE,
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": errand.verifier,
            "resource": site.resource,
        }
        try:
            answer = token_answer(
                (yield from ask(endpoint, form, member, site.metadata, means)), endpoint
            )
        except Unauthorized as bad:
            if bad.code in ("invalid_client", "unauthorized_client") and member.source == "dynamic":
                yield Remember(
                    member.issuer, None
                )  # it was forgotten there: the next time begins with a registration
            raise
        return _granted(site, answer, member, scopes, means)

    def _by_device(self, site: Site, scopes: Sequence[str], means: Means) -> Procedure[Grant]:
        if site.metadata.device_authorization_endpoint is None:
            raise Unauthorized(
                "log-in",
                "the authorization server gives no codes for other devices",
                document=site.document,
                expected="`device_authorization_endpoint`",
                advice="Log in with a browser, or paste the address that the browser ends at.",
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
    """A program on its own behalf, registered before: the extension
    io.modelcontextprotocol/oauth-client-credentials.
    """

    member: Member

    @property
    def issuer(self) -> str | None:
        """Where the client is registered, if it said so."""
        return self.member.issuer or None

    @property
    def label(self) -> str:
        """Which program."""
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
    """A workload that the platform vouches for: `assertion` gives its JWT (SEP-1933)."""

    assertion: Ask
    client_id: str = ""
    issuer: str | None = None

    @property
    def label(self) -> str:
        """Which workload."""
        return f"workload {self.client_id}".rstrip()

    def obtain(self, site: Site, scopes: Sequence[str], means: Means) -> Procedure[Grant]:
        """See `GrantFlow`.

        An assertion that is refused is not presented again, and no other way is tried (`WIF-01` to
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
    """A person who is logged in at the company: its identity provider says so to the server's
    authorization server (ID-JAG).

    `id_token` gives the token of that log-in; `provider` is the client at the identity provider,
    whose token endpoint is given, and `member` the client at the server's authorization server (the
    extension io.modelcontextprotocol/enterprise-managed-authorization).
    """

    id_token: Ask
    provider: Member
    provider_endpoint: str
    member: Member
    subject_type: str = ID_TOKEN_TYPE

    @property
    def issuer(self) -> str | None:
        """Where the client is registered, if it said so."""
        return self.member.issuer or None

    @property
    def label(self) -> str:
        """Which program, with which log-in."""
        return f"enterprise {self.provider.client_id} {self.member.client_id}"

    def obtain(self, site: Site, scopes: Sequence[str], means: Means) -> Procedure[Grant]:
        """See `GrantFlow` (`EMA-01` to `EMA-04`)."""
        profiles = site.metadata.authorization_grant_profiles_supported
        if profiles is not None and ID_JAG_PROFILE not in profiles:
            raise Unauthorized(
                "discovery",
                "the authorization server takes no assertions of a company's identity provider",
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
        )  # the key is that of another client, and the tokens are not bound here
        answer = token_answer(
            (yield from ask(place, form, self.provider, None, plain, step="token exchange")),
            place,
            step="token exchange",
        )
        if answer.issued_token_type not in (None, ID_JAG_TYPE):
            raise Unauthorized(
                "token exchange",
                f"the identity provider gave {answer.issued_token_type}",
                document=place,
                expected=ID_JAG_TYPE,
                culprit="client",
            )
        return answer.access_token


def _scoped(form: dict[str, str], scopes: Sequence[str]) -> dict[str, str]:
    return {**form, "scope": " ".join(scopes)} if scopes else form
