"""Tasks of 2026-07-28 on a server in memory: creation, polling, questions, cancellation, promotion
and ownership.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, Raw

from interlock import (
    Caller,
    Client,
    Context,
    Exchange,
    McpError,
    Principal,
    Server,
    TaskLimits,
    Tasks,
    ToolError,
)
from interlock import types as t
from interlock.exchange import AnyResult
from interlock.store import open_store
from interlock.types.tasks import (
    TASKS_EXTENSION,
    CancelTaskRequestParams,
    CreateTaskResult,
    GetTaskPayloadRequestParams,
    GetTaskRequestParams,
    Task,
    UpdateTaskRequestParams,
)
from interlock.wire.revisions import NEWEST
from tests.client.peers import eventually

DECLARED = t.ClientCapabilities(
    extensions={TASKS_EXTENSION: {}}, elicitation=t.ElicitationCapability(form={})
)
ALICE = Principal(subject="alice")
BOB = Principal(subject="bob")


class Peer:
    """A client of 2026-07-28 that calls the server by hand."""

    def __init__(
        self,
        server: Offered,
        principal: Principal | None = None,
        capabilities: t.ClientCapabilities = DECLARED,
    ) -> None:
        self.server = server
        self.caller = Caller(NEWEST, capabilities, principal=principal)
        self.notices: list[tuple[str, Any]] = []

    async def request(self, method: str, params: Any) -> AnyResult:
        x = Exchange(method, params, self.caller, notify=lambda m, p: self.notices.append((m, p)))
        return await self.server.handle(x)

    async def call(self, tool: str, **arguments: Any) -> Any:
        raw = Raw(json.dumps(arguments).encode())
        return await self.request("tools/call", t.CallToolRequestParams(name=tool, arguments=raw))

    async def create(self, tool: str, **arguments: Any) -> CreateTaskResult:
        result = await self.call(tool, **arguments)
        assert isinstance(result, CreateTaskResult), result
        return result

    async def get(self, id: str) -> Task:
        result = await self.request("tasks/get", GetTaskRequestParams(task_id=id))
        assert isinstance(result, Task)
        return result

    async def update(self, id: str, **answers: Any) -> AnyResult:
        responses = {key: Raw(json.dumps(value).encode()) for key, value in answers.items()}
        params = UpdateTaskRequestParams(task_id=id, input_responses=responses)
        return await self.request("tasks/update", params)

    async def cancel(self, id: str) -> AnyResult:
        return await self.request("tasks/cancel", CancelTaskRequestParams(task_id=id))

    async def until(self, id: str, reached: Callable[[Task], bool]) -> Task:
        """Poll until a task is as wanted."""
        async with asyncio.timeout(60):
            while not reached(task := await self.get(id)):  # noqa: ASYNC110 - it polls
                await asyncio.sleep(0.001)
        return task

    async def ended(self, id: str) -> Task:
        return await self.until(id, lambda task: task.is_terminal)


class Offered(Server):
    """A server with tools of every kind; `gate` lets its waiting tools end."""

    def __init__(self, tasks: Tasks) -> None:
        super().__init__("tasks", extensions=[tasks])
        self.tasks = tasks
        self.gate = asyncio.Event()
        self.runs: list[str] = []


def make_server(**options: Any) -> Offered:
    """A server with tools of every kind."""
    server = Offered(Tasks(**options))
    gate = server.gate
    runs = server.runs

    @server.tool
    async def greet(name: str) -> str:
        """Never a task."""
        return f"Hello, {name}!"

    @server.tool(task="optional")
    async def add(a: int, b: int) -> int:
        """A task that ends at once."""
        return a + b

    @server.tool(task="required")
    async def wait(ctx: Context) -> str:
        """A task that waits."""
        runs.append("wait")
        ctx.progress(1, 2, "half way")
        await gate.wait()
        return "waited"

    @server.tool(task="optional")
    async def fail() -> str:
        """A tool that fails."""
        raise ToolError("no luck")

    @server.tool(task="optional")
    async def crash() -> str:
        """A tool that ends with a JSON-RPC error."""
        raise McpError(-32001, "broken", {"part": "axle"})

    @server.tool(task="optional")
    async def confirm(ctx: Context) -> str:
        """A tool that asks two questions at once, then a third."""
        first, second = await asyncio.gather(
            ctx.confirm("First?", key="first"), ctx.confirm("Second?", key="second")
        )
        third = await ctx.confirm("Third?")
        return f"{first} {second} {third}"

    @server.tool(task="optional")
    async def steps(ctx: Context) -> str:
        """A task with progress before and after a question."""
        ctx.progress(1, 2, "first")
        await ctx.confirm("Go on?")
        ctx.progress(2, 2, "second")
        await gate.wait()
        return "done"

    @server.tool(task="optional", after=0.0)
    async def slow() -> str:
        """A call that becomes a task while it waits."""
        runs.append("slow")
        await gate.wait()
        return "slow"

    @server.tool(task="optional", after=3600.0)
    async def quick() -> str:
        """A call that ends before it becomes a task."""
        return "quick"

    @server.tool(task="optional", after=math.inf)
    async def composed(ctx: Context) -> str:
        """A call that asks first, and then becomes a task that asks."""
        runs.append("composed")
        if not await ctx.confirm("Begin?", key="begin"):
            return "refused"
        await ctx.as_task()
        return f"finished: {await ctx.confirm('Finish?', key='finish')}"

    return server


@asynccontextmanager
async def serving(server: Offered) -> AsyncIterator[Peer]:
    await server.enter()
    try:
        yield Peer(server)
    finally:
        await server.leave()


def result_of(task: Task) -> dict[str, Any]:
    """The result of a completed task as JSON data."""
    assert task.result is not UNSET, task
    result: dict[str, Any] = json.loads(bytes(task.result))
    return result


YES = {"action": "accept", "content": {"confirm": True}}
NO = {"action": "decline"}


async def refused(working: Awaitable[object]) -> McpError:
    with pytest.raises(McpError) as caught:
        await working
    return caught.value


async def test_a_call_becomes_a_task_that_can_be_read_at_once() -> None:
    """`TKX-04`, `TKX-07`, `TKX-08`, `TKX-09`, `TKX-12`, `TKX-31`."""
    async with serving(make_server()) as peer:
        made = await peer.create("wait")
        assert made.result_type == "task"
        assert made.status == "working"
        assert made.ttl_ms == 86_400_000
        assert made.poll_interval_ms == 1000
        assert len(made.task_id) == 32  # 128 bits (`TKX-28`)
        task = await peer.get(made.task_id)
        assert task.result_type is None  # stamped "complete" by the connection
        assert (task.task_id, task.created_at) == (made.task_id, made.created_at)
        peer.server.gate.set()
        task = await peer.ended(made.task_id)
        assert task.status == "completed"
        result = result_of(task)
        assert result["content"] == [{"type": "text", "text": "waited"}]
        assert "_meta" not in result
        assert result["resultType"] == "complete"


async def test_a_server_over_http_gives_its_tasks_up_before_its_last_calls(tmp_path: Path) -> None:
    """Another worker continues them at once. A task of a call that still arrives is left to it."""
    first = make_server(store=f"sqlite://{tmp_path}/tasks.db")
    second = make_server(store=f"sqlite://{tmp_path}/tasks.db")
    second.gate.set()
    called = asyncio.Event()
    release = asyncio.Event()
    stop = asyncio.Event()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @first.tool
    async def last() -> str:
        """A call that is still running when the server is told to end."""
        called.set()
        await release.wait()
        return "last"

    async def serve() -> None:
        async with first.serve_http(port=0, grace=120) as http:
            url.set_result(http.url)
            await stop.wait()

    async with serving(second) as peer:
        ending = asyncio.ensure_future(serve())
        async with Client(await url) as client:
            calling = asyncio.ensure_future(client.call_tool("last"))
            await called.wait()
            own = Peer(first)
            made = await own.create("wait")
            await own.until(made.task_id, lambda task: task.status_message == "half way")
            stop.set()
            assert result_of(await peer.ended(made.task_id))["content"][0]["text"] == "waited"
            late = await own.create("add", a=1, b=2)
            assert result_of(await peer.ended(late.task_id))["content"][0]["text"] == "3"
            assert not ending.done()
            release.set()
            assert (await calling).text == "last"
        await ending
    assert (first.runs, second.runs) == (["wait"], ["wait"])


async def test_a_change_that_was_not_announced_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server dies between the record of an answer or a cancellation and its announcement. The
    worker of the task learns of it once that server counts as dead.
    """
    first = make_server(store=f"sqlite://{tmp_path}/tasks.db")
    second = make_server(store=f"sqlite://{tmp_path}/tasks.db")
    async with serving(first) as peer, serving(second) as dying:
        asking = await peer.create("confirm")
        await peer.until(asking.task_id, lambda task: len(task.input_requests or {}) == 2)
        waiting = await peer.create("wait")
        await peer.until(waiting.task_id, lambda task: task.status_message == "half way")
        runner = second.tasks.running
        monkeypatch.setattr(runner, "announce", lambda key: None)
        assert runner._beating is not None
        runner._beating.cancel()
        await dying.update(asking.task_id, first=YES, second=YES)
        await dying.cancel(waiting.task_id)
        await peer.until(asking.task_id, lambda task: len(task.input_requests or {}) == 1)
        async with asyncio.timeout(60):
            while len(first.tasks.running) > 1:  # noqa: ASYNC110 - the other one is cancelled
                await asyncio.sleep(0.01)


