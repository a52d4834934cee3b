"""Diagnosis, part two: the authorization servers that a server trusts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ..oauth.addresses import metadata_places, usable
from ..oauth.challenges import Challenge
from ..oauth.discovery import Site
from ..oauth.documents import ServerMetadata
from ..oauth.errors import Unauthorized
from ..oauth.flow import choose_scopes
from ..oauth.grants import CODE, CREDENTIALS, DEVICE, ID_JAG_PROFILE, JWT_BEARER, REFRESH
from ..oauth.steps import Got, Procedure
from .findings import Report, look, loosely, members_of, outcome

_KNOWN_METHODS = ("none", "client_secret_basic", "client_secret_post", "private_key_jwt")
_BY: Final = "authorization server"


class Who(Struct, frozen=True, kw_only=True):
    """The client that would log in.

    Attributes:
        client_id: The ID of a client that was registered beforehand.
        document: The URL of the client's metadata document.
        dpop: Whether the client binds tokens to a key (DPoP).
    """

    client_id: str | None = None
    document: str | None = None
    dpop: bool = False


def issuer_metadata(
    issuer: str, legacy: bool, report: Report
) -> Procedure[tuple[ServerMetadata, str] | None]:
    """Find and check the metadata of an authorization server; return it with its URL, or None."""
    report.part = f"The authorization server {issuer}"
    try:
        usable(
            issuer,
            what="the authorization server",
            step="discovery",
            document="authorization_servers",
            culprit="server",
        )
    except Unauthorized as bad:
        report.failed(bad)
        return None
    answered = False
    places = metadata_places(issuer)
    for place in places[:1] if legacy else places:
        got = yield from look(place)
        answered = answered or isinstance(got, Got)
        data = members_of(got)
        if data is None:
            report.info(f"nothing at {place}: {outcome(got)}", place)
            continue
        report.ok(f"its metadata was found at {place}", place)
        metadata = loosely(data, ServerMetadata, report, culprit=_BY, document=place)
        _judge_issuer(metadata.issuer, issuer, legacy, place, report)
        _judge_endpoints(metadata, place, report)
        _judge_codes(metadata, place, report)
        return metadata, place
    if answered:
        report.wrong_that(
            "its metadata does not name its endpoints",
            document=issuer,
            culprit=_BY,
            expected=(
                f"its metadata at {' or '.join(places)} (RFC 8414 or OpenID Connect Discovery)"
            ),
            advice="Or the server gives a wrong address in `authorization_servers`.",
        )
    else:
        report.wrong_that(
            "it cannot be reached",
            document=issuer,
            culprit="network",
            expected="an answer",
            advice="Is it running? Is the address that the server gives correct?",
        )
    return None


def _judge_issuer(said: str, issuer: str, legacy: bool, place: str, report: Report) -> None:
    if not said:
        return
    if said == issuer or (legacy and said.rstrip("/") == issuer.rstrip("/")):
        report.ok(f"`issuer` is {said}, exactly as expected")
        return
    slash = said.rstrip("/") == issuer.rstrip("/")
    report.wrong_that(
        f"`issuer` is {said}",
        document=place,
        culprit="server" if slash else _BY,
        expected=f"exactly {issuer}",
        advice=(
            f"They differ only in a trailing slash: the server must give {said} in "
            "`authorization_servers`."
            if slash
            else (
                "One of them may impersonate the other, so clients reject it. Make the "
                "two values equal."
            )
        ),
    )


def _judge_endpoints(metadata: ServerMetadata, place: str, report: Report) -> None:
    for name in ("authorization_endpoint", "token_endpoint"):
        _judge_endpoint(getattr(metadata, name), name, place, report)
    for name in ("registration_endpoint", "device_authorization_endpoint", "revocation_endpoint"):
        if getattr(metadata, name) is not None:
            _judge_endpoint(getattr(metadata, name), name, place, report, quiet=True)
    if (
        metadata.response_types_supported is not None
        and "code" not in metadata.response_types_supported
    ):
        report.wrong_that(
            "it does not issue authorization codes",
            document=place,
            culprit=_BY,
            expected='"code" in `response_types_supported`',
        )
    grants = metadata.grant_types_supported
    if grants is not None and CODE not in grants:
        report.wrong_that(
            f"it does not support {CODE}",
            document=place,
            culprit=_BY,
            expected=f'"{CODE}" in `grant_types_supported`',
        )


def _judge_endpoint(
    url: str | None, name: str, place: str, report: Report, *, quiet: bool = False
) -> None:
    try:
        usable(url, what=name, step="discovery", document=place)
    except Unauthorized as bad:
        report.failed(bad)
        return
    if not quiet:
        report.ok(f"`{name}` is {url}")


def _judge_codes(metadata: ServerMetadata, place: str, report: Report) -> None:
    methods = metadata.code_challenge_methods_supported
    if methods is not None and "S256" in methods:
        report.ok("it protects codes with PKCE (S256)")
    elif metadata.authorization_endpoint is not None:
        report.wrong_that(
            f"it supports PKCE with {', '.join(methods)} only"
            if methods
            else ("its metadata does not declare PKCE"),
            document=place,
            culprit=_BY,
            expected='"S256" in `code_challenge_methods_supported`',
            advice=""
            if methods
            else (
                "Clients refuse to continue. If you know that it supports PKCE, log in with "
                "--assume-pkce."
            ),
        )
    if metadata.authorization_response_iss_parameter_supported:
        report.ok("it identifies itself in its answers (`iss`, RFC 9207)")
    else:
        report.remark(
            "it does not identify itself in its answers",
            culprit=_BY,
            document=place,
            expected="`authorization_response_iss_parameter_supported`: true (RFC 9207)",
            advice="If a client uses several authorization servers, one can impersonate another "
            "(mix-up attack).",
        )


def prospects(site: Site, challenge: Challenge | None, who: Who, report: Report) -> None:
    """Report what a login would do with this authorization server, without logging in."""
    report.part = "What a log-in would do"
    metadata = site.metadata
    _judge_registration(metadata, who, site.document, report)
    _judge_methods(metadata, report)
    _judge_scopes(site, challenge, report)
    grants = metadata.grant_types_supported
    if grants is None:
        report.info("it does not say whether it issues refresh tokens")
    elif REFRESH in grants:
        report.ok("it issues refresh tokens: a log-in lasts")
    else:
        report.remark(
            "it issues no refresh tokens: a log-in ends when its first token expires",
            culprit=_BY,
            document=site.document,
            expected=f'"{REFRESH}" in `grant_types_supported`',
        )
    _judge_binding(site, who, report)
    _report_grant_types(metadata, report)


def _judge_registration(metadata: ServerMetadata, who: Who, place: str, report: Report) -> None:
    by_document = metadata.client_id_metadata_document_supported is True
    by_itself = metadata.registration_endpoint is not None
    if who.client_id is not None:
        report.ok(f"the client is registered, as {who.client_id}")
    elif by_document and who.document is not None:
        report.ok(f"the client is identified by its metadata document, {who.document}")
    elif by_itself:
        report.ok(
            "it supports dynamic client registration (RFC 7591); not tried, because that "
            "would leave a client behind"
        )
    elif by_document:
        report.wrong_that(
            "it accepts clients only by their metadata documents, and none was given",
            culprit="client",
            document=place,
            expected="`registration_endpoint`, or a client with such a document",
            advice="Give --document URL, or a --client-id that is registered there.",
        )
    else:
        report.wrong_that(
            "it does not register clients dynamically",
            culprit="client",
            document=place,
            expected=(
                "`registration_endpoint` or `client_id_metadata_document_supported`, or "
                "a client that is registered in advance"
            ),
            advice=(
                "Register one there, with the redirect URI http://127.0.0.1/callback, and give "
                "its --client-id."
            ),
        )
    if by_document and who.document is None:
        report.info("it also accepts client metadata documents (--document)")


def _judge_methods(metadata: ServerMetadata, report: Report) -> None:
    methods = metadata.token_endpoint_auth_methods_supported
    if methods is None:
        return
    known = [method for method in methods if method in _KNOWN_METHODS]
    if known:
        report.info(f"clients authenticate by {', '.join(known)}")
    else:
        report.wrong_that(
            f"clients must authenticate by {', '.join(methods) or 'nothing'}",
            culprit="client",
            expected=", ".join(_KNOWN_METHODS),
        )


def _judge_scopes(site: Site, challenge: Challenge | None, report: Report) -> None:
    scopes = choose_scopes(site, challenge, (), None, lasting=True)
    if scopes:
        report.ok(f"it would request {' '.join(scopes)}")
    else:
        report.info("it would request no particular scopes")
    known = site.metadata.scopes_supported
    strange = [scope for scope in scopes if known is not None and scope not in known]
    if strange:
        report.remark(
            f"the authorization server does not list {' '.join(strange)}",
            culprit=_BY,
            document=site.document,
            expected="the scopes of the server in `scopes_supported`",
            advice=("It may refuse the log-in as invalid_scope."),
        )


def _judge_binding(site: Site, who: Who, report: Report) -> None:
    algorithms: Sequence[str] | None = site.metadata.dpop_signing_alg_values_supported
    needs = site.protected is not None and site.protected.dpop_bound_access_tokens_required is True
    weak = [name for name in algorithms or () if name == "none" or name.startswith("HS")]
    if weak:
        report.wrong_that(
            f"it accepts proofs signed with {', '.join(weak)}",
            culprit=_BY,
            document=site.document,
            expected="only asymmetric algorithms",
        )
    if needs and not algorithms:
        report.wrong_that(
            "the server accepts only tokens that are bound to a key (DPoP), and the "
            "authorization server issues none",
            culprit=_BY,
            document=site.document,
            expected="`dpop_signing_alg_values_supported`",
        )
    elif algorithms:
        report.ok(
            f"it binds tokens to a key (DPoP, {', '.join(algorithms)})"
            + (": log in with --dpop" if needs and not who.dpop else "")
        )
    else:
        report.info("it does not bind tokens to a key (DPoP)")


def _report_grant_types(metadata: ServerMetadata, report: Report) -> None:
    grants = metadata.grant_types_supported or ()
    if metadata.device_authorization_endpoint is not None and (not grants or DEVICE in grants):
        report.info("a log-in without a browser here is possible (--device)")
    if CREDENTIALS in grants:
        report.info("programs can log in on their own behalf (client_credentials)")
    if ID_JAG_PROFILE in (metadata.authorization_grant_profiles_supported or ()):
        report.info("it accepts assertions of a company's identity provider (ID-JAG)")
    elif JWT_BEARER in grants:
        report.info("it accepts assertions of platforms for their workloads (jwt-bearer)")
    if metadata.revocation_endpoint is None:
        report.info("it does not revoke tokens: a log-out only deletes them here")
