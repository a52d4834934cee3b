"""Without sessions any worker serves any request too, and clients share nothing, not even the ids
of their requests."""

from __future__ import annotations

import asyncio
import json

from interlock import Server
from interlock.http11.client import HttpFetch
from interlock.http11.proxies import Proxies
from interlock.wire.revisions import R4
from tests.workers.neighbours import neighbours
from tests.workers.raw import RawSession, tool


async def test_nobody_cancels_or_answers_the_calls_of_others(store: str):
    """Two clients that number their requests alike: what one cancels or answers is none of the
    other's."""
    server = Server("sessionless")
    begun = asyncio.Event()
    go_on = asyncio.Event()

    @server.tool
    async def wait() -> str:
        begun.set()
        await go_on.wait()
        return "undisturbed"

    fetch = HttpFetch(proxies=Proxies())
    async with (
        asyncio.timeout(20),
        neighbours(2, lambda: server, store=store, sessions=False) as workers,
    ):
        one, other = (RawSession(fetch, workers, R4) for _ in range(2))
        waiting = asyncio.ensure_future(one.send(0, one.request("tools/call", tool("wait"), id=1)))
        await begun.wait()
        for worker in range(2):
            for message in (
                {"method": "notifications/cancelled", "params": {"requestId": 1}},
                {"id": 1, "result": {}},
            ):
                response = await other.send(worker, {"jsonrpc": "2.0", **message})
                assert response.status == 202
        assert (await other.ask(0, "ping"))["result"] == {}
        go_on.set()
        response = await waiting
        assert response.status == 200
        assert (
            json.loads(await response.read(1 << 16))["result"]["content"][0]["text"]
            == "undisturbed"
        )
        await fetch.aclose()