async def test_progress_is_the_status_message() -> None:
    """`TKX-24`: no notification of progress, but a message."""
    async with serving(make_server()) as peer:
        made = await peer.create("wait")
        task = await peer.until(made.task_id, lambda task: task.status_message == "half way")
        assert task.status == "working"
        assert peer.notices == []


async def test_a_failed_tool_is_a_completed_task() -> None:
    """`TKX-13`: `failed` is for JSON-RPC errors only. `TKX-14`: it has a message."""
    async with serving(make_server()) as peer:
        task = await peer.ended((await peer.create("fail")).task_id)
        assert task.status == "completed"
        assert result_of(task)["isError"] is True
        task = await peer.ended((await peer.create("crash")).task_id)
        assert task.status == "failed"
        assert task.status_message == "broken"
        assert task.error is not None
        assert (task.error.code, task.error.data) == (-32001, {"part": "axle"})


async def test_a_client_that_declares_nothing_never_sees_a_task() -> None:
    """`TKX-01`, `TKX-05`, `TKX-22`: a plain result, or -32021 where only a task is possible."""
    async with serving(make_server()) as peer:
        made = await peer.create("add", a=1, b=2)
        plain = Peer(peer.server, capabilities=t.ClientCapabilities())
        assert (await plain.call("add", a=1, b=2)).value() == 3
        for working in (
            plain.call("wait"),
            plain.get(made.task_id),
            plain.update(made.task_id),
            plain.cancel(made.task_id),
        ):
            bad = await refused(working)
            assert bad.code == -32021
            assert bad.data == {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}


