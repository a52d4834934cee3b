"""The tasks extension on a server: which calls become tasks, and the requests about tasks."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from .. import types as t
from ..cursors import InvalidCursor, decode_cursor, encode_cursor
from ..eager import start_eagerly
from ..exchange import AnyResult, Caller, Exchange, Handler, ready
from ..extension import CoreCapability, Extension, check_declared
from ..input_required import HandlerRun, ask_by_hand, check_askable
from ..observe.meters import TASKS_GAUGE, Gauge, Labels, Meters
from ..observe.options import Observe
from ..observe.spans import current_tracing
from ..quotas import CountsUsage, Quota, holder_of_exchange
from ..store.from_url import open_store
from ..store.interface import Store
from ..types.tasks import RELATED_TASK, TASKS_EXTENSION
from ..wire.codec import decode
from ..wire.jsonrpc import Malformed
from ..wire.revisions import Era
from . import machine, views
from .large_results import PREFIX
from .machine import StoredCaller, TaskRecord
from .messages import CORE_REVISIONS, TASKS
from .promotion import PromotableCall, detached
from .queue import TaskQueue
from .quotas import PollLimit
from .runner import LiveTask, TaskLimits, TaskRunner, task_key
from .sealed import SealedRecords

TaskMode = Literal["never", "optional", "required"]

_PAGE = 100  # tasks on a page of tasks/list
_MOST_WATCHED = 1000  # tasks of one subscription
_CORE_SETTINGS: t.JSONObject = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
_WITHOUT_LIST = {name: value for name, value in _CORE_SETTINGS.items() if name != "list"}
_question = msgspec.json.Decoder(t.InputRequest).decode
_encode = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode


class TaskTool(Protocol):
    """A tool as far as tasks need it."""

    @property
    def task(self) -> TaskMode:
        """Whether its calls may or must be tasks."""
        ...

    @property
    def after(self) -> float | None:
        """The seconds after which a call becomes a task; None for at once."""
        ...

    @property
    def listing(self) -> t.Tool:
        """The listing."""
        ...


class ToolTable(Protocol):
    """The tools of a server."""

    def get(self, key: str) -> Any:
        """Return the tool with a name, if it exists."""
        ...


class CallHandlers(Protocol):
    """The handlers of a server."""

    def find_tool(self, x: Exchange) -> Any:
        """Return the tool of a call, if the caller may use it. Raises McpError."""
        ...

    def handle(self, x: Exchange) -> Awaitable[AnyResult]:
        """Handle an exchange, without middleware."""
        ...


class TaskServer(Protocol):
    """A server as far as tasks need it."""

    @property
    def tools(self) -> ToolTable:
        """The tools."""
        ...

    @property
    def handlers(self) -> CallHandlers:
        """The handlers."""
        ...

    @property
    def handler(self) -> Handler:
        """The handler with all middleware."""
        ...

    @property
    def memory(self) -> Quota:
        """The memory budget, in bytes."""
        ...

    @property
    def quotas(self) -> MutableMapping[str, CountsUsage]:
        """All quotas, by the names of their counters."""
        ...

    @property
    def meters(self) -> Meters:
        """The metrics."""
        ...

    @property
    def observe(self) -> Observe | None:
        """How the server can be observed."""
        ...

    async def enter(self) -> None:
        """Start the lifespan."""
        ...

    async def leave(self) -> None:
        """End the lifespan."""
        ...


class Tasks(Extension):
    """Lets tools run as tasks, whose results clients collect later (2026-07-28, extension
    `io.modelcontextprotocol/tasks`; 2025-11-25, "Tasks").

    Hazard: a task of an anonymous caller belongs to everyone who knows its id. If a worker dies,
    another one runs the tool again from the top. Put side effects in `ctx.once`.

    Args:
        store: The store of the tasks, or its URL: `memory:` (tasks end with the process),
            `sqlite:///path` or `redis://...`.
        runner: The queue of a fleet of workers, such as `Docket()`. By default the processes that
            serve run the tasks.
        limits: How long tasks are kept, and how many.
        again: Whether a task whose worker has died runs again. If not, it fails. A tool that is
            declared destructive, and has not used `ctx.once`, never runs again.
        keys: Secrets of 16 random bytes or more that encrypt tasks in the store. The first one
            encrypts, all of them decrypt. Needs the extra `seal`.
        wall_clock: The wall clock, in seconds.

    Raises:
        ValueError: The URL names no store, a key is too short, or the workers of `runner` cannot
            use the store.
        StoreError: A package for the store is not installed.
    """

    def __init__(
        self,
        store: str | Store = "memory:",
        *,
        runner: TaskQueue | None = None,
        limits: TaskLimits | None = None,
        again: bool = True,
        keys: Sequence[bytes] = (),
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        handlers: dict[str, Handler] = {
            "tasks/get": self._get,
            "tasks/update": self._update,
            "tasks/cancel": self._cancel,
            "tasks/result": self._result,
            "tasks/list": self._list,
        }
        super().__init__(
            TASKS_EXTENSION,
            methods={
                name: msgspec.structs.replace(method, handler=handlers[name])
                for name, method in TASKS.methods.items()
            },
            notifications=TASKS.notifications,
            results=TASKS.results,
            listens=TASKS.listens,
            revisions=TASKS.revisions,
            core={
                r: CoreCapability("tasks", _CORE_SETTINGS, _WITHOUT_LIST) for r in CORE_REVISIONS
            },
            lifespan=self._live,
            middleware=[self._layer],
        )
        self.listening = {"taskIds": self._listen}
        self.on_drain = self._drain
        self._queue = runner
        self.use_store(store)
        self._limits = limits or TaskLimits()
        self._poll_ms = int(self._limits.poll * 1000)
        self._polls = PollLimit(self._limits.poll, self._limits.waiting_polls)
        self._again = again
        self._keys = keys
        self._wall = wall_clock
        self._server: TaskServer | None = None
        self._runner: TaskRunner | None = None
        self._handler: Handler | None = None
        self._asked: set[tuple[str, str]] = set()  # questions that a tasks/result delivers

    @property
    def is_shared(self) -> bool:
        """Whether several processes can share the tasks."""
        return self._store.shared

    @property
    def has_workers(self) -> bool:
        """Whether workers of a queue run the tasks, and not the processes that serve."""
        return self._queue is not None

    def use_store(self, store: str | Store) -> None:
        """Replace the store. Call it before the server runs.

        Args:
            store: The store, or its URL.

        Raises:
            ValueError: The URL names no store, or the workers of `runner` cannot use the store.
            StoreError: A package for the store is not installed.
        """
        self._url = store if isinstance(store, str) else None
        self._store = open_store(store) if isinstance(store, str) else store
        if self._queue is not None and not self._store.shared:
            raise ValueError(
                "the workers of a runner need a store that processes share: sqlite: or redis:"
            )

    async def run_worker(
        self, server: TaskServer, *, on_ready: Callable[[], object] = bool
    ) -> None:
        """Run tasks of the queue until cancelled: what `interlock tasks run` does. Then the tasks
        that run are given up, so that other workers continue them.

        Args:
            server: The server of this extension. It is started, and serves nobody.
            on_ready: Called when the worker begins.

        Raises:
            ValueError: The tasks run in the processes that serve.
            StoreError: The store or the queue cannot be reached.
        """
        if self._queue is None:
            raise ValueError(
                "The tasks run in the processes that serve. For workers, give the extension a"
                " runner: Tasks(..., runner=Docket())"
            )
        await server.enter()
        try:
            on_ready()
            await self.running.consume()
        finally:
            await server.leave()

    @asynccontextmanager
    async def _live(self, server: TaskServer) -> AsyncIterator[None]:
        """Run the tasks while the server serves."""
        if self._server is not None and self._server is not server:
            raise ValueError("a Tasks extension belongs to one server; give each its own")
        self._server = server
        records = self._store.records
        runner = TaskRunner(
            self._store,
            SealedRecords(records, self._keys) if self._keys else records,
            self._limits,
            server.memory,
            url=self._url,
            run_again=self._run_again,
            may_run_again=self._may_run_again,
            queue=self._queue,
            wall_clock=self._wall,
            tracing=lambda: None if server.observe is None else server.observe.tracing,
        )
        assert server.handler is not None  # it stacks the middleware, which tasks run again through
        self._runner = runner
        server.quotas["tasks"] = runner.held
        server.quotas["polls"] = self._polls
        for gauge in _gauges(runner):
            server.meters.add_gauge(gauge)
        await runner.start()
        try:
            yield
        finally:
            self._runner = None
            await runner.stop()

    async def _drain(self) -> None:
        """Give the tasks to other workers, if there can be any."""
        if self._runner is not None and self._store.shared:
            await self._runner.drain()

    @property
    def running(self) -> TaskRunner:
        """The runner. Raises McpError if the server does not serve."""
        if self._runner is None:
            raise t.McpError(t.INTERNAL_ERROR, "The server does not run tasks now.")
        return self._runner

    # -- calls -------------------------------------------------------------------------------------

    def server_for(self, caller: Caller) -> TaskServer:
        """Return the server that has the tools of a caller: the server of this extension.

        Override it for a server whose principals have tools of their own on other servers. A tool
        there can be a task if that server has an extension with the id of this one.

        Args:
            caller: The sender of a call, or of the task that it became.
        """
        assert self._server is not None  # it has entered the lifespan of the extension
        return self._server

    def _layer(self, handler: Handler) -> Handler:
        self._handler = handler

        def handle(x: Exchange) -> Awaitable[AnyResult]:
            if x.method == "tools/call" and self._server is not None:
                tool = self.server_for(x.caller).tools.get(x.params.name)
                if tool is not None and (tool.task != "never" or x.params.task is not None):
                    return self._call(x, tool, handler)
            elif x.method == "resources/read" and x.params.uri.startswith(PREFIX):
                return self._read_result(x, handler)
            elif x.method == "subscriptions/listen" and _names_tasks(x):
                check_declared(TASKS_EXTENSION, x.caller)  # `TKX-22`
            return handler(x)

        return handle

    async def _call(self, x: Exchange, tool: TaskTool, handler: Handler) -> AnyResult:
        """A call of a tool that may be a task, or that a client wants to be one."""
        self.server_for(x.caller).handlers.find_tool(x)
        if x.caller.supports("core_tasks"):
            return await self._call_core(x, tool, handler)
        if tool.task == "never":
            return await handler(x)  # a `task` of another revision is ignored (`TKX-02`)
        if x.caller.era is not Era.STATELESS:
            if tool.task == "required":
                words = f"The tool {x.params.name} runs only as a task, which {{}} does not have."
                raise t.McpError(t.METHOD_NOT_FOUND, words.format(x.caller.revision))
            return await handler(x)
        if TASKS_EXTENSION not in (x.caller.capabilities.extensions or {}):
            if tool.task == "required":
                check_declared(TASKS_EXTENSION, x.caller)  # `TKX-05`
            return await handler(x)
        if tool.after is not None and isinstance(x.asker, HandlerRun):
            return await self._promote_later(x, x.asker, tool.after, handler)
        task = await self._create(x, handler, self._limits.ttl)
        return views.created(task, self._poll_ms)

    async def _call_core(self, x: Exchange, tool: TaskTool, handler: Handler) -> AnyResult:
        """A call under 2025-11-25, where the client asks for a task."""
        wanted = x.params.task
        if wanted is None:
            if tool.task == "required":  # `TK4-06`
                raise t.McpError(
                    t.METHOD_NOT_FOUND, f"The tool {x.params.name} must be called as a task."
                )
            return await handler(x)
        if tool.task == "never":
            raise t.McpError(
                t.METHOD_NOT_FOUND, f"The tool {x.params.name} cannot be called as a task."
            )
        ttl = self._ttl_of(wanted)
        return views.core_created(await self._create(x, handler, ttl), self._poll_ms)

    def _ttl_of(self, wanted: t.TaskMetadata) -> float | None:
        """Return the time to live of a task, in seconds (`TK4-08`)."""
        if wanted.ttl is None:
            return self._limits.ttl
        return min(max(wanted.ttl, 0) / 1000, self._limits.longest_ttl)

    def _record(self, x: Exchange, id: str, ttl: float | None) -> TaskRecord:
        now = self._wall()
        tracing = current_tracing.get()
        return TaskRecord(
            id=id,
            owner=owner_of(x.caller),
            holder=holder_of_exchange(x),
            tool=self._name_of_tool(x),
            arguments=_own_bytes(x.params.arguments),
            meta=_own_bytes(x.params.meta),
            progress_token=x.progress_token,
            caller=StoredCaller.of(x.caller),
            created=now,
            updated=now,
            ttl=ttl,
            trace="" if tracing is None else tracing.traceparent(),
        )

    def _name_of_tool(self, x: Exchange) -> str:
        """Return the name of a called tool: the tool's own string, which all its tasks share."""
        called: str = x.params.name
        tool = None if self._server is None else self._server.tools.get(called)
        own: str = called if tool is None else tool.listing.name
        return own if own == called else called

    async def _create(self, x: Exchange, handler: Handler, ttl: float | None) -> TaskRecord:
        """Make a call a task, and start it."""
        runner = self.running
        record = self._record(x, _new_id(), ttl)
        if runner.defers:
            return await runner.submit(record)
        live = await runner.create(record)
        inner = replace(
            x,
            params=t.CallToolRequestParams(
                name=record.tool, arguments=record.arguments, meta=record.meta
            ),
            notify=live.notify,
            asker=live,
            progress_token="task",
            drain=ready,
            transport=detached(x.transport),
            received=None,
        )
        runner.run(live, inner, handler)
        return record

    async def _promote_later(
        self, x: Exchange, asker: HandlerRun, after: float, handler: Handler
    ) -> AnyResult:
        """Run a call that becomes a task if it lasts longer than `after` seconds."""
        runner = self.running
        id = _new_id()
        owner = owner_of(x.caller)
        if asker.steps is None:
            asker.steps = runner.steps(id, owner)
        call = PromotableCall(x, asker)
        loop = asyncio.get_running_loop()
        running = start_eagerly(_run(call, handler), loop)
        running.add_done_callback(lambda _: call.stirred.set())
        timer = loop.call_later(after, call.stirred.set) if after < 1e9 else None
        deadline = loop.time() + after
        try:
            while not running.done():
                is_late = loop.time() >= deadline and not runner.is_draining
                if (call.wants or is_late) and not call.open_questions:
                    break
                call.stirred.clear()
                await call.stirred.wait()
            if running.done():
                return await running
            live = await self._promote(x, call, id, running)
        except BaseException:
            if not call.is_promoted:
                running.cancel()
                await asyncio.wait({running})
                if not running.cancelled():
                    running.exception()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return views.created(live.record, self._poll_ms)

    async def _promote(
        self, x: Exchange, call: PromotableCall, id: str, running: asyncio.Future[AnyResult]
    ) -> LiveTask:
        runner = self.running
        steps = call.asker.steps
        asker = HandlerRun({}, x.caller.capabilities, steps)
        record = replace(
            self._record(x, id, self._limits.ttl), journal=dict(call.asker.journal.entries)
        )
        live = await runner.create(record, asker)
        call.promote(asker, live.notify)
        runner.follow(live, call.exchange, running)
        return live

    async def _run_again(self, x: Exchange) -> AnyResult:
        """Run the tool of a task that this worker has taken over."""
        assert self._handler is not None  # middleware is stacked before the server serves
        return await self._handler(x)

    def _may_run_again(self, task: TaskRecord) -> bool:
        """Whether a task may run again after its worker has died."""
        tool = self.server_for(task.caller.caller()).tools.get(task.tool)
        hints = None if tool is None else tool.listing.annotations
        is_destructive = hints is not None and hints.destructive_hint is True
        return self._again and (task.uses_once or not is_destructive)

    # -- requests about tasks ----------------------------------------------------------------------

    def _owner(self, x: Exchange) -> str:
        """Return the owner whose tasks a request may name. Raises McpError for a client that has
        not declared the extension (`TKX-22`).
        """
        if not x.caller.supports("core_tasks"):
            check_declared(TASKS_EXTENSION, x.caller)
        return owner_of(x.caller)

    async def _find(self, x: Exchange) -> TaskRecord:
        found = await self.running.load(self._owner(x), x.params.task_id)
        if found is None:
            raise _unknown()
        return found[0]

    async def _change(self, x: Exchange, step: Callable[[TaskRecord], TaskRecord]) -> TaskRecord:
        task = await self.running.change(self._owner(x), x.params.task_id, step)
        if task is None:
            raise _unknown()
        return task

    async def _get(self, x: Exchange) -> AnyResult:
        """`tasks/get`."""
        task = await self._poll(x)
        if x.caller.supports("core_tasks"):
            return views.core_detailed(task, self._poll_ms)
        return views.detailed(await self._whole(task), self._poll_ms)

    async def _whole(self, task: TaskRecord) -> TaskRecord:
        """Return a task with all of the structured content of its result."""
        whole = await self.running.with_structured_content(task)
        if whole is None:
            raise _unknown()
        return whole

    async def _poll(self, x: Exchange) -> TaskRecord:
        """Return the task of a poll, which waits if it comes too early and nothing has changed."""
        runner = self.running
        owner = self._owner(x)
        id = x.params.task_id
        key = task_key(owner, id)
        found = await runner.load(owner, id)
        if found is None:
            raise _unknown()
        task, version = found
        if task.is_terminal:
            return task
        shared = runner.shared_rates
        delay = await self._polls.acquire(shared, key, version, self._wall())
        if not delay:
            return task
        with runner.watching(key) as changed:
            found = await runner.load(owner, id)  # again: it may have changed before the watch
            if found is not None and found[1] == version:
                holder = holder_of_exchange(x)
                await self._polls.wait(shared, holder, changed, delay, self._wall())
                found = await runner.load(owner, id)
        if found is None:
            raise _unknown()
        task, version = found
        await self._polls.acquire(shared, key, version, self._wall())  # the next one may be early
        return task

    async def _read_result(self, x: Exchange, handler: Handler) -> AnyResult:
        """`resources/read` of a large result. To everyone except the owner of the task it is as
        unknown as any other resource.
        """
        uri = x.params.uri
        text = await self.running.load_large_result(owner_of(x.caller), uri.removeprefix(PREFIX))
        if text is None:
            return await handler(x)
        contents = t.ResourceContents(uri=uri, mime_type="application/json", text=text)
        return t.ReadResourceResult(contents=[contents], ttl_ms=0, cache_scope="private")

    async def _update(self, x: Exchange) -> AnyResult:
        """`tasks/update`."""
        task = await self._find(x)
        answers = {
            key: _answer(task.questions[key], raw)
            for key, raw in x.params.input_responses.items()
            if key in task.questions
        }
        await self._change(x, partial(machine.answer, answers=answers, now=self._wall()))
        return t.EmptyResult()

    async def _cancel(self, x: Exchange) -> AnyResult:
        """`tasks/cancel`."""
        core = x.caller.supports("core_tasks")

        def step(task: TaskRecord) -> TaskRecord:
            if core and task.is_terminal:  # `TK4-18`
                status = views.core_form(task, self._poll_ms)["status"]
                words = f"Cannot cancel task: already in terminal status '{status}'"
                raise t.McpError(t.INVALID_PARAMS, words)
            return machine.cancel(task, self._wall())

        task = await self._change(x, step)
        return views.core_detailed(task, self._poll_ms) if core else t.EmptyResult()

    # -- only 2025-11-25 ---------------------------------------------------------------------------

    async def _list(self, x: Exchange) -> AnyResult:
        """`tasks/list`: the caller's own tasks, a page at a time (`TK4-20`)."""
        owner = self._owner(x)
        if x.caller.anonymous and x.caller.principal is None:  # `TK4-24`
            raise t.McpError(t.METHOD_NOT_FOUND, "tasks/list needs a caller with an identity.")
        after = ""
        if x.params.cursor is not None:
            try:
                after = decode_cursor(x.params.cursor, str, f"tasks:{owner}")
            except InvalidCursor as bad:
                raise t.McpError(t.INVALID_PARAMS, f"Invalid cursor: {bad}") from None
        page = await self.running.of_owner(owner, after, _PAGE + 1)
        more = len(page) > _PAGE
        page = page[:_PAGE]
        cursor = encode_cursor(page[-1][0], f"tasks:{owner}") if more else None
        return views.core_list([task for _, task in page], self._poll_ms, cursor)

    async def _result(self, x: Exchange) -> AnyResult:
        """`tasks/result`: wait for the end of a task, deliver its questions meanwhile, and answer
        as the call itself would have been answered (`TK4-13`).
        """
        owner = self._owner(x)
        id = x.params.task_id
        key = task_key(owner, id)
        announced: TaskRecord | None = None
        progress: t.ProgressNotificationParams | None = None
        with self.running.watching(key) as changed:
            while True:
                changed.clear()
                task = await self._find(x)
                newest = self.running.progress_of(key)
                if newest is not None and newest is not progress:
                    progress = newest
                    if (params := views.core_progress(task, newest)) is not None:
                        x.notify("notifications/progress", params)
                if announced is not None and _is_news(task, announced):
                    status = views.core_notice(task, self._poll_ms)
                    x.notify("notifications/tasks/status", status)
                announced = task
                if task.is_terminal:
                    return _payload(await self._whole(task))
                questions = {
                    key: raw for key, raw in task.questions.items() if (id, key) not in self._asked
                }
                if not questions:
                    await changed.wait()
                    continue
                asking = [self._deliver(x, task, key, raw) for key, raw in questions.items()]
                await asyncio.gather(*asking)

    async def _deliver(self, x: Exchange, task: TaskRecord, key: str, raw: Raw) -> None:
        """Ask a question of a task on the stream of `tasks/result` (`TK4-15`)."""
        request = _question(raw)
        check_askable(request, x.caller.capabilities)
        self._asked.add((task.id, key))
        try:
            response = await x.asker.ask(_related(request, task.id))
        finally:
            self._asked.discard((task.id, key))
        given = _decode_json(_encode(response))
        await self._change(x, partial(machine.answer, answers={key: given}, now=self._wall()))

    # -- notifications -----------------------------------------------------------------------------

    @asynccontextmanager
    async def _listen(self, x: Exchange, ids: list[str]) -> AsyncIterator[list[str]]:
        """Send `notifications/tasks` for the tasks of a subscription (`TKX-23`)."""
        runner = self.running
        owner = owner_of(x.caller)
        async with AsyncExitStack() as entered:
            # Watched before they are read, so that no change is missed.
            watched = {
                id: entered.enter_context(runner.watching(task_key(owner, id)))
                for id in dict.fromkeys(ids[:_MOST_WATCHED])
            }
            loaded = [(id, await runner.load(owner, id)) for id in watched]
            granted = {id: found[0] for id, found in loaded if found is not None}
            sending = [
                asyncio.get_running_loop().create_task(
                    self._send_changes(x, owner, task, watched[id])
                )
                for id, task in granted.items()
            ]
            try:
                yield list(granted)
            finally:
                for sender in sending:
                    sender.cancel()
                await asyncio.gather(*sending, return_exceptions=True)

    async def _send_changes(
        self, x: Exchange, owner: str, task: TaskRecord, changed: asyncio.Event
    ) -> None:
        sent: TaskRecord | None = None
        while True:
            if sent is None or _is_news(task, sent):
                whole = await self.running.with_structured_content(task)
                if whole is None:
                    return
                x.notify("notifications/tasks", views.notice(whole, self._poll_ms))
                sent = task
            if task.is_terminal:
                return
            await changed.wait()
            changed.clear()
            found = await self.running.load(owner, task.id)
            if found is None:
                return
            task = found[0]


