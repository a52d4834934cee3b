"""The sessions of people at the provider: kept sealed, renewed once, used for nobody else, and the
end of them is the end of ours.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from interlock import types as t
from interlock.auth.keys import KeySet, SigningKey
from interlock.auth.oauth.documents import TokenAnswer
from interlock.auth.oauth.errors import Unauthorized
from interlock.auth.tokens.jwt import Jwt
from interlock.exchange import Principal
from interlock.store.vaults.memory import MemoryVault
from interlock_issuer.proxy.provider_client import ProviderClient
from interlock_issuer.proxy.sessions import UpstreamSessions
from tests.auth.network import Answer, Clock
from tests.issuer.office import SERVER, claims_of
from tests.proxy.elsewhere import ACME, ID, SECRET, Elsewhere
from tests.proxy.test_proxy import Street


def principal(tokens: dict[str, Any]) -> Principal:
    """Who calls with an access token of ours, as a guard finds it."""
    claims = claims_of(tokens["access_token"])
    return Principal(
        subject=claims["sub"], issuer=claims["iss"], client=claims["client_id"], claims=claims
    )


@pytest.fixture
def street() -> Street:
    """A street of our own."""
    return Street()


async def test_a_token_for_calls_of_our_own(street: Street) -> None:
    """Who calls us has a token upstream, which never leaves us, and is renewed before it ends
    (AUT-18, AU2-10, ELI-31).
    """
    tokens = await street.tokens()
    first = await street.proxy.upstream_token(principal(tokens))
    assert first in street.elsewhere.access
    assert first not in str(tokens)  # what the client has is a token of ours
    assert await street.proxy.upstream_token(principal(tokens)) == first
    street.clock.now += 3600 - 59
    second = await street.proxy.upstream_token(principal(tokens))
    assert second in street.elsewhere.access
    assert second != first


async def test_as_a_guard_finds_it(street: Street) -> None:
    """What a verifier makes of a token of ours is enough to find the token upstream, and only in
    the hands of who has ours.
    """
    tokens = await street.tokens()
    keys = (await street.visitor().get("/jwks")).body
    verifier = Jwt("https://proxy.example", keys=KeySet.read(keys))
    verified = await verifier.verify(tokens["access_token"], resource=SERVER, now=street.clock.now)
    assert await street.proxy.upstream_token(verified.principal) in street.elsewhere.access
    assert tokens["access_token"] not in str(verified.principal)
    assert not [token for token in street.elsewhere.access if token in str(verified.principal)]


async def test_nobody_gets_the_token_of_another(street: Street) -> None:
    """The name of a session in the hands of another subject opens nothing, and who has none gets
    none.
    """
    tokens = await street.tokens()
    right = principal(tokens)
    for wrong in (
        replace(right, subject="https://id.acme.example#5678"),
        replace(right, claims={}),
        replace(right, claims={"upstream": 7}),
        replace(right, claims={"upstream": "x" * 32}),
        replace(right, claims={"upstream": ""}),
    ):
        with pytest.raises(Unauthorized, match="Log in again"):
            await street.proxy.upstream_token(wrong)


async def test_the_vault_holds_nothing_of_use(street: Street) -> None:
    """Who reads the vault finds the provider's tokens sealed, under names that are digests
    (AUT-10).
    """
    tokens = await street.tokens()
    name = claims_of(tokens["access_token"])["upstream"]
    (key,) = await street.vault.keys("upstream-session")
    kept = await street.vault.get("upstream-session", key) or b""
    assert name not in key
    for secret in (*street.elsewhere.access, *street.elsewhere.refresh, name, "1234"):
        assert secret.encode() not in kept


async def test_exchanged_records_open_nothing(street: Street) -> None:
    """A record that was put in the place of another is no session, and neither is one that was
    changed.
    """
    one = principal(await street.tokens())
    other = principal(await street.tokens())
    keys = await street.vault.keys("upstream-session")
    records = [await street.vault.get("upstream-session", key) or b"" for key in keys]
    for key, record in zip(keys, reversed(records), strict=True):
        await street.vault.put("upstream-session", key, record)
    for each in (one, other):
        with pytest.raises(Unauthorized):
            await street.proxy.upstream_token(each)
    for key in keys:
        await street.vault.put("upstream-session", key, b"e" + b"x" * 80)
    with pytest.raises(Unauthorized):
        await street.proxy.upstream_token(one)


async def test_another_secret_opens_nothing() -> None:
    """Sealed with the client secret, or with keys of one's own: who has neither has no session."""
    street = Street(keys=[b"a" * 32])
    caller = principal(await street.tokens())
    for keys, opens in (([b"b" * 32, b"a" * 32], True), ([b"b" * 32], False), ([], False)):
        later = Street(vault=street.vault, keys=keys, upstream_fetch=street.elsewhere)
        later.clock.now = street.clock.now
        if opens:
            assert await later.proxy.upstream_token(caller) in street.elsewhere.access
        else:
            with pytest.raises(Unauthorized):
                await later.proxy.upstream_token(caller)


