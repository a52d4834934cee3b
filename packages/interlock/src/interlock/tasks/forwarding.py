"""Tasks of a gateway: calls that the server behind it runs as tasks, bridged between the two
revisions that have tasks.

The gateway has a record of its own for each task, with its own id and owner. A run of that record
follows the task of the server behind, so one record has the form of either revision on both sides.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from .. import types as t
from ..exchange import AnyResult, Asker, Exchange, Handler, RawResult
from ..extension import check_declared
from ..input_required import HandlerRun
from ..store.interface import Store
from ..types.input import InputRequest, InputResponse
from ..types.tasks import RELATED_TASK, TASKS_EXTENSION, Task
from ..wire.codec import decode, encode
from . import views
from .extension import Tasks
from .promotion import PromotableCall
from .runner import LiveTask, TaskLimits, TaskSteps

_CANCEL_SECONDS = 5.0  # for the cancellation of a task at the server behind
_STEP = "forward"  # the step that starts the task at the server behind, and records its id

_encode = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode


class UpstreamTask(Protocol):
    """A task of the server behind the gateway."""

    @property
    def id(self) -> str | None:
        """The id at the server behind."""
        ...

    def __aiter__(self) -> AsyncGenerator[Task, None]:
        """Yield each state."""
        ...

    async def result(self) -> t.CallToolResult:
        """Wait for the result."""
        ...

    async def cancel(self) -> None:
        """Ask the server behind to cancel the task."""
        ...


class Upstream(Protocol):
    """The client of the server behind the gateway; `Client` is one."""

    async def send_call(
        self, exchange: Exchange, *, as_task: bool, ttl: float | None = None
    ) -> Any:
        """Send a tool call. Returns its result, or an UpstreamTask."""
        ...

    async def task_support(self, tool: str) -> str | None:
        """Whether a tool can be called as a task; None if the server decides that itself."""
        ...

    def task(self, id: str, *, asker: Asker | None = None) -> UpstreamTask:
        """Return a task by its id."""
        ...


class ForwardedCalls:
    """Forwards tool calls to a server that may make them tasks.

    What a call becomes is decided by where it runs: in a task of this process, in a call that can
    become one, or in a call that waits.

    Args:
        upstream: The client of the server behind.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    def call(self, x: Exchange) -> Awaitable[AnyResult]:
        """Forward a call."""
        if isinstance(x.asker, PromotableCall):
            return self.begin(x, None)
        return self.wait_through(x) if _live(x.asker) is None else self.follow(x)

    async def wait_through(self, x: Exchange) -> AnyResult:
        """Forward a call of a client without tasks."""
        result = await self._upstream.send_call(_forwarded(x), as_task=False)
        return result if _is_answer(result) else await self._wait(x, result)

    async def begin(self, x: Exchange, ttl: float | None) -> AnyResult:
        """Forward a call that becomes a task of the gateway once it is a task at the server
        behind.
        """
        task = await self._upstream.send_call(_forwarded(x), as_task=True, ttl=ttl)
        if _is_answer(task):
            answer: AnyResult = task
            return answer
        assert isinstance(x.asker, PromotableCall)  # `Tasks._promote_later` runs this

        async def note() -> t.JSONObject:
            return {"task": task.id}

        try:
            await x.asker.once(_STEP, note)
            await x.asker.become_task()
        except BaseException:
            await _cancel(task)
            raise
        return await self._wait(x, task)

    async def follow(self, x: Exchange) -> AnyResult:
        """Run a task of the gateway: call the server behind, unless an earlier run has done so, and
        wait.
        """
        task: UpstreamTask | None = None

        async def start() -> t.JSONObject:
            nonlocal task
            ttl = None if (live := _live(x.asker)) is None else live.record.ttl
            result = await self._upstream.send_call(_forwarded(x), as_task=True, ttl=ttl)
            if not _is_answer(result):
                task = result
                return {"task": result.id}
            if isinstance(result, RawResult):
                result = result.decode()
            return {"result": _decode_json(encode(result))}

        begun = await x.asker.once(_STEP, start)
        if "result" in begun:
            answer: t.CallToolResult = decode(Raw(_encode(begun["result"])), t.CallToolResult)
            return answer
        if task is None:
            task = self._upstream.task(begun["task"], asker=_Questions(x.asker))
        return await self._wait(x, task)

    async def _wait(self, x: Exchange, task: UpstreamTask) -> t.CallToolResult:
        """Wait for the result of a task at the server behind, and report its status messages."""
        reporting = asyncio.create_task(_report_progress(x, task))
        try:
            result = await task.result()
        except t.TaskCancelled:
            words = "The server behind this one has cancelled the task."
            raise t.McpError(t.INTERNAL_ERROR, words) from None
        except asyncio.CancelledError:
            # A gateway that ends leaves the task alone: its next process follows it.
            live = _live(x.asker)
            if live is None or await live.is_withdrawn():
                await _cancel(task)
            raise
        finally:
            reporting.cancel()
            await asyncio.wait({reporting})
        own = {name: value for name, value in (result.meta or {}).items() if name != RELATED_TASK}
        return replace(result, meta=own or None)


