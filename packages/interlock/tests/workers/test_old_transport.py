"""The transport of two endpoints over several workers: a message reaches the worker that holds the
stream, wherever it is posted."""

from __future__ import annotations

import asyncio
import time

from interlock import Answers, Client, Server
from interlock.http11.client import HttpFetch
from interlock.http11.fetch import Request
from interlock.http11.proxies import Proxies
from interlock.store import open_store
from interlock.transport.http.client.transport import Http
from interlock.transport.http.limits import Limits
from tests.workers.clusters import Cluster, noted
from tests.workers.neighbours import eventually, neighbours
from tests.workers.raw import Stream


async def answer(*about) -> dict:
    """What a person would say."""
    return {"value": 41}


async def say(*about) -> str:
    """What a model would say."""
    return "words"


def old(url: str, **options) -> Client:
    """A client that speaks the older transport only."""
    return Client(Http(url.removesuffix("/mcp") + "/sse", legacy_sse=True), **options)


async def test_messages_reach_the_stream_whichever_worker_takes_them(workers: Cluster):
    """Calls, questions in their middle, progress and changes; all of one client run where its
    stream is (`HPS-03`)."""
    async with (
        asyncio.timeout(30),
        old(
            workers.url, answers=Answers(elicit=answer, sample=say, roots=["file:///here"])
        ) as client,
        client.watch(resources=["thing://1"]) as changes,
    ):
        results = await asyncio.gather(*(client.call_tool("pid") for _ in range(12)))
        assert len({result.text for result in results}) == 1
        assert "file:///here" in (await client.call_tool("ask_all")).text
        seen: list[float] = []
        await client.call_tool("count", {"to": 20}, on_progress=lambda p: seen.append(p.progress))
        assert seen == [*range(1, 21)]
        await client.call_tool("touch", {"n": 1})
        assert (await anext(changes)).uri == "thing://1"


async def test_a_cancellation_reaches_the_call(workers: Cluster):
    """It is posted to any worker."""
    async with asyncio.timeout(30), old(workers.url) as client:
        names = [f"old {n} {id(client)}" for n in range(3)]
        calls = [asyncio.ensure_future(client.call_tool("hang", {"name": name})) for name in names]
        for name in names:
            await asyncio.to_thread(noted, workers.folder, f"{name} hangs")
        for call in calls:
            call.cancel()
        for name in names:
            await asyncio.to_thread(noted, workers.folder, f"{name} was cancelled")
        await asyncio.gather(*calls, return_exceptions=True)


async def test_a_session_lasts_as_long_as_its_stream_and_is_soon_gone_without(store: str):
    """It is prolonged while the stream is open, so that one whose worker was killed does not count
    for long."""
    fetch = HttpFetch(proxies=Proxies())
    looking = open_store(store)
    limits = Limits(idle_seconds=1.0)
    async with (
        asyncio.timeout(30),
        neighbours(
            2, lambda: Server("old"), store=store, legacy_sse=True, limits=limits
        ) as workers,
    ):
        await looking.open()
        stream = Stream(
            await fetch(
                Request(
                    "GET",
                    workers.at(0).removesuffix("/mcp") + "/sse",
                    (("Accept", "text/event-stream"),),
                )
            )
        )
        endpoint = (await stream.next()).data.decode()
        id = endpoint.partition("session=")[2]
        first = await looking.sessions.load(id, now=time.time())
        assert first.until < time.time() + 1.1

        async def prolonged() -> bool:
            return (await looking.sessions.load(id, now=0.0)).until >= first.until + 0.5

        async def gone() -> bool:
            return await looking.sessions.load(id, now=time.time()) is None

        await eventually(prolonged)
        await stream.break_off()
        await eventually(gone)
        await looking.aclose()
        await fetch.aclose()
