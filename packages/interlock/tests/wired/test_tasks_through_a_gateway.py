"""Tasks through the gateway of the guide, under every pair of revisions: created at the server
behind, followed, asked, cancelled, listed and taken up again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest

from interlock import Client, McpError, Principal, TaskCancelled, ToolError
from interlock.tasks import TASKS
from interlock.types import TaskMetadata
from interlock.wire.revisions import REVISIONS, supports
from tests.client.peers import SECONDS
from tests.wired.test_gateway import module, served
from tests.wired.test_tasks import R4, R5, Gate, lab

WITH_TASKS = (R4, R5)


class Pair(NamedTuple):
    """The revision of the client and its gateway, and that of the gateway and its server."""

    ahead: str
    behind: str

    def __str__(self) -> str:
        return f"{self.ahead}-{self.behind}"

    @property
    def asks(self) -> bool:
        """Whether both revisions have forms."""
        return supports(self.ahead, "elicitation") and supports(self.behind, "elicitation")


PAIRS = [Pair(ahead, behind) for ahead in REVISIONS for behind in REVISIONS]
EACH_PAIR = pytest.mark.parametrize("pair", PAIRS, ids=str)
BRIDGED = pytest.mark.parametrize(
    "pair", [Pair(ahead, behind) for ahead in WITH_TASKS for behind in WITH_TASKS], ids=str
)
WAYS = pytest.mark.parametrize("way", ["memory", "http"])


class Person:
    """Answers the questions, and remembers them."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.tasks: list[TaskMetadata | None] = []

    def elicit(self, question: Any) -> dict[str, bool]:
        """Say yes."""
        self.asked.append(question.message)
        self.tasks.append(question.task)
        return {"confirm": True}


@contextlib.asynccontextmanager
async def through(
    pair: Pair, gate: Gate, way: str = "memory", store: str = "memory:", person: Any = None
) -> AsyncIterator[Client]:
    """A client of a gateway before the lab."""
    async with AsyncExitStack() as stack:
        made = module()
        lab_behind = lab(gate, revisions=[pair.behind])
        target: Any = await served(lab_behind, stack) if way == "http" else lab_behind
        front = made.gateway(made.behind(target), store=store)
        reached: Any = await served(front, stack) if way == "http" else front
        elicit = (person or Person()).elicit
        client = Client(reached, revision=pair.ahead, elicit=elicit, timeout=SECONDS)
        yield await stack.enter_async_context(client)


@EACH_PAIR
@WAYS
async def test_every_call_ends_as_it_would_without_a_gateway(way: str, pair: Pair) -> None:
    """A result, a failed tool, a protocol error; a tool that must be a task has a result for every
    client, unless the server behind has no tasks."""
    gate = Gate()
    gate.open.set()
    async with through(pair, gate, way) as client:
        assert (await client.call_tool("plain")).text == "plain"
        if pair.behind not in WITH_TASKS:
            with pytest.raises(McpError, match="runs only as a task"):
                await client.call_tool("crunch", {"n": 21})
            return
        assert (await client.call_tool("crunch", {"n": 21})).text == "42"
        failed = await client.call_tool("fail")
        assert (failed.is_error, failed.text) == (True, "no luck")
        assert "io.modelcontextprotocol/related-task" not in (failed.meta or {}) or (
            pair.ahead == R4
        )
        with pytest.raises(McpError, match="no quota") as caught:
            await client.call_tool("refuse")
        assert (caught.value.code, caught.value.data) == (-32000, {"left": 0})
        with pytest.raises(McpError, match="Unknown tool"):
            await client.call_tool("missing")


@EACH_PAIR
async def test_a_question_comes_through(pair: Pair) -> None:
    """Of a task or of a call, as both sides have it."""
    person = Person()
    async with through(pair, Gate(), person=person) as client:
        if not pair.asks:
            with pytest.raises((McpError, ToolError), match="elicitation"):
                (await client.call_tool("order")).value()
            assert person.asked == []
            return
        handle = await client.start_tool("order")
        assert (handle.id is not None) == (pair.ahead in WITH_TASKS and pair.behind in WITH_TASKS)
        assert (await handle.result()).text == "ordered"
        assert person.asked == ["Order?"]


@EACH_PAIR
async def test_progress_comes_through(pair: Pair) -> None:
    """As the status message of a task, or as the progress of a call."""
    gate = Gate()
    received: list[str | None] = []
    if pair.behind not in WITH_TASKS:
        return  # the tool cannot be called there

    def receive(progress: Any) -> None:
        received.append(progress.message)
        gate.open.set()

    async with through(pair, gate) as client:
        result = await client.call_tool("crunch", {"n": 1}, on_progress=receive)
        assert result.text == "2"
        assert pair.ahead == "2024-11-05" or "half" in received


@BRIDGED
@WAYS
async def test_a_handle_follows_its_task(way: str, pair: Pair) -> None:
    """Its id is the gateway's; another client takes it up."""
    gate = Gate()
    async with through(pair, gate, way) as client:
        handle = await client.start_tool("crunch", {"n": 4})
        seen: list[str] = []
        async with asyncio.timeout(SECONDS):
            async for state in handle:
                seen.append(f"{state.status}: {state.status_message}")
                if state.status_message == "half":
                    gate.open.set()
        assert any("half" in each for each in seen)
        assert seen[-1].startswith("completed")
        assert (await client.task(handle.id or "").result()).text == "8"
        if pair.ahead == R4 and way == "memory":  # an anonymous caller has no list
            assert [one.id for one in await client.tasks()] == [handle.id]
        with pytest.raises(McpError, match="not found"):
            await client.task("none").result()


