"""What a guard's log tells the operator of the server: why tokens are refused, at a level that is
read; what is as it should be, below it.
"""

from __future__ import annotations

import logging

import pytest

from interlock.auth.guard import Guard
from interlock.auth.keys import SigningKey, dpop_proof
from interlock.auth.tokens.jwt import Jwt
from tests.auth.guarded import ISSUER, KEY, RESOURCE, Inner, ask, bearer, token
from tests.auth.network import NOW

BOUND = SigningKey.generate()


def guard(**settings: object) -> Guard:
    options = {
        "resource": RESOURCE,
        "clock": lambda: NOW,
        "dpop_nonces": True,
        "scopes": ["use"],
        **settings,
    }
    return Guard(Jwt(ISSUER, keys={"keys": [KEY.public()]}), **options)  # type: ignore[arg-type]  # as a table has them


SHOWN = token(cnf={"jkt": BOUND.thumbprint}, scope="use")
PROOF = {
    "Authorization": f"DPoP {SHOWN}",
    "DPoP": dpop_proof(BOUND, method="POST", url=RESOURCE, now=NOW, access_token=SHOWN),
}


@pytest.mark.parametrize(
    "headers, level, words",
    [
        ({}, logging.INFO, "An access token is required"),
        (PROOF, logging.INFO, "use_dpop_nonce"),
        (bearer(token(aud="https://other.example")), logging.WARNING, "it is for another server"),
        (bearer(token(iss="https://other.example")), logging.WARNING, "it is from another issuer"),
        (bearer(token(exp=1)), logging.WARNING, "it has expired"),
        (bearer(token(scope="other")), logging.WARNING, "This needs the scope use"),
        ({"Authorization": "Bearer a b"}, logging.WARNING, "invalid_request"),
    ],
    ids=[
        "no token yet",
        "no nonce yet",
        "another audience",
        "another issuer",
        "expired",
        "too few scopes",
        "malformed",
    ],
)
async def test_why_a_token_is_refused(
    headers: dict[str, str], level: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One line for each refusal, which says what the client was told, and nothing that it showed
    (AUT-06, AUT-10).
    """
    caplog.set_level(logging.DEBUG, logger="interlock.auth")
    await ask(guard()(Inner()), headers=headers)
    (line,) = caplog.records
    assert (line.levelno, words in line.getMessage()) == (level, True)
    assert not [
        value
        for value in headers.values()
        if value.partition(" ")[2] and value.partition(" ")[2] in caplog.text
    ]
