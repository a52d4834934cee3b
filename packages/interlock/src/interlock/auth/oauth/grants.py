"""Token requests: the form of each grant type, client authentication, and the answers."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus, urlencode

from msgspec import Struct
from msgspec.structs import replace

from ...http11.fetch import Request
from .addresses import usable
from .documents import (
    DeviceAnswer,
    ErrorAnswer,
    ServerMetadata,
    TokenAnswer,
    read_document,
    read_error,
)
from .errors import Denied, Unauthorized
from .members import Grant, Member
from .posts import post
from .steps import Got, Procedure, ShowCode, Wait

CODE = "authorization_code"
REFRESH = "refresh_token"
CREDENTIALS = "client_credentials"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ID_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:id_token"
ID_JAG_TYPE = "urn:ietf:params:oauth:token-type:id-jag"
_TOKEN = re.compile(r"[!-~]+")
ID_JAG_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag"


_LONGEST_CODE = 3600.0  # the longest wait for a device code, in seconds


class Means(Struct, frozen=True, kw_only=True):
    """The clock, random source and keys of a procedure.

    Attributes:
        now: Returns the time in seconds of the wall clock.
        random: Returns random text.
        assertion: Makes the client's assertion for an audience (RFC 7523).
        proof: Makes a DPoP proof from method, URL and nonce (RFC 9449).
        thumbprint: The thumbprint of the DPoP key.
        key: The DPoP key as a private JWK, which is stored with the tokens bound to it.
    """

    now: Callable[[], float]
    random: Callable[[], str]
    assertion: Callable[[str], str] | None = None
    proof: Callable[[str, str, str | None], str] | None = None
    thumbprint: str | None = None
    key: dict[str, Any] | None = None


def authenticated(
    form: Mapping[str, str],
    member: Member,
    metadata: ServerMetadata | None,
    assertion: Callable[[str], str] | None,
) -> tuple[tuple[tuple[str, str], ...], dict[str, str]]:
    """The headers and the form that authenticate a client, by a method that both sides support
    (`AUR-12`, `CCR-02`, `CCR-03`).

    Raises Unauthorized if the agreed method cannot be used.
    """
    method = method_of(member, metadata, assertion)
    if method == "private_key_jwt":
        if assertion is None:
            raise Unauthorized(
                "token",
                "the client must sign with a key, and has none",
                expected="key=",
                culprit="client",
            )
        audience = metadata.issuer if metadata is not None else member.issuer
        shown = {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion(audience)}
        return (), {**form, "client_id": member.client_id, **shown}
    if method == "client_secret_basic" and member.client_secret is not None:
        # RFC 6749, 2.3.1
        pair = f"{quote_plus(member.client_id)}:{quote_plus(member.client_secret)}"
        return (("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"),), dict(form)
    if method == "client_secret_post" and member.client_secret is not None:
        return (), {**form, "client_id": member.client_id, "client_secret": member.client_secret}
    if method not in ("none", "client_secret_basic", "client_secret_post"):
        raise Unauthorized(
            "token",
            f"the client must authenticate by {method}, which is not supported",
            expected="none, client_secret_basic, client_secret_post or private_key_jwt",
            culprit="client",
        )
    return (), {**form, "client_id": member.client_id} if member.client_id else dict(form)


def method_of(
    member: Member, metadata: ServerMetadata | None, assertion: Callable[[str], str] | None
) -> str:
    """The authentication method of a client: the registered one, else one that both sides support
    (`AUR-12`).
    """
    if member.method:
        return member.method
    supported = metadata.token_endpoint_auth_methods_supported if metadata is not None else None
    if assertion is not None and (
        member.client_secret is None or (supported is not None and "private_key_jwt" in supported)
    ):
        return "private_key_jwt"
    if member.client_secret is None:
        return "none"
    return secret_method(supported)


def secret_method(supported: Sequence[str] | None) -> str:
    """The method to send a secret to a server that supports these methods (RFC 8414, 2: basic is
    the default).
    """
    ways = ("client_secret_basic", "client_secret_post")
    return next((way for way in ways if supported is None or way in supported), ways[0])


def ask(
    endpoint: str,
    form: Mapping[str, str],
    member: Member,
    metadata: ServerMetadata | None,
    means: Means,
    *,
    step: str = "token",
) -> Procedure[Got]:
    """Post a form to an endpoint of an authorization server.

    The request is repeated once if the server requires a nonce in the proof (`DPP-03`).
    """
    got = yield from _post(endpoint, form, member, metadata, means, None, step)
    said = read_error(got.body) if got.status >= 400 else None
    nonce = got.headers.get("dpop-nonce")
    if (
        means.proof is not None
        and nonce is not None
        and said is not None
        and said.error == "use_dpop_nonce"
    ):
        got = yield from _post(endpoint, form, member, metadata, means, nonce, step)
    return got


def _post(
    endpoint: str,
    form: Mapping[str, str],
    member: Member,
    metadata: ServerMetadata | None,
    means: Means,
    nonce: str | None,
    step: str,
) -> Procedure[Got]:
    own, whole = authenticated(form, member, metadata, means.assertion)
    headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Accept", "application/json"),
        *own,
    ]
    if means.proof is not None:
        headers.append(("DPoP", means.proof("POST", endpoint, nonce)))
    return (
        yield from post(Request("POST", endpoint, tuple(headers), urlencode(whole).encode()), step)
    )


def token_answer(got: Got, endpoint: str, *, step: str = "token") -> TokenAnswer:
    """The response of a token endpoint.

    Raises:
        Denied: The person refused.
        Unauthorized: The endpoint responded with another error.
    """
    if got.status == 200 and said_of(got) is None:
        answer = read_document(got.body, TokenAnswer, step=step, document=endpoint)
        kinds = ("bearer", "dpop", "n_a") if step == "token exchange" else ("bearer", "dpop")
        if not _TOKEN.fullmatch(answer.access_token):
            raise Unauthorized(
                step,
                "it issued a token that does not fit into a header",
                document=endpoint,
                expected="printable ASCII",
                culprit="authorization server",
            )
        if answer.token_type.lower() not in kinds:
            raise Unauthorized(
                step,
                f"it issued a token of the type {answer.token_type!r}",
                document=endpoint,
                expected="Bearer or DPoP",
                culprit="authorization server",
            )
        return answer
    raise refused(got, endpoint, step)


def said_of(got: Got) -> ErrorAnswer | None:
    """The OAuth error in a response.

    Some servers send it with status 200 (GitHub is one).
    """
    return read_error(got.body) if got.status >= 400 or b'"access_token"' not in got.body else None


def refused(got: Got, endpoint: str, step: str) -> Unauthorized:
    """The error response of an endpoint, as an exception."""
    said = read_error(got.body)
    code = said.error if said is not None else ""
    words = (
        f"{code}: {said.error_description}"
        if said is not None and said.error_description
        else code or f"status {got.status}"
    )
    kind = Denied if code == "access_denied" else Unauthorized
    culprit, advice = _REASONS.get(code, ("authorization server", ""))
    return kind(
        step,
        f"the authorization server refused ({words})",
        document=endpoint,
        advice=advice,
        culprit=culprit,
        code=code,
    )


_REASONS: dict[str, tuple[Any, str]] = {
    "invalid_client": (
        "client",
        "It does not know this client, or the secret is wrong. Register the client "
        "again, or correct its credentials.",
    ),
    "unauthorized_client": (
        "client",
        "This client may not use this grant type. The operator of the authorization "
        "server can allow it.",
    ),
    "invalid_grant": (
        "person",
        "The code or token was used before, has expired or was revoked. Log in again.",
    ),
    "invalid_scope": ("client", "Request other scopes."),
    "invalid_target": (
        "server",
        "The authorization server does not know this server. Its operator must add it.",
    ),
    "unsupported_grant_type": ("authorization server", "It does not support this grant type."),
    "access_denied": ("person", ""),
    "expired_token": ("person", "The code was not entered in time. Log in again."),
}


def granted(
    answer: TokenAnswer,
    member: Member,
    *,
    resource: str,
    endpoint: str,
    asked: Sequence[str],
    means: Means,
    revocation: str | None = None,
    before: Grant | None = None,
    method: str = "",
) -> Grant:
    """The record of a token response.

    If a refresh returns no new refresh token, the one of `before` stays valid (`AUS-13`).

    Raises Unauthorized if the tokens should be bound to a key and are not.
    """
    if means.proof is not None and answer.token_type.lower() != "dpop":
        raise Unauthorized(
            "token",
            "the authorization server issued a token that is not bound to the client's key",
            document=endpoint,
            expected='"token_type": "DPoP" (RFC 9449, 5)',
            advice=(
                "Its operator can enable DPoP. Without dpop=True the client accepts "
                "tokens that are not bound."
            ),
            culprit="authorization server",
        )
    now = means.now()
    seconds = answer.seconds
    if answer.scope is not None:
        scopes = tuple(answer.scope.split())
    elif before is not None:
        scopes = before.scopes
    else:
        scopes = tuple(asked)
    bound = answer.token_type.lower() == "dpop" or (before is not None and before.key is not None)
    return Grant(
        resource=resource,
        issuer=member.issuer,
        client_id=member.client_id,
        token_endpoint=endpoint,
        access_token=answer.access_token,
        method=method,
        token_type="DPoP" if answer.token_type.lower() == "dpop" else "Bearer",
        issued=now,
        expires=None if seconds is None else now + seconds,
        refresh_token=answer.refresh_token
        or (before.refresh_token if before is not None else None),
        asked=tuple(asked),
        scopes=scopes,
        key=means.key if bound or means.key is not None else None,
        revocation_endpoint=revocation,
    )


def as_then(member: Member, grant: Grant, means: Means) -> Member:
    """The client with the authentication method that it used for the grant."""
    lost = grant.method == "private_key_jwt" and means.assertion is None
    return member if member.method or lost else replace(member, method=grant.method)


def renewed(grant: Grant, member: Member, means: Means) -> Procedure[Grant]:
    """Exchange the refresh token for new tokens.

    Raises Unauthorized; its code is "invalid_grant" if the person has to log in again.
    """
    assert grant.refresh_token is not None
    form = {"grant_type": REFRESH, "refresh_token": grant.refresh_token, "resource": grant.resource}
    got = yield from ask(
        grant.token_endpoint, form, as_then(member, grant, means), None, means, step="refresh"
    )
    answer = token_answer(got, grant.token_endpoint, step="refresh")
    return granted(
        answer,
        member,
        resource=grant.resource,
        endpoint=grant.token_endpoint,
        asked=grant.asked,
        means=means,
        revocation=grant.revocation_endpoint,
        before=grant,
        method=grant.method,
    )


def by_device(
    endpoint: str,
    token_endpoint: str,
    form: Mapping[str, str],
    member: Member,
    metadata: ServerMetadata,
    means: Means,
) -> Procedure[TokenAnswer]:
    """Let the person enter a code on another device, and wait until they have done so (RFC 8628).

    Raises Unauthorized, Denied.
    """
    got = yield from ask(endpoint, form, member, metadata, means, step="device code")
    if got.status != 200 or read_error(got.body) is not None:
        raise refused(got, endpoint, "device code")
    device = read_document(got.body, DeviceAnswer, step="device code", document=endpoint)
    until = means.now() + min(device.expires_in, _LONGEST_CODE)
    interval = min(max(1.0, device.interval), 60.0)
    for place in (device.verification_uri, device.verification_uri_complete):
        if place is not None:
            usable(
                place,
                what="the address where the user enters the code",
                step="device code",
                document=endpoint,
            )
    yield ShowCode(
        device.user_code,
        device.verification_uri,
        device.verification_uri_complete,
        device.expires_in,
    )
    wanted = {
        "grant_type": DEVICE,
        "device_code": device.device_code,
        **({"resource": form["resource"]} if "resource" in form else {}),
    }
    while True:
        yield Wait(min(interval, max(0.0, until - means.now())))
        if means.now() >= until:
            raise Unauthorized(
                "log-in",
                "the code was not entered in time",
                document=device.verification_uri,
                culprit="person",
                code="expired_token",
            )
        try:
            got = yield from ask(token_endpoint, wanted, member, metadata, means)
        except Unauthorized as bad:
            if bad.culprit != "network":
                raise
            interval *= 2  # RFC 8628, 3.5
            continue
        said = said_of(got)
        if said is not None and said.error == "slow_down":
            interval += 5
        elif said is None or said.error != "authorization_pending":
            return token_answer(got, token_endpoint)