class ForwardedTasks(Tasks):
    """Lets a gateway forward tasks. Place it in `middleware=` before the middleware that forwards
    to the server behind, and among `extensions=`.

    A call becomes a task at the gateway if the server behind makes it one, or if a client of
    2025-11-25 asks for one. For a client without tasks the gateway waits. After a restart the
    gateway follows the tasks in its store again. A subscription to tasks together with other
    changes is granted without the tasks, which the client then polls.

    Args:
        upstream: The client of the server behind.
        store: The store of the gateway's records, as for `Tasks`.
        limits: How long tasks are kept, and how many.
        keys: Secrets that encrypt tasks in the store, as for `Tasks`.
        wall_clock: The wall clock, in seconds.

    Raises:
        ValueError: The URL names no store, or a key is too short.
        StoreError: A package for the store is not installed.
    """

    def __init__(
        self,
        upstream: Upstream,
        store: str | Store = "memory:",
        *,
        limits: TaskLimits | None = None,
        keys: Sequence[bytes] = (),
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(store, limits=limits, keys=keys, wall_clock=wall_clock)
        self._upstream = upstream
        self._calls = ForwardedCalls(upstream)

    def _layer(self, handler: Handler) -> Handler:
        self._handler = self._calls.follow  # what a task runs again through

        def handle(x: Exchange) -> Awaitable[AnyResult]:
            if self._server is None:
                return handler(x)
            if x.method == "tools/call":
                return self._forward(x)
            if x.method == "tools/list" and x.caller.supports("core_tasks"):
                return self._list_tools(x, handler)
            if x.method in self.methods:
                return self._server.handlers.handle(x)
            if x.method == "subscriptions/listen":
                return self._forward_listen(x, handler)
            return handler(x)

        return handle

    async def _forward_listen(self, x: Exchange, handler: Handler) -> AnyResult:
        assert self._server is not None
        filter = x.params.notifications
        ids = getattr(filter, "taskIds", None)
        if ids is None:
            return await handler(x)
        check_declared(TASKS_EXTENSION, x.caller)  # `TKX-22`
        others = replace(filter, taskIds=None)
        if others == type(filter)():
            return await self._server.handlers.handle(x)
        return await handler(replace(x, params=replace(x.params, notifications=others)))

    async def _list_tools(self, x: Exchange, handler: Handler) -> AnyResult:
        """Say to a client of 2025-11-25 that every tool can be a task, if the server behind decides
        that for each call.
        """
        result = await handler(x)
        if not isinstance(result, t.ListToolsResult):
            return result
        tools = [
            replace(tool, execution=t.ToolExecution(task_support="optional"))
            if await self._upstream.task_support(tool.name) is None
            else tool
            for tool in result.tools
        ]
        return replace(result, tools=tools)

    async def _forward(self, x: Exchange) -> AnyResult:
        """Forward a call."""
        if x.caller.supports("core_tasks"):
            if x.params.task is None:
                return await self._calls.wait_through(x)
            if await self._upstream.task_support(x.params.name) == "forbidden":
                words = f"The tool {x.params.name} cannot be called as a task."
                raise t.McpError(t.METHOD_NOT_FOUND, words)
            ttl = self._ttl_of(x.params.task)
            return views.core_created(await self._create(x, self._calls.follow, ttl), self._poll_ms)
        is_declared = TASKS_EXTENSION in (x.caller.capabilities.extensions or {})
        if is_declared and isinstance(x.asker, HandlerRun):
            begin = partial(self._calls.begin, ttl=self._limits.ttl)
            return await self._promote_later(x, x.asker, math.inf, begin)
        return await self._calls.wait_through(x)


class _Questions:
    """Passes the questions of a call on, without the id of its task at the server behind."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    async def ask(self, request: InputRequest, key: str | None = None) -> InputResponse:
        """Ask a question."""
        params: Any = request.params
        if params is not None:
            meta = _decode_json(params.meta)
            if meta.pop(RELATED_TASK, None) is not None:
                request = replace(request, params=replace(params, meta=Raw(_encode(meta))))
        return await self._asker.ask(request, key)

    async def once(
        self, name: str, do: Callable[[], Awaitable[Any]], *, idempotent: bool = False
    ) -> Any:
        """Run a side effect at most once."""
        return await self._asker.once(name, do, idempotent=idempotent)


def _forwarded(x: Exchange) -> Exchange:
    return replace(x, asker=_Questions(x.asker))


def _is_answer(result: Any) -> bool:
    return isinstance(result, t.Result | RawResult)


def _live(asker: Asker) -> LiveTask | None:
    """Return the task that a run belongs to; None for a call."""
    if isinstance(asker, LiveTask):
        return asker
    run = asker.asker if isinstance(asker, PromotableCall) else asker
    steps = run.steps if isinstance(run, HandlerRun) else None
    return steps.live if isinstance(steps, TaskSteps) else None


async def _cancel(task: UpstreamTask) -> None:
    """Cancel a task that nobody waits for any more. It expires anyway if that fails."""
    with contextlib.suppress(t.InterlockError, TimeoutError):
        async with asyncio.timeout(_CANCEL_SECONDS):
            await task.cancel()


async def _report_progress(x: Exchange, task: UpstreamTask) -> None:
    """Report each status message as progress."""
    if x.progress_token is None:
        return
    number = 0
    with contextlib.suppress(t.InterlockError):  # `result` raises it
        async for state in task:
            if state.is_terminal or not state.status_message:
                continue
            number += 1
            said = t.ProgressNotificationParams(
                progress_token=x.progress_token, progress=number, message=state.status_message
            )
            x.notify("notifications/progress", said)
