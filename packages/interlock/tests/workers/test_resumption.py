"""Streams that break at one worker are taken up at another: nothing is lost and nothing comes
twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interlock import Client, Context, Server
from interlock.store import MemoryStore, SqliteStore, bounds
from interlock.wire.revisions import R2, R3, R4
from tests.workers.clusters import Cluster, noted
from tests.workers.neighbours import eventually, neighbours
from tests.workers.raw import RawSession, Stream, session, tool


def said(messages: list) -> list[str]:
    """What the log messages say, and then the result."""
    return [
        m["params"]["data"] if "method" in m else m["result"]["content"][0]["text"]
        for m in messages
    ]


async def begun(mine: RawSession, name: str, worker: int = 0, to: int = 6) -> Stream:
    """A call of `steps` that has taken its first step."""
    mine.cluster.step(name, 1)
    stream = await mine.begin(worker, "tools/call", tool("steps", name=name, to=to))
    assert (await stream.message())["params"]["data"] == f"{name} 1"
    return stream


@pytest.mark.parametrize("revision", [R2, R3, R4])
@pytest.mark.parametrize("at", [0, 1])
async def test_a_broken_stream_of_a_call_goes_on_at_any_worker(
    workers: Cluster, revision: str, at: int
):
    """Broken after the first step; two more come while nobody listens, the rest while it is
    followed (`HTL-34`, `HTL-35`)."""
    async with session(workers, revision) as mine:
        name = f"r{mine.id}"
        stream = await begun(mine, name)
        await stream.break_off()
        workers.step(name, 2)
        workers.step(name, 3)
        rest = await mine.listen(at, stream.last)
        received = [await rest.message(), await rest.message()]
        for n in (4, 5, 6):
            workers.step(name, n)
        received += await rest.messages()
        assert said(received) == [f"{name} {n}" for n in range(2, 7)] + [f"{name} done"]
        ids = [event.id for event in stream.events + rest.events if event.data]
        assert len(set(ids)) == len(ids)


async def test_a_stream_that_breaks_again_and_again_goes_on_at_the_next_worker(workers: Cluster):
    """Every step at another worker."""
    async with session(workers) as mine:
        name = f"a{mine.id}"
        stream = await begun(mine, name)
        received = []
        for n in range(2, 7):
            await stream.break_off()
            stream = await mine.listen(n, stream.last)
            workers.step(name, n)
            received.append(await stream.message())
        received += await stream.messages()
        assert said(received) == [f"{name} {n}" for n in range(2, 7)] + [f"{name} done"]


@pytest.mark.parametrize("at", [0, 2])
async def test_a_stream_can_be_had_again_after_its_end(workers: Cluster, at: int):
    """From any event on, also at workers that never had to do with it; only what belongs to this
    stream comes (`HTL-36`)."""
    async with session(workers) as mine:
        name = f"e{mine.id}"
        for n in range(2, 4):
            workers.step(name, n)
        stream = await begun(mine, name, to=3)
        other = await begun(mine, f"{name}other", worker=1, to=1)
        await stream.messages()
        await other.messages()
        ids = [event.id for event in stream.events]
        for place, id in enumerate(ids):
            again = await (await mine.listen(at, id)).messages()
            assert (
                said(again)
                == ([f"{name} {n}" for n in range(1, 4)] + [f"{name} done"])[max(place, 0) :][
                    : len(again)
                ]
            )
            assert len(again) == len(ids) - 1 - place


async def test_who_comes_back_elsewhere_takes_the_stream_along(workers: Cluster):
    """A stream that is taken up at another worker ends where it was, so that no message goes out on
    two (`HTL-30`)."""
    async with session(workers) as mine:
        name = f"t{mine.id}"
        stream = await begun(mine, name, to=2)
        rest = await mine.listen(1, stream.last)
        assert await stream.messages() == []
        workers.step(name, 2)
        assert said(await rest.messages()) == [f"{name} 2", f"{name} done"]


@pytest.mark.parametrize("at", [0, 1])
async def test_a_tool_may_let_its_client_go_and_be_asked_for_the_rest(workers: Cluster, at: int):
    """`ctx.disconnect`, twice in one call: the stream ends with a wait to keep, and goes on where
    the client comes back (`HTL-15`, `HTL-16`)."""
    async with session(workers) as mine:
        name = f"p{mine.id}"
        stream = await begun(mine, name, to=4)
        for n in (2, 4):
            workers.step(name, n, "disconnect")
            while await stream.next() is not None:
                pass
            assert stream.events[-1].retry == 10
            noted(workers.folder, f"{name} lets go True", n // 2)
            stream = await mine.listen(at, stream.last)
            assert (await stream.message())["params"]["data"] == f"{name} {n}"
            if n == 2:
                workers.step(name, 3)
                assert (await stream.message())["params"]["data"] == f"{name} 3"
        assert said(await stream.messages()) == [f"{name} done"]


async def test_our_client_polls_through_the_balancer(workers: Cluster):
    """The client comes back by itself, to whichever worker, and gets all (`HTL-17`, `HTL-18`)."""
    received: list[str] = []
    async with (
        asyncio.timeout(30),
        Client(
            workers.url, revision=R4, on_log=lambda m: received.append(m.data), log_level="warning"
        ) as client,
    ):
        name = f"o{id(client)}"
        for n in range(1, 6):
            workers.step(name, n, "disconnect" if n % 2 else "")
        result = await client.call_tool("steps", {"name": name, "to": 5})
        assert result.value() == f"{name} done"
    assert received == [f"{name} {n}" for n in range(1, 6)]


async def test_an_event_that_was_never_sent_is_refused(workers: Cluster):
    """A place in no stream of this session, or in a stream of another one: 400, with words."""
    async with session(workers) as mine, session(workers) as other:
        name = f"n{mine.id}"
        stream = await begun(mine, name, to=1)
        await stream.messages()
        for last in ("nonsense", "no.such.1", "0.0", f"{stream.last}9.1"):
            refused = await mine.get(1, last)
            assert refused.status == 400
            assert b"no longer kept" in await refused.read(1 << 16)
        assert (await other.get(2, stream.last)).status == 400


class Slow(MemoryStore):
    """A store that two workers share and in which what one notes can be read a tenth of a second
    later."""

    shared = True

    def __init__(self) -> None:
        super().__init__()
        at_once = self.events.append

        def append(*event, last: bool) -> None:
            asyncio.get_running_loop().call_later(0.1, lambda: at_once(*event, last=last))

        self.events.append = append


async def test_a_client_may_be_faster_than_the_store():
    """It has an event in hand and asks for what follows before the other worker can see that there
    is such a stream."""
    server = Server("slow")

    @server.tool
    async def talk(ctx: Context) -> str:
        ctx.log.error("one")
        await ctx.drain()
        return "done"

    store = Slow()
    async with neighbours(2, lambda: server, store=store) as workers, session(workers) as mine:
        stream = await mine.begin(0, "tools/call", tool("talk"))
        await stream.next()
        await stream.break_off()
        rest = await mine.listen(1, stream.last)
        assert [message.get("method") for message in await rest.messages()] == [
            "notifications/message",
            None,
        ]


class Late(Slow):
    """And in which a note goes up two tenths of a second after it was posted."""

    def __init__(self) -> None:
        super().__init__()
        self.posted: list[bytes] = []
        at_once = self.notes.publish

        def publish(note: bytes) -> None:
            self.posted.append(note)
            asyncio.get_running_loop().call_later(0.2, at_once, note)

        self.notes.publish = publish


async def test_a_stream_that_is_ended_before_the_others_know_of_it():
    """Its session ends while it is being opened: it is an event stream all the same, and ends at
    once (`HTL-25`)."""
    store = Late()

    async def announced() -> bool:
        return any(b"listening" in note for note in store.posted)

    async with (
        neighbours(2, lambda: Server("late"), store=store) as workers,
        session(workers) as mine,
    ):
        opening = asyncio.ensure_future(mine.listen(0))
        await eventually(announced)
        assert await mine.delete(0) == 204
        stream = await opening
        assert stream.response.headers["content-type"].startswith("text/event-stream")
        assert await stream.messages() == []


async def test_a_stream_whose_end_the_store_has_dropped_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The store cannot keep up. A client that follows the stream at another worker does not wait
    for ever: its stream ends, and it learns that events are lost when it comes back (`HTL-34`)."""
    gate = asyncio.Event()
    server = Server("lossy")

    @server.tool
    async def talk(ctx: Context) -> str:
        ctx.log.error("one")
        await gate.wait()
        return "." * 5000

    store = SqliteStore(tmp_path / "store.db")
    async with neighbours(2, lambda: server, store=store) as workers, session(workers) as mine:
        stream = await mine.begin(0, "tools/call", tool("talk"))
        await stream.message()
        await stream.break_off()
        rest = await mine.listen(1, stream.last)
        monkeypatch.setattr(bounds, "WAITING_BYTES", 1000)
        gate.set()
        assert await rest.messages() == []
        refused = await mine.get(1, stream.last)
        assert refused.status == 400
        assert b"no longer kept" in await refused.read(1 << 16)
