"""Servers of every maker are killed and restarted while our client is open: it starts a new
session, and subscribes again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import Client, Http
from tests.interop import catalogue
from tests.interop.driver import command_of, on_the_web
from tests.ports import free_port

pytestmark = pytest.mark.interop

MAKERS = ("interlock", "python-2", "python-1", "fastmcp", "typescript-2", "typescript-1")


async def soon(seconds: float) -> None:
    """Wait for less time than the client normally would."""
    await asyncio.sleep(min(seconds, 0.1))


def command(maker: str, port: int, installed: Callable[[str], Path]) -> list[str]:
    """The command that serves a maker's catalogue at a port."""
    if maker == "interlock":
        return [sys.executable, catalogue.__file__, str(port)]
    return [*command_of("server", maker, installed), "streamable-http", str(port)]


@pytest.mark.parametrize("maker", MAKERS)
async def test_a_session_does_not_outlive_its_server(
    maker: str, installed: Callable[[str], Path]
) -> None:
    """The next call gets 404 and starts another session; watchers are notified that everything may
    have changed (`HTL-42`, `HTL-43`)."""
    port = free_port()
    heard: asyncio.Queue[str] = asyncio.Queue()
    transport = Http(f"http://127.0.0.1:{port}/mcp", sleep=soon)
    client = Client(
        transport,
        revision="2025-11-25",
        timeout=30,
        on_notification=lambda method, params: heard.put_nowait(method),
    )
    async with on_the_web(command(maker, port, installed), port, kill=True):
        await client.open()
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
    async with on_the_web(command(maker, port, installed), port, kill=True):
        sums = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": n}) for n in range(5)))
        assert [answer.text for answer in sums] == ["0", "2", "4", "6", "8"]
        notices = {await asyncio.wait_for(heard.get(), 30) for _ in range(3)}
        assert notices == {
            f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")
        }
        await client.aclose()


@pytest.mark.parametrize("maker", ["interlock", "python-2", "typescript-2"])
async def test_a_subscription_outlives_its_server(
    maker: str, installed: Callable[[str], Path]
) -> None:
    """It is opened again as soon as the server is back, and its subject is reported as changed
    (`HTM-18`)."""
    port = free_port()
    async with on_the_web(command(maker, port, installed), port, kill=True):
        client = Client(
            Http(f"http://127.0.0.1:{port}/mcp", sleep=soon), revision="2026-07-28", timeout=30
        )
        await client.open()
        watch = client.watch(tools=True, resources=["note://board"])
        changes = await watch.__aenter__()
    async with on_the_web(command(maker, port, installed), port, kill=True):
        told = {(await asyncio.wait_for(anext(changes), 30)).kind for _ in range(2)}
        assert told == {"tools", "resource"}
        assert (await client.call_tool("touch")).text == "touched"
        assert (await asyncio.wait_for(anext(changes), 30)).uri == "note://board"
        await watch.__aexit__(None, None, None)
        await client.aclose()
