"""Giving tokens back: which are withdrawn, and what an authorization server may say to it (RFC
7009).
"""

from __future__ import annotations

from urllib.parse import parse_qsl

import msgspec
import pytest

from interlock.auth.oauth.errors import Unauthorized
from interlock.auth.oauth.grants import Means
from interlock.auth.oauth.members import Grant, Member
from interlock.auth.oauth.revocation import revoke
from interlock.auth.oauth.steps import Got, SendRequest

PLACE = "https://as.example/revoke"
MEMBER = Member(issuer="https://as.example", client_id="abc", method="none")
GRANT = Grant(
    resource="https://mcp.example/mcp",
    issuer="https://as.example",
    client_id="abc",
    token_endpoint="https://as.example/token",
    access_token="secret-access",
    refresh_token="secret-refresh",
    revocation_endpoint=PLACE,
)
DONE = Got(200, {}, b"")
AWAY = Got(503, {}, b"")
UNKNOWN_KIND = Got(400, {}, b'{"error": "unsupported_token_type"}')


def played(grant: Grant, *answers: Got) -> tuple[bool, list[dict[str, str]]]:
    """Whether it was withdrawn, and the forms that were sent."""
    means = Means(now=lambda: 0.0, random=lambda: "x")
    walk = revoke(grant, MEMBER, means)
    forms = []
    left = list(answers)
    came: Got | None = None
    while True:
        try:
            step = walk.send(came)
        except StopIteration as done:
            assert not left
            return done.value, forms
        came = None
        if isinstance(step, SendRequest):
            assert step.request.url == PLACE
            forms.append(dict(parse_qsl(step.request.body.decode())))
            came = left.pop(0)


@pytest.mark.parametrize(
    "changes, answers, done, kinds",
    [
        ({}, [DONE, DONE], True, ["refresh_token", "access_token"]),
        ({}, [DONE, UNKNOWN_KIND], True, ["refresh_token", "access_token"]),
        ({"refresh_token": None}, [DONE], True, ["access_token"]),
        ({"refresh_token": None}, [UNKNOWN_KIND], False, ["access_token"]),
        ({"revocation_endpoint": None}, [], False, []),
    ],
)
def test_what_is_withdrawn(
    changes: dict[str, str | None], answers: list[Got], done: bool, kinds: list[str]
):
    """The refresh token first, then the access token, each by the client that has it.

    Some servers let the latter end by itself.
    """
    withdrawn, forms = played(msgspec.structs.replace(GRANT, **changes), *answers)
    assert withdrawn is done
    assert [form["token_type_hint"] for form in forms] == kinds
    assert all(
        form["token"] == f"secret-{form['token_type_hint'].partition('_')[0]}"
        and form["client_id"] == "abc"
        for form in forms
    )


@pytest.mark.parametrize("answers", [[AWAY], [DONE, AWAY]])
def test_what_is_not_withdrawn_is_said(answers: list[Got]):
    """And no token with it."""
    with pytest.raises(Unauthorized) as raised:
        played(GRANT, *answers)
    assert raised.value.step == "revocation"
    assert "secret-" not in str(raised.value)


def test_no_token_travels_unprotected():
    """`SEC-13`: the endpoint is https."""
    with pytest.raises(Unauthorized, match="not to be used"):
        played(msgspec.structs.replace(GRANT, revocation_endpoint="http://as.example/revoke"))
