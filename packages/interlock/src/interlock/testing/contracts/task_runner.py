"""Contract check of a task runner: the processes that serve, or a TaskQueue and its workers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
from msgspec import Raw

from ... import types as t
from ...exchange import Caller, Exchange, Principal
from ...server.app import Server
from ...server.calls.context import Context
from ...tasks.extension import Tasks
from ...types.tasks import (
    TASKS_EXTENSION,
    CancelTaskRequestParams,
    CreateTaskResult,
    GetTaskRequestParams,
    Task,
    UpdateTaskRequestParams,
)
from ...wire.revisions import NEWEST
from .promises import promise_of, require, within

MakeTasks = Callable[[], Tasks]
PreparePlace = Callable[[], Awaitable[MakeTasks]]
_DECLARED = t.ClientCapabilities(
    elicitation=t.ElicitationCapability(), extensions={TASKS_EXTENSION: {}}
)
_AT_ONCE = 20  # tasks that run at the same time
_encode = msgspec.json.encode


async def check_task_runner(prepare: PreparePlace, *, patience: float = 60.0) -> None:
    """Check that a task runner keeps the contract of `interlock.tasks.TaskQueue`, together with the
    store that it is used with: `Tasks(store, runner=...)`.

    Args:
        prepare: Prepares an empty location, and returns a function that makes the extension for it.
            Each extension that is made stands for another process. Called for each step.
        patience: Seconds that each step waits.

    Raises:
        AssertionError: A promise is broken; the message names it.
    """
    for step in _STEPS:
        make = await prepare()
        async with within(patience, "a task runner", promise_of(step)):
            await step(_Fleet(make))


class _Fleet:
    """The processes of one step: those that serve and, if there is a queue, its workers."""

    def __init__(self, make: MakeTasks) -> None:
        self._make = make
        first = make()
        self.is_shared = first.is_shared
        self.has_workers = first.has_workers
        self.log: list[str] = []  # what the tools have done, in any process
        self.gate = asyncio.Event()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[_Process]:
        """Serve clients in another process."""
        process = _Process(self._make(), self)
        await process.server.enter()
        try:
            yield process
        finally:
            await process.server.leave()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run tasks in another process: a worker of the queue, or one that serves too."""
        if not self.has_workers:
            async with self.serving():
                yield
            return
        process = _Process(self._make(), self)
        is_ready = asyncio.Event()
        working = asyncio.ensure_future(
            process.tasks.run_worker(process.server, on_ready=is_ready.set)
        )
        waiting = asyncio.ensure_future(is_ready.wait())
        try:
            await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working
            yield
        finally:
            waiting.cancel()
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working

    @asynccontextmanager
    async def complete(self) -> AsyncIterator[tuple[_Process, _Process]]:
        """Two processes that serve, or one if the store is not shared; and a worker if there is a
        queue.
        """
        async with AsyncExitStack() as entered:
            one = await entered.enter_async_context(self.serving())
            other = one
            if self.is_shared:
                other = await entered.enter_async_context(self.serving())
            if self.has_workers:
                await entered.enter_async_context(self.running())
            yield one, other


class _Process:
    """A server, which is asked in place of a client."""

    def __init__(self, tasks: Tasks, fleet: _Fleet) -> None:
        self.tasks = tasks
        self.server = Server("contract", extensions=[tasks])
        log = fleet.log
        gate = fleet.gate

        @self.server.tool(task="required")
        async def echo(text: str) -> str:
            log.append(f"echo {text}")
            return text

        @self.server.tool(task="required")
        async def wait(name: str) -> str:
            log.append(f"begin {name}")
            try:
                await gate.wait()
            except asyncio.CancelledError:
                log.append(f"cancelled {name}")
                raise
            return name

        @self.server.tool(task="required")
        async def report(ctx: Context) -> str:
            async def step() -> str:
                log.append("step")
                return "done"

            await ctx.once("step", step)
            ctx.progress(1, 2, "half way")
            return "yes" if await ctx.confirm("Go on?", key="go") else "no"

    async def request(self, method: str, params: Any) -> Any:
        """Send a request as a client does."""
        caller = Caller(NEWEST, _DECLARED, principal=Principal(subject="somebody"))
        return await self.server.handle(Exchange(method, params, caller))

    async def create(self, tool: str, **arguments: Any) -> str:
        """Call a tool, and return the id of the task."""
        params = t.CallToolRequestParams(name=tool, arguments=Raw(_encode(arguments)))
        made = await self.request("tools/call", params)
        require(isinstance(made, CreateTaskResult), f"the call of {tool} became no task: {made!r}")
        id: str = made.task_id
        return id

    async def get(self, id: str) -> Task:
        """Return the state of a task. It waits for a change if it is called too often."""
        task: Task = await self.request("tasks/get", GetTaskRequestParams(task_id=id))
        return task

    async def until(self, id: str, reached: Callable[[Task], object]) -> Task:
        """Wait until a task is as wanted."""
        while True:
            task = await self.get(id)
            if reached(task):
                return task
            require(not task.is_terminal, f"a task ended as {task.status}: {task.status_message}")

    async def result(self, id: str) -> str:
        """Wait for the end of a task, and return the text of its result."""
        task = await self.until(id, lambda task: task.is_terminal)
        require(
            task.status == "completed",
            f"a task should be completed, and it is {task.status}: {task.status_message}",
        )
        result = msgspec.json.decode(task.result)  # type: ignore[arg-type]  # a completed one
        text: str = result["content"][0]["text"]
        return text