async def test_the_task_parameter_of_the_older_revision_is_ignored() -> None:
    """`TKX-02`: a tool that is never a task stays one, and `capabilities.tasks` is not declared."""
    async with serving(make_server()) as peer:
        params = t.CallToolRequestParams(
            name="greet", arguments=Raw(b'{"name":"Ada"}'), task=t.TaskMetadata(ttl=1)
        )
        result = await peer.request("tools/call", params)
        assert isinstance(result, t.CallToolResult)
        assert result.text == "Hello, Ada!"


async def test_only_calls_of_tools_become_tasks() -> None:
    """`TKX-03`: a prompt is answered at once."""
    server = make_server()

    @server.prompt
    async def poem() -> str:
        return "Roses"

    async with serving(server) as peer:
        result = await peer.request("prompts/get", t.GetPromptRequestParams(name="poem"))
        assert isinstance(result, t.GetPromptResult)


async def test_questions_of_a_task_wait_for_updates() -> None:
    """`TKX-11`, `TKX-12`, `TKX-16`, `TKX-17`, `TKX-18`: all open questions at once, partial
    answers, unknown keys.
    """
    async with serving(make_server()) as peer:
        id = (await peer.create("confirm")).task_id
        task = await peer.until(id, lambda task: len(task.input_requests or {}) == 2)
        assert task.status == "input_required"
        assert set(task.input_requests or {}) == {"first", "second"}
        assert isinstance(await peer.update(id, first=YES, other=YES), t.EmptyResult)
        task = await peer.get(id)
        assert task.status == "input_required"
        assert set(task.input_requests or {}) == {"second"}
        await peer.update(id, first=NO)  # it has an answer already
        await peer.update(id, second=NO)
        task = await peer.until(
            id, lambda task: "second" not in (task.input_requests or {"second"})
        )
        (key,) = task.input_requests or {}
        assert key not in ("first", "second")
        await peer.update(id, **{key: YES})
        task = await peer.ended(id)
        assert result_of(task)["content"][0]["text"] == "True False True"


async def test_an_answer_that_does_not_fit_is_refused() -> None:
    """The question stays open."""
    async with serving(make_server()) as peer:
        id = (await peer.create("confirm")).task_id
        await peer.until(id, lambda task: task.status == "input_required")
        assert (await refused(peer.update(id, first={"action": "perhaps"}))).code == -32602
        assert "first" in ((await peer.get(id)).input_requests or {})


