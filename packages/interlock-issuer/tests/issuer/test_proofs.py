"""DPoP at the issuer: tokens bound to a key, and nobody else's key in its place."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.auth.keys import SigningKey
from interlock_issuer.interfaces import Client
from tests.issuer.office import BACK, URL, Office, answer_of, basic, claims_of, error_of, said

KEY = SigningKey.generate()
THIEF = SigningKey.generate()


async def test_tokens_are_bound() -> None:
    """The access token says to which key, and the server is told so when it asks (DPP-07)."""
    office = Office()
    tokens = said(await office.redeem(await office.code(), office.proof(KEY)))
    assert tokens["token_type"] == "DPoP"
    assert claims_of(tokens["access_token"])["cnf"] == {"jkt": KEY.thumbprint}
    seen = await office.introspect(tokens["access_token"])
    assert (seen["token_type"], seen["cnf"]) == ("DPoP", {"jkt": KEY.thumbprint})
    again = said(await office.refresh(tokens["refresh_token"], office.proof(KEY)))
    assert claims_of(again["access_token"])["cnf"] == {"jkt": KEY.thumbprint}


@pytest.mark.parametrize("key", [THIEF, None], ids=["another key", "no key"])
async def test_a_key_that_is_swapped_at_refresh(key: SigningKey | None) -> None:
    """The refresh token of a public client is of use only with its key, and is not lost when
    somebody tries without.
    """
    office = Office()
    tokens = said(await office.redeem(await office.code(), office.proof(KEY)))
    headers = {} if key is None else office.proof(key)
    assert error_of(await office.refresh(tokens["refresh_token"], headers)) == "invalid_dpop_proof"
    assert said(await office.refresh(tokens["refresh_token"], office.proof(KEY)))


async def test_a_confidential_client_may_change_its_key() -> None:
    """It has shown who it is otherwise (RFC 9449, 5);
    yet its tokens do not become bearer tokens."""
    office = Office()
    headers = basic("vault", "a secret/with+signs%")
    code = await office.code(client_id="vault")
    tokens = said(await office.redeem(code, headers | office.proof(KEY), client_id=None))
    assert (
        error_of(await office.refresh(tokens["refresh_token"], headers, client_id=None))
        == "invalid_dpop_proof"
    )
    assert (
        said(
            await office.refresh(
                tokens["refresh_token"], headers | office.proof(THIEF), client_id=None
            )
        )["token_type"]
        == "DPoP"
    )


async def test_a_code_that_is_bound_to_a_key() -> None:
    """Asked for with dpop_jkt (RFC 9449, 10)."""
    for key in (THIEF, None):
        office = Office()
        code = await office.code(dpop_jkt=KEY.thumbprint)
        assert (
            error_of(await office.redeem(code, {} if key is None else office.proof(key)))
            == "invalid_grant"
        )
    assert (
        said(await office.redeem(await office.code(dpop_jkt=KEY.thumbprint), office.proof(KEY)))[
            "token_type"
        ]
        == "DPoP"
    )


WRONG: dict[str, dict[str, Any]] = {
    "another method": {"method": "GET"},
    "another address": {"url": f"{URL}/other"},
    "another issuer": {"url": "https://evil.example/token"},
    "an old one": {"now": 1_800_000_000.0 - 301},
    "one from the future": {"now": 1_800_000_000.0 + 301},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
async def test_wrong_proofs(changes: dict[str, Any]) -> None:
    """They prove nothing, and the code is not lost."""
    office = Office()
    code = await office.code()
    assert error_of(await office.redeem(code, office.proof(KEY, **changes))) == "invalid_dpop_proof"
    assert said(await office.redeem(code, office.proof(KEY)))


async def test_a_proof_comes_once() -> None:
    """Nor two in one request."""
    office = Office()
    proof = office.proof(KEY)
    assert said(await office.redeem(await office.code(), proof))
    assert error_of(await office.redeem(await office.code(), proof)) == "invalid_dpop_proof"
    two = {"dpop": f"{office.proof(KEY)['dpop']}, {office.proof(KEY)['dpop']}"}
    assert error_of(await office.redeem(await office.code(), two)) == "invalid_dpop_proof"


async def test_a_client_that_wants_bound_tokens_only() -> None:
    """By its registration: without a proof it gets nothing (DPP-08)."""
    office = Office()
    metadata = {
        "redirect_uris": [BACK],
        "token_endpoint_auth_method": "none",
        "dpop_bound_access_tokens": True,
    }
    told = said(await office.register(metadata), 201)
    assert told["dpop_bound_access_tokens"] is True
    id = told["client_id"]
    code = await office.code(client_id=id)
    assert error_of(await office.redeem(code, client_id=id)) == "invalid_dpop_proof"
    assert said(await office.redeem(code, office.proof(KEY), client_id=id))["token_type"] == "DPoP"


async def test_required_of_all_and_off() -> None:
    """By configuration; where it is off the header is nothing, and nothing is promised."""
    office = Office(dpop="required")
    assert error_of(await office.redeem(await office.code())) == "invalid_dpop_proof"
    office = Office(dpop="off")
    assert (
        said(await office.redeem(await office.code(), office.proof(KEY)))["token_type"] == "Bearer"
    )
    assert "dpop_signing_alg_values_supported" not in said(
        await office.get("/.well-known/oauth-authorization-server")
    )


async def test_nonces() -> None:
    """A proof needs the nonce that the issuer gives, one of now or of just before.

    Each answer brings the one to use (RFC 9449, 8).
    """
    office = Office(dpop_nonces=True)
    code = await office.code()
    reply = await office.redeem(code, office.proof(KEY))
    assert error_of(reply) == "use_dpop_nonce"
    nonce = reply.header("dpop-nonce")
    assert nonce
    assert "DPoP-Nonce" in (reply.header("access-control-expose-headers") or "")
    reply = await office.redeem(code, office.proof(KEY, nonce=nonce))
    tokens = said(reply)
    assert reply.header("dpop-nonce") == nonce
    office.clock.now += 300
    reply = await office.refresh(tokens["refresh_token"], office.proof(KEY, nonce=nonce))
    assert said(reply)
    assert reply.header("dpop-nonce") not in (None, nonce)
    office.clock.now += 300
    assert (
        error_of(await office.refresh(tokens["refresh_token"], office.proof(KEY, nonce=nonce)))
        == "use_dpop_nonce"
    )
    assert (
        error_of(await office.refresh(tokens["refresh_token"], office.proof(KEY, nonce="made up")))
        == "use_dpop_nonce"
    )


async def test_processes_that_share_a_vault_share_nonces() -> None:
    """What one gives another takes."""
    one = Office(dpop_nonces=True)
    two = Office(dpop_nonces=True, vault=one.vault)
    code = await one.code()
    nonce = (await one.redeem(code, one.proof(KEY))).header("dpop-nonce")
    assert said(await two.redeem(code, two.proof(KEY, nonce=nonce)))


async def test_bound_tokens_for_clients_without_people() -> None:
    """The other grants bind tokens as well."""
    client = Client(id="c", secret="s" * 20, grants=("client_credentials",), dpop=True)
    office = Office(clients=[client])
    told = {"grant_type": "client_credentials"}
    assert error_of(await office.post("/token", told, basic("c", "s" * 20))) == "invalid_dpop_proof"
    tokens = said(await office.post("/token", told, basic("c", "s" * 20) | office.proof(KEY)))
    assert claims_of(tokens["access_token"])["cnf"] == {"jkt": KEY.thumbprint}


async def test_a_thumbprint_is_not_passed_on_where_dpop_is_off() -> None:
    """Else the code could never be redeemed."""
    office = Office(dpop="off")
    assert said(
        await office.redeem(answer_of(await office.authorize(dpop_jkt=KEY.thumbprint))["code"])
    )
