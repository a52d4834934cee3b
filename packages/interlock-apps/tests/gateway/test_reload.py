"""Reload: new settings are checked whole, used without dropping a call, and announced."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import McpError, Server
from interlock_apps.gateway.settings import BadSettings, Settings
from tests.gateway.behind import (
    connected,
    gateway_of,
    kitchen,
    names_of,
    settings_of,
    with_servers,
)


class File:
    """A file of settings that a test rewrites."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self) -> Settings:
        return settings_of(self.text)


def slow_server() -> tuple[Server, asyncio.Event, asyncio.Event]:
    """A server with a call that lasts until an event, and the events of its start and end."""
    entered = asyncio.Event()
    may_end = asyncio.Event()
    server = kitchen("slow")

    @server.tool
    async def work() -> str:
        """Work until it may end."""
        entered.set()
        await may_end.wait()
        return "done"

    return server, entered, may_end


async def test_servers_come_and_go_and_running_calls_end_well() -> None:
    slow, entered, may_end = slow_server()
    servers = {"slow": slow, "north": kitchen("north"), "south": kitchen("south")}
    file = File(with_servers("slow", "north"))
    gateway = gateway_of(file(), servers, read=file)
    changed = asyncio.Event()

    def note(method: str, params: Any) -> None:
        changed.set()

    async with connected(gateway, on_notification=note) as client:
        assert "slow__work" in await names_of(client)
        call = asyncio.create_task(client.call_tool("slow__work"))
        await entered.wait()
        async with client.watch(tools=True) as changes:
            file.text = with_servers("north", "south")
            assert await gateway.reload() == ["server slow removed", "server south added"]
            await anext(aiter(changes))
        assert await names_of(client) == [
            "north__order",
            "north__menu",
            "south__order",
            "south__menu",
        ]
        with pytest.raises(McpError):
            await client.call_tool("slow__menu")
        may_end.set()
        assert (await call).text == "done"


async def test_settings_that_cannot_be_used_change_nothing() -> None:
    file = File(with_servers("north"))
    gateway = gateway_of(file(), {"north": kitchen("north")}, read=file)
    async with connected(gateway) as client:
        before = gateway.settings
        for text in ("[listen", '[listen]\nhttp = "0.0.0.0:1"', "[views.x]\nservers = ['none']"):
            file.text = text
            with pytest.raises(BadSettings):
                await gateway.reload()
        assert gateway.settings is before
        assert (await client.call_tool("north__menu")).text == "north: soup"


async def test_a_server_that_has_not_changed_is_kept() -> None:
    file = File(with_servers("north"))
    gateway = gateway_of(file(), {"north": kitchen("north"), "south": kitchen("s")}, read=file)
    async with connected(gateway) as client:
        await client.call_tool("north__menu")
        kept = gateway.upstream("north")
        file.text = with_servers("north", "south", more='[views.x]\nservers = ["north"]\n')
        assert await gateway.reload() == ["server south added", "view x added"]
        assert gateway.upstream("north") is kept
        assert kept.is_open
        async with connected(gateway, "x") as other:
            assert len(await names_of(other)) == 2
        file.text = with_servers("north")
        assert await gateway.reload() == ["server south removed", "view x removed"]
        with pytest.raises(KeyError):
            gateway.view("x")


async def test_principals_follow_a_reload_too() -> None:
    personal = "shared = false\n"
    file = File(with_servers("north", more=personal))
    gateway = gateway_of(file(), {"north": kitchen("north"), "south": kitchen("s")}, read=file)
    async with connected(gateway) as client:
        assert len(await names_of(client)) == 2
        file.text = with_servers("south", "north", more=personal)
        await gateway.reload()
        assert len(await names_of(client)) == 4
        file.text = with_servers("south")
        await gateway.reload()
        assert await names_of(client) == ["south__order", "south__menu"]


class Unprotected:
    """Protections that protect nothing, and know whether they are closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def protect(self, source: Any, **options: Any) -> Any:
        return source

    async def aclose(self) -> None:
        self.is_closed = True


async def test_the_end_waits_for_nothing_that_a_reload_left() -> None:
    file = File(with_servers("north"))
    made: list[Unprotected] = []

    def protections(settings: Any, before: Any) -> Unprotected:
        made.append(Unprotected())
        return made[-1]

    servers = {"north": kitchen("north")}
    gateway = gateway_of(file(), servers, read=file, protections=protections)
    async with asyncio.timeout(8):  # less than old protections are kept for running calls
        async with connected(gateway) as client:
            await gateway.reload()
            assert (await client.call_tool("north__menu")).text == "north: soup"
            assert not made[0].is_closed
    assert [each.is_closed for each in made] == [True, True]


async def test_settings_without_a_file_cannot_be_read_again() -> None:
    gateway = gateway_of(settings_of(with_servers("north")), {"north": kitchen("north")})
    with pytest.raises(BadSettings, match="come from no file"):
        await gateway.reload()