async def _run(call: PromotableCall, handler: Handler) -> AnyResult:
    """Run a call. What it asks by hand is an answer of the call, but a question of the task."""
    result = await handler(call.exchange)
    return await ask_by_hand(call.exchange, handler, result) if call.is_promoted else result


def _is_news(task: TaskRecord, known: TaskRecord) -> bool:
    return task.updated != known.updated or task.status != known.status


def _gauges(runner: TaskRunner) -> Iterator[Gauge]:
    """The tasks of this worker as metrics."""

    def by_status(count: Callable[[], Mapping[str, int]]) -> Callable[[], dict[Labels, float]]:
        return lambda: {(("status", status),): number for status, number in count().items()}

    yield Gauge(
        TASKS_GAUGE,
        "Tasks that this process runs, by status.",
        by_status(runner.statuses),
    )
    yield Gauge(
        "interlock_tasks_ended_total",
        "Tasks that have ended in this process, by status.",
        by_status(lambda: runner.ended),
    )


def _names_tasks(x: Exchange) -> bool:
    return getattr(x.params.notifications, "taskIds", None) is not None


def owner_of(caller: Caller) -> str:
    """Return the owner of a caller's tasks: the principal, the person at this machine, or all
    anonymous callers, who need the id of a task (`TK4-23`, `TK4-24`).
    """
    if caller.principal is None:
        return "anonymous" if caller.anonymous else "local"
    import hashlib  # late: only for callers with a principal

    return hashlib.blake2s(caller.principal.key.encode(), digest_size=16).hexdigest()


