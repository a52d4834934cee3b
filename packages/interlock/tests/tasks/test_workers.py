"""Tasks that survive their workers: another process continues them, and no recorded step is
repeated. The processes that serve run the tasks, or a fleet of workers does.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock.store import open_store
from interlock.types.tasks import TASKS_EXTENSION
from tests.workers.conftest import place, store

__all__ = ["store"]  # a fixture: SQLite, and a Valkey server of its own

PROGRAM = Path(__file__).with_name("program.py")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {"form": {}},
        "extensions": {TASKS_EXTENSION: {}},
    },
}
YES = {"action": "accept", "content": {"confirm": True}}


@pytest.fixture(params=["inline", "docket"])
def queue(request: pytest.FixtureRequest, store: str, tmp_path: Path) -> Iterator[str]:
    """The URL of the queue of a fleet; empty if the processes that serve run the tasks."""
    if request.param == "inline":
        yield ""
    elif store.startswith("redis:"):
        yield store
    else:
        with place("redis", tmp_path) as url:
            yield url


class Worker:
    """A process of the server, a raw client of it, and in a fleet the process that runs tasks."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        running: asyncio.subprocess.Process | None = None,
    ) -> None:
        self.process = process
        self.running = running
        self._next = 0

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request, and return its response."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._next += 1
        body = {"jsonrpc": "2.0", "id": self._next, "method": method}
        line = json.dumps({**body, "params": {**params, "_meta": META}})
        self.process.stdin.write(line.encode() + b"\n")
        while True:
            answer: dict[str, Any] = json.loads(await self.process.stdout.readline())
            if answer.get("id") == self._next:
                return answer

    async def create(self, tool: str, **arguments: Any) -> str:
        """Call a tool that becomes a task, and return its id."""
        answer = await self.request("tools/call", name=tool, arguments=arguments)
        assert answer["result"]["resultType"] == "task", answer
        id: str = answer["result"]["taskId"]
        return id

    async def until(self, id: str, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Poll until a task is as wanted."""
        async with asyncio.timeout(120):
            while True:
                answer = await self.request("tasks/get", taskId=id)
                task: dict[str, Any] = answer["result"]
                if reached(task):
                    return task
                await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """Kill the processes at once (SIGKILL)."""
        if self.running is not None:
            self.running.kill()
        self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def worker(store: str, log: Path, queue: str = "") -> AsyncIterator[Worker]:
    arguments = [store, str(log), *([queue] if queue else [])]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    running = None
    if queue:
        run = ("tasks", "run", f"{PROGRAM}:of_arguments", "--", *arguments)
        running = await asyncio.create_subprocess_exec(sys.executable, "-m", "interlock", *run)
    try:
        yield Worker(process, running)
    finally:
        if running is not None and running.returncode is None:
            running.terminate()
            await ended(running)
        if process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
            await ended(process)


async def ended(process: asyncio.subprocess.Process) -> None:
    """Wait for the end of a process, and kill it if it does not end."""
    try:
        async with asyncio.timeout(60):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def asks(task: dict[str, Any]) -> bool:
    """Whether a task waits for an answer."""
    return task["status"] == "input_required"


def has_ended(task: dict[str, Any]) -> bool:
    """Whether a task is in a terminal status."""
    return task["status"] in ("completed", "failed", "cancelled")


async def written(log: Path, line: str) -> None:
    """Wait until a worker has written a line."""
    async with asyncio.timeout(120):
        while not log.exists() or line not in log.read_text().splitlines():  # noqa: ASYNC110 - it is another process that writes there
            await asyncio.sleep(0.02)


async def test_a_task_outlives_a_killed_worker(store: str, queue: str, tmp_path: Path) -> None:
    """`TKX-09`: what was announced is there. The question is still open at the next worker, and the
    steps are not repeated.
    """
    log = tmp_path / "log"
    async with worker(store, log, queue) as one:
        id = await one.create("report")
        await one.until(id, asks)
        await one.kill()
    async with worker(store, log, queue) as two:
        task = await two.until(id, asks)
        assert set(task["inputRequests"]) == {"publish"}
        await two.request("tasks/update", taskId=id, inputResponses={"publish": YES})
        task = await two.until(id, has_ended)
    assert task["status"] == "completed"
    assert task["result"]["content"][0]["text"] == "published: True"
    assert sorted(log.read_text().splitlines()) == ["run", "run", "step 0", "step 1"]


@pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="only Linux has /proc")
async def test_a_killed_process_of_this_machine_is_replaced_before_its_lease_ends(
    store: str, queue: str, tmp_path: Path
) -> None:
    """A kernel knows at once that a process has ended: nobody waits for its heartbeats."""
    log = tmp_path / "log"
    shared = open_store(store)
    await shared.open()

    async def keep_alive(name: str) -> None:
        while True:
            await shared.workers.heartbeat(name, until=time.time() + 30)
            await asyncio.sleep(1)

    async with worker(store, log, queue) as one:
        id = await one.create("report")
        await one.until(id, asks)
        record = await shared.records.load(f"task:local:{id}", now=time.time())
        assert record is not None
        await one.kill()
    lease = asyncio.ensure_future(keep_alive(json.loads(record.data)["worker"]))
    async with worker(store, log, queue) as two:
        await two.request("tasks/update", taskId=id, inputResponses={"publish": YES})
        task = await two.until(id, has_ended)
    lease.cancel()
    await shared.aclose()
    assert task["status"] == "completed"


async def test_a_living_worker_takes_over_and_the_answer_survives(
    store: str, queue: str, tmp_path: Path
) -> None:
    """An answer that any worker has acknowledged is not asked for again."""
    log = tmp_path / "log"
    async with worker(store, log, queue) as one, worker(store, log, queue) as two:
        id = await one.create("report")
        await two.until(id, asks)
        answer = await two.request("tasks/update", taskId=id, inputResponses={"publish": YES})
        assert answer["result"]["resultType"] == "complete"
        await one.kill()
        task = await two.until(id, has_ended)
    assert task["result"]["content"][0]["text"] == "published: True"
    assert log.read_text().splitlines().count("step 0") == 1


async def test_cancellation_reaches_another_worker(store: str, queue: str, tmp_path: Path) -> None:
    """A worker learns that its task was cancelled elsewhere, and gives up nothing of it later."""
    log = tmp_path / "log"
    async with worker(store, log, queue) as one, worker(store, log, queue) as two:
        id = await one.create("report")
        await one.until(id, asks)
        await two.request("tasks/cancel", taskId=id)
        assert (await one.until(id, has_ended))["status"] == "cancelled"


async def test_a_step_in_doubt_is_not_repeated(store: str, queue: str, tmp_path: Path) -> None:
    """A step that had started and has no outcome fails the task: it may have happened."""
    log = tmp_path / "log"
    async with worker(store, log, queue) as one:
        id = await one.create("doubtful")
        await written(log, "begun")
        await one.kill()
    async with worker(store, log, queue) as two:
        task = await two.until(id, has_ended)
    assert task["status"] == "failed"
    assert task["error"]["data"] == {"reason": "may_have_happened"}
    assert log.read_text().splitlines().count("begun") == 1


async def test_a_destructive_tool_without_steps_never_runs_twice(
    store: str, queue: str, tmp_path: Path
) -> None:
    """Only an explicit hint keeps a task from running again."""
    log = tmp_path / "log"
    async with worker(store, log, queue) as one:
        id = await one.create("destroy")
        await written(log, "run")
        await one.kill()
    async with worker(store, log, queue) as two:
        task = await two.until(id, has_ended)
    assert task["status"] == "failed"
    assert "may have happened" in task["statusMessage"]
    assert log.read_text().splitlines() == ["run"]


async def test_a_worker_that_ends_gives_up_its_tasks_at_once(
    store: str, queue: str, tmp_path: Path
) -> None:
    """Another worker continues them, and the run that was given up does not count."""
    log = tmp_path / "log"
    async with worker(store, log, queue) as two:
        async with worker(store, log, queue) as one:
            id = await one.create("report", steps=1)
            await one.until(id, asks)
        await two.request("tasks/update", taskId=id, inputResponses={"publish": YES})
        task = await two.until(id, has_ended)
    assert task["status"] == "completed", task
    assert log.read_text().splitlines().count("step 0") == 1