@BRIDGED
@WAYS
async def test_a_task_is_cancelled_behind(way: str, pair: Pair) -> None:
    gate = Gate()
    async with through(pair, gate, way) as client, asyncio.timeout(SECONDS):
        handle = await client.start_tool("crunch", {"n": 1})
        await gate.entered.acquire()
        await handle.cancel()
        with pytest.raises(TaskCancelled):
            await handle.result()
        await gate.cancelled.acquire()


@EACH_PAIR
async def test_a_call_that_is_cancelled_ends_the_task_behind(pair: Pair) -> None:
    """Whether or not the client has tasks."""
    if pair.behind not in WITH_TASKS:
        return  # the tool cannot be called there
    gate = Gate()
    async with through(pair, gate) as client, asyncio.timeout(SECONDS):
        call = asyncio.ensure_future(client.call_tool("crunch", {"n": 2}))
        await gate.entered.acquire()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await gate.cancelled.acquire()


@BRIDGED
async def test_a_task_survives_its_gateway(pair: Pair, tmp_path: Any) -> None:
    """The next gateway follows the task that runs at the server behind: nothing runs twice."""
    gate = Gate()
    store = f"sqlite:///{tmp_path / 'tasks.db'}"
    made = module()
    async with AsyncExitStack() as stack:
        server = lab(gate, revisions=[pair.behind])
        target = await served(server, stack)
        async with Client(
            made.gateway(made.behind(target), store=store), revision=pair.ahead
        ) as client:
            handle = await client.start_tool("crunch", {"n": 3})
            await gate.entered.acquire()
        gate.open.set()
        async with (
            Client(made.gateway(made.behind(target), store=store), revision=pair.ahead) as client,
            asyncio.timeout(SECONDS),
        ):
            assert (await client.task(handle.id or "").result()).text == "6"
        assert gate.entered.locked()  # it ran once


@BRIDGED
async def test_a_task_belongs_to_its_principal(pair: Pair) -> None:
    """The gateway has one identity behind, and keeps the tasks of its callers apart
    (`TK4-23`, `TKX-28`)."""
    gate = Gate()
    made = module()
    front = made.gateway(made.behind(lab(gate, revisions=[pair.behind])))
    alice = front.transport(principal=Principal(subject="alice"))
    bob = front.transport(principal=Principal(subject="bob"))
    async with (
        Client(alice, revision=pair.ahead) as first,
        Client(bob, revision=pair.ahead) as second,
    ):
        handle = await first.start_tool("crunch", {"n": 3})
        with pytest.raises(McpError, match="not found"):
            await second.task(handle.id or "").refresh()
        gate.open.set()
        assert (await handle.result()).text == "6"


@pytest.mark.parametrize("behind", REVISIONS)
async def test_a_list_says_which_tools_can_be_tasks(behind: str) -> None:
    """To a client of 2025-11-25. Where the server behind decides for each call, all can be."""
    async with through(Pair(R4, behind), Gate()) as client:
        tools = {tool.name: tool.execution for tool in await client.list_tools()}
        support = {
            name: None if said is None else said.task_support for name, said in tools.items()
        }
        if behind == R5:
            assert set(support.values()) == {"optional"}
        elif behind == R4:
            assert support["crunch"] == "required"
            assert support["plain"] is None
        else:
            assert set(support.values()) == {None}


@BRIDGED
async def test_a_question_survives_the_gateway(pair: Pair, tmp_path: Any) -> None:
    """Nobody answers before the gateway ends; the next one asks again."""
    store = f"sqlite:///{tmp_path / 'tasks.db'}"
    made = module()
    async with AsyncExitStack() as stack:
        target = await served(lab(Gate(), revisions=[pair.behind]), stack)
        front = made.gateway(made.behind(target), store=store)
        asked = asyncio.Semaphore(0)

        async def silent(question: Any) -> Any:
            asked.release()
            await asyncio.Event().wait()

        async with Client(front, revision=pair.ahead, elicit=silent) as client:
            handle = await client.start_tool("order")
            waiting = asyncio.ensure_future(handle.result())
            async with asyncio.timeout(SECONDS):
                await asked.acquire()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        person = Person()
        front = made.gateway(made.behind(target), store=store)
        async with (
            Client(front, revision=pair.ahead, elicit=person.elicit) as client,
            asyncio.timeout(SECONDS),
        ):
            assert (await client.task(handle.id or "").result()).text == "ordered"
        assert person.asked == ["Order?"]


@pytest.mark.parametrize("behind", WITH_TASKS)
async def test_one_subscription_to_tasks_and_to_lists(behind: str) -> None:
    """The lists are those of the server behind; the tasks are left out, as the answer says."""
    server = lab(Gate(), revisions=[behind])
    made = module()
    async with Client(made.gateway(made.behind(server)), extensions=[TASKS]) as client:
        handle = await client.start_tool("crunch", {"n": 3})
        async with client.watch(tools=True, filter={"taskIds": [handle.id]}) as changes:
            assert changes.honoured.tools_list_changed
            assert getattr(changes.honoured, "taskIds", None) is None
        async with client.watch(filter={"taskIds": [handle.id]}) as changes:
            assert getattr(changes.honoured, "taskIds", None) == [handle.id]


@WAYS
@BRIDGED
async def test_a_question_may_be_a_task_on_either_side(way: str, pair: Pair) -> None:
    """Where both sides have 2025-11-25, the client runs it as a task too (`TK4-02`)."""
    person = Person()
    async with through(pair, Gate(), way, person=person) as client:
        assert (await client.call_tool("book")).text == "booked"
    assert person.asked == ["Book?"]
    assert person.tasks == [TaskMetadata(ttl=60_000) if pair == (R4, R4) else None]
