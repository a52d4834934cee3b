"""Many servers at once: they start in parallel, and one that is slow or dead holds up nobody."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import Server
from interlock.configs import Entry
from tests.client.peers import ByHand
from tests.fleet.hub.keeping import QUICK, alive, kept, misbehaving, pids, turns

MANY = 50
TOOLS = 40  # of each


class Barrier:
    """Opens once so many wait before it."""

    def __init__(self, count: int) -> None:
        self.waiting = 0
        self._count = count
        self._open = asyncio.Event()

    async def __call__(self) -> None:
        self.waiting += 1
        if self.waiting == self._count:
            self._open.set()
        await self._open.wait()


class Late:
    """A transport to a server of this process that is opened when all the others are, too."""

    def __init__(self, server: Server, barrier: Any) -> None:
        self._inner = server.transport()
        self._barrier = barrier

    async def open(self, hello: Any) -> Any:
        await self._barrier()
        return await self._inner.open(hello)

    async def __call__(self, exchange: Any) -> Any:
        return await self._inner(exchange)

    def send_notification(self, method: str, params: Any) -> None:
        self._inner.send_notification(method, params)

    async def aclose(self) -> None:
        await self._inner.aclose()


def large(id: str, tools: int = TOOLS, listing: Any = None) -> Server:
    """A server with many tools, whose lists may wait for something."""

    async def hold(handler: Any, x: Any) -> Any:
        if x.method == "tools/list" and listing is not None:
            await listing()
        return await handler(x)

    server = Server(id, middleware=[lambda handler: lambda x: hold(handler, x)])
    for number in range(tools):

        async def tool(text: str) -> str:
            return f"{id} {text}"

        server.tool(name=f"tool_{number}")(tool)
    return server


@pytest.mark.slow
async def test_fifty_servers_with_two_thousand_tools() -> None:
    """All fifty are reached at the same time, listed at the same time, and called at the same time;
    in the order of the configuration.
    """
    opening = Barrier(MANY)
    listing = Barrier(MANY)
    ids = [f"s{number}" for number in range(MANY)]
    servers = {id: (lambda id=id: Late(large(id, listing=listing), opening)) for id in ids}
    async with kept(
        *(Entry(id=id) for id in ids), servers=servers
    ) as one:  # were they not parallel, this would wait for ever
        assert (opening.waiting, listing.waiting) == (MANY, MANY)
        assert list(one.hub.servers) == ids
        assert sum(len(link.tools) for link in one.hub.servers.values()) == MANY * TOOLS == 2000
        answers = await asyncio.gather(
            *(link.call("tool_39", {"text": "x"}) for link in one.hub.servers.values())
        )
        assert [answer.text for answer in answers] == [f"{id} x" for id in ids]
        assert sorted(id for id, _ in one.received.changed) == sorted(ids)


@pytest.mark.endurance(seconds=3)
@pytest.mark.skipif(
    sys.platform != "linux", reason="watches processes through /proc, which only Linux has"
)
async def test_fifty_processes_of_which_some_misbehave(tmp_path: Path) -> None:
    """The good ones are up and used while the others fail, hang and fall.

    In the end none is left.
    """
    kinds = ["well", "well", "well", "fails", "mute", "deaf", "falls", "stubborn", "older", "well"]
    entries = [misbehaving(tmp_path, f"s{number}", kinds[number % 10]) for number in range(MANY)]
    good = [entry.id for entry in entries if entry.command[-1] in ("well", "older", "stubborn")]
    async with kept(*entries, limits=QUICK, opened=False) as one:
        opening = asyncio.ensure_future(one.hub.open(None))
        for id in good:
            await one.received.state(id, "up")
        answers = await asyncio.gather(*(one[id].call("pid") for id in good))
        assert [int(answer.text) for answer in answers] == [pids(tmp_path, id)[0] for id in good]
        assert not opening.done()
        await one.clock.advance(30)
        await opening
        assert {link.state for id, link in one.hub.servers.items() if id in good} == {"up"}
    assert not [pid for entry in entries for pid in pids(tmp_path, entry.id) if alive(pid)]


async def test_a_slow_server_holds_up_nobody() -> None:
    """The others are up, called and restarted while it is still starting."""
    never = asyncio.Event()
    servers = {"slow": lambda: ByHand(opening=never.wait), "quick": large("quick", 1)}
    async with kept(Entry(id="slow"), Entry(id="quick"), servers=servers, opened=False) as one:
        await one.hub.open(0)
        await one.received.state("quick", "up")
        assert (await one["quick"].call("tool_0", {"text": "x"})).text == "quick x"
        await one.hub.restart("quick")
        await one.received.state("quick", "up", 2)
        await turns()
        assert one["slow"].state == "starting"
