"""Upstreams: opened when needed, healed, left out while they are down, one for each principal."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, McpError, Principal, Server, Unreachable
from interlock.store import MemoryVault
from interlock_apps.gateway import upstreams
from interlock_apps.gateway.identity import Accounts
from interlock_apps.gateway.program import Gateway
from interlock_apps.gateway.settings import ServerSettings
from interlock_apps.gateway.upstreams import FAILURES, PersonalUpstreams, Upstream
from tests.gateway.behind import (
    connected,
    gateway_of,
    kitchen,
    names_of,
    settings_of,
    with_servers,
)

MORTAL = """
import os
from interlock import Server

server = Server("mortal")

@server.tool
def pid() -> str:
    return str(os.getpid())

@server.tool
def die() -> str:
    os._exit(3)

server.run()
"""


class Switched:
    """A transport to a server of this process that can be cut off."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.is_cut = False
        self.attempts = 0
        self._inner: Any = None

    def _check(self) -> None:
        self.attempts += 1
        if self.is_cut:
            raise Unreachable("the cable is out")

    async def open(self, hello: Any) -> Any:
        """Connect."""
        self._check()
        self._inner = self._server.transport()
        return await self._inner.open(hello)

    async def __call__(self, exchange: Any) -> Any:
        """Send an exchange."""
        self._check()
        return await self._inner(exchange)

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._inner.send_notification(method, params)

    async def aclose(self) -> None:
        """Disconnect."""
        if self._inner is not None:
            await self._inner.aclose()


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_server_that_is_down_is_left_out_and_named() -> None:
    down = Switched(kitchen("south"))
    down.is_cut = True
    servers = {"north": kitchen("north"), "south": down}
    gateway = gateway_of(settings_of(with_servers("north", "south")), servers)
    async with connected(gateway) as client:
        assert await names_of(client) == ["north__order", "north__menu"]
        states = {state.name: state for state in gateway.upstreams()}
        assert states["south"].condition == "down"
        assert "the cable is out" in states["south"].words
        assert (await client.call_tool("north__menu")).text == "north: soup"


async def test_failures_open_the_circuit_and_success_closes_it() -> None:
    clock = Clock()
    cable = Switched(kitchen("k"))
    upstream = Upstream("k", lambda: Client(cable), clock=clock)
    front = Server("front")
    front.mount(_Plain(upstream))
    async with Client(front) as client:
        await upstream.ensure()
        front.settle_mounts()
        assert (await client.call_tool("menu")).text == "k: soup"
        cable.is_cut = True
        for _ in range(FAILURES):
            with pytest.raises(McpError, match="The server k cannot be reached now"):
                await client.call_tool("menu")
        assert upstream.condition == "open circuit"
        before = cable.attempts
        with pytest.raises(McpError, match="Try again in 1 s") as raised:
            await client.call_tool("menu")
        assert raised.value.data == {"retryAfterMs": 1000}
        assert "cable" not in str(raised.value)  # the reason is for the operator
        assert cable.attempts == before  # it was not even tried
        clock.now += 2
        cable.is_cut = False
        assert (await client.call_tool("menu")).text == "k: soup"
        assert (upstream.condition, upstream.failures) == ("up", 0)
        await upstream.close()