async def test_a_refresh_token_is_spent_once(street: Street) -> None:
    """However many ask at once, in one process or in two that share the vault, the provider is
    asked once.
    """
    tokens = await street.tokens()
    twin = Street(vault=street.vault, upstream_fetch=street.elsewhere)
    for each in (street, twin):
        each.clock.now += 3600
    street.elsewhere.sent.clear()
    asked = [
        each.proxy.upstream_token(principal(tokens)) for each in (street, twin) for _ in range(16)
    ]
    found = await asyncio.gather(*asked)
    assert len(set(found)) == 1
    assert len(street.elsewhere.sent) == 1


async def test_who_gives_up_loses_nothing() -> None:
    """A caller who goes away while a refresh token is spent does not take the new one along."""
    clock = Clock()
    elsewhere = Elsewhere(clock=clock)
    asked = asyncio.Event()
    gate = asyncio.Event()

    class Slow:
        """Answers once it may."""

        async def __call__(self, request: Any) -> Answer:
            answer = await elsewhere(request)
            asked.set()
            await gate.wait()
            return answer

        async def aclose(self) -> None:
            """Nothing is open."""

    elsewhere.refresh["refresh-0"] = "access-0"
    sessions = UpstreamSessions(
        MemoryVault(clock=clock),
        ProviderClient(ACME, ID, SECRET, Slow(), clock),
        [b"k" * 32],
        clock,
    )
    name = await sessions.begin(
        "anna", TokenAnswer(access_token="access-0", refresh_token="refresh-0", expires_in=10)
    )
    asking = asyncio.ensure_future(sessions.token(name, "anna"))
    await asked.wait()
    asking.cancel()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await sessions.token(name, "anna") in elsewhere.access
    assert len(elsewhere.sent) == 1


async def test_the_end_there_is_the_end_here(street: Street) -> None:
    """Once the session at the provider has ended, ours is not renewed, and calls of our own say so
    (AU2-10).
    """
    tokens = await street.renew(await street.tokens())
    street.elsewhere.revoke()
    street.clock.now += 3600
    assert (await street.renew(tokens, 400))["error"] == "invalid_grant"
    with pytest.raises(Unauthorized, match="has ended"):
        await street.proxy.upstream_token(principal(tokens))


async def test_the_end_of_a_token_without_an_end(street: Street) -> None:
    """Where tokens of the provider do not end by themselves, it is asked now and then whether they
    are still taken (AU2-10).
    """
    street.elsewhere.seconds = None
    tokens = await street.renew(await street.tokens())
    street.elsewhere.sent.clear()
    street.clock.now += 500
    tokens = await street.renew(tokens)
    assert street.elsewhere.sent == []
    street.clock.now += 200
    tokens = await street.renew(tokens)
    assert [sent.url for sent in street.elsewhere.sent] == [ACME.person_url]
    street.elsewhere.revoke()
    street.clock.now += 601
    assert (await street.renew(tokens, 400))["error"] == "invalid_grant"


async def test_a_token_without_a_way_on(street: Street) -> None:
    """A token that ends, and that nothing renews, ends the session."""
    street.elsewhere.seconds = 3600
    tokens = await street.tokens()
    kept = street.elsewhere.refresh
    street.clock.now += 3541
    kept.clear()
    with pytest.raises(Unauthorized):
        await street.proxy.upstream_token(principal(tokens))


@pytest.mark.parametrize(
    "down", [t.Unreachable("no route"), Answer(b"", 503), Answer({"error": "server_error"}, 500)]
)
async def test_a_provider_that_is_away_ends_nothing(
    street: Street, down: Exception | Answer
) -> None:
    """Where the provider cannot be asked, nobody is logged out: it is said so, and works again once
    it is back.
    """
    tokens = await street.tokens()
    street.clock.now += 3600
    street.elsewhere.down = down
    with pytest.raises(t.Unreachable) as caught:
        await street.proxy.upstream_token(principal(tokens))
    assert not isinstance(caught.value, Unauthorized)
    assert (await street.renew(tokens, 503))[
        "error"
    ] == "temporarily_unavailable"  # and the refresh token is not spent
    street.elsewhere.down = None
    assert await street.proxy.upstream_token(principal(tokens)) in street.elsewhere.access
    assert "access_token" in await street.renew(tokens)


async def test_refresh_tokens_that_stay(street: Street) -> None:
    """A provider that gives no new refresh token means the old one to be used again."""
    street.elsewhere.rotates = False
    tokens = await street.tokens()
    for _ in range(3):
        street.clock.now += 3600
        assert await street.proxy.upstream_token(principal(tokens)) in street.elsewhere.access


async def test_the_keys_of_the_provider_are_kept(street: Street) -> None:
    """For all log-ins, until one comes with a key that is not among them."""

    def times() -> int:
        return sum(request.url == ACME.jwks_uri for request in street.elsewhere.sent)

    await street.tokens()
    await street.tokens()
    assert times() == 1
    street.elsewhere.key = SigningKey.generate("ES256")
    street.clock.now += 6
    await street.tokens()
    assert times() == 2