def _own_bytes(raw: Raw) -> Raw:
    """Return a part of a message that does not keep the bytes of the whole message."""
    return t.NOTHING if raw == t.NOTHING else raw.copy()


def _new_id() -> str:
    """Return 128 random bits (`TKX-28`)."""
    return os.urandom(16).hex()


def _unknown() -> t.McpError:
    return t.McpError(t.INVALID_PARAMS, "Failed to retrieve task: Task not found")


def _answer(question: Raw, raw: Raw) -> Any:
    """Return an answer as JSON data. Raises McpError if it does not fit its question."""
    try:
        decode(raw, t.RESPONSE_TYPES[type(_question(question))])
        return _decode_json(raw)
    except (Malformed, msgspec.DecodeError) as bad:
        raise t.McpError(t.INVALID_PARAMS, f"Invalid inputResponses: {bad}") from None


def _payload(task: TaskRecord) -> t.CallToolResult:
    """Return the result of the call behind a task, with the name of the task (`TK4-14`). Raises
    McpError if the call ended with an error.
    """
    if task.error is not None:
        raise t.McpError(task.error.code, task.error.message, task.error.data)
    if task.result is UNSET:
        raise t.McpError(t.INTERNAL_ERROR, "The task was cancelled.")
    result = views.tool_result(task)
    meta = {**(result.meta or {}), RELATED_TASK: {"taskId": task.id}}
    return replace(result, meta=meta, result_type=None)


def _related(request: t.InputRequest, id: str) -> t.InputRequest:
    """Return a question that names its task."""
    params: Any = request.params
    if params is None:
        params = t.ListRootsRequestParams()
    meta = {**_decode_json(params.meta), RELATED_TASK: {"taskId": id}}
    return replace(request, params=replace(params, meta=Raw(_encode(meta))))