async def test_cancellation_stops_the_tool_and_is_final() -> None:
    """`TKX-19`: an empty acknowledgement, also for a task that has ended."""
    async with serving(make_server()) as peer:
        id = (await peer.create("wait")).task_id
        assert isinstance(await peer.cancel(id), t.EmptyResult)
        assert (await peer.get(id)).status == "cancelled"
        peer.server.gate.set()
        await asyncio.sleep(0)
        assert isinstance(await peer.cancel(id), t.EmptyResult)
        assert (await peer.get(id)).status == "cancelled"


async def test_a_stranger_does_not_know_the_task() -> None:
    """`TKX-15`, `TKX-28`: the same error as for an id that does not exist."""
    async with serving(make_server()) as peer:
        alice = Peer(peer.server, ALICE)
        id = (await alice.create("wait")).task_id
        for stranger in (Peer(peer.server, BOB), peer):
            for working in (stranger.get(id), stranger.update(id), stranger.cancel(id)):
                bad = await refused(working)
                other = await refused(stranger.get("0" * 32))
                assert (bad.code, bad.message) == (other.code, other.message)
                assert bad.code == -32602
        assert (await alice.get(id)).status == "working"


class CountingRecords:
    """Records of a store that notes each operation, with the length of its key."""

    def __init__(self, records: Any) -> None:
        self._records = records
        self.operations: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._records, name)

        def noted(*args: Any, **options: Any) -> Any:
            if args and args[0] != "task-workers":  # the heartbeats of this worker
                self.operations.append((name, len(args[0])))
            return operation(*args, **options)

        return noted


@pytest.mark.parametrize("keys", [(), (b"0123456789abcdef",)], ids=["plain", "sealed"])
@pytest.mark.parametrize("revision", ["2025-11-25", NEWEST])
async def test_the_id_of_a_stranger_costs_what_an_unknown_one_costs(
    revision: str, keys: tuple[bytes, ...], tmp_path: Path
) -> None:
    """`TK4-23`, `TKX-28`: the same operations on the store and the same answer, so the time tells
    nothing either.
    """
    store = open_store(f"sqlite://{tmp_path}/tasks.db")
    counted = CountingRecords(store.records)
    store.records = counted
    async with serving(make_server(store=store, keys=keys)) as peer:
        alice = Peer(peer.server, ALICE)
        id = (await alice.create("wait")).task_id
        await alice.until(id, lambda task: task.status_message == "half way")
        bob = Peer(peer.server, BOB)
        bob.caller = Caller(revision, DECLARED, principal=BOB)
        methods: dict[str, Callable[[str], Any]] = {
            "tasks/get": lambda id: GetTaskRequestParams(task_id=id),
            "tasks/cancel": lambda id: CancelTaskRequestParams(task_id=id),
        }
        if revision == NEWEST:
            methods["tasks/update"] = lambda id: UpdateTaskRequestParams(
                task_id=id, input_responses={"first": Raw(json.dumps(YES).encode())}
            )
        else:
            methods["tasks/result"] = lambda id: GetTaskPayloadRequestParams(task_id=id)
        for method, params in methods.items():
            costs = []
            for asked in (id, "0" * len(id)):
                counted.operations.clear()
                bad = await refused(bob.request(method, params(asked)))
                costs.append((bad.code, bad.message, bad.data, [*counted.operations]))
            assert costs[0] == costs[1], method
            assert costs[0][3], "a store that is not asked shows nothing"
        assert (await alice.get(id)).status == "working"


async def test_a_running_call_becomes_a_task_and_runs_once() -> None:
    """`after=`: the coroutine that runs is the one that the task waits for."""
    async with serving(make_server()) as peer:
        made = await peer.create("slow")
        peer.server.gate.set()
        assert (await peer.ended(made.task_id)).status == "completed"
        assert peer.server.runs == ["slow"]


async def test_a_quick_call_never_touches_the_store() -> None:
    """`after=`: a call that ends in time has no task."""
    async with serving(make_server()) as peer:
        assert (await peer.call("quick")).value() == "quick"
        runner = peer.server.tasks.running
        assert await runner.records.keys("task:", now=0.0) == []


async def test_questions_before_the_task_are_ordinary_questions() -> None:
    """`TKX-10`: they travel in results; those of the task wait for `tasks/update`."""
    async with serving(make_server()) as peer:
        asked = await peer.call("composed")
        assert isinstance(asked, t.InputRequiredResult)
        params = t.CallToolRequestParams(
            name="composed",
            arguments=Raw(b"{}"),
            input_responses={"begin": Raw(json.dumps(YES).encode())},
            request_state=asked.request_state,
        )
        made = await peer.request("tools/call", params)
        assert isinstance(made, CreateTaskResult)
        id = made.task_id
        task = await peer.until(id, lambda task: task.status == "input_required")
        assert set(task.input_requests or {}) == {"finish"}
        await peer.update(id, finish=YES)
        task = await peer.ended(id)
        assert result_of(task)["content"][0]["text"] == "finished: True"
        assert peer.server.runs == ["composed"]


