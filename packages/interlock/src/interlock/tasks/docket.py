"""A task queue on pydocket (extra `docket`), for a fleet of workers on Redis or Valkey."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..store.errors import StoreError

if TYPE_CHECKING:
    from docket import Docket as Engine
    from docket.dependencies import Dependency

_FUNCTION = "run_task"  # the name under which the engine knows the function of the workers
_PATIENCE = 5.0  # seconds that a put may take
# A key that a dead worker had received, and whose task it had not taken over yet, goes to another
# worker after this time and at most half of it again. A key that is delivered twice does no harm.
_REDELIVERY = timedelta(seconds=1.5)
_RECONNECTION = timedelta(seconds=1)
_SCHEMES = ("redis://", "rediss://", "unix://")


class Docket:
    """Runs tasks on a fleet of workers: `Tasks("redis://...", runner=Docket())`. The servers create
    tasks, and each `interlock tasks run FILE` runs them. A pydocket queue carries the ID of each
    task, a digest of its owner, and nothing else.

    Hazard: a worker unpickles what it receives, because pydocket does. Whoever can write to that
    Redis can run code in the workers. Give it credentials of its own.

    Args:
        url: The URL of the Redis or Valkey server of the queue; by default that of the store.
        name: The prefix of the keys of the queue.
        concurrency: The maximum number of tasks that a worker runs at the same time. A task that
            waits for an answer counts.

    Raises:
        StoreError: The package pydocket is not installed.
        ValueError: The URL names no Redis server, or the concurrency is less than 1.
    """

    def __init__(
        self, url: str | None = None, *, name: str = "interlock-tasks", concurrency: int = 100
    ) -> None:
        if find_spec("docket") is None:
            raise StoreError("Docket needs the package pydocket: pip install 'interlock[docket]'")
        if url is not None and not url.startswith(_SCHEMES):
            raise ValueError("Docket(url) is a URL such as redis://host:port/db")
        if concurrency < 1:
            raise ValueError("concurrency must be 1 or more")
        self._url = url
        self._name = name
        self._concurrency = concurrency
        self._engine: Engine | None = None
        self._opened = AsyncExitStack()

    async def open(self, store: str | None) -> None:
        """Connect. See `TaskQueue.open`."""
        from docket import Docket as Engine  # late: needs the extra, and takes long to load

        url = self._url or store
        if url is None or not url.startswith(_SCHEMES):
            raise ValueError(
                "Docket() needs the URL of a Redis server for this store: Docket('redis://...')"
            )
        # Without a time to live, the engine forgets a delivery when it has ended.
        engine = Engine(self._name, url, execution_ttl=timedelta(0))
        with _failures():
            await self._opened.enter_async_context(engine)
        engine.register(_not_here, [_FUNCTION])
        self._engine = engine

    async def put(self, key: str, delivery: str) -> None:
        """Queue the key of a task. See `TaskQueue.put`."""
        add = self._connected.add(_FUNCTION, key=f"{key}:{delivery}")
        with _failures():
            async with asyncio.timeout(_PATIENCE):
                await add(key)

    async def consume(self, run: Callable[[str], Awaitable[None]]) -> None:
        """Call `run` with each delivered key, until cancelled. See `TaskQueue.consume`."""
        from docket import Worker  # late: as above

        disconnected = asyncio.Event()
        running: set[asyncio.Task[None]] = set()

        async def run_task(key: str) -> None:
            # The engine does not reconnect before its functions have ended. A run may take hours,
            # and needs the engine no more: the lease of the task is in the store.
            task = asyncio.ensure_future(_awaited(run(key)))
            running.add(task)
            task.add_done_callback(running.discard)
            lost = asyncio.ensure_future(disconnected.wait())
            try:
                await asyncio.wait({task, lost}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                lost.cancel()

        engine = self._connected
        engine.register(run_task, [_FUNCTION])
        worker = Worker(
            engine,
            f"interlock-{os.urandom(6).hex()}",
            concurrency=self._concurrency,
            redelivery_timeout=_REDELIVERY,
            reconnection_delay=_RECONNECTION,
            schedule_automatic_tasks=False,
            dependencies=[_connection(disconnected)],
        )
        async with worker:
            await worker.run_forever()

    async def aclose(self) -> None:
        """Disconnect."""
        self._engine = None
        await self._opened.aclose()

    @property
    def _connected(self) -> Engine:
        if self._engine is None:
            raise StoreError("the queue of tasks is not open")
        return self._engine


def _connection(disconnected: asyncio.Event) -> Dependency[Any]:
    """Return a dependency of the engine's worker that sets `disconnected` when the worker loses its
    connection, or stops.
    """
    from docket.dependencies import Dependency  # late: as above

    class EngineConnection(Dependency[None]):
        @classmethod
        @asynccontextmanager
        async def worker_lifecycle(cls, docket: Engine, worker: Any) -> AsyncIterator[None]:
            disconnected.clear()
            try:
                yield
            finally:
                disconnected.set()

        async def __aenter__(self) -> None:
            """Do nothing: the dependency is about the worker, and not about one delivery."""

    return EngineConnection()


@contextmanager
def _failures() -> Iterator[None]:
    """Raise StoreError for a Redis server that fails or does not answer."""
    from redis.exceptions import RedisError  # late: as above

    try:
        yield
    except (RedisError, OSError, TimeoutError) as bad:
        raise StoreError(f"the queue of tasks failed: {type(bad).__name__}") from bad


async def _awaited(run: Awaitable[None]) -> None:
    await run


async def _not_here(key: str) -> None:
    """Stand for the function of the workers in a process that only puts keys."""
    raise RuntimeError(f"a server has received the task {key}, and only workers run tasks")
