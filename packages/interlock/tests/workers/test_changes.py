"""Change notices reach whoever wants them at every worker, wherever the change was told, and none
is lost when a stream moves."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from interlock import Client
from interlock.wire.revisions import R3, R4, R5
from tests.workers.clusters import Cluster
from tests.workers.raw import Stream, session


async def uris(stream: Stream, count: int) -> list[str]:
    """The URIs of the next notices."""
    found = []
    for _ in range(count):
        message = await stream.message()
        assert message["method"] == "notifications/resources/updated", message
        found.append(message["params"]["uri"])
    return found


async def test_subscribed_at_one_heard_at_another_told_by_a_third(workers: Cluster):
    """Three workers, one subscription; also one that is made while the stream is open."""
    async with session(workers) as mine:
        await mine.ask(0, "resources/subscribe", {"uri": "thing://1"})
        stream = await mine.listen(1)
        await stream.next()
        await mine.call(2, "touch", n=1)
        assert await uris(stream, 1) == ["thing://1"]
        await mine.ask(2, "resources/subscribe", {"uri": "thing://2"})
        await mine.call(0, "touch", n=3)  # which nobody wants
        await mine.call(0, "touch", n=2)
        assert await uris(stream, 1) == ["thing://2"]
        await mine.ask(0, "resources/unsubscribe", {"uri": "thing://1"})
        for _ in range(100):  # the worker with the stream hears of it a moment later
            await mine.call(2, "touch", n=1)
            await mine.call(2, "touch", n=2)
            if await uris(stream, 1) == ["thing://2"]:
                break
            assert await uris(stream, 1) == ["thing://2"]
        else:
            raise AssertionError("what was unsubscribed from is still told")


@pytest.mark.parametrize("revision", [R3, R4])
async def test_a_stream_of_notices_that_moves_misses_nothing_and_repeats_nothing(
    workers: Cluster, revision: str
):
    """Broken after each notice, with another one told meanwhile; the next worker goes on where the
    last one was (`HTL-35`)."""
    async with session(workers, revision) as mine:
        for n in range(40):
            await mine.ask(n, "resources/subscribe", {"uri": f"thing://{n}"})
        stream = await mine.listen(0)
        if revision == R4:
            await stream.next()
        received = []
        for n in range(0, 40, 2):
            await mine.call(n, "touch", n=n)
            received += await uris(stream, 1)
            await stream.break_off()
            await mine.call(n, "touch", n=n + 1)
            stream = await mine.listen(n + 1, stream.last)
            received += await uris(stream, 1)
        assert received == [f"thing://{n}" for n in range(40)]


async def test_a_stream_that_breaks_before_it_has_said_what_was_missed_loses_nothing(
    workers: Cluster,
):
    """Only its first event has come, which gives its place: whoever goes on from there hears all
    that was missed."""
    async with session(workers) as mine:
        await mine.ask(0, "resources/subscribe", {"uri": "thing://5"})
        stream = await mine.listen(0)
        first = await stream.next()
        await stream.break_off()
        await mine.call(1, "touch", n=5)
        again = await mine.listen(2, first.id)
        place = await again.next()
        await again.break_off()
        once_more = await mine.listen(1, place.id)
        assert await uris(once_more, 1) == ["thing://5"]


async def test_two_subscriptions_at_once_lose_neither(workers: Cluster):
    """Thirty at a time, at all workers: every one is kept."""
    async with session(workers) as mine:
        wanted = [f"thing://{n}" for n in range(30)]
        await asyncio.gather(
            *(mine.ask(n, "resources/subscribe", {"uri": uri}) for n, uri in enumerate(wanted))
        )
        await asyncio.gather(
            *(
                mine.ask(n, "resources/unsubscribe", {"uri": uri})
                for n, uri in enumerate(wanted[::2])
            )
        )
        stream = await mine.listen(1)
        await stream.next()
        for n in range(30):
            await mine.call(n, "touch", n=n)
        assert sorted(await uris(stream, 15)) == sorted(
            wanted[1::2]
        )  # what two workers say one after the other may be noted in either order


async def test_only_the_newest_stream_of_a_session_is_told(workers: Cluster):
    """A second GET at another worker ends the first one, so that no notice goes out on two streams
    (`HTL-30`)."""
    async with session(workers) as mine:
        await mine.ask(0, "resources/subscribe", {"uri": "thing://1"})
        first = await mine.listen(0)
        await first.next()
        second = await mine.listen(1)
        await second.next()
        assert await first.messages() == []
        await mine.call(2, "touch", n=1)
        assert await uris(second, 1) == ["thing://1"]


@pytest.mark.parametrize("revision", [R4, R5])
async def test_changes_reach_listeners_of_both_eras_at_every_worker(
    workers: Cluster, revision: str
):
    """Six clients, their streams spread over the workers; one change of a list and one of a
    resource, each told by one worker."""
    async with asyncio.timeout(30), AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client(workers.url, revision=revision))
            for _ in range(6)
        ]
        watches = [
            await stack.enter_async_context(client.watch(tools=True, resources=["thing://8"]))
            for client in clients
        ]
        await clients[0].call_tool("grow")
        for watch in watches:
            assert (await anext(watch)).kind == "tools"
        await clients[3].call_tool("touch", {"n": 8})
        for watch in watches:
            assert (await anext(watch)).uri == "thing://8"