async def test_a_task_expires() -> None:
    """`TKX-29`: after its time to live a task is unknown, and its tool is stopped."""
    now = 1_000_000.0
    limits = TaskLimits(ttl=60.0)
    async with serving(make_server(limits=limits, wall_clock=lambda: now)) as peer:
        id = (await peer.create("add", a=1, b=2)).task_id
        assert (await peer.ended(id)).ttl_ms == 60_000
        now += 61.0
        assert (await refused(peer.get(id))).code == -32602


async def test_a_principal_has_a_quota_of_tasks() -> None:
    """Tasks that have ended make room for new ones; running tasks do not."""
    async with serving(make_server(limits=TaskLimits(tasks=2))) as peer:
        ended = (await peer.create("add", a=1, b=2)).task_id
        await peer.ended(ended)
        running = [(await peer.create("wait")).task_id for _ in range(2)]
        assert (await refused(peer.get(ended))).code == -32602
        assert "2 running tasks" in (await refused(peer.call("wait"))).message
        await peer.cancel(running[0])
        await peer.create("wait")
        assert (await Peer(peer.server, BOB).create("wait")).status == "working"


async def test_a_result_that_is_too_large_is_not_kept() -> None:
    """The task fails in clear words."""
    limits = TaskLimits(result_bytes=20, large_results_bytes=0)
    async with serving(make_server(limits=limits)) as peer:
        task = await peer.ended((await peer.create("add", a=1, b=2)).task_id)
        assert task.status == "failed"
        assert "too large to be kept" in (task.status_message or "")


def test_a_tool_with_tasks_needs_the_extension() -> None:
    """The error says what to add."""
    server = Server("bare")
    with pytest.raises(ValueError, match=r"extensions=\[Tasks"):

        @server.tool(task="optional")
        async def tool() -> str:
            return ""


async def test_a_subscription_sends_each_status() -> None:
    """`TKX-23`: the whole task, with its result; a stranger's id is not granted."""
    async with serving(make_server()) as peer:
        id = (await peer.create("wait")).task_id
        filter = peer.server.identity.extensions.filter
        params = t.SubscriptionsListenRequestParams(notifications=filter(taskIds=[id, "other"]))
        listening = asyncio.ensure_future(peer.request("subscriptions/listen", params))
        try:
            await eventually(lambda: bool(peer.notices))
            method, acknowledged = peer.notices[0]
            assert method == "notifications/subscriptions/acknowledged"
            assert acknowledged.notifications.taskIds == [id]
            peer.server.gate.set()
            await eventually(lambda: len(peer.notices) > 1 and peer.notices[-1][1].task.is_terminal)
        finally:
            listening.cancel()
        assert {method for method, _ in peer.notices[1:]} == {"notifications/tasks"}
        last = peer.notices[-1][1].task
        assert last.task_id == id
        assert result_of(last)["content"][0]["text"] == "waited"


async def test_a_subscription_sends_large_structured_content() -> None:
    """`TKX-23`: what `tasks/get` says."""
    limits = TaskLimits(result_bytes=20)
    async with serving(make_server(limits=limits)) as peer:
        id = (await peer.create("add", a=1, b=2)).task_id
        task = await peer.ended(id)
        filter = peer.server.identity.extensions.filter
        params = t.SubscriptionsListenRequestParams(notifications=filter(taskIds=[id]))
        listening = asyncio.ensure_future(peer.request("subscriptions/listen", params))
        try:
            await eventually(lambda: len(peer.notices) == 2)
        finally:
            listening.cancel()
        assert result_of(task)["structuredContent"] == {"result": 3}
        assert result_of(peer.notices[1][1].task) == result_of(task)


async def test_a_subscription_needs_the_extension() -> None:
    """`TKX-22`: -32021 for a client that has not declared it."""
    server = make_server()
    async with serving(server):
        plain = Peer(server, capabilities=t.ClientCapabilities())
        filter = server.identity.extensions.filter
        params = t.SubscriptionsListenRequestParams(notifications=filter(taskIds=["x"]))
        assert (await refused(plain.request("subscriptions/listen", params))).code == -32021
