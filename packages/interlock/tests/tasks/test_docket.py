"""A fleet: servers create tasks, a queue on pydocket carries their keys, and workers run them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from interlock import Context, Docket, McpError, Server, Tasks
from interlock.store import StoreError
from interlock.tasks import TaskQueue
from interlock.types.tasks import Task
from tests.tasks.test_extension import YES, Offered, Peer, make_server, result_of, serving
from tests.workers.conftest import place
from tests.workers.test_store_away import Valkey


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """The URL of a Valkey server that nobody else uses."""
    with place("redis", tmp_path) as url:
        yield url


def waits(task: Task) -> bool:
    """Whether the tool of a task has begun to wait."""
    return task.status_message == "half way"


@asynccontextmanager
async def running(server: Offered) -> AsyncIterator[asyncio.Task[None]]:
    """Run the tasks of the queue in this process, as `interlock tasks run` does."""
    ready = asyncio.Event()
    working = asyncio.ensure_future(server.tasks.run_worker(server, on_ready=ready.set))
    begun = asyncio.ensure_future(ready.wait())
    await asyncio.wait({working, begun}, return_when=asyncio.FIRST_COMPLETED)
    try:
        assert ready.is_set(), working.exception()
        yield working
    finally:
        begun.cancel()
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


def fleet(store: str, queue: str | None = None) -> Offered:
    """A server whose tasks workers run."""
    return make_server(store=store, runner=Docket(queue))


@pytest.mark.database
async def test_a_worker_runs_the_task(redis: str) -> None:
    """The server runs nothing; status message, result and the flag of the first run are there."""
    front = fleet(redis)
    worker = fleet(redis)
    async with serving(front) as peer:
        made = await peer.create("wait")
        assert (await peer.get(made.task_id)).status == "working"  # it waits for a worker
        async with running(worker):
            await peer.until(made.task_id, waits)
            worker.gate.set()
            task = await peer.ended(made.task_id)
    assert result_of(task)["content"][0]["text"] == "waited"
    assert (front.runs, worker.runs) == ([], ["wait"])


@pytest.mark.database
async def test_questions_of_a_task_in_a_worker(redis: str) -> None:
    """The server shows them and takes the answers; the tool gets them in its worker."""
    async with serving(fleet(redis)) as peer, running(fleet(redis)):
        made = await peer.create("confirm")
        await peer.until(made.task_id, lambda task: len(task.input_requests or {}) == 2)
        await peer.update(made.task_id, first=YES, second=YES)
        task = await peer.until(
            made.task_id, lambda task: set(task.input_requests or {}) - {"first", "second"} != set()
        )
        assert task.input_requests is not None
        await peer.update(made.task_id, **dict.fromkeys(task.input_requests, YES))
        task = await peer.ended(made.task_id)
    assert result_of(task)["content"][0]["text"] == "True True True"


@pytest.mark.database
async def test_a_cancellation_reaches_the_worker(redis: str) -> None:
    """The store tells the worker, whose tool is cancelled. The worker takes further tasks."""
    worker = fleet(redis)
    cancelled = asyncio.Event()

    @worker.tool(task="required")
    async def stay(ctx: Context) -> str:
        ctx.progress(1, 2, "half way")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    front = fleet(redis)
    front.tool(stay, task="required")
    async with serving(front) as peer, running(worker):
        made = await peer.create("stay")
        await peer.until(made.task_id, waits)
        await peer.cancel(made.task_id)
        async with asyncio.timeout(60):
            await cancelled.wait()
        assert (await peer.get(made.task_id)).status == "cancelled"
        assert (await peer.ended((await peer.create("add", a=1, b=2)).task_id)).result


@pytest.mark.database
async def test_a_task_that_is_cancelled_before_a_worker_takes_it_never_runs(redis: str) -> None:
    worker = fleet(redis)
    worker.gate.set()
    async with serving(fleet(redis)) as peer:
        cancelled = await peer.create("wait")
        await peer.cancel(cancelled.task_id)
        async with running(worker):
            await peer.ended((await peer.create("add", a=1, b=2)).task_id)
        assert (await peer.get(cancelled.task_id)).status == "cancelled"
    assert worker.runs == []


@pytest.mark.database
async def test_a_key_that_is_delivered_again_changes_nothing(redis: str) -> None:
    """Neither that of a task that a worker runs, nor that of a task that has ended."""
    workers = [fleet(redis), fleet(redis)]
    queue = Docket(redis)
    await queue.open(None)
    async with serving(fleet(redis)) as peer, running(workers[0]), running(workers[1]):
        made = await peer.create("wait")
        await peer.until(made.task_id, waits)
        for n in range(20):
            await queue.put(f"task:local:{made.task_id}", f"again {n}")
        await peer.ended((await peer.create("add", a=1, b=2)).task_id)  # queued after them
        assert waits(await peer.get(made.task_id))
        for worker in workers:
            worker.gate.set()
        ended = await peer.ended(made.task_id)
        for n in range(20):
            await queue.put(f"task:local:{made.task_id}", f"after its end {n}")
        await queue.put("task:local:unknown", "never was")
        await peer.ended((await peer.create("add", a=1, b=2)).task_id)
        assert await peer.get(made.task_id) == ended
    assert workers[0].runs + workers[1].runs == ["wait"]
    await queue.aclose()


@pytest.mark.database
async def test_a_worker_that_ends_gives_its_tasks_to_the_others(redis: str) -> None:
    """It takes no more tasks. Those that it runs continue elsewhere, though it dies in good order,
    and no heartbeat is awaited.
    """
    first = fleet(redis)
    second = fleet(redis)
    second.gate.set()
    async with serving(fleet(redis)) as peer, running(first) as working:
        made = await peer.create("wait")
        await peer.until(made.task_id, waits)
        async with running(second):
            working.cancel()  # as at SIGTERM
            await asyncio.wait({working})
            task = await peer.ended(made.task_id)
    assert result_of(task)["content"][0]["text"] == "waited"
    assert (first.runs, second.runs) == (["wait"], ["wait"])


@pytest.mark.database
async def test_a_call_that_becomes_a_task_while_it_runs_stays_in_its_server(redis: str) -> None:
    front = fleet(redis)
    worker = fleet(redis)
    async with serving(front) as peer, running(worker):
        made = await peer.create("slow")
        front.gate.set()
        task = await peer.ended(made.task_id)
    assert result_of(task)["content"][0]["text"] == "slow"
    assert (front.runs, worker.runs) == (["slow"], [])


class Faulty:
    """A queue whose `put` does something else."""

    def __init__(self, queue: TaskQueue, put: Callable[[str], Awaitable[None]]) -> None:
        self._queue = queue
        self._put = put
        self.open = queue.open
        self.consume = queue.consume
        self.aclose = queue.aclose

    async def put(self, key: str, delivery: str) -> None:
        """Fail, or lose the key."""
        await self._put(key)


@pytest.mark.database
async def test_a_task_that_cannot_be_queued_is_not_announced(redis: str) -> None:
    """The client gets an error, and the record is removed."""
    keys: list[str] = []

    async def fail(key: str) -> None:
        keys.append(key)
        raise StoreError("the queue of tasks failed")

    front = make_server(store=redis, runner=Faulty(Docket(), fail))
    async with serving(front) as peer:
        with pytest.raises((McpError, StoreError)):
            await peer.create("add", a=1, b=2)
        runner = front.tasks.running
        async with asyncio.timeout(60):
            while await runner.records.load(keys[0], now=runner.wall_clock()):  # noqa: ASYNC110 - it is removed in the background
                await asyncio.sleep(0)


@pytest.mark.database
async def test_a_key_that_was_lost_is_queued_again(redis: str) -> None:
    """As after a server that was killed between the record and the queue, or a queue that has lost
    its contents: each process queues what nobody runs when it starts.
    """

    async def lose(key: str) -> None:
        pass

    async with serving(make_server(store=redis, runner=Faulty(Docket(), lose))) as peer:
        made = await peer.create("add", a=1, b=2)
        async with running(fleet(redis)):
            task = await peer.ended(made.task_id)
    assert result_of(task)["content"][0]["text"] == "3"


@pytest.mark.database
async def test_the_queue_goes_away_and_comes_back(tmp_path: Path) -> None:
    """The records are in SQLite. A run goes on without the queue, new tasks are refused, and
    afterwards all is as before.
    """
    valkey = Valkey(tmp_path / "valkey")
    store = f"sqlite://{tmp_path}/tasks.db"
    worker = fleet(store, valkey.url)
    try:
        async with serving(fleet(store, valkey.url)) as peer, running(worker):
            made = await peer.create("wait")
            await peer.until(made.task_id, waits)
            valkey.leave()
            with pytest.raises((McpError, StoreError)):
                await peer.create("add", a=1, b=2)
            worker.gate.set()
            assert (await peer.ended(made.task_id)).status == "completed"
            valkey.come_back()
            task = await peer.ended((await _created(peer)).task_id)
            assert result_of(task)["content"][0]["text"] == "3"
    finally:
        valkey.leave()
    assert worker.runs == ["wait"]


async def _created(peer: Peer) -> Any:
    """Create a task as soon as the queue is there again."""
    async with asyncio.timeout(120):
        while True:
            with suppress(McpError, StoreError):
                return await peer.create("add", a=1, b=2)
            await asyncio.sleep(0.05)


@pytest.mark.database
@pytest.mark.parametrize("is_fleet", [False, True], ids=["inline", "docket"])
async def test_the_store_goes_away_and_comes_back(is_fleet: bool, tmp_path: Path) -> None:
    """Records and queue are in one Valkey server. The end of the task is written when it is back,
    and the task has run once.
    """
    valkey = Valkey(tmp_path / "valkey")
    worker = fleet(valkey.url) if is_fleet else make_server(store=valkey.url)
    front = fleet(valkey.url) if is_fleet else worker
    work = running(worker) if is_fleet else nullcontext()
    try:
        async with serving(front) as peer, work:
            made = await peer.create("wait")
            await peer.until(made.task_id, waits)
            valkey.leave()
            worker.gate.set()
            with pytest.raises((McpError, StoreError)):
                await peer.get(made.task_id)
            valkey.come_back()
            async with asyncio.timeout(120):
                while True:
                    with suppress(McpError, StoreError):
                        task = await peer.get(made.task_id)
                        if task.is_terminal:
                            break
                    await asyncio.sleep(0.05)
            assert task.status == "completed"
            assert (await peer.ended((await _created(peer)).task_id)).status == "completed"
    finally:
        valkey.leave()
    assert worker.runs == ["wait"]


def test_without_the_extra_an_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.tasks.docket.find_spec", lambda name: None)
    with pytest.raises(StoreError, match=r"pip install 'interlock\[docket\]'"):
        Docket()


def test_a_server_loads_the_engine_only_for_a_fleet() -> None:
    """Neither tasks nor a Docket load it before the server runs."""
    code = (
        "import sys\nfrom interlock import Docket, Server, Tasks\n"
        "Server('x', extensions=[Tasks('sqlite:tasks.db', runner=Docket('redis://h'))])\n"
        "assert not {'docket', 'cloudpickle', 'redis'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env={**os.environ})


def test_a_fleet_needs_a_store_that_its_workers_share() -> None:
    with pytest.raises(ValueError, match="sqlite: or redis:"):
        Tasks("memory:", runner=Docket())
    with pytest.raises(ValueError, match="such as redis://"):
        Docket("sqlite:tasks.db")
    with pytest.raises(ValueError, match="concurrency"):
        Docket(concurrency=0)


async def test_a_queue_needs_a_url(tmp_path: Path) -> None:
    """That of a store in SQLite is none."""
    with pytest.raises(ValueError, match=r"Docket\('redis://...'\)"):
        await fleet(f"sqlite://{tmp_path}/tasks.db").enter()


async def test_only_a_fleet_has_workers() -> None:
    tasks = Tasks("memory:")
    with pytest.raises(ValueError, match=r"runner=Docket\(\)"):
        await tasks.run_worker(Server("alone", extensions=[tasks]))


async def test_the_task_queue_is_an_interface() -> None:
    """Docket has exactly its methods."""
    queue: TaskQueue = Docket()
    named = {name for name in vars(TaskQueue) if not name.startswith("_")}
    assert named <= {name for name in dir(queue) if not name.startswith("_")} == named
