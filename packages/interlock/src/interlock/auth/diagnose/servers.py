"""Diagnosis, part one: the first refusal of a server, and its metadata (RFC 9728)."""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

from ... import types as t
from ..oauth.addresses import (
    canonical,
    identifies,
    is_loopback,
    is_protected,
    metadata_places,
    origin,
    resource_places,
    usable,
)
from ..oauth.challenges import Challenge, find, write_challenge
from ..oauth.documents import ProtectedResource
from ..oauth.errors import Unauthorized
from ..oauth.probe import ProbeResult, probe
from ..oauth.steps import Got, Procedure
from .findings import Report, look, loosely, members_of, outcome

_MAY_FOLLOW = "Clients try the well-known addresses next."


class Protection(Struct, frozen=True, kw_only=True):
    """What a server publishes about its authorization.

    Attributes:
        protected: The server's metadata (RFC 9728).
        issuers: The authorization servers that the server trusts.
        legacy: Whether the server has no metadata and is its own authorization server, as in
            2025-03-26.
    """

    protected: ProtectedResource | None
    issuers: tuple[str, ...]
    legacy: bool = False


def anonymous_request(url: str, report: Report) -> Procedure[ProbeResult | None]:
    """Send a request without a token; None without a response."""
    report.part = "A request without a token"
    if not is_protected(url):
        report.wrong_that(
            f"{canonical(url)} is not encrypted in transit",
            culprit="server",
            expected="an https address",
            advice="No client may send a token there.",
        )
    try:
        answer = yield from probe(url)
    except t.Unreachable as bad:
        report.wrong_that(
            f"no answer: {str(bad).rstrip('.')}",
            document=url,
            culprit="network",
            expected=("401, or the result of the request"),
            advice="Is the address correct, and is the server running?",
        )
        return None
    _judge_status(url, answer, report)
    if answer.got.status == 401:
        _judge_challenges(url, answer, report)
    return answer


def _judge_status(url: str, answer: ProbeResult, report: Report) -> None:
    status = answer.got.status
    leads = answer.got.headers.get("location", "another address")
    asked = f"POST {' and '.join(answer.tried)}"
    if status == 401:
        report.ok(f"{asked}: refused with 401, as it should be", url)
    elif answer.open:
        report.ok(f"{asked}: answered; the server accepts requests without a token", url)
    elif status == 403:
        report.wrong_that(
            f"{asked}: refused with 403",
            document=url,
            culprit="server",
            expected=("401 for requests without a token"),
            advice="403 means that a token was valid but not sufficient, so clients do not log in.",
        )
    elif 300 <= status < 400:
        report.wrong_that(
            f"{asked}: {status}, a redirect to {leads}",
            document=url,
            culprit="person",
            expected=("the address of the server itself"),
            advice="Use that address: a token is valid for one address only.",
        )
    elif status in (404, 405, 410):
        report.wrong_that(
            f"{asked}: {status}, no MCP endpoint here",
            document=url,
            culprit="person",
            expected=("401, or the result of the request"),
            advice="Is this the full address of the MCP endpoint, with its path?",
        )
    else:
        report.wrong_that(
            f"{asked}: {status}",
            document=url,
            culprit="server",
            expected="401, or the result of the request",
        )


def _judge_challenges(url: str, answer: ProbeResult, report: Report) -> None:
    place = resource_places(url)[0]
    wanted = write_challenge("Bearer", {"resource_metadata": place})
    challenge = find(answer.challenges, "bearer", "dpop")
    if challenge is None:
        schemes = ", ".join(sorted({found.scheme for found in answer.challenges}))
        report.remark(
            f"WWW-Authenticate asks for {schemes}"
            if schemes
            else ("it has no WWW-Authenticate header"),
            culprit="server",
            expected=f"WWW-Authenticate: {wanted}",
            advice=_MAY_FOLLOW,
        )
        return
    report.ok(f"WWW-Authenticate: {' and '.join(_written(found) for found in answer.challenges)}")
    if not challenge.parameters.get("resource_metadata"):
        report.remark(
            "the challenge does not give the address of the metadata",
            culprit="server",
            expected=f'resource_metadata="{place}"',
            advice=_MAY_FOLLOW,
        )
    if challenge.error:
        report.remark(
            f"the challenge says {challenge.error}, although no token was sent",
            culprit="server",
            expected="no `error` (RFC 6750, 3.1)",
        )
    if challenge.scopes is not None:
        report.info(f"it needs the scopes {' '.join(challenge.scopes) or '(none)'}")
    if "offline_access" in (challenge.scopes or ()):
        report.remark(
            "it asks for offline_access",
            culprit="server",
            expected="only the server's own scopes: the client decides whether it needs offline "
            "access",
        )


def _written(challenge: Challenge) -> str:
    name = {"bearer": "Bearer", "dpop": "DPoP"}.get(challenge.scheme, challenge.scheme)
    return write_challenge(name, challenge.parameters).rstrip()


