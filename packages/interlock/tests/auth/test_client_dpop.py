"""Tokens that are bound to a key: a proof of its own for each request, nonces of both servers, and
the key kept with what is bound to it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock.auth import SigningKey, Unauthorized
from interlock.auth.keys import peek
from interlock.store import open_vault
from interlock.wire.revisions import R1, R4, R5
from tests.auth.test_client import MANY, call
from tests.auth.world import World, client, login


def bound(**changes: Any) -> World:
    world = World(**changes)
    world.dpop = True
    world.extra["dpop_signing_alg_values_supported"] = ["ES256"]
    return world


def proofs(world: World) -> list[dict[str, Any]]:
    """The claims of all proofs that were sent."""
    found = [
        value for request in world.sent for name, value in request.headers if name.lower() == "dpop"
    ]
    return [peek(proof)[1] for proof in found]


@pytest.mark.parametrize("revision", [R5, R4, R1])
async def test_every_request_has_a_proof_of_its_own(revision: str) -> None:
    """DPP-01, DPP-02: `Authorization: DPoP`, and a proof for method, address and token that was
    never sent before.
    """
    world = bound(revision=revision)
    async with client(world, login(world, dpop=True)) as c:
        for _ in range(3):
            assert await call(c) == "jane"
    signed = [
        request
        for request in world.to_server
        if any(name == "Authorization" for name, _ in request.headers)
    ]
    assert all(dict(request.headers)["Authorization"].startswith("DPoP ") for request in signed)
    assert len({claims["jti"] for claims in proofs(world)}) == len(proofs(world)) == len(signed) + 1
    assert set(world.proofs.values()) == {1}


@pytest.mark.parametrize("who", ["as", "server"])
async def test_nonces(who: str) -> None:
    """DPP-03: a demanded nonce costs one more request the first time, and none as long as it holds.

    Another one is taken at once.
    """
    world = bound()
    world.nonce[who] = "first"
    async with client(world, login(world, dpop=True)) as c:
        await call(c)
        before = len(world.sent)
        await call(c)
        assert len(world.sent) == before + 1
        world.nonce[who] = "second"
        await call(c)
        world.revoke()
        await call(c)
    assert len(world.visits) == 1
    assert list(world.spent.values()) == [1]
    assert {claims.get("nonce") for claims in proofs(world)} == {None, "first", "second"}
    assert set(world.proofs.values()) == {1}


async def test_a_nonce_that_changes_under_many_calls_costs_no_token() -> None:
    """DPP-03: 64 requests with a nonce of yesterday come back at once with that of today.

    `use_dpop_nonce` says nothing of the token.
    """
    world = bound()
    world.nonce["server"] = "first"
    async with client(world, login(world, dpop=True)) as c:
        await call(c)
        world.nonce["server"] = "second"
        gate = world.gate("/mcp")
        calls = [asyncio.create_task(call(c)) for _ in range(MANY)]
        await world.knocked("/mcp", MANY)
        gate.set()
        assert await asyncio.gather(*calls) == ["jane"] * MANY
    assert not world.spent
    assert len(world.visits) == 1


async def test_a_token_that_has_ended_and_a_nonce_too() -> None:
    """DPP-03: first the one, then the other: a refresh, and no log-in."""
    world = bound()
    world.nonce["server"] = "first"
    async with client(world, login(world, dpop=True)) as c:
        await call(c)
        for nonce in ("second", "third", "fourth"):
            world.nonce["server"] = nonce
            world.revoke()
            assert await call(c) == "jane"
    assert len(world.visits) == 1
    assert len(world.spent) == 3


async def test_a_server_that_wants_ever_another_nonce_ends_in_words() -> None:
    """DPP-03: the number of attempts is bounded,
    and neither a refresh nor a person is spent on it."""
    world = bound()
    world.nonce["server"] = "0"
    async with client(world, login(world, dpop=True)) as c:
        await call(c)
        real = world._serve

        async def fickle(request: Any) -> Any:
            world.nonce["server"] += "0"
            return await real(request)

        world._serve = fickle
        before = len(world.to_server)
        with pytest.raises(Unauthorized):
            await call(c)
        assert len(world.to_server) - before < 10
    assert not world.spent
    assert len(world.visits) == 1


@pytest.mark.parametrize("given", [False, True])
async def test_the_key_is_kept_with_the_grant(given: bool) -> None:
    """DPP-09: the next program signs with the same key, also where it renews.

    Nothing shows the key.
    """
    world = bound()
    vault = open_vault("memory:")
    key: Any = SigningKey.generate("ES256") if given else True
    for _ in range(3):
        auth = login(world, vault=vault, dpop=key)
        async with client(world, auth) as c:
            await call(c)
            world.clock.now += 601
        kept = await auth.to(world.server).grant()
        assert kept is not None
        assert kept.key is not None
        assert kept.key["d"] not in repr(kept)
    assert len({token.jkt for token in (*world.tokens.values(), *world.refresh.values())}) == 1
    assert len(world.visits) == 1
    assert len(world.spent) == 2
    assert all(
        "d" not in peek(value)[0]["jwk"]
        for request in world.sent
        for name, value in request.headers
        if name.lower() == "dpop"
    )


async def test_two_servers_have_two_keys() -> None:
    """DPP-09: a key that was made here is for one server.

    Nobody can tell from it that it is the same client.
    """
    one = bound()
    other = bound(server="https://other.example.com/mcp")
    other.clients = one.clients
    auth = login(one, dpop=True)
    async with client(one, auth) as c:
        await call(c)
    auth.fetch = other
    auth.agent = login(other).agent
    async with client(other, auth) as c:
        await call(c)
    assert {token.jkt for token in one.tokens.values()} & {
        token.jkt for token in other.tokens.values()
    } == set()
