"""Calls that may become tasks at the server, and the tasks that a client knows there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Protocol
from weakref import WeakValueDictionary

from msgspec import UNSET
from msgspec.structs import replace

from ... import types as t
from ...exchange import AnyResult, Asker, Caller, Exchange, RawResult
from ...logs import limited
from ...types.tasks import (
    TASKS_EXTENSION,
    CoreCreateTaskResult,
    CreateTaskResult,
    ListTasksRequestParams,
    ListTasksResult,
    Task,
    TaskStatusNotificationParams,
)
from ...wire.revisions import Era
from ..options import OnProgress, TaskCallOptions
from ..request_timeout import RequestTimeout
from .handle import TaskHandle
from .requests import CoreTask, ExtensionTask, TaskRequests

log = limited("interlock.client")

MOST_PAGES = 10_000
_CANCEL_SECONDS = 2.0  # for the cancellation of a task that no caller waits for any more
_MOST_SUBSCRIPTIONS = 8  # of single tasks at one time; further tasks are only polled
_SUBSCRIBE_SECONDS = 10.0
_STATUS_METHODS = frozenset({"notifications/tasks", "notifications/tasks/status"})


class TasksClient(Protocol):
    """An open client as its tasks use it: a caller that has declared the extension."""

    @property
    def caller(self) -> Caller:
        """The client's information and capabilities, as sent with each request."""
        ...

    @property
    def connected(self) -> bool:
        """Whether the client is open."""
        ...

    @property
    def max_timeout(self) -> float | None:
        """The default maximum duration of a request in total, in seconds."""
        ...

    async def list_tools(self) -> list[t.Tool]:
        """Return all tools."""
        ...

    async def request(
        self, method: str, params: t.Params, kind: type[Any], options: TaskCallOptions
    ) -> Any:
        """Send a request, and return its result."""
        ...

    async def carry(self, exchange: Exchange) -> AnyResult:
        """Send an exchange."""
        ...

    async def forward(self, exchange: Exchange, *, declares: bool) -> AnyResult:
        """Send an exchange on behalf of its sender; `declares` declares the tasks extension."""
        ...

    def filter_of(self, ids: list[str]) -> t.SubscriptionFilter:
        """The filter of `subscriptions/listen` for some tasks."""
        ...


