"""Token revocation by a client (RFC 7009)."""

from __future__ import annotations

from urllib.parse import urlencode

from ...http11.fetch import Request
from .addresses import usable
from .documents import read_error
from .grants import Means, as_then, authenticated, refused
from .members import Grant, Member
from .posts import post
from .steps import Got, Note, Procedure

_STEP = "revocation"


def revoke(grant: Grant, member: Member, means: Means) -> Procedure[bool]:
    """Revoke a grant at the authorization server: its refresh token and its access token.

    Returns False if the server does not support revocation. A server may refuse to revoke access
    tokens, which expire soon (RFC 7009, 2.2.1).

    Raises Unauthorized if the server refuses to revoke the refresh token, or does not respond.
    """
    if grant.revocation_endpoint is None:
        return False
    endpoint = usable(
        grant.revocation_endpoint, what="revocation_endpoint", step=_STEP, document=grant.issuer
    )
    if grant.refresh_token is not None:
        got = yield from _revoke_token(
            endpoint, grant.refresh_token, "refresh_token", grant, member, means
        )
        if got.status != 200:
            raise refused(got, endpoint, _STEP)
    got = yield from _revoke_token(
        endpoint, grant.access_token, "access_token", grant, member, means
    )
    if got.status == 200:
        return True
    said = read_error(got.body)
    if said is None or said.error != "unsupported_token_type":
        raise refused(got, endpoint, _STEP)
    yield Note(
        _STEP,
        "the authorization server does not revoke access tokens; this one stays valid "
        "until it expires",
        endpoint,
    )
    return grant.refresh_token is not None


def _revoke_token(
    endpoint: str, token: str, kind: str, grant: Grant, member: Member, means: Means
) -> Procedure[Got]:
    own, form = authenticated(
        {"token": token, "token_type_hint": kind},
        as_then(member, grant, means),
        None,
        means.assertion,
    )
    headers = (
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Accept", "application/json"),
        *own,
    )
    return (yield from post(Request("POST", endpoint, headers, urlencode(form).encode()), _STEP))
