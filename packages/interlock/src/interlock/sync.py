"""A blocking client for scripts and notebooks: the methods of Client without await."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, TypeVar, Unpack

from . import types as t
from .client.app import Client as AsyncClient
from .client.options import (
    CallOptions,
    ClientOptions,
    CompleteOptions,
    ListOptions,
    ReadOptions,
    RequestOptions,
)
from .client.skills import Skill as AsyncSkill
from .client.targets import Target
from .client.tasks.handle import TaskHandle as AsyncTaskHandle
from .client.watch import Changed, Watch
from .exchange import AnyResult, Asker
from .extension import Extension
from .types.tasks import Task, TaskStatus

__all__ = ["Client", "Skill", "TaskHandle"]

T = TypeVar("T")
R = TypeVar("R", bound=t.Result)
_CLOSED = "The client is not open; use it in `with Client(...) as client`."


class Client:
    """A client that blocks. Its parameters, methods, results and errors are those of
    `interlock.Client`.

    The client runs an event loop in a separate thread, so it works where an event loop runs
    already, as in a notebook. The thread of the loop calls your functions (`elicit` and the like),
    so these functions cannot use the client themselves. Use the client as a context manager. Any
    thread may use the client inside the block.
    """

    def __init__(self, target: Target, **options: Unpack[ClientOptions]) -> None:
        self._target = target
        self._options = options
        self._client: AsyncClient | None = None
        self._loop: _Loop | None = None

    def __enter__(self) -> Client:
        if self._loop is not None:
            raise RuntimeError("the client is open already")
        self._loop = _Loop()
        try:
            self._client = self._run(self._open())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        client = self._client
        self._client = None
        try:
            if client is not None:
                self._run(client.aclose())
        finally:
            self._stop()

    async def _open(self) -> AsyncClient:
        client = AsyncClient(self._target, **self._options)
        await client.open()
        return client

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise t.Unreachable(_CLOSED)
        return self._loop.run(work)

    def _stop(self) -> None:
        loop = self._loop
        self._loop = None
        if loop is not None:
            loop.stop()

    @property
    def _open_client(self) -> AsyncClient:
        if self._client is None:
            raise t.Unreachable(_CLOSED)
        return self._client

    @property
    def revision(self) -> str:
        """The negotiated revision."""
        return self._open_client.revision

    @property
    def server_info(self) -> t.Implementation | None:
        """The name and version of the server, if it sent them."""
        return self._open_client.server_info

    @property
    def unreachable(self) -> dict[str, str]:
        """Of a client of several targets: why some of them cannot be used now, by their names."""
        return self._open_client.unreachable

    @property
    def server_capabilities(self) -> t.ServerCapabilities:
        """The capabilities of the server."""
        return self._open_client.server_capabilities

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """The extensions of this client."""
        return self._open_client.extensions

    @property
    def instructions(self) -> str | None:
        """The server's instructions on how to use it."""
        return self._open_client.instructions

    @property
    def probe_failed(self) -> bool:
        """Whether `server/discover` broke the server process, so that a new process got the
        handshake.
        """
        return self._open_client.probe_failed

    @property
    def asks_under(self) -> str | None:
        """The older revision under which the server can ask questions, if the server has said so;
        else None.
        """
        return self._open_client.asks_under

    @staticmethod
    def could_not_ask(outcome: t.Result | t.McpError) -> bool:
        """Whether a request failed because the server cannot ask under the revision in use."""
        return AsyncClient.could_not_ask(outcome)

    def list_tools(self, **options: Unpack[ListOptions]) -> list[t.Tool]:
        """Return all tools."""
        return self._run(self._open_client.list_tools(**options))

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> t.CallToolResult:
        """Call a tool and return its result."""
        return self._run(self._open_client.call_tool(name, arguments, **options))

    def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        **options: Unpack[CallOptions],
    ) -> TaskHandle:
        """Call a tool without waiting for its task, and return a handle."""
        handle = self._run(self._open_client.start_tool(name, arguments, ttl=ttl, **options))
        return TaskHandle(self, handle)

    def task(self, id: str, *, asker: Asker | None = None) -> TaskHandle:
        """Return a handle for a task by its id."""
        return TaskHandle(self, self._open_client.task(id, asker=asker))

    def tasks(self) -> list[TaskHandle]:
        """Return handles for all tasks that the server lists (2025-11-25)."""
        return [TaskHandle(self, handle) for handle in self._run(self._open_client.tasks())]

    def list_resources(self, **options: Unpack[ListOptions]) -> list[t.Resource]:
        """Return all resources."""
        return self._run(self._open_client.list_resources(**options))

    def list_resource_templates(self, **options: Unpack[ListOptions]) -> list[t.ResourceTemplate]:
        """Return all resource templates."""
        return self._run(self._open_client.list_resource_templates(**options))

    def read_resource(self, uri: str, **options: Unpack[ReadOptions]) -> t.ReadResourceResult:
        """Read a resource."""
        return self._run(self._open_client.read_resource(uri, **options))

    def list_skills(self) -> list[Skill]:
        """Return all skills that the server lists."""
        return [Skill(self, skill) for skill in self._run(self._open_client.list_skills())]

    def skill(self, uri: str) -> Skill:
        """Return one skill by the URI of its `SKILL.md`."""
        return Skill(self, self._run(self._open_client.skill(uri)))

    def read_directory(self, uri: str) -> list[t.Resource]:
        """Return the direct children of a directory resource."""
        return self._run(self._open_client.read_directory(uri))

    def list_prompts(self, **options: Unpack[ListOptions]) -> list[t.Prompt]:
        """Return all prompts."""
        return self._run(self._open_client.list_prompts(**options))

    def get_prompt(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[ReadOptions]
    ) -> t.GetPromptResult:
        """Return a prompt with its arguments filled in."""
        return self._run(self._open_client.get_prompt(name, arguments, **options))

    def complete(
        self,
        ref: t.PromptReference | t.ResourceTemplateReference | str,
        argument: str,
        value: str = "",
        **options: Unpack[CompleteOptions],
    ) -> t.Completion:
        """Return suggestions for an argument."""
        return self._run(self._open_client.complete(ref, argument, value, **options))

    def ping(self, **options: Unpack[ListOptions]) -> None:
        """Check that the server responds."""
        self._run(self._open_client.ping(**options))

    def set_log_level(self, level: t.LoggingLevel) -> None:
        """Set the lowest level of log messages that the server sends from now on."""
        self._run(self._open_client.set_log_level(level))

    def roots_changed(self) -> None:
        """Notify the server that the roots have changed."""
        client = self._open_client
        self._run(_in_the_loop(client.roots_changed))

    def request(
        self,
        method: str,
        params: t.Params,
        kind: type[R] = t.Result,  # type: ignore[assignment]  # without it any result will do
        **options: Unpack[RequestOptions],
    ) -> R:
        """Send any request of the protocol or of an extension, and return its result."""
        return self._run(self._open_client.request(method, params, kind, **options))

    def request_raw(self, method: str, params: bytes) -> AnyResult:
        """Send a request whose params are sent as they are written; see Client.request_raw."""
        return self._run(self._open_client.request_raw(method, params))

    def notify(self, method: str, params: t.Params) -> None:
        """Send a notification of an extension."""
        self._run(self._open_client.notify(method, params))

    @contextmanager
    def watch(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool | str | Sequence[str] = False,
        filter: Mapping[str, Any] | None = None,
    ) -> Iterator[Iterator[Changed]]:
        """Subscribe to changes while a block runs, and iterate over them."""
        watching = self._open_client.watch(
            tools=tools, prompts=prompts, resources=resources, filter=filter
        )
        watch = self._run(watching.__aenter__())
        try:
            yield self._changes(watch)
        finally:
            if self._client is not None:
                self._run(_leave(watching))

    def _changes(self, watch: Watch) -> Iterator[Changed]:
        while True:
            try:
                yield self._run(_next(watch))
            except StopAsyncIteration:
                return