async def _runs_and_returns(fleet: _Fleet) -> None:
    """a task runs once, and every process returns its result"""
    async with fleet.complete() as (one, other):
        id = await one.create("echo", text="hello")
        for process in (one, other, one):
            text = await process.result(id)
            require(text == "hello", f"the tool returned 'hello', and a process returned {text!r}")
    runs = fleet.log.count("echo hello")
    require(runs == 1, f"the tool ran {runs} times")


async def _runs_at_the_same_time(fleet: _Fleet) -> None:
    """many tasks run at the same time, and none is lost"""
    async with fleet.complete() as (one, other):
        creators = itertools.cycle((one, other))
        names = [str(number) for number in range(_AT_ONCE)]
        ids = [await next(creators).create("wait", name=name) for name in names]
        await _logged(fleet, *(f"begin {name}" for name in names))
        fleet.gate.set()
        texts = [await other.result(id) for id in ids]
        require(texts == names, f"the tools returned {names}, and the tasks {texts}")
    require(len(fleet.log) == _AT_ONCE, f"{_AT_ONCE} tasks were created, and {fleet.log} happened")


async def _passes_answers(fleet: _Fleet) -> None:
    """a task shows its status and its question at every process, and an answer to any reaches it"""
    async with fleet.complete() as (one, other):
        id = await one.create("report")
        task = await other.until(id, lambda task: task.status == "input_required")
        require(set(task.input_requests or {}) == {"go"}, "a question had another key")
        require(task.status_message == "half way", f"the message is {task.status_message!r}")
        await _answer(other, id)
        text = await one.result(id)
        require(text == "yes", f"the answer was yes, and the tool returned {text!r}")


async def _cancels(fleet: _Fleet) -> None:
    """a cancellation at any process is final at once, and cancels the tool"""
    async with fleet.complete() as (one, other):
        id = await one.create("wait", name="a")
        await _logged(fleet, "begin a")
        await other.request("tasks/cancel", CancelTaskRequestParams(task_id=id))
        status = (await other.get(id)).status
        require(status == "cancelled", f"a cancelled task is {status}")
        await _logged(fleet, "cancelled a")
        fleet.gate.set()
        status = (await one.get(id)).status
        require(status == "cancelled", f"a cancelled task became {status}")


async def _continues(fleet: _Fleet) -> None:
    """a process that ends gives its tasks up, and another one continues them without repeating
    steps that have ended
    """
    if not fleet.is_shared:
        return
    async with AsyncExitStack() as front:
        serving = await front.enter_async_context(fleet.serving()) if fleet.has_workers else None
        async with fleet.serving() as first, AsyncExitStack() as workers:
            if fleet.has_workers:
                await workers.enter_async_context(fleet.running())
            asked = serving or first
            id = await asked.create("report")
            await asked.until(id, lambda task: task.status == "input_required")
        async with fleet.serving() as last, fleet.running():
            task = await last.until(id, lambda task: task.status == "input_required")
            require(set(task.input_requests or {}) == {"go"}, "the question is another one now")
            await _answer(last, id)
            text = await last.result(id)
            require(text == "yes", f"the answer was yes, and the tool returned {text!r}")
    steps = fleet.log.count("step")
    require(steps == 1, f"a finished step ran {steps} times")


async def _waits_for_a_worker(fleet: _Fleet) -> None:
    """a task that was created while no worker runs is run by the next one"""
    if not fleet.has_workers:
        return
    async with fleet.serving() as one:
        ids = [await one.create("echo", text=f"{n}") for n in range(3)]
        require(fleet.log == [], "a task ran though no worker runs")
        async with fleet.running():
            texts = [await one.result(id) for id in ids]
        require(texts == ["0", "1", "2"], f"the tasks returned {texts}")


async def _survives_failures(fleet: _Fleet) -> None:
    """a tool that fails ends its own task only"""
    async with fleet.complete() as (one, _):
        bad = await one.create("echo", number=5)  # its argument is missing
        await one.until(bad, lambda task: task.is_terminal)
        text = await one.result(await one.create("echo", text="next"))
        require(text == "next", f"the next tool returned 'next', and its task {text!r}")


async def _answer(process: _Process, id: str) -> None:
    """Answer the question of `report` with yes."""
    answers = {"go": Raw(b'{"action":"accept","content":{"confirm":true}}')}
    params = UpdateTaskRequestParams(task_id=id, input_responses=answers)
    await process.request("tasks/update", params)


async def _logged(fleet: _Fleet, *lines: str) -> None:
    """Wait until tools have written these lines. The caller limits the time."""
    while not set(lines) <= set(fleet.log):  # noqa: ASYNC110 # tools of any process write there
        await asyncio.sleep(0.005)


_STEPS = (
    _runs_and_returns,
    _runs_at_the_same_time,
    _passes_answers,
    _cancels,
    _continues,
    _waits_for_a_worker,
    _survives_failures,
)