def protection(url: str, answer: ProbeResult, report: Report) -> Procedure[Protection | None]:
    """Find and check the server's metadata. None if the diagnosis ends here."""
    report.part = "The server's metadata (protected resource)"
    challenge = find(answer.challenges, "bearer", "dpop")
    named = challenge.parameters.get("resource_metadata") if challenge is not None else None
    silent = False
    for place in dict.fromkeys([*([named] if named else []), *resource_places(url)]):
        is_named = place == named
        if is_named and not _may_be_asked(place, report):
            silent = True
            continue
        got = yield from look(place)
        data = members_of(got)
        if data is not None:
            report.ok(f"found at {place}", place)
            if answer.open:
                report.remark(
                    "it exists, but the server accepts requests without a token",
                    culprit="server",
                    expected="401 without a token, or no such document",
                )
            protected = loosely(data, ProtectedResource, report, culprit="server", document=place)
            _judge_document(url, protected, place, data, report)
            return Protection(
                protected=protected, issuers=tuple(dict.fromkeys(protected.authorization_servers))
            )
        silent = silent or is_named or isinstance(got, str) or got.status >= 500
        if is_named:
            report.remark(
                f"the challenge gives an address where it is not found: {outcome(got)}",
                document=place,
                culprit="server",
                expected="200 with a JSON object (RFC 9728)",
            )
        elif isinstance(got, Got) and got.status == 200:
            report.remark(
                f"nothing at {place}: {outcome(got)}",
                document=place,
                culprit="server",
                expected="a JSON object (RFC 9728), or 404",
            )
        else:
            report.info(f"nothing at {place}: {outcome(got)}", place)
    return (yield from _without_words(url, answer, silent, report))


def _may_be_asked(place: str, report: Report) -> bool:
    try:
        usable(
            place,
            what="resource_metadata",
            step="discovery",
            document="WWW-Authenticate",
            culprit="server",
        )
    except Unauthorized as bad:
        report.failed(bad)
        return False
    return True


def _without_words(
    url: str, answer: ProbeResult, silent: bool, report: Report
) -> Procedure[Protection | None]:
    """Handle a server without metadata: it is open, or its origin is its authorization server as in
    2025-03-26, or this is an error.
    """
    place = resource_places(url)[0]
    if answer.open:
        report.ok("there is none, and none is needed")
        return None
    base = origin(url)
    older = metadata_places(base)[0]
    if not silent and members_of(got := (yield from look(older))) is not None:
        report.remark(
            "there is none; the server is its own authorization server, as in 2025-03-26",
            culprit="server",
            expected=f"its metadata at {place} (RFC 9728), required since 2025-06-18",
        )
        return Protection(protected=None, issuers=(base,), legacy=True)
    if not silent:
        report.info(
            f"not found at {older} either, where servers of 2025-03-26 have it: {outcome(got)}",
            older,
        )
    report.wrong_that(
        "the server does not name its authorization server",
        document=place,
        culprit="server",
        expected='200 with {"resource": "'
        + canonical(url)
        + ('", "authorization_servers": ["https://..."]} (RFC 9728)'),
    )
    return None


def _judge_document(
    url: str, protected: ProtectedResource, place: str, data: dict[str, object], report: Report
) -> None:
    resource = protected.resource
    if resource and identifies(resource, url):
        report.ok(
            f"it is about {resource}"
            + ("" if canonical(resource) == canonical(url) else ", a prefix of this address")
        )
    elif resource:
        report.wrong_that(
            f"the document is about {resource}",
            document=place,
            culprit="server",
            expected=(f"a `resource` that is {canonical(url)}"),
            advice=_why_another(resource, url),
        )
    if protected.authorization_servers:
        report.ok(f"it trusts {', '.join(protected.authorization_servers)}")
    elif "authorization_servers" not in data or data["authorization_servers"] == []:
        report.wrong_that(
            "it names no authorization server",
            document=place,
            culprit="server",
            expected="at least one in `authorization_servers`",
        )
    if (
        protected.bearer_methods_supported is not None
        and "header" not in protected.bearer_methods_supported
    ):
        report.remark(
            "it does not accept tokens in the header",
            culprit="server",
            expected='"header" in `bearer_methods_supported`',
        )
    if protected.scopes_supported is not None:
        report.info(f"its scopes are {' '.join(protected.scopes_supported) or '(none)'}")
    if "offline_access" in (protected.scopes_supported or ()):
        report.remark(
            "`scopes_supported` has offline_access",
            culprit="server",
            expected="only scopes of its own",
        )
    if protected.dpop_bound_access_tokens_required:
        report.info("it accepts only tokens that are bound to a key (DPoP)")


def _why_another(resource: str, url: str) -> str:
    """Advice for a `resource` that does not identify this server."""
    try:
        one = urlsplit(resource)
        other = urlsplit(url)
        if one.hostname == other.hostname and one.scheme != other.scheme:
            return (
                "The server seems not to know that clients use https: configure its public address."
            )
        if one.hostname != other.hostname and is_loopback(resource):
            return (
                "The server uses the address that it listens on as its own: configure "
                "its public address."
            )
        if origin(resource) == origin(url):
            return f"If {resource} is the server's correct address, use it."
    except ValueError:
        pass
    return "A token for another server must not be sent here. Or the address is wrong."