class TaskHandle:
    """A task, like `interlock.TaskHandle` without `await`."""

    def __init__(self, client: Client, handle: AsyncTaskHandle) -> None:
        self._client = client
        self.handle = handle

    @property
    def id(self) -> str | None:
        """The id of the task; None if the server has answered the call without a task."""
        return self.handle.id

    @property
    def state(self) -> Task | None:
        """The state that was received last; None before the first."""
        return self.handle.state

    @property
    def status(self) -> TaskStatus:
        """The status that was received last."""
        return self.handle.status

    @property
    def ended(self) -> bool:
        """Whether the call has ended, as far as this handle knows."""
        return self.handle.ended

    def __iter__(self) -> Iterator[Task]:
        """Yield the state whenever it has changed, until the task has ended."""
        states = self.handle.__aiter__()
        try:
            while True:
                try:
                    yield self._client._run(_following(states))
                except StopAsyncIteration:
                    return
        finally:
            self._client._run(_closed(states))

    def refresh(self) -> Task:
        """Request the current state, and return it."""
        return self._client._run(self.handle.refresh())

    def result(self) -> t.CallToolResult:
        """Wait until the task has ended, and return the result of the call."""
        return self._client._run(self.handle.result())

    def cancel(self) -> None:
        """Ask the server to cancel the task."""
        self._client._run(self.handle.cancel())


