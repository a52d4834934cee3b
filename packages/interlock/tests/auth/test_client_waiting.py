"""Who waits for a log-in or a refresh, and what becomes of it when they go: nothing is taken along,
nothing is left behind.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import ClientSettings
from interlock import types as t
from interlock.auth import Denied, Unauthorized
from interlock.auth.single_flight import SingleFlight
from interlock.store import StoreError, open_vault
from interlock.wire.revisions import R1, R2, R4, R5
from tests.auth.test_client import MANY, call
from tests.auth.world import Person, World, client, login, nothing_left


def patient(world: World) -> Person:
    """A person who thinks until the gate opens."""
    person = Person(world)
    person.gate = asyncio.Event()
    return person


async def logged_out(world: World, person: Person, c: Any) -> None:
    """The next call needs a person."""
    await call(c)
    await person.asked.acquire()
    world.revoke()
    world.refresh.clear()
    person.gate = asyncio.Event()


async def test_who_is_cancelled_takes_nobody_along() -> None:
    """One of many who wait for a log-in goes; it goes on for the others."""
    world = World()
    person = Person(world)
    with nothing_left():
        async with client(world, login(world, person)) as c:
            await logged_out(world, person, c)
            waiting = [asyncio.create_task(call(c)) for _ in range(3)]
            await person.asked.acquire()
            waiting[0].cancel()  # it is the one that began the log-in
            await asyncio.wait([waiting[0]])
            assert waiting[0].cancelled()
            assert person.gate is not None
            person.gate.set()
            assert await asyncio.gather(*waiting[1:]) == ["jane"] * 2
    assert len(world.visits) == 2
    assert person.here == 0


async def test_when_all_have_gone_the_log_in_is_over() -> None:
    """No task, no agent and no answer is left the moment the last one has been cancelled.

    The next call begins anew.
    """
    world = World()
    person = Person(world)
    async with client(world, login(world, person)) as c:
        await logged_out(world, person, c)
        with nothing_left():
            waiting = [asyncio.create_task(call(c)) for _ in range(3)]
            await person.asked.acquire()
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
        assert all(task.cancelled() for task in waiting)
        assert person.here == 0
        assert not world.open
        person.gate = None
        assert await call(c) == "jane"
    assert person.made == 3


async def test_who_comes_while_a_log_in_is_being_given_up_begins_another() -> None:
    """The end of somebody else's work is not the end of ours."""
    world = World()
    person = Person(world)
    async with client(world, login(world, person)) as c:
        await logged_out(world, person, c)
        one = asyncio.create_task(call(c))
        await person.asked.acquire()
        gate = world.gate("/mcp")
        two = asyncio.create_task(call(c))
        await world.knocked("/mcp")
        one.cancel()
        gate.set()
        await person.asked.acquire()
        assert person.gate is not None
        person.gate.set()
        assert await two == "jane"
        assert one.cancelled()


async def test_a_refresh_is_ended_though_nobody_waits() -> None:
    """AUS-13: what was spent is not forgotten: the new tokens are kept, and the next call uses
    them.
    """
    world = World()
    auth = login(world)
    async with client(world, auth) as c:
        await call(c)
        world.revoke()
        gate = world.gate("/token")
        with nothing_left():
            waiting = [asyncio.create_task(call(c)) for _ in range(3)]
            await world.knocked("/token")
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
            late = asyncio.create_task(call(c))  # joins what is under way
            gate.set()
            assert await late == "jane"
        assert world.cancelled == 0
    assert list(world.spent.values()) == [1]
    assert not world.dead
    assert len(world.visits) == 1
    async with client(world, login(world, vault=auth.vault)) as again:
        assert await call(again) == "jane"
    assert len(world.visits) == 1


async def test_a_refresh_that_is_refused_when_nobody_waits_asks_nobody() -> None:
    """A person is asked for somebody who waits, and not otherwise."""
    world = World()
    person = Person(world)
    async with client(world, login(world, person)) as c:
        await call(c)
        world.revoke()
        world.refresh.clear()
        gate = world.gate("/token")
        with nothing_left():
            only = asyncio.create_task(call(c))
            await world.knocked("/token")
            only.cancel()
            await asyncio.wait([only])
            gate.set()
            await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
        assert len(world.visits) == 1
        assert await call(c) == "jane"
    assert list(world.dead.values()) == [1]


@pytest.mark.parametrize("revision", [R5, R4, R1])
async def test_closing_the_client_ends_its_log_in(revision: str) -> None:
    """`aclose` in the middle: who called is told, the agent is closed, nothing goes on."""
    world = World(revision=revision)
    person = Person(world)
    with nothing_left():
        c = client(world, login(world, person))
        await c.open()
        await logged_out(world, person, c)
        waiting = [asyncio.create_task(call(c)) for _ in range(3)]
        await person.asked.acquire()
        await c.aclose()
        for bad in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(bad, t.Unreachable), bad
    assert person.here == 0
    assert not world.open


async def test_two_clients_share_one_log_in() -> None:
    """One OAuth object, one server, two clients that open at the same time."""
    world = World()
    auth = login(world)
    async with asyncio.TaskGroup() as group:
        clients = [client(world, auth) for _ in range(2)]
        for c in clients:
            group.create_task(c.open())
    assert [await call(c) for c in clients] == ["jane", "jane"]
    assert len(world.visits) == 1
    for c in clients:
        await c.aclose()


