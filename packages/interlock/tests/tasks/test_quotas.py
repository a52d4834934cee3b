"""Quotas of tasks: how many a holder has over all workers, the memory of their records, and how
often their state is polled.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from interlock import Caller, Exchange, McpError, Principal, Server, ServerLimits, TaskLimits, Tasks
from interlock import types as t
from interlock.exchange import ExchangeTransport
from interlock.quotas import RATE_LIMITED, QuotaUsage
from interlock.store import Store
from interlock.tasks import quotas
from interlock.types.tasks import (
    TASKS_EXTENSION,
    CancelTaskRequestParams,
    CreateTaskResult,
    GetTaskRequestParams,
    Task,
)
from interlock.wire.revisions import NEWEST
from tests.client.peers import eventually
from tests.store.makers import KINDS, fresh

DECLARED = t.ClientCapabilities(extensions={TASKS_EXTENSION: {}})
ALICE = Principal(subject="alice")
BOB = Principal(subject="bob")


class From(ExchangeTransport):
    """A transport from a network address."""

    def __init__(self, address: str) -> None:
        self._address = address

    @property
    def address(self) -> str | None:
        """The address."""
        return self._address


class Worker:
    """A server, which is asked in place of a client."""

    def __init__(self, store: Store | str = "memory:", held: int = 10**9, **limits: Any) -> None:
        self.gate = asyncio.Event()
        tasks = Tasks(store, limits=TaskLimits(**limits))
        self.server = Server("quotas", extensions=[tasks], limits=ServerLimits(held_bytes=held))

        @self.server.tool(task="required")
        async def wait(text: str = "") -> str:
            await self.gate.wait()
            return text

        @self.server.tool(task="required")
        async def echo(text: str) -> str:
            return text

    async def request(self, who: Principal | str, method: str, params: Any) -> Any:
        """A request of a principal, or of nobody at an address."""
        if isinstance(who, str):
            caller = Caller(NEWEST, DECLARED, anonymous=True)
            transport = From(who)
        else:
            caller = Caller(NEWEST, DECLARED, principal=who)
            transport = From("203.0.113.1")
        return await self.server.handle(Exchange(method, params, caller, transport=transport))

    async def create(self, who: Principal | str, tool: str = "wait", **arguments: Any) -> str:
        """Start a task."""
        raw = Raw(json.dumps(arguments).encode())
        params = t.CallToolRequestParams(name=tool, arguments=raw)
        made = await self.request(who, "tools/call", params)
        assert isinstance(made, CreateTaskResult)
        return made.task_id

    async def get(self, who: Principal | str, id: str) -> Task:
        """Poll a task."""
        task = await self.request(who, "tasks/get", GetTaskRequestParams(task_id=id))
        assert isinstance(task, Task)
        return task

    async def end(self, who: Principal | str, id: str) -> None:
        """Cancel a task."""
        await self.request(who, "tasks/cancel", CancelTaskRequestParams(task_id=id))

    async def exists(self, who: Principal | str, id: str) -> bool:
        """Whether a task is kept."""
        try:
            await self.get(who, id)
        except McpError as bad:
            assert bad.code == t.INVALID_PARAMS
            return False
        return True

    def usage(self, name: str) -> QuotaUsage:
        """A counter, as operators read it."""
        return self.server.http_app().usage()[name]


@asynccontextmanager
async def serving(*workers: Worker) -> AsyncIterator[None]:
    """Workers that run."""
    for each in workers:
        await each.server.enter()
    try:
        yield
    finally:
        for each in workers:
            await each.server.leave()


async def refusal(working: Any) -> McpError:
    """The error of a request."""
    with pytest.raises(McpError) as caught:
        await working
    return caught.value


# -- how many --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_a_holder_has_a_quota_over_all_workers(kind: str, tmp_path: Path, redis_url: str):
    """Ended tasks make room, also those of another worker; running ones do not."""
    workers = [Worker(each, tasks=3) for each in fresh(kind, tmp_path, redis_url)]
    one, other = workers[0], workers[-1]
    async with serving(*workers):
        ids = [await each.create(ALICE) for each in (one, other, one)]
        for each in (one, other):
            bad = await refusal(each.create(ALICE))
            assert bad.code == RATE_LIMITED
            assert "3 running tasks" in bad.message
            assert bad.data == {"reason": "busy", "retryAfter": 1}
        assert sum(each.usage("tasks").refused for each in workers) == 2
        await other.create(BOB)
        await one.end(ALICE, ids[0])


@pytest.mark.parametrize("kind", KINDS)
async def test_ended_tasks_make_room_on_every_worker(kind: str, tmp_path: Path, redis_url: str):
    """The oldest goes first."""
    workers = [Worker(each, tasks=3) for each in fresh(kind, tmp_path, redis_url)]
    one, other = workers[0], workers[-1]
    async with serving(*workers):
        ids = [await one.create(ALICE) for _ in range(3)]
        await one.end(ALICE, ids[1])
        await one.end(ALICE, ids[0])
        last = await other.create(ALICE)
        assert [await other.exists(ALICE, id) for id in [*ids, last]] == [True, False, True, True]
        assert other.usage("tasks").evicted == 1


async def test_anonymous_callers_have_quotas_by_address():
    """One address cannot use up the tasks of another."""
    worker = Worker(tasks=2)
    async with serving(worker):
        for _ in range(2):
            await worker.create("203.0.113.66")
        assert "2 running tasks" in (await refusal(worker.create("203.0.113.66"))).message
        await worker.create("203.0.113.7")
        usage = worker.usage("tasks")
        assert (usage.used, usage.limit, usage.holders, usage.largest) == (3, 2, 2, 2)


async def test_whoever_is_refused_causes_no_search(monkeypatch: pytest.MonkeyPatch):
    """A client whose tasks all run cannot make the server read them all, again and again."""
    worker = Worker(tasks=2)
    async with serving(worker):
        for _ in range(2):
            await worker.create(ALICE)
        records = worker.server.extensions[0].running.records
        searches: list[str] = []
        keys = records.keys

        async def counted(prefix: str, **options: Any) -> list[str]:
            searches.append(prefix)
            return await keys(prefix, **options)

        monkeypatch.setattr(records, "keys", counted)
        monkeypatch.setattr("interlock.tasks.runner._PATIENCE", 3600.0)
        for _ in range(10):
            await refusal(worker.create(ALICE))
        assert len(searches) == 2  # a page, and the end


# -- memory ----------------------------------------------------------------------------------------


async def test_arguments_and_results_are_held_bytes():
    """They count until the task is gone."""
    worker = Worker(held=1_000_000)
    async with serving(worker):
        id = await worker.create(ALICE, text="x" * 50_000)
        memory = worker.server.memory
        assert 50_000 < memory.held(ALICE.key) < 60_000
        worker.gate.set()
        await until(lambda: memory.held(ALICE.key) > 100_000)  # with the result
        assert memory.held(ALICE.key) < 110_000
        assert (await worker.get(ALICE, id)).is_terminal
    assert memory.used == 0
    assert worker.usage("tasks").used == 0


async def test_a_task_is_refused_when_the_budget_is_full():
    """And others still have their share."""
    worker = Worker(held=1_000_000)
    async with serving(worker):
        for _ in range(4):
            await worker.create(ALICE, text="x" * 200_000)
        bad = await refusal(worker.create(ALICE, text="x" * 200_000))
        assert bad.code == RATE_LIMITED
        assert bad.data == {"reason": "busy", "retryAfter": 1, "resource": "tasks in memory"}
        await worker.create(BOB, text="x" * 50_000)
        assert worker.usage("memory").refused == 1


async def test_ended_tasks_of_the_largest_holder_make_room():
    """The oldest first; the tasks of the other holder stay."""
    worker = Worker(held=1_000_000)
    async with serving(worker):
        ids = [await worker.create(ALICE, text="x" * 200_000) for _ in range(4)]
        for id in ids:
            await worker.end(ALICE, id)
        bobs = [await worker.create(BOB, text="x" * 200_000) for _ in range(2)]
        assert worker.usage("tasks").evicted > 0
        async with asyncio.timeout(60):
            while await worker.exists(ALICE, ids[0]):  # noqa: ASYNC110 - it is removed soon
                await asyncio.sleep(0)
        assert await worker.exists(ALICE, ids[-1])
        assert all([await worker.exists(BOB, id) for id in bobs])
        assert worker.usage("memory").used <= 1_000_000


async def test_a_shared_store_keeps_ended_tasks_elsewhere(tmp_path: Path):
    """Only running tasks are in the memory of the process."""
    worker = Worker(f"sqlite://{tmp_path / 'tasks.db'}")
    async with serving(worker):
        memory = worker.server.memory
        id = await worker.create(ALICE, text="x" * 50_000)
        assert memory.held(ALICE.key) > 50_000
        worker.gate.set()
        await until(lambda: not memory.used)
        assert (await worker.get(ALICE, id)).is_terminal


# -- polling ---------------------------------------------------------------------------------------


async def test_a_poll_that_comes_too_early_waits_for_a_change(monkeypatch: pytest.MonkeyPatch):
    """It returns as soon as the task changes."""
    monkeypatch.setattr(quotas, "_LONGEST_DELAY", 3600.0)
    worker = Worker(poll=3600.0)
    async with serving(worker):
        id = await worker.create(ALICE, text="done")
        assert (await worker.get(ALICE, id)).status == "working"
        early = asyncio.ensure_future(worker.get(ALICE, id))
        await until(lambda: worker.usage("polls").used == 1)
        assert not early.done()
        worker.gate.set()
        assert (await early).status == "completed"
        assert (await worker.get(ALICE, id)).status == "completed"  # nothing can change: at once
        assert worker.usage("polls").used == 0


async def test_a_poll_that_comes_too_early_waits_for_the_interval():
    """Then it returns what the last one returned."""
    worker = Worker(poll=0.01)
    async with serving(worker):
        id = await worker.create(ALICE)
        assert [(await worker.get(ALICE, id)).status for _ in range(5)] == ["working"] * 5


async def test_polls_that_wait_are_limited(monkeypatch: pytest.MonkeyPatch):
    """One too many is refused, and told when to come back; a client that goes leaves its place."""
    monkeypatch.setattr(quotas, "_LONGEST_DELAY", 3600.0)
    worker = Worker(poll=3600.0, waiting_polls=2)
    async with serving(worker):
        id = await worker.create(ALICE)
        await worker.get(ALICE, id)
        waiting = [asyncio.ensure_future(worker.get(ALICE, id))]
        await until(lambda: worker.usage("polls").used == 1)
        others = [asyncio.ensure_future(worker.get(ALICE, id)) for _ in range(2)]
        done, _ = await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        bad = done.pop().exception()
        assert isinstance(bad, McpError)
        assert bad.code == RATE_LIMITED
        assert 3500 < bad.data["retryAfter"] <= 3601
        assert worker.usage("polls").refused >= 1
        for each in [*waiting, *others]:
            each.cancel()
        await asyncio.gather(*waiting, *others, return_exceptions=True)
        assert worker.usage("polls").used == 0


async def test_a_task_that_expires_while_a_poll_waits_is_unknown(monkeypatch: pytest.MonkeyPatch):
    """The poll does not return what it read before."""
    monkeypatch.setattr(quotas, "_LONGEST_DELAY", 0.01)
    worker = Worker(poll=3600.0)
    async with serving(worker):
        id = await worker.create(ALICE)
        await worker.get(ALICE, id)
        runner = worker.server.extensions[0].running
        early = asyncio.ensure_future(worker.get(ALICE, id))
        await until(lambda: worker.usage("polls").used == 1)
        monkeypatch.setattr(runner, "wall_clock", lambda: 1e11)
        assert (await refusal(early)).code == t.INVALID_PARAMS


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_workers_count_the_polls_of_a_task_together(
    kind: str, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
):
    """A client that asks each worker in turn does not get more answers."""
    monkeypatch.setattr(quotas, "_LONGEST_DELAY", 3600.0)
    workers = [Worker(each, poll=3600.0) for each in fresh(kind, tmp_path, redis_url)]
    one, other = workers
    async with serving(*workers):
        await acquainted(*workers)
        id = await one.create(ALICE, text="done")
        assert (await one.get(ALICE, id)).status == "working"
        early = asyncio.ensure_future(other.get(ALICE, id))
        await until(lambda: other.usage("polls").used == 1)
        one.gate.set()
        assert (await early).status == "completed"


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_a_holder_has_its_early_polls_over_all_workers(
    kind: str, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
):
    """Each worker has room for more, and others may poll."""
    monkeypatch.setattr(quotas, "_LONGEST_DELAY", 3600.0)
    limits = {"poll": 3600.0, "waiting_polls": 3}
    workers = [Worker(each, **limits) for each in fresh(kind, tmp_path, redis_url)]
    async with serving(*workers):
        await acquainted(*workers)
        of_alice, of_bob = await workers[0].create(ALICE), await workers[0].create(BOB)
        await workers[0].get(ALICE, of_alice)
        await workers[0].get(BOB, of_bob)
        early = []
        for count, each in enumerate((workers[0], workers[1], workers[1]), 1):
            early.append(asyncio.ensure_future(each.get(ALICE, of_alice)))
            await until(lambda: sum(w.usage("polls").used for w in workers) == count)  # noqa: B023
        bad = await refusal(workers[0].get(ALICE, of_alice))
        assert bad.code == RATE_LIMITED
        assert 0 < bad.data["retryAfter"] <= 1201  # a third of the time returns one poll
        assert workers[0].usage("polls").refused == 1
        early.append(asyncio.ensure_future(workers[0].get(BOB, of_bob)))
        await until(lambda: workers[0].usage("polls").used == 2)
        for each in early:
            each.cancel()
        await asyncio.gather(*early, return_exceptions=True)


async def acquainted(*workers: Worker) -> None:
    """Wait until workers that have just started know of each other."""
    for each in workers:
        runner = each.server.extensions[0].running  # type: ignore[attr-defined]  # it is Tasks
        async with asyncio.timeout(30):
            while runner.shared_rates is None:  # noqa: ASYNC110 - it learns that with a heartbeat
                await asyncio.sleep(0.01)


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that happens in this event loop."""
    await eventually(condition)