class Skill:
    """A skill, like `interlock.Skill` without `await`."""

    def __init__(self, client: Client, skill: AsyncSkill) -> None:
        self._client = client
        self.skill = skill

    @property
    def uri(self) -> str:
        """The URI of the skill's `SKILL.md`."""
        return self.skill.uri

    @property
    def name(self) -> str:
        """The name of the skill. Several skills may have the same name."""
        return self.skill.name

    @property
    def files(self) -> list[str]:
        """The paths of the skill's files; empty if the skill is dynamic."""
        return self.skill.files

    def read(self, path: str = "SKILL.md") -> str:
        """Read a text file, and verify it."""
        return self._client._run(self.skill.read(path))

    def read_bytes(self, path: str = "SKILL.md") -> bytes:
        """Read any file, and verify it."""
        return self._client._run(self.skill.read_bytes(path))

    def directory(self, path: str = "") -> list[str]:
        """Return the names in a folder of the skill."""
        return self._client._run(self.skill.directory(path))

    def refresh(self) -> Skill:
        """Read the skill's current description from the server."""
        return Skill(self._client, self._client._run(self.skill.refresh()))


class _Loop:
    """An event loop in a thread. Stopping the loop cancels the running tasks and lets them clean
    up.
    """

    def __init__(self) -> None:
        ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(_live(ready)), name="interlock-sync", daemon=True
        )
        self._thread.start()
        self._loop, self._over = ready.result()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, and wait for its result."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "a function that the client calls cannot use it: it would wait for itself"
            )
        outcome: Future[T] = Future()
        try:
            self._loop.call_soon_threadsafe(self._begin, work, outcome)
            return outcome.result()
        except BaseException:
            # An interrupt can come at any time: `asyncio.run_coroutine_threadsafe` would lose an
            # early one.
            outcome.cancel()
            raise

    def _begin(self, work: Coroutine[Any, Any, T], outcome: Future[T]) -> None:
        task = self._loop.create_task(work)
        task.add_done_callback(lambda _: _settle(task, outcome))
        outcome.add_done_callback(
            lambda _: outcome.cancelled() and self._loop.call_soon_threadsafe(task.cancel)
        )

    def stop(self) -> None:
        """Stop the loop, and wait for its thread."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()


def _settle(task: asyncio.Task[T], outcome: Future[T]) -> None:
    with suppress(InvalidStateError):  # no thread waits for it any more
        if task.cancelled():
            outcome.cancel()
        elif (error := task.exception()) is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(task.result())


async def _live(ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    over = asyncio.Event()
    ready.set_result((asyncio.get_running_loop(), over))
    await over.wait()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        if not task.cancelling():  # a second cancellation would interrupt the cleanup
            task.cancel()
    if left:
        await asyncio.wait(left)


async def _in_the_loop(do: Callable[[], None]) -> None:
    do()


async def _next(watch: Watch) -> Changed:
    return await watch.__anext__()


async def _following(states: AsyncGenerator[Task, None]) -> Task:
    return await states.__anext__()


async def _closed(states: AsyncGenerator[Task, None]) -> None:
    await states.aclose()


async def _leave(context: Any) -> None:
    await context.__aexit__(None, None, None)
