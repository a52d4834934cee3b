"""Task-augmented questions of a server, on the wire: the client runs them as tasks, and the server
polls them and collects their results (2025-11-25).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from interlock import Context, Server, Tasks
from tests.server.wire import Peer

R4 = "2025-11-25"
CAPABILITIES: dict[str, Any] = {
    "elicitation": {},
    "tasks": {"cancel": {}, "requests": {"elicitation": {"create": {}}}},
}
YES = {"action": "accept", "content": {"confirm": True}}


class Bakery(Server):
    """A server with a tool that asks by a task."""

    def __init__(self, **options: Any) -> None:
        super().__init__("bakery", **options)
        self.closing = asyncio.Event()
        self.tool(self.order)
        self.tool(self.order_before_closing)

    async def order(self, ctx: Context) -> str:
        """Ask, and wait as long as it takes."""
        return "ordered" if await ctx.confirm("Order?", task_ttl=60) else "left"

    async def order_before_closing(self, ctx: Context) -> str:
        """Ask, and give the question up when the bakery closes."""

        async def ask() -> bool:
            return await ctx.confirm("Order?", task_ttl=60)

        asking = asyncio.create_task(ask())
        await self.closing.wait()
        asking.cancel()
        await asyncio.wait({asking})
        return "closed" if asking.cancelled() else "served"


class TaskRunningPeer(Peer):
    """A client that answers the requests of the server by hand."""

    async def asked(self, method: str) -> dict[str, Any]:
        """Wait for a request of the server."""
        async with asyncio.timeout(30):
            while True:
                for message in self.received:
                    if message.get("method") == method:
                        self.received.remove(message)
                        return message
                await self.listen()

    async def run_task(self, status: str = "working") -> dict[str, Any]:
        """Wait for the question, and make it a task. Returns the params of the question."""
        question = await self.asked("elicitation/create")
        self.say({"id": question["id"], "result": {"task": state(status)}})
        params: dict[str, Any] = question["params"]
        return params

    async def answer_poll(self, status: str) -> None:
        """Wait for a poll, and answer it."""
        poll = await self.asked("tasks/get")
        assert poll["params"] == {"taskId": "t1"}
        self.say({"id": poll["id"], "result": state(status)})

    async def answer_result(self, **members: Any) -> None:
        """Wait for the request for the result, and answer it with a result or an error."""
        wanted = await self.asked("tasks/result")
        assert wanted["params"] == {"taskId": "t1"}
        self.say({"id": wanted["id"], **members})


def state(status: str) -> dict[str, Any]:
    """A task of the client."""
    return {
        "taskId": "t1",
        "status": status,
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttl": 60_000,
        "pollInterval": 1,
    }


@asynccontextmanager
async def connected(
    capabilities: dict[str, Any] = CAPABILITIES, revision: str = R4, **options: Any
) -> AsyncIterator[tuple[Bakery, TaskRunningPeer]]:
    """A server and its peer."""
    server = Bakery(**(options or {"extensions": [Tasks()]}))
    peer = await TaskRunningPeer.of(server, revision, capabilities=capabilities)
    assert isinstance(peer, TaskRunningPeer)
    try:
        yield server, peer
    finally:
        await peer.aclose()


def text(answer: dict[str, Any]) -> str:
    """The text of a tool's result."""
    words: str = answer["result"]["content"][0]["text"]
    return words


async def test_a_question_is_polled_and_its_result_collected() -> None:
    """`TK4-07`, `TK4-12`, `TK4-13`: no request is open while the person takes time."""
    async with connected() as (_, peer):
        call = peer.begin("tools/call", {"name": "order", "arguments": {}})
        question = await peer.run_task()
        assert question["task"] == {"ttl": 60_000}
        await peer.answer_poll("working")
        await peer.answer_poll("completed")
        await peer.answer_result(result=YES)
        assert text(await peer.answer(call)) == "ordered"


@pytest.mark.parametrize("status", ["completed", "input_required"])
async def test_a_task_that_needs_no_poll(status: str) -> None:
    """`TK4-12`: the result of a task that has ended, or that needs the server, is requested at
    once.
    """
    async with connected() as (_, peer):
        call = peer.begin("tools/call", {"name": "order", "arguments": {}})
        await peer.run_task(status)
        await peer.answer_result(result=YES)
        assert text(await peer.answer(call)) == "ordered"


