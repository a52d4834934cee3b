"""Limits that hold for all workers together: how many sessions there are, and how often one may
ask."""

from __future__ import annotations

import asyncio
import json

from interlock import Server
from interlock.http11.client import HttpFetch
from interlock.http11.proxies import Proxies
from interlock.transport.http.limits import Limits, Rate
from interlock.wire.revisions import R4
from tests.workers.neighbours import neighbours
from tests.workers.raw import RawSession


def make() -> Server:
    """A server with nothing in it."""
    return Server("neighbour")


async def test_sessions_are_counted_over_all_workers(store: str):
    """Five in all, wherever they are opened, also at the same time; one that ends makes room for
    one, at any worker."""
    fetch = HttpFetch(proxies=Proxies())
    async with (
        asyncio.timeout(30),
        neighbours(3, make, store=store, limits=Limits(sessions=5)) as workers,
    ):
        mine = [RawSession(fetch, workers, R4) for _ in range(12)]
        statuses = [
            response.status
            for response in await asyncio.gather(*(each.open(n) for n, each in enumerate(mine)))
        ]
        assert sorted(statuses) == [200] * 5 + [503] * 7
        refused = await mine[statuses.index(503)].open(1)
        assert refused.status == 503
        assert refused.headers["retry-after"] == "30"
        assert json.loads(await refused.read(1 << 16))["error"]["data"] == {
            "reason": "busy",
            "resource": "sessions",
            "retryAfter": 30,
        }
        for n, worker in enumerate((2, 0, 1)):
            open_one = next(each for each in mine if each.id)
            assert await open_one.delete(worker) == 204
            open_one.id = ""
            assert (await open_one.open(n)).status == 200
            late = RawSession(fetch, workers, R4)
            assert (await late.open(n)).status == 503
        for each in mine:
            if each.id:
                await each.delete(0)
        await fetch.aclose()


async def test_a_rate_is_shared_by_all_workers(store: str):
    """Twenty requests at once and one an hour after that, over three workers: the twenty-first is
    refused, whichever it goes to."""
    limits = Limits(rate=Rate(per_second=1 / 3600, burst=20))
    fetch = HttpFetch(proxies=Proxies())
    async with asyncio.timeout(30), neighbours(3, make, store=store, limits=limits) as workers:
        mine = RawSession(fetch, workers, R4)
        ping = mine.request("ping")
        responses = await asyncio.gather(*(mine.send(n, ping) for n in range(40)))
        statuses = [response.status for response in responses]
        assert statuses.count(429) == 20
        for n in range(3):
            late = await mine.send(n, ping)
            assert late.status == 429
            assert 3000 < int(late.headers["retry-after"]) <= 3601
        await fetch.aclose()
