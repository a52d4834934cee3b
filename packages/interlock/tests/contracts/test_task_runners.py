"""The task runners pass the contract check: the processes that serve, over each store, and
pydocket. So does a queue in memory, and the check catches queues that break a promise.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from interlock import Docket, Tasks
from interlock.store import RedisStore, SqliteStore, StoreError
from interlock.tasks import TaskQueue
from interlock.testing import check_task_runner
from tests.store.makers import KINDS
from tests.workers.conftest import place


@pytest.mark.parametrize("kind", KINDS)
async def test_the_processes_that_serve(kind: str, tmp_path: Path, redis_url: str) -> None:
    """Their store is in memory, SQLite or Redis."""

    async def prepare() -> Callable[[], Tasks]:
        place = secrets.token_hex(8)
        if kind == "sqlite":
            return lambda: Tasks(SqliteStore(tmp_path / f"{place}.db"))
        if kind == "redis":
            return lambda: Tasks(RedisStore(redis_url, prefix=f"interlock-test:{place}:"))
        return Tasks

    await check_task_runner(prepare)


@pytest.mark.database
async def test_a_fleet_on_pydocket(tmp_path: Path) -> None:
    """Its queue is in Redis, and its store in SQLite."""
    with place("redis", tmp_path) as url:
        places = iter(range(100))

        async def prepare() -> Callable[[], Tasks]:
            number = next(places)
            store = f"sqlite:{tmp_path}/{number}.db"
            return lambda: Tasks(store, runner=Docket(url, name=f"queue-{number}"))

        await check_task_runner(prepare)


class MemoryQueue:
    """A TaskQueue whose processes are in one event loop, as those of the contract check are."""

    def __init__(self, keys: asyncio.Queue[str]) -> None:
        self._keys = keys
        self._is_open = False

    async def open(self, store: str | None) -> None:
        """Connect."""
        self._is_open = True

    async def put(self, key: str, delivery: str) -> None:
        """Queue the key of a task."""
        if not self._is_open:
            raise StoreError("the queue is not open")
        self._keys.put_nowait(key)

    async def consume(self, run: Callable[[str], Awaitable[None]]) -> None:
        """Call `run` with each key."""
        runs: set[asyncio.Future[None]] = set()
        while True:
            run_of_key = asyncio.ensure_future(run(await self._keys.get()))
            runs.add(run_of_key)
            run_of_key.add_done_callback(runs.discard)

    async def aclose(self) -> None:
        """Disconnect."""
        self._is_open = False


class LosingQueue(MemoryQueue):
    """Loses every key."""

    async def put(self, key: str, delivery: str) -> None:
        """Do nothing."""


class SerialQueue(MemoryQueue):
    """Runs one task after the other."""

    async def consume(self, run: Callable[[str], Awaitable[None]]) -> None:
        """Wait for the end of each."""
        while True:
            await run(await self._keys.get())


class AlteringQueue(MemoryQueue):
    """Delivers other keys than it was given."""

    async def put(self, key: str, delivery: str) -> None:
        """Alter the key."""
        await super().put(key.upper(), delivery)


def prepared(
    queue: type[MemoryQueue], folder: Path
) -> Callable[[], Awaitable[Callable[[], Tasks]]]:
    """Locations with a queue of a kind."""
    numbers = iter(range(100))

    async def prepare() -> Callable[[], Tasks]:
        keys: asyncio.Queue[str] = asyncio.Queue()
        store = f"sqlite:{folder}/{next(numbers)}.db"

        def make() -> Tasks:
            runner: TaskQueue = queue(keys)
            return Tasks(store, runner=runner)

        return make

    return prepare


async def test_a_queue_in_memory(tmp_path: Path) -> None:
    await check_task_runner(prepared(MemoryQueue, tmp_path))


@pytest.mark.parametrize(
    "queue, promise",
    [
        (LosingQueue, "a task runs once, and every process returns its result"),
        (SerialQueue, "many tasks run at the same time"),
        (AlteringQueue, "a task runs once, and every process returns its result"),
    ],
)
async def test_broken_promises_are_named(
    queue: type[MemoryQueue], promise: str, tmp_path: Path
) -> None:
    """The first one that is broken, and that the step still waits."""
    with pytest.raises(AssertionError, match=promise):
        await check_task_runner(prepared(queue, tmp_path), patience=5.0)
