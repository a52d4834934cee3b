"""Tokens that end, are withdrawn, are of no use, or were kept by an earlier program."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from interlock import types as t
from interlock.auth import OAuth, Unauthorized
from interlock.auth.oauth.documents import TokenAnswer
from interlock.auth.oauth.members import Grant
from interlock.store import Vault, open_vault
from tests.auth.test_client import MANY, call
from tests.auth.world import ISSUER, SERVER, Person, World, client, login

GRANTS = "oauth grant"


# -- ends ------------------------------------------------------------------------------------------


async def test_a_token_is_renewed_shortly_before_its_end() -> None:
    """AUS-13: with a tenth of its time left, or half a minute, a token is renewed.

    The server never sees one that has ended.
    """
    world = World()
    async with client(world, login(world)) as c:
        await call(c)
        for _ in range(5):
            world.clock.now += 569
            await call(c)
            assert len(world.tokens) == 1 + len(world.spent)
            world.clock.now += 2
            await call(c)
        assert dict(c.token_refreshes) == {"ok": 5}
    assert sorted(world.spent.values()) == [1] * 5
    assert world.calls["who"] == 11


@pytest.mark.parametrize(
    "seconds", [None, 0, -5, "600", "soon", "nan", "inf", "-inf", 1e300, 10**18, ""]
)
async def test_whatever_is_said_of_the_end(seconds: Any) -> None:
    """AUS-13: no end, a text, an absurd one: the token is used until it is refused, and none of it
    costs a refresh for each call.
    """
    world = World()
    world.seconds = seconds
    world.lives = 600.0
    vault = open_vault("memory:")
    async with client(world, login(world, vault=vault)) as c:
        for _ in range(5):
            await call(c)
        assert not world.spent
        world.clock.now += 601
        assert await asyncio.gather(*(call(c) for _ in range(MANY))) == ["jane"] * MANY
        assert list(world.spent.values()) == [1]
    async with client(world, login(world, vault=vault)) as again:
        await call(again)
    assert len(world.visits) == 1


@pytest.mark.parametrize(
    "said,seconds",
    [
        (600, 600.0),
        ("600", 600.0),
        (0, None),
        (-1, None),
        (math.nan, None),
        (math.inf, None),
        ("1e400", None),
        ("x", None),
        (None, None),
    ],
)
def test_how_long_a_token_holds(said: Any, seconds: float | None) -> None:
    """AUS-13: seconds from now, or nothing that could be relied on."""
    assert TokenAnswer(access_token="x", expires_in=said).seconds == seconds


async def test_a_server_whose_clock_is_ahead() -> None:
    """It refuses tokens a minute early: each costs one refresh and one more request,
    and no log-in."""
    world = World()
    world.lives = 540.0
    async with client(world, login(world)) as c:
        for _ in range(10):
            await call(c)
            world.clock.now += 545
    assert sorted(world.spent.values()) == [1] * 9
    assert len(world.visits) == 1


async def test_without_a_refresh_token_a_person_is_asked_again() -> None:
    """AUS-13: a refresh token is not assumed."""
    world = World()
    world.offers_refresh = False
    async with client(world, login(world)) as c:
        await call(c)
        world.clock.now += 601
        assert await asyncio.gather(*(call(c) for _ in range(MANY))) == ["jane"] * MANY
    assert len(world.visits) == 2


# -- withdrawn, and of no use ----------------------------------------------------------------------


async def test_tokens_that_are_withdrawn_again_and_again_cost_no_log_in() -> None:
    """Each 401 leads to one refresh, whatever came before, as long as the server takes what was
    given.
    """
    world = World()
    async with client(world, login(world)) as c:
        for _ in range(50):
            assert await asyncio.gather(*(call(c) for _ in range(8))) == ["jane"] * 8
            world.revoke()
    assert set(world.spent.values()) == {1}
    assert len(world.spent) == 49
    assert len(world.visits) == 1


@pytest.mark.parametrize("count", [1, MANY])
async def test_a_server_that_takes_no_token_ends_in_words(count: int) -> None:
    """A refresh, a log-in, and then an error that says who has to repair it.

    Nobody is asked again and again.
    """
    world = World()
    person = Person(world)
    async with client(world, login(world, person)) as c:
        await call(c)

        async def serve(request: Any) -> Any:
            return world._refuse("invalid_token")

        world._serve, real = serve, world._serve
        begun = len(world.to_server)
        failed = await asyncio.gather(*(call(c) for _ in range(count)), return_exceptions=True)
        assert all(
            isinstance(bad, Unauthorized) and "just issued" in str(bad) and bad.culprit == "server"
            for bad in failed
        )
        assert len(world.visits) == 2
        assert len(world.spent) == 1
        assert len(world.to_server) - begun <= 3 * count
        with pytest.raises(Unauthorized, match="just issued"):
            await call(c)
        assert len(world.visits) == 2  # asked a moment ago
        world._serve = real
        assert await call(c) == "jane"
        world._serve = serve
        world.clock.now += 61
        with pytest.raises(Unauthorized, match="just issued"):
            await call(c)
        assert len(world.visits) == 3


async def test_a_token_with_what_no_header_may_have_is_refused_in_words() -> None:
    """AUT-04: nothing that an authorization server gives can write headers."""
    world = World()
    for bad in ("a\r\nX-Evil: 1", "a b", "", "ä", "\x00"):
        world.trouble["/token"] = (200, {"access_token": bad, "token_type": "Bearer"})
        with pytest.raises(Unauthorized) as caught:
            await client(world, login(world)).open()
        assert caught.value.step == "token"
        assert caught.value.culprit == "authorization server"
    assert len(world.to_server) == 5


async def test_a_server_that_moves_to_another_authorization_server() -> None:
    """AUR-17, AUR-18: nothing of the old one is used at the new one: no refresh, another
    registration, one log-in.
    """
    old = World()
    new = World(old.clock, issuer="https://new.example.net")
    person = Person(old)
    auth = login(old, person)

    class Both:
        async def __call__(self, request: Any) -> Any:
            return await (new if request.url.startswith(new.issuer) else old)(request)

        async def aclose(self) -> None:
            """Nothing to close."""

    auth.fetch = Both()
    async with client(old, auth) as c:
        await call(c)
        before = len(old.to("/token"))
        old.issuers = [new.issuer]
        old.revoke()
        new.tokens = old.tokens
        person.answers = new.authorize
        assert await asyncio.gather(*(call(c) for _ in range(8))) == ["jane"] * 8
        old.revoke()
        assert await call(c) == "jane"
    assert len(old.to("/token")) == before
    assert len(new.clients) == 1
    assert len(new.visits) == 1
    assert list(new.spent.values()) == [1]


async def test_registered_by_hand_and_the_authorization_server_changes() -> None:
    """AUR-17, AUR-19: the credentials are not shown to the new one; the error says what to do."""
    world = World()
    world.clients["app"] = {}
    auth = login(world, client_id="app", client_secret="hush-secret", issuer=ISSUER)
    async with client(world, auth) as c:
        await call(c)
        world.issuers = ["https://new.example.net"]
        world.revoke()
        with pytest.raises(Unauthorized, match="issuer") as caught:
            await call(c)
    assert "hush" not in str(caught.value)
    assert not any("new.example.net/token" in request.url for request in world.sent)


class Several:
    """Several authorization servers, of which the first world knows the MCP server."""

    def __init__(self, *worlds: World) -> None:
        self.worlds = worlds

    async def __call__(self, request: Any) -> Any:
        return await next(
            (world for world in self.worlds if request.url.startswith(world.issuer)), self.worlds[0]
        )(request)

    async def aclose(self) -> None:
        """Nothing to close."""


async def test_a_document_is_the_same_client_everywhere() -> None:
    """AUR-20: where the authorization server changes, a client with a document goes on with it.

    Nobody registers.
    """
    old = World()
    new = World(old.clock, issuer="https://new.example.net")
    document = "https://app.example.org/client.json"
    for world in (old, new):
        world.extra["client_id_metadata_document_supported"] = True
        world.clients[document] = {}
    new.tokens = old.tokens
    person = Person(old)
    auth = login(old, person, document=document)
    auth.fetch = Several(old, new)
    async with client(old, auth) as c:
        await call(c)
        old.revoke()
        old.issuers = [new.issuer]
        person.answers = new.authorize
        assert await call(c) == "jane"
    assert [world.visits[0]["client_id"] for world in (old, new)] == [document, document]
    assert not old.to("/register")
    assert not new.to("/register")
    assert not old.spent


async def test_of_several_authorization_servers_the_one_that_is_known() -> None:
    """AU3-08, AUR-17: the first of the list, unless the client is registered at another.

    What each has given is kept apart.
    """
    one = World()
    other = World(one.clock, issuer="https://other.example.net")
    other.tokens = one.tokens
    one.issuers = [other.issuer, one.issuer]
    vault = open_vault("memory:")
    for known in (None, one.issuer):
        if known is not None:
            vault = open_vault("memory:")
            await vault.put(
                "oauth client",
                known,
                b'{"issuer":"%b","client_id":"c","redirect_uris":[]}' % known.encode(),
            )
        person = Person(one)
        person.answers = one.authorize if known is not None else other.authorize
        auth = login(one, person, vault=vault)
        auth.fetch = Several(one, other)
        async with client(one, auth) as c:
            assert await call(c) == "jane"
    assert (len(other.visits), len(one.visits)) == (1, 1)


# -- registrations that are gone -------------------------------------------------------------------


async def test_an_authorization_server_that_has_forgotten_the_client() -> None:
    """AUR-18: `invalid_client` at a refresh: the client registers anew, and the person logs in
    once.
    """
    world = World()
    async with client(world, login(world)) as c:
        await call(c)
        world.clients = {"another": {}}
        world.revoke()
        assert await asyncio.gather(*(call(c) for _ in range(8))) == ["jane"] * 8
    assert len(world.visits) == 2
    assert world.visits[0]["client_id"] != world.visits[1]["client_id"]


async def test_a_log_in_that_nobody_ends_is_begun_anew_with_another_registration() -> None:
    """AUR-18: a client that is unknown there sees no answer, for nobody sends the browser back.

    The next attempt registers.
    """
    world = World()
    world.offers_refresh = False
    vault = open_vault("memory:")
    async with client(world, login(world, vault=vault)) as c:
        await call(c)
    world.revoke()
    world.clients = {"another": {}}
    person = Person(world)
    person.answers = t.TimedOut("nobody came")
    with pytest.raises(t.TimedOut):
        await client(world, login(world, person, vault=vault)).open()
    async with client(world, login(world, vault=vault)) as c:
        assert await call(c) == "jane"
    assert world.visits[-1]["client_id"] == "c2"


async def test_what_was_granted_outlives_the_registration_it_was_granted_to() -> None:
    """AUR-17: another log-in there, from another address, replaces the registration.

    What was granted before can be renewed still.
    """
    one = World()
    auth = login(one)
    async with client(one, auth) as c:
        await call(c)

        class Elsewhere(Person):
            async def listen(self, preferred: Any) -> str:
                return "http://127.0.0.1:50001/callback"

        person = Elsewhere(one)
        other = login(one, person, vault=auth.vault, account="john")
        async with client(one, other) as d:
            await call(d)
        assert len(one.clients) == 2
        one.revoke()
        assert await call(c) == "jane"
    assert len(one.visits) == 2
    assert list(one.spent.values()) == [1]


# -- kept for the next program ---------------------------------------------------------------------


async def test_the_next_program_needs_no_log_in(tmp_path: Any) -> None:
    """AUS-13: with a vault that lasts the token of yesterday is used, and renewed where it has
    ended.
    """
    world = World()
    for later, visits in ((0, 1), (10, 1), (601, 1), (0, 1)):
        world.clock.now += later
        auth = login(world, vault=f"sqlite:{tmp_path / 'vault'}")
        async with client(world, auth) as c:
            assert await call(c) == "jane"
        await auth.aclose()
        assert len(world.visits) == visits
    assert list(world.spent.values()) == [1]


@pytest.mark.parametrize(
    "record",
    [b"", b"{", b"\xff\xfe", b"[]", b'{"resource":1}', b'{"access_token":"x"}', b"null",
        b'{"resource":"a","issuer":"b","client_id":"c","token_endpoint":"d","access_token":"e","key":{"kty":"EC"}}'],
)  # fmt: skip
async def test_a_record_that_cannot_be_read_costs_a_log_in(record: bytes) -> None:
    """AUS-13: whatever is in its place, the client begins anew."""
    world = World()
    vault = open_vault("memory:")
    for kind, key in ((GRANTS, SERVER), ("oauth client", ISSUER)):
        await vault.put(kind, key, record)
    async with client(world, login(world, vault=vault)) as c:
        assert await call(c) == "jane"
    assert len(world.visits) == 1


async def test_accounts_are_kept_apart() -> None:
    """AUS-13: who shares a vault under another name has tokens of their own."""
    world = World()
    vault = open_vault("memory:")
    for account in ("", "jane", "john", "jane", "john", ""):
        async with client(world, login(world, vault=vault, account=account)) as c:
            await call(c)
    assert len(world.visits) == 3
    assert len({token_name for token_name in await vault.keys(GRANTS)}) == 3


def grant(**changes: Any) -> Grant:
    whole = {
        "resource": SERVER,
        "issuer": ISSUER,
        "client_id": "app",
        "token_endpoint": f"{ISSUER}/token",
        "access_token": "old-secret",
    }
    return Grant(**(whole | {"refresh_token": "older-secret"} | changes))


async def put(vault: Vault, kept: Grant) -> None:
    import msgspec

    await vault.put(GRANTS, SERVER, msgspec.json.encode(kept))


@pytest.mark.parametrize(
    "kept,options",
    [
        (grant(issuer="https://old.example.net", token_endpoint="https://old.example.net/token"),
            {"client_id": "app", "client_secret": "hush", "issuer": ISSUER}),
        (grant(client_id="other"), {"client_id": "app", "client_secret": "hush"}),
        (grant(), {"dpop": True}),
    ],
)  # fmt: skip
async def test_what_was_kept_for_somebody_else_is_not_used(
    kept: Grant, options: dict[str, Any]
) -> None:
    """AUR-17: not of another client, nor with a secret that is for another authorization server.

    Nor unbound where a key was asked for.
    """
    world = World()
    world.clients["app"] = {}
    vault = open_vault("memory:")
    await put(vault, kept)
    async with client(world, login(world, vault=vault, **options)) as c:
        assert await call(c) == "jane"
    assert all(
        "old" not in request.url and "old-secret" not in str(request.headers)
        for request in world.sent
    )
    assert len(world.visits) == 1


def test_what_cannot_be_meant_is_refused() -> None:
    """AUR-11: a secret without the client that it belongs to."""
    with pytest.raises(ValueError, match="client_id"):
        OAuth(client_secret="x")
    with pytest.raises(ValueError, match="client_id"):
        OAuth(issuer=ISSUER)
    with pytest.raises(ValueError, match="https"):
        OAuth(document="http://example.com/app")