class ServerTasks:
    """The tasks of a client at a server that offers them, under the negotiated revision.

    Args:
        client: The client.
        settings: The settings with which the server declares tasks.
        check: Checks the result of a tool against its output schema.
        answers: Answers questions of tasks, unless a call has its own asker.
    """

    def __init__(
        self,
        client: TasksClient,
        settings: t.JSONObject,
        check: Callable[[str, t.CallToolResult], None],
        answers: Asker,
    ) -> None:
        self._client = client
        self._check = check
        self._answers = answers
        self._by_request = client.caller.era is Era.HANDSHAKE  # the client asks for a task
        self._may_augment = _has(settings, "requests", "tools", "call")
        self._may_list = _has(settings, "list")
        self._support: dict[str, str] | None = None
        self._handles: WeakValueDictionary[str, TaskHandle] = WeakValueDictionary()
        self._subscriptions = 0

    # -- which tools are called as tasks (2025-11-25) ----------------------------------------------

    def learn(self, tools: Iterable[t.Tool]) -> None:
        """Record which tools can or must be called as tasks."""
        self._support = {
            tool.name: tool.execution.task_support
            for tool in tools
            if tool.execution is not None and tool.execution.task_support is not None
        }

    def forget(self) -> None:
        """Drop what the last list of tools said: it is out of date."""
        self._support = None

    async def _augments(self, name: str, wanted: tuple[str, ...]) -> bool:
        """Whether to ask for a task (`TK4-04`, `TK4-05`)."""
        if not self._by_request or not self._may_augment:
            return False
        if self._support is None:
            self.learn(await self._client.list_tools())
        return (self._support or {}).get(name) in wanted

    # -- calls -------------------------------------------------------------------------------------

    async def call(
        self, params: t.CallToolRequestParams, options: TaskCallOptions
    ) -> t.CallToolResult:
        """Call a tool, and wait for its task if it becomes one.

        If the wait ends early, the task is cancelled: no other program knows of it.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        handle = await self._begin(params, options, ("required",), None)
        if handle.ended:
            return await handle.result()
        seconds = None if options.timeout is UNSET else options.timeout
        most = self._client.max_timeout if options.max_timeout is UNSET else options.max_timeout
        if seconds is None:
            seconds, most = most, None
        if seconds is None:
            return await self._wait_for(handle, options.on_progress)
        gone = clock() - began
        wait = RequestTimeout(
            "tools/call", max(seconds - gone, 0), None if most is None else max(most - gone, 0)
        )
        with handle.pausing(wait.pause_timeout):
            return await wait.run(self._wait_for(handle, options.on_progress, wait.restart))

    async def _wait_for(
        self,
        handle: TaskHandle,
        on_progress: OnProgress | None,
        restart: Callable[[], None] = lambda: None,
    ) -> t.CallToolResult:
        reporting: asyncio.Task[None] | None = None
        try:
            reporting = asyncio.create_task(_report_progress(handle, on_progress, restart))
            return await handle.result()
        except BaseException:
            if not handle.ended:
                with contextlib.suppress(t.InterlockError, TimeoutError):
                    async with asyncio.timeout(_CANCEL_SECONDS):
                        await handle.cancel()
            raise
        finally:
            if reporting is not None:
                await _finish(reporting)

    async def start(
        self, params: t.CallToolRequestParams, options: TaskCallOptions, ttl: float | None
    ) -> TaskHandle:
        """Call a tool, as a task if the tool can be one. Returns once the task has been created, or
        the call has been answered.
        """
        return await self._begin(params, options, ("required", "optional"), ttl)

    async def _begin(
        self,
        params: t.CallToolRequestParams,
        options: TaskCallOptions,
        wanted: tuple[str, ...],
        ttl: float | None,
    ) -> TaskHandle:
        name = params.name
        if await self._augments(name, wanted):
            kept = None if ttl is None else round(ttl * 1000)
            params = replace(params, task=t.TaskMetadata(ttl=kept))
        result = await self._client.request("tools/call", params, t.Result, options)

        def check(answer: t.CallToolResult) -> None:
            self._check(name, answer)

        if isinstance(result, t.CallToolResult):
            check(result)
            return TaskHandle.answered(result, options.asker)
        state = self._created(result, params)
        return self._handle(state.task_id, options.asker, state=state, check=check)

    def _created(self, result: AnyResult, params: t.CallToolRequestParams) -> Task:
        """Return the first state of the task that a call has become. Raises ProtocolError."""
        match result:
            case CoreCreateTaskResult(task=task) if params.task is not None:
                return replace(task, meta=result.meta)
            case CreateTaskResult() if not self._by_request:
                return result
        raise t.ProtocolError(
            f"The server answered tools/call with something else: {type(result).__name__}"
        )

    async def forward(
        self, x: Exchange, *, as_task: bool, ttl: float | None
    ) -> AnyResult | TaskHandle:
        """Send a tool call on behalf of its sender. Without `as_task` it becomes a task only if the
        tool cannot be called otherwise.
        """
        params: t.CallToolRequestParams = x.params
        wanted = ("required", "optional") if as_task else ("required",)
        task: t.TaskMetadata | None = None
        if await self._augments(params.name, wanted):
            task = t.TaskMetadata(ttl=None if ttl is None else round(ttl * 1000))
        params = replace(params, task=task)
        # The answer of 2025-11-25 with a task does not say what it is, so it has to be decoded.
        x = replace(x, params=params, received=None if task is not None else x.received)
        declares = as_task or self._by_request
        try:
            result = await self._client.forward(x, declares=declares)
        except t.McpError as bad:
            if declares or not _needs_tasks(bad):
                raise
            result = await self._client.forward(x, declares=True)  # the first was not run
        if isinstance(result, t.CallToolResult | RawResult):
            return result
        state = self._created(result, params)
        return self._handle(state.task_id, x.asker, state=state)

    async def support(self, tool: str) -> str | None:
        """Return whether a tool can be called as a task; None if the server decides."""
        if not self._by_request:
            return None
        await self._augments(tool, ())  # requests the list
        found = (self._support or {}).get(tool) if self._may_augment else None
        return found or "forbidden"

    def handle(self, id: str, asker: Asker | None = None) -> TaskHandle:
        """Return a handle for a task by its id."""
        return self._handle(id, asker or self._answers)

    def _handle(
        self,
        id: str,
        asker: Asker,
        *,
        state: Task | None = None,
        check: Callable[[t.CallToolResult], None] | None = None,
    ) -> TaskHandle:
        handle = TaskHandle(
            self._requests(id),
            id,
            asker=asker,
            connected=lambda: self._client.connected,
            state=state,
            check=check,
            notices=None if self._by_request else self._subscribed,
        )
        self._handles[id] = handle
        return handle

    def _requests(self, id: str) -> TaskRequests:
        async def send(
            method: str,
            params: t.Params,
            kind: type[Any],
            *,
            asker: Asker | None = None,
            timed: bool = True,
        ) -> Any:
            options = TaskCallOptions(
                timeout=UNSET if timed else None,
                max_timeout=UNSET if timed else None,
                on_progress=None,
                asker=asker or self._answers,
            )
            return await self._client.request(method, params, kind, options)

        if self._by_request:
            return CoreTask(send, id)
        return ExtensionTask(send, id, self._client.caller.revision)

    async def list(self, asker: Asker | None = None) -> list[TaskHandle]:
        """Return handles for all tasks that the server lists (2025-11-25).

        Raises:
            McpError: The revision or the server has no list (-32601), or the server answers with an
                error.
        """
        if not self._by_request or not self._may_list:
            where = "MCP 2026-07-28" if not self._by_request else "This server"
            raise t.McpError(
                t.METHOD_NOT_FOUND,
                f"{where} has no list of tasks. Keep the id of each task, and use client.task(id).",
            )
        options = TaskCallOptions(
            timeout=UNSET, max_timeout=UNSET, on_progress=None, asker=self._answers
        )
        handles: list[TaskHandle] = []
        cursors: set[str] = set()
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page: ListTasksResult = await self._client.request(
                "tasks/list", ListTasksRequestParams(cursor=cursor), ListTasksResult, options
            )
            handles += [
                self._handle(task.task_id, asker or self._answers, state=task)
                for task in page.tasks
            ]
            cursor = page.next_cursor
            if cursor is None:
                return handles
            if cursor in cursors:
                break
            cursors.add(cursor)
        raise t.ProtocolError("The server's list of tasks has no end.")

    # -- notifications -----------------------------------------------------------------------------

    def receive(self, method: str, params: Any) -> bool:
        """Process the status notification of a task; False if no handle waits for it."""
        if method not in _STATUS_METHODS or not isinstance(params, TaskStatusNotificationParams):
            return False
        handle = self._handles.get(params.task_id)
        if handle is not None:
            handle.receive(params.task)
        return handle is not None

    @contextlib.asynccontextmanager
    async def _subscribed(
        self, id: str, receive: Callable[[Task], None]
    ) -> AsyncIterator[Callable[[], bool]]:
        """Subscribe to the states of one task (`TKX-23`). A server that refuses is only polled."""
        if self._subscriptions >= _MOST_SUBSCRIPTIONS:
            yield lambda: False
            return
        granted = False

        def reporting(method: str, params: Any) -> None:
            nonlocal granted
            if method == "notifications/subscriptions/acknowledged":
                granted = id in (getattr(params.notifications, "taskIds", None) or ())
            elif method in _STATUS_METHODS and params.task_id == id:
                receive(params.task)

        async def listen() -> None:
            nonlocal granted
            try:
                wanted = t.SubscriptionsListenRequestParams(
                    notifications=self._client.filter_of([id])
                )
                x = Exchange("subscriptions/listen", wanted, self._client.caller, notify=reporting)
                await self._client.carry(x)
            except t.InterlockError as bad:
                log.debug("the task %s is only polled: %s", id, bad)
            finally:
                granted = False

        self._subscriptions += 1
        listening = asyncio.create_task(listen())
        try:
            yield lambda: granted
        finally:
            self._subscriptions -= 1
            await _finish(listening)


async def _report_progress(
    handle: TaskHandle, on_progress: OnProgress | None, restart: Callable[[], None]
) -> None:
    """Report each status message as progress of the call, and restart its timeout."""
    number = 0
    with contextlib.suppress(t.InterlockError):  # `result` raises it
        async for state in handle:
            restart()
            if on_progress is None or state.is_terminal or not state.status_message:
                continue
            number += 1
            said = t.ProgressNotificationParams(
                progress_token=handle.id or "", progress=number, message=state.status_message
            )
            try:
                begun = on_progress(said)
                if begun is not None:
                    await begun
            except Exception:
                log.exception("the callback for progress failed")


async def _finish(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})


def _needs_tasks(bad: t.McpError) -> bool:
    """Whether a call was refused because it can only be a task (`TKX-05`)."""
    if bad.code != t.MISSING_CLIENT_CAPABILITY or not isinstance(bad.data, dict):
        return False
    return _has(bad.data, "requiredCapabilities", "extensions", TASKS_EXTENSION)


def _has(settings: t.JSONObject, *path: str) -> bool:
    found: Any = settings
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found is not None and found is not False
