"""A client that logs in: from the first refusal to a token on every request, for one, for many at
once, and in every revision.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from typing import Any

import pytest

from interlock import types as t
from interlock.auth import Unauthorized
from interlock.http11.fetch import Request
from interlock.wire.revisions import R1, R2, R4, R5
from tests.auth.world import Person, World, client, login, nothing_left, token_of

MANY = 64


async def call(c: Any, tool: str = "who", **options: Any) -> str:
    result = await c.call_tool(tool, **options)
    return str(result.content[0].text)


@pytest.mark.parametrize("revision", [R5, R4, R2])
async def test_a_refused_request_leads_to_a_log_in_and_is_sent_again(revision: str) -> None:
    """AUT-03, AUT-04, AUF-07: one log-in, and the token on every request from then on: POST, GET,
    DELETE, notifications.
    """
    world = World(revision=revision)
    auth = login(world)
    with nothing_left():
        async with client(world, auth) as c:
            assert await call(c) == "jane"
            assert await call(c) == "jane"
    first, *others = world.to_server
    assert token_of(first) is None
    assert {token_of(request) for request in others} == {next(iter(world.tokens))}
    assert len(world.visits) == 1
    assert world.visits[0]["scope"] == "use"
    if revision != R5:
        assert {request.method for request in others} == {"POST", "GET", "DELETE"}
        assert world.ended == 1
        assert any(b"notifications/initialized" in request.body for request in others)
    assert not world.open


async def test_over_two_endpoints_too() -> None:
    """AUT-03: HTTP with SSE: the stream and each post bear the token."""
    world = World(revision=R1)
    with nothing_left():
        async with client(world, login(world)) as c:
            assert await call(c) == "jane"
    first, *others = world.to_server
    assert token_of(first) is None
    assert {request.method for request in others} == {"GET", "POST"}
    assert {token_of(request) for request in others} == {next(iter(world.tokens))}


async def test_a_token_is_nowhere_but_in_its_header(caplog: pytest.LogCaptureFixture) -> None:
    """AUT-04, AUS-13: no token in an address, a log, an exception or what an object shows of
    itself.
    """
    caplog.set_level(logging.DEBUG)
    world = World()
    auth = login(world)
    told: list[Any] = []
    auth.on_step = told.append
    async with client(world, auth) as c:
        await call(c)
        world.revoke()
        world.trouble["/token"] = (500, {"error": "server_error"})
        with pytest.raises(Unauthorized) as caught:
            await call(c)
        world.trouble["/token"] = None
        await call(c)
    server = auth.to(world.server)
    shown = [request.url for request in world.sent] + [str(note) for note in told]
    shown += ["".join(traceback.format_exception(caught.value)), caplog.text]
    shown += [
        repr(thing)
        for thing in (
            auth,
            server,
            auth.way,
            await server.grant(),
            vars(server),
            vars(auth),
            *world.to_server,
        )
    ]
    text = "\n".join(shown)
    assert "secret" not in text
    assert "code-" not in text


@pytest.mark.parametrize("status", [301, 307, 308])
@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example.net/mcp",
        "http://mcp.example.com/mcp",
        "https://mcp.example.com:8443/mcp",
        "//evil.example.net/mcp",
    ],
)
async def test_a_token_never_follows_a_redirect_elsewhere(status: int, target: str) -> None:
    """AUT-09: another host, another port, or the way back to http gets nothing at all."""
    world = World()
    async with client(world, login(world)) as c:
        await call(c)
        real = world._serve

        async def leads(request: Any) -> Any:
            return world._answer(status, None, location=target)

        world._serve = leads
        with pytest.raises(t.Unreachable, match="another origin"):
            await call(c)
        world._serve = real
    assert all(
        request.url.startswith((f"{world.server}", f"{world.origin}/.well-known", world.issuer))
        for request in world.sent
    )


async def test_what_is_signed_goes_to_the_server_alone() -> None:
    """AUT-09: the seam itself signs nothing for another place, whoever asks it to."""
    world = World()
    server = login(world).to(world.server)
    await server.renew()
    for url in (
        "https://evil.example.com/mcp",
        "https://mcp.example.com:444/mcp",
        "http://mcp.example.com/mcp",
        "https://mcp.example.com.evil.net/mcp",
    ):
        request = Request("POST", url)
        assert await server.sign(request) is request
    signed = await server.sign(Request("POST", "https://mcp.example.com/mcp/deeper"))
    assert token_of(signed) is not None


async def test_many_calls_are_in_flight_at_the_same_time() -> None:
    """No lock is held across a request: the server answers none of 64 calls before all of them have
    come.
    """
    world = World()
    world.barrier = asyncio.Barrier(MANY)
    async with client(world, login(world)) as c:
        answers = await asyncio.gather(*(call(c, "meet") for _ in range(MANY)))
    assert answers == ["jane"] * MANY
    assert len(world.visits) == 1


async def test_a_refresh_in_the_middle_of_many_calls_is_spent_once() -> None:
    """64 calls whose token was revoked: one refresh token, one spending, nobody fails, and all 64
    meet in the server afterwards.
    """
    world = World()
    world.barrier = asyncio.Barrier(MANY)
    async with client(world, login(world)) as c:
        await call(c)
        world.revoke()
        assert await asyncio.gather(*(call(c, "meet") for _ in range(MANY))) == ["jane"] * MANY
    assert list(world.spent.values()) == [1]
    assert not world.dead
    assert len(world.visits) == 1


async def test_who_has_a_good_token_does_not_wait_for_a_refresh() -> None:
    """Near the end of a token one call renews it.

    The others go on with what is good, until it is not.
    """
    world = World()
    async with client(world, login(world)) as c:
        await call(c)
        world.clock.now += 580  # of 600 seconds
        gate = world.gate("/token")
        one = asyncio.create_task(call(c))
        await world.knocked("/token")
        assert await asyncio.gather(*(call(c) for _ in range(MANY))) == ["jane"] * MANY
        world.clock.now += 21
        late = [asyncio.create_task(call(c)) for _ in range(MANY)]
        gate.set()
        assert await asyncio.gather(one, *late) == ["jane"] * (MANY + 1)
    assert list(world.spent.values()) == [1]
    assert len(world.to("/token")) == 2


@pytest.mark.parametrize(
    "trouble",
    [
        t.Unreachable("the cable is out"),
        (500, b"oops"),
        (503, {"error": "temporarily_unavailable"}),
        (200, b"<html>"),
    ],
)
async def test_a_refresh_that_fails_costs_nothing_while_the_token_lasts(trouble: Any) -> None:
    """The token is used to its end.

    Only then is the failure one of calls, and the next call tries again.
    """
    world = World()
    async with client(world, login(world)) as c:
        await call(c)
        world.clock.now += 580
        world.trouble["/token"] = trouble
        assert await asyncio.gather(*(call(c) for _ in range(MANY))) == ["jane"] * MANY
        assert len(world.to("/token")) == 2  # the log-in, and one attempt
        world.clock.now += 21
        failed = await asyncio.gather(*(call(c) for _ in range(MANY)), return_exceptions=True)
        assert all(isinstance(bad, t.Unreachable) for bad in failed)
        assert len(world.to("/token")) == 3
        world.trouble["/token"] = None
        assert await call(c) == "jane"
    assert len(world.visits) == 1


async def test_a_refresh_token_that_is_good_no_more_is_not_presented_again() -> None:
    """AUS-13: `invalid_grant` leads to one log-in for all who wait, with the scopes that there
    were.
    """
    world = World()
    world.needs["write"] = "files:write"
    async with client(world, login(world)) as c:
        await call(c, "write")
        world.refresh.clear()
        world.clock.now += 601
        assert await asyncio.gather(*(call(c) for _ in range(MANY))) == ["jane"] * MANY
        assert await call(c, "write") == "jane"
    assert list(world.dead.values()) == [1]
    assert len(world.visits) == 3
    assert set(world.visits[-1]["scope"].split()) == {"use", "files:write"}


async def test_words_of_an_authorization_server_cannot_steer_a_terminal() -> None:
    """What it says in `error_description` is shown without control characters, and not at any
    length.
    """
    world = World()
    person = Person(world)
    async with client(world, login(world, person)) as c:
        await call(c)
        world.revoke()
        world.trouble["/token"] = (
            400,
            {"error": "invalid_scope", "error_description": "\x1b[2J" + "x" * 100_000},
        )
        with pytest.raises(Unauthorized) as caught:
            await call(c)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 5000
