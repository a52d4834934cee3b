"""Scopes that are asked for on the way: together with what there was, once for each, and not for
ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import types as t
from interlock.auth import Denied, Unauthorized
from tests.auth.test_client import MANY, call
from tests.auth.world import Person, World, client, login


async def test_a_step_up_asks_for_all_that_there_was_and_what_is_needed() -> None:
    """AUS-05, AUS-06: the union.

    Afterwards both kinds of calls go through, and the next program still has both.
    """
    world = World()
    world.needs |= {"read": "files:read", "write": "files:write files:read"}
    auth = login(world, scopes="always")
    async with client(world, auth) as c:
        await call(c)
        await call(c, "read")
        await call(c, "write")
        await call(c, "read")
        world.refresh.clear()
        world.revoke()
        await call(c, "write")
    asked = [set(visit["scope"].split()) for visit in world.visits]
    assert asked == [
        {"always", "use"},
        {"always", "use", "files:read"},
        *[{"always", "use", "files:read", "files:write"}] * 2,
    ]


async def test_step_ups_at_the_same_time_each_get_theirs() -> None:
    """AUS-06, AUS-07: eight calls with eight different scopes: all go through, each asked for once,
    and others wait for none of it.
    """
    world = World()
    world.needs = {f"tool{n}": f"scope:{n}" for n in range(8)}
    async with client(world, login(world)) as c:
        await call(c)
        assert await asyncio.gather(*(call(c, tool) for tool in world.needs)) == ["jane"] * 8
        assert await asyncio.gather(*(call(c, tool) for tool in world.needs)) == ["jane"] * 8
    assert len(world.visits) <= 9
    assert set(world.visits[-1]["scope"].split()) == {"use", *world.needs.values()}


async def test_others_do_not_wait_for_a_step_up() -> None:
    """Who needs no more than there is goes on while a person is asked for more."""
    world = World()
    world.needs["write"] = "files:write"
    person = Person(world)
    async with client(world, login(world, person)) as c:
        await call(c)
        await person.asked.acquire()
        person.gate = asyncio.Event()
        more = asyncio.create_task(call(c, "write"))
        await person.asked.acquire()
        assert await asyncio.gather(*(call(c) for _ in range(MANY))) == ["jane"] * MANY
        person.gate.set()
        assert await more == "jane"


async def test_a_step_up_that_does_not_help_is_not_tried_again() -> None:
    """AUS-07: scopes that were asked for and not granted end in an error, at once the next time."""
    world = World()
    world.needs["write"] = "files:write"
    world.grants = lambda asked: ("use",)
    async with client(world, login(world)) as c:
        for _ in range(3):
            with pytest.raises(Unauthorized, match="files:write") as caught:
                await call(c, "write")
            assert caught.value.status == 403
            assert caught.value.code == "insufficient_scope"
        assert len(world.visits) == 2
        assert await call(c) == "jane"


async def test_a_server_that_always_wants_something_else_is_not_followed_for_ever() -> None:
    """AUS-07, CFQ-10: at most three step-ups for one call."""
    world = World()
    async with client(world, login(world)) as c:
        await call(c)
        wanted = iter(range(1000))
        real = world._do

        async def greedy(message: Any, token: Any) -> Any:
            if message["method"] != "tools/call":
                return await real(message, token)
            header = f'Bearer error="insufficient_scope", scope="more:{next(wanted)}"'
            return world._answer(403, None, www_authenticate=header)

        world._do = greedy
        with pytest.raises(Unauthorized):
            await call(c)
    assert len(world.visits) == 4


async def test_a_person_who_says_no_to_more_is_not_asked_for_ever() -> None:
    """AUS-07: after three times the call fails by itself."""
    world = World()
    world.needs["write"] = "files:write"
    person = Person(world)
    async with client(world, login(world, person)) as c:
        await call(c)
        person.answers = Denied("log-in", "no", culprit="person")
        for _ in range(3):
            with pytest.raises(Denied):
                await call(c, "write")
        with pytest.raises(Unauthorized, match="files:write"):
            await call(c, "write")
        assert person.made == 4
        assert await call(c) == "jane"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "Bearer",
        'Bearer error="invalid_token"',
        'Basic realm="x"',
        "???",
        'Basic error="insufficient_scope", scope="x"',
    ],
)
async def test_another_403_is_an_ordinary_refusal(header: str | None) -> None:
    """AUS-05: only `insufficient_scope` leads to a step-up."""
    world = World()
    async with client(world, login(world)) as c:
        await call(c)
        world._serve = lambda request: refuse()

        async def refuse() -> Any:
            return world._answer(
                403, {"why": "no"}, **({} if header is None else {"www_authenticate": header})
            )

        with pytest.raises(t.Unreachable) as caught:
            await call(c)
        assert not isinstance(caught.value, Unauthorized)
        assert caught.value.status == 403
    assert len(world.visits) == 1


@pytest.mark.parametrize(
    "header",
    [
        'Bearer realm="x", DPoP error="insufficient_scope", scope="files:write"',
        'Basic realm="a", Bearer error=insufficient_scope, scope="files:write"',
    ],
)
async def test_the_challenge_that_asks_for_scopes_is_found_among_others(header: str) -> None:
    """AUS-05: whichever of the schemes it is, and wherever it stands."""
    world = World()
    async with client(world, login(world)) as c:
        await call(c)
        real = world._do
        refused = []

        async def once(message: Any, token: Any) -> Any:
            if not refused:
                refused.append(message)
                return world._answer(403, None, www_authenticate=header)
            return await real(message, token)

        world._do = once
        assert await call(c) == "jane"
    assert set(world.visits[-1]["scope"].split()) == {"use", "files:write"}