async def test_a_question_that_the_client_cancels_is_dismissed() -> None:
    """As if the person had closed the question. A cancelled task has no result."""
    async with connected() as (_, peer):
        call = peer.begin("tools/call", {"name": "order", "arguments": {}})
        await peer.run_task()
        await peer.answer_poll("cancelled")
        assert text(await peer.answer(call)) == "left"


async def test_a_question_that_fails_has_the_error_of_the_client() -> None:
    """`TK4-13`: `tasks/result` answers with the error that the question would have had."""
    async with connected() as (_, peer):
        call = peer.begin("tools/call", {"name": "order", "arguments": {}})
        await peer.run_task()
        await peer.answer_poll("failed")
        await peer.answer_result(error={"code": -32000, "message": "no screen"})
        answer = await peer.answer(call)
        assert (answer["error"]["code"], answer["error"]["message"]) == (-32000, "no screen")


async def test_an_answer_that_is_no_task_is_an_error() -> None:
    """A client that has declared tasks for questions answers with one (`TK4-07`)."""
    async with connected() as (_, peer):
        call = peer.begin("tools/call", {"name": "order", "arguments": {}})
        question = await peer.asked("elicitation/create")
        peer.say({"id": question["id"], "result": YES})
        assert "malformed" in (await peer.answer(call))["error"]["message"]


async def test_a_question_that_is_given_up_cancels_its_task() -> None:
    """`tasks/cancel` is for tasks; `notifications/cancelled` is not (`TK4-18`)."""
    async with connected() as (server, peer):
        call = peer.begin("tools/call", {"name": "order_before_closing", "arguments": {}})
        await peer.run_task()
        await peer.answer_poll("working")
        server.closing.set()
        cancelled = await peer.asked("tasks/cancel")
        assert cancelled["params"] == {"taskId": "t1"}
        peer.say({"id": cancelled["id"], "result": state("cancelled")})
        assert text(await peer.answer(call)) == "closed"


async def test_a_client_that_cancels_its_call_is_asked_nothing_more() -> None:
    async with connected() as (_, peer):
        call = peer.begin("tools/call", {"name": "order", "arguments": {}})
        await peer.run_task()
        await peer.answer_poll("working")
        peer.tell("notifications/cancelled", {"requestId": call})
        assert (await peer.ask("ping"))["result"] == {}
        assert not any(message.get("method") == "tasks/cancel" for message in peer.received)


@pytest.mark.parametrize(
    "capabilities, revision, options",
    [
        ({"elicitation": {}}, R4, {}),
        ({"elicitation": {}, "tasks": {"requests": {"sampling": {"createMessage": {}}}}}, R4, {}),
        ({"elicitation": {}, "tasks": {"requests": ["elicitation"]}}, R4, {}),
        (CAPABILITIES, "2025-06-18", {}),
        (CAPABILITIES, R4, {"extensions": []}),
    ],
    ids=["no tasks", "other questions", "malformed", "older revision", "server without tasks"],
)
async def test_other_clients_are_asked_as_usual(
    capabilities: dict[str, Any], revision: str, options: dict[str, Any]
) -> None:
    """`TK4-02`: only where the client has declared it, and the server knows what that means."""
    async with connected(capabilities, revision, **options) as (_, peer):
        call = peer.begin("tools/call", {"name": "order", "arguments": {}})
        question = await peer.asked("elicitation/create")
        assert "task" not in question["params"]
        peer.say({"id": question["id"], "result": YES})
        assert text(await peer.answer(call)) == "ordered"


async def test_a_task_ttl_is_positive() -> None:
    """The error is the author's, and nothing is asked."""
    server = Server("lab", extensions=[Tasks()])

    @server.tool
    async def ask(ctx: Context) -> bool:
        """Ask with a wrong option."""
        with pytest.raises(ValueError, match="more than 0"):
            await ctx.confirm("Well?", task_ttl=0)
        return True

    peer = await Peer.of(server, R4, capabilities=CAPABILITIES)
    answer = await peer.ask("tools/call", {"name": "ask", "arguments": {}})
    assert not answer["result"].get("isError")
    await peer.aclose()
