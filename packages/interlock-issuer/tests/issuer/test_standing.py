"""Tokens after they were given: asked about, ended, exchanged for the next server's."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.auth.keys import SigningKey
from interlock_issuer.interfaces import Client
from tests.issuer.office import (
    APP,
    CONFIDENTIAL,
    GATEWAY,
    OTHER,
    SERVER,
    URL,
    Office,
    basic,
    claims_of,
    error_of,
    said,
)

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"
AS_GATEWAY = basic("gateway", "g" * 32)
NEXT = Client(id="next", secret="n" * 32, resource=OTHER, grants=(EXCHANGE,))
AS_NEXT = basic("next", "n" * 32)


def office() -> Office:
    """An issuer with two servers that are clients as well."""
    return Office(clients=[APP, CONFIDENTIAL, GATEWAY, NEXT])


async def test_what_a_server_hears_of_a_token() -> None:
    """Of one that is meant for it: everything that it needs (RFC 7662, 2.2)."""
    place = office()
    token = (await place.log_in())["access_token"]
    told = await place.introspect(token)
    claims = claims_of(token)
    assert told == {"active": True, "token_type": "Bearer"} | {
        n: v for n, v in claims.items() if n not in ("sid", "email")
    }


async def test_of_what_it_hears_nothing() -> None:
    """A token for another server, one that is over, one that is none, one by somebody else, a
    refresh token: all the same.
    """
    place = office()
    tokens = await place.log_in()
    other = (await place.log_in(resource=OTHER))["access_token"]
    claims = claims_of(tokens["access_token"])
    forged = SigningKey.generate().sign(claims, typ="at+jwt")
    for token in (
        other,
        forged,
        tokens["refresh_token"],
        "x",
        "x.y.z",
        tokens["access_token"][:-4] + "AAAA",
    ):
        assert await place.introspect(token) == {"active": False}
    place.clock.now += 600
    assert await place.introspect(tokens["access_token"]) == {"active": False}


async def test_who_may_ask() -> None:
    """Only who has shown who it is; of its own tokens a client hears too."""
    place = office()
    token = (await place.log_in())["access_token"]
    assert (
        error_of(await place.post("/introspect", {"token": token, "client_id": "app"}), 401)
        == "invalid_client"
    )
    assert error_of(await place.post("/introspect", {"token": token}), 401) == "invalid_client"
    assert error_of(await place.post("/introspect", {}, AS_GATEWAY)) == "invalid_request"
    secret = basic("vault", "a secret/with+signs%")
    assert said(await place.post("/introspect", {"token": token}, secret)) == {"active": False}
    own = said(await place.post("/token", {"grant_type": "client_credentials"}, secret))[
        "access_token"
    ]
    assert said(await place.post("/introspect", {"token": own}, secret))["active"] is True


async def test_a_refresh_token_that_is_revoked() -> None:
    """Takes everything with it (RFC 7009, 2.1)."""
    place = office()
    tokens = await place.log_in()
    assert (
        said(await place.post("/revoke", {"token": tokens["refresh_token"], "client_id": "app"}))
        == {}
    )
    assert error_of(await place.refresh(tokens["refresh_token"])) == "invalid_grant"
    assert await place.introspect(tokens["access_token"]) == {"active": False}


async def test_an_access_token_that_is_revoked() -> None:
    """Is over for who asks; the grant goes on."""
    place = office()
    tokens = await place.log_in()
    assert (
        said(await place.post("/revoke", {"token": tokens["access_token"], "client_id": "app"}))
        == {}
    )
    assert await place.introspect(tokens["access_token"]) == {"active": False}
    assert (
        await place.introspect(said(await place.refresh(tokens["refresh_token"]))["access_token"])
    )["active"] is True


async def test_nobody_revokes_for_another() -> None:
    """Nor is anything said of what is not theirs."""
    place = Office()
    tokens = await place.log_in()
    for token in (tokens["access_token"], tokens["refresh_token"], "x"):
        assert said(await place.post("/revoke", {"token": token, "client_id": "second"})) == {}
    assert (await place.introspect(tokens["access_token"]))["active"] is True
    assert said(await place.refresh(tokens["refresh_token"]))
    assert (
        error_of(await place.post("/revoke", {"token": "x", "client_id": "vault"}), 401)
        == "invalid_client"
    )
    assert error_of(await place.post("/revoke", {"client_id": "app"})) == "invalid_request"


# -- exchange --------------------------------------------------------------------------------------


async def exchange(
    place: Office, token: str, headers: dict[str, str] | None = None, **changes: str
) -> Any:
    """Exchange a token for one that the next server takes."""
    told = {
        "grant_type": EXCHANGE,
        "subject_token": token,
        "subject_token_type": ACCESS,
        "resource": OTHER,
    }
    return await place.post("/token", told | changes, AS_GATEWAY if headers is None else headers)


async def test_a_server_calls_the_next_one() -> None:
    """On behalf of the same person, with no more scopes and no more time, and it stands in the
    token who acts (RFC 8693, 4.1).
    """
    place = office()
    tokens = await place.log_in()
    place.clock.now += 300
    told = said(await exchange(place, tokens["access_token"]))
    claims = claims_of(told["access_token"])
    assert (
        told["issued_token_type"],
        told["token_type"],
        told["expires_in"],
        "refresh_token" in told,
    ) == (ACCESS, "Bearer", 300, False)
    assert (claims["sub"], claims["aud"], claims["scope"]) == (
        "anna",
        OTHER,
        "files:read",
    )  # all that the gateway may have
    assert (claims["client_id"], claims["act"], claims["email"]) == (
        "gateway",
        {"sub": "gateway"},
        "anna@example.com",
    )
    assert (await place.introspect(tokens["access_token"]))["active"] is True
    back = claims_of(
        said(await exchange(place, told["access_token"], AS_NEXT, resource=SERVER))["access_token"]
    )
    assert back["act"] == {"sub": "next", "act": {"sub": "gateway"}}


async def test_the_end_of_the_grant_ends_what_was_exchanged() -> None:
    """And nothing can be exchanged any more."""
    place = office()
    tokens = await place.log_in()
    token = said(await exchange(place, tokens["access_token"]))["access_token"]
    assert said(await place.post("/introspect", {"token": token}, AS_NEXT))["active"] is True
    await place.post("/revoke", {"token": tokens["refresh_token"], "client_id": "app"})
    assert said(await place.post("/introspect", {"token": token}, AS_NEXT)) == {"active": False}
    assert error_of(await exchange(place, tokens["access_token"])) == "invalid_request"


REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "no token of ours": ({"subject_token": "x.y.z"}, "invalid_request"),
    "another type": (
        {"subject_token_type": "urn:ietf:params:oauth:token-type:saml2"},
        "invalid_request",
    ),
    "a refresh token wanted": (
        {"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"},
        "invalid_request",
    ),
    "an actor": ({"actor_token": "x"}, "invalid_request"),
    "a resource that is not ours": ({"resource": "https://evil.example/"}, "invalid_target"),
    "a scope more": ({"scope": "mail"}, "invalid_scope"),
}


@pytest.mark.parametrize("changes, error", REFUSED.values(), ids=REFUSED)
async def test_what_is_not_exchanged(changes: dict[str, str], error: str) -> None:
    """Each with its reason."""
    place = office()
    assert (
        error_of(await exchange(place, (await place.log_in())["access_token"], **changes)) == error
    )


async def test_only_who_was_sent_a_token_exchanges_it() -> None:
    """A token for the next server is of no use to this one.

    A client that is no server exchanges nothing.
    """
    place = office()
    other = (await place.log_in(resource=OTHER))["access_token"]
    assert error_of(await exchange(place, other)) == "invalid_request"
    token = (await place.log_in())["access_token"]
    assert error_of(await exchange(place, token, AS_NEXT, resource=SERVER)) == "invalid_request"
    assert (
        error_of(await exchange(place, token, basic("vault", "a secret/with+signs%")))
        == "unauthorized_client"
    )
    assert error_of(await exchange(place, token, {}, client_id="app")) == "unauthorized_client"
    assert error_of(await exchange(place, token, {}), 401) == "invalid_client"
    plain = Office(clients=[APP, Client(id="gateway", secret="g" * 32, grants=(EXCHANGE,))])
    assert (
        error_of(await exchange(plain, (await plain.log_in())["access_token"]))
        == "unauthorized_client"
    )


async def test_a_chain_without_end() -> None:
    """Two servers that call each other for ever are stopped."""
    place = office()
    token = (await place.log_in(scope=None))["access_token"]
    for turn in range(8):
        headers, target = (AS_GATEWAY, OTHER) if turn % 2 == 0 else (AS_NEXT, SERVER)
        token = said(await exchange(place, token, headers, resource=target))["access_token"]
    assert error_of(await exchange(place, token)) == "invalid_request"
    assert claims_of(token)["iss"] == URL