async def test_several_servers_have_a_token_each() -> None:
    """AUT-09, AU3-08: one OAuth object for two servers: two log-ins, one registration, and
    neither's token goes to the other.
    """
    one = World()
    other = World(one.clock, server="https://other.example.com/mcp")

    async def either(request: Any) -> Any:
        world = other if "other.example.com" in request.url else one
        return await world(request)

    class Both:
        __call__ = staticmethod(either)

        async def aclose(self) -> None:
            """Nothing to close."""

    auth = login(one)
    auth.fetch = Both()
    first = other.tokens = one.tokens
    async with client(one, auth) as here, client(other, auth) as there:
        assert await call(here) == "jane"
        assert await call(there) == "jane"
    assert [visit["resource"] for visit in one.visits] == [one.server, other.server]
    assert len(one.clients) == 1
    tokens = {token.resource: text for text, token in first.items()}
    assert all(tokens[one.server] not in str(request.headers) for request in other.sent)
    assert all(tokens[other.server] not in str(request.headers) for request in one.to_server)


async def test_a_person_who_says_no_is_asked_once_for_all_who_wait() -> None:
    """All who wait are told; the next call asks again."""
    world = World()
    person = Person(world)
    async with client(world, login(world, person)) as c:
        await logged_out(world, person, c)
        person.answers = Denied("log-in", "no", culprit="person")
        waiting = [asyncio.create_task(call(c)) for _ in range(MANY)]
        await person.asked.acquire()
        assert person.gate is not None
        person.gate.set()
        failed = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(bad, Denied) for bad in failed)
        assert person.made == 2
        person.answers = world.authorize
        assert await call(c) == "jane"


@pytest.mark.parametrize("revision", [R5, R4, R2, R1])
async def test_a_person_may_take_longer_than_any_request(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe, the opening and the call stand still while somebody logs in: with hours on the
    loop's clock, nothing times out.
    """
    loop = asyncio.get_running_loop()
    ahead = 0.0
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + ahead)
    world = World(revision=revision)
    person = patient(world)
    c = client(
        world, login(world, person), timeout=900.0, settings=ClientSettings(probe_timeout=900.0)
    )
    opening = asyncio.create_task(c.open())
    await person.asked.acquire()
    for seconds in (1.0, 3600.0):  # first only the look whether the request was read
        ahead += seconds
        for _ in range(5):
            await asyncio.sleep(0)  # timers that are due run now
    assert person.gate is not None
    person.gate.set()
    await opening
    world.revoke()
    world.refresh.clear()
    person.gate = asyncio.Event()
    calling = asyncio.create_task(call(c))
    await person.asked.acquire()
    ahead += 3600.0
    for _ in range(5):
        await asyncio.sleep(0)
    person.gate.set()
    assert await calling == "jane"
    await c.aclose()


async def test_the_end_of_all_holds_for_people_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `max_timeout` a call ends, whoever is asked; nothing is left of the log-in."""
    loop = asyncio.get_running_loop()
    ahead = 0.0
    real = loop.time
    world = World()
    person = Person(world)
    async with client(
        world, login(world, person), timeout=30.0, settings=ClientSettings(max_timeout=600.0)
    ) as c:
        await logged_out(world, person, c)
        monkeypatch.setattr(loop, "time", lambda: real() + ahead)
        with nothing_left():
            calling = asyncio.create_task(call(c))
            await person.asked.acquire()
            ahead += 3600.0
            with pytest.raises(t.TimedOut):
                await calling
        assert person.here == 0
        monkeypatch.undo()


async def test_a_program_that_runs_twice_uses_one_authorization() -> None:
    """Work that an event loop left behind when it was closed is none that
    anybody has to wait for."""
    flight: SingleFlight[int] = SingleFlight()

    def other_loop() -> None:
        async def never() -> int:
            await asyncio.Event().wait()
            return 1

        async def begin() -> None:
            waiting = asyncio.ensure_future(flight.join(never))
            await asyncio.sleep(0)
            assert not waiting.done()

        asyncio.run(begin())

    await asyncio.to_thread(other_loop)

    async def two() -> int:
        return 2

    assert await flight.join(two) == 2


async def test_a_vault_that_fails_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """A vault that cannot be read is no reason to ask the person.

    One that cannot be written costs nothing now.
    """
    world = World()
    vault = open_vault("memory:")
    real_get = vault.get

    async def broken(*_: Any, **__: Any) -> Any:
        raise StoreError("the disk is gone")

    vault.get = broken
    with pytest.raises(Unauthorized, match="the disk is gone"):
        await client(world, login(world, vault=vault)).open()
    assert not world.visits
    vault.get = real_get
    async with client(world, login(world, vault=vault)) as c:
        assert await call(c) == "jane"
        vault.swap = vault.put = broken
        world.revoke()
        assert await call(c) == "jane"
    assert "the disk is gone" in caplog.text
    assert "secret" not in caplog.text
    assert len(world.visits) == 1