class _Plain:
    """An upstream as a source, without a view."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self.name = upstream.name
        self.listen = upstream.listen
        self.handle = upstream.handle

    @property
    def offered(self) -> Any:
        return self._upstream.offered

    async def open(self) -> None:
        """See Source."""

    async def aclose(self) -> None:
        """See Source."""


@pytest.mark.parametrize("shared", [True, False])
async def test_a_process_that_has_died_is_started_again(tmp_path: Path, shared: bool) -> None:
    script = tmp_path / "mortal.py"
    script.write_text(MORTAL)
    command = f'command = ["{sys.executable}", "{script}"]\nshared = {str(shared).lower()}'
    gateway = Gateway(settings_of(f"[servers.mortal]\n{command}"))
    async with connected(gateway) as client:
        first = (await client.call_tool("mortal__pid")).text
        with pytest.raises(McpError, match="The server mortal cannot be reached now"):
            await client.call_tool("mortal__die")
        second = (await client.call_tool("mortal__pid")).text
        assert first != second
        assert [state.condition for state in gateway.upstreams()] == ["up"]


async def test_a_call_ends_after_the_time_of_the_entry() -> None:
    slow = Server("slow")

    @slow.tool
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.get_running_loop().create_future()
        return ""

    upstream = Upstream("slow", lambda: Client(slow), timeout=0.05)
    front = Server("front")
    front.mount(_Plain(upstream))
    async with Client(front) as client:
        await upstream.ensure()
        front.settle_mounts()
        with pytest.raises(McpError, match="slow did not answer within 0.05 s"):
            await client.call_tool("wait")
        assert upstream.condition == "up"  # one slow call says nothing about the others
        await upstream.close()


def _personal(most: int, clock: Clock) -> PersonalUpstreams:
    settings = settings_of(with_servers("k"))
    return PersonalUpstreams(
        settings.entries["k"],
        ServerSettings(shared=False, most=most, idle="10s"),
        lambda principal: Upstream("k", lambda: Client(kitchen(principal)), clock=clock),
        clock=clock,
    )


async def test_unused_connections_of_principals_are_closed_and_their_lists_stay() -> None:
    clock = Clock()
    personal = _personal(50, clock)
    ada = personal.of("ada")
    await ada.ensure()
    assert ada.is_open
    assert ada.offered is not None
    clock.now += 9
    await personal.reap()
    assert ada.is_open
    clock.now += 2
    await personal.reap()
    assert not ada.is_open
    assert ada.offered is not None
    assert personal.of("ada") is ada
    await ada.ensure()
    assert ada.is_open
    await personal.drain()
    assert not ada.is_open


async def test_the_oldest_idle_connection_makes_room_and_busy_ones_do_not() -> None:
    clock = Clock()
    personal = _personal(2, clock)
    ada, bob, eve = (personal.of(name) for name in ("ada", "bob", "eve"))
    for one in (ada, bob):
        clock.now += 1
        await one.ensure()
    clock.now += 1
    await eve.ensure()
    await personal.of("ada").close()  # waits for the one that is being closed
    assert [one.is_open for one in (ada, bob, eve)] == [False, True, True]
    bob.calls = eve.calls = 1
    with pytest.raises(McpError, match="All 2 connections to k are in use"):
        await ada.ensure()
    bob.calls = eve.calls = 0
    await personal.drain()


async def test_the_number_of_principals_in_memory_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Connections of the principals that came least recently are forgotten, and with them their
    accounts; not those that somebody uses, waits for, or has in a catalogue."""
    monkeypatch.setattr(upstreams, "_KNOWN_PRINCIPALS", 10)
    settings = settings_of(
        '[servers.crm]\nurl = "http://127.0.0.1:1/mcp"\nidentity = "user"\nidle = "10s"\n'
    )
    entry = settings.entries["crm"]
    accounts = Accounts(MemoryVault(), "http://127.0.0.1:1")
    clock = Clock()

    def make(principal: str) -> Upstream:
        account = accounts.of(entry, principal)
        return Upstream("crm", lambda: Client(kitchen()), account=account, clock=clock)

    personal = PersonalUpstreams(entry, settings.servers["crm"], make, clock=clock)
    kept = [personal.of(name) for name in ("waits", "is mounted")]
    kept[0].logins = 1
    stop = kept[1].listen(bool)
    for number in range(100):
        clock.now += 1
        personal.of(f"user {number}")
    await personal.reap()
    gc.collect()  # a connection and its account are a cycle
    assert len(personal.all()) == len(accounts) == 10
    assert [personal.of(name) for name in ("waits", "is mounted")] == kept
    kept[0].logins = 0
    stop()
    for name in ("one more", "another"):
        personal.of(name)
    await personal.reap()
    assert not set(kept) & {*personal.all()}


async def test_a_removed_server_lets_its_calls_end() -> None:
    entered = asyncio.Event()
    may_end = asyncio.Event()
    server = Server("k")

    @server.tool
    async def work() -> str:
        """Work until it may end."""
        entered.set()
        await may_end.wait()
        return "done"

    upstream = Upstream("k", lambda: Client(server))
    front = Server("front")
    front.mount(_Plain(upstream))
    async with Client(front) as client:
        await upstream.ensure()
        front.settle_mounts()
        call = asyncio.create_task(client.call_tool("work"))
        await entered.wait()
        draining = asyncio.create_task(upstream.drain())
        await asyncio.sleep(0)
        assert upstream.condition == "draining"
        assert not draining.done()
        may_end.set()
        assert (await call).text == "done"
        await draining
        with pytest.raises(McpError, match="was removed"):
            await client.call_tool("work")


async def test_nothing_of_the_caller_goes_to_the_server() -> None:
    seen: list[Any] = []

    def spy(handler: Any) -> Any:
        async def handle(x: Any) -> Any:
            seen.append(x.caller)
            return await handler(x)

        return handle

    server = kitchen()
    server.use(spy)
    gateway = gateway_of(settings_of(with_servers("k")), {"k": server})
    who = Principal(subject="ada", issuer="https://login.example", claims={"email": "a@b"})
    front = gateway.view("").server
    async with Client(front.transport(principal=who)) as client:
        await client.call_tool("k__menu")
    assert seen
    for caller in seen:
        assert caller.principal is None
        assert caller.info.name == "interlock-gateway"
