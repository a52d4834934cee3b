"""Questions of a server that a client answers as tasks (2025-11-25)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from interlock import Answers, Client, McpError
from interlock import types as t
from interlock.client.tasks.receiver import MOST_TASKS, MOST_TTL_MS, QuestionTasks
from interlock.types.tasks import GetTaskRequestParams, ListTasksRequestParams
from tests.client.peers import KEY, Peer, form

R3, R4 = "2025-06-18", "2025-11-25"
SAMPLING: dict[str, Any] = {"messages": [], "maxTokens": 1}


class Server(Peer):
    """A server that asks, and waits for the client's response."""

    def __init__(self, revision: str = R4) -> None:
        super().__init__({}, revision)
        self._asked = 0

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request to the client; returns its response."""
        self._asked += 1
        id = f"ask-{self._asked}"
        self.say(id=id, method=method, params=params)
        return await self.until_received(lambda m: m.get("id") == id)

    async def start(self, **more: Any) -> dict[str, Any]:
        """Ask a question as a task; returns the task."""
        said = await self.ask("elicitation/create", **form()["params"], task=more)
        task: dict[str, Any] = said["result"]["task"]
        return task


class Person:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def __call__(self, question: Any) -> Any:
        self.asked.append(question)
        return await self.answer


async def test_a_question_becomes_a_task():
    """The response comes at once, the answer later (`TK4-07`, `TK4-08`, `TK4-09`, `TK4-11`,
    `TK4-13`, `TK4-14`).
    """
    person = Person()
    async with Server() as server, Client(server.channel, elicit=person):
        task = await server.start(ttl=60_000)
        assert (task["status"], task["ttl"]) == ("working", 60_000)
        assert len(task["taskId"]) >= 32
        for name in ("createdAt", "lastUpdatedAt"):
            assert datetime.fromisoformat(task[name]).tzinfo is not None
        same = (await server.ask("tasks/get", taskId=task["taskId"]))["result"]
        assert same == task
        waiting = asyncio.ensure_future(server.ask("tasks/result", taskId=task["taskId"]))
        await server.ask("ping")
        assert not waiting.done()
        person.answer.set_result({"value": "x"})
        assert (await waiting)["result"] == {
            "_meta": {f"{KEY}related-task": {"taskId": task["taskId"]}},
            "action": "accept",
            "content": {"value": "x"},
        }
        ended = (await server.ask("tasks/get", taskId=task["taskId"]))["result"]
        assert ended["status"] == "completed"
        assert "_meta" not in ended  # `TK4-15`
        assert len(person.asked) == 1


async def test_a_sampling_request_becomes_a_task():
    async with (
        Server() as server,
        Client(server.channel, answers=Answers(sample=lambda p: "Paris")),
    ):
        said = await server.ask("sampling/createMessage", **SAMPLING, task={})
        id = said["result"]["task"]["taskId"]
        assert said["result"]["task"]["ttl"] == MOST_TTL_MS
        result = (await server.ask("tasks/result", taskId=id))["result"]
        assert result["content"]["text"] == "Paris"


async def test_related_task_metadata_does_not_name_the_task():
    """The param does (`TK4-16`)."""
    person = Person()
    async with Server() as server, Client(server.channel, elicit=person):
        one, two = await server.start(), await server.start()
        meta = {f"{KEY}related-task": {"taskId": two["taskId"]}}
        said = await server.ask("tasks/get", taskId=one["taskId"], _meta=meta)
        assert said["result"]["taskId"] == one["taskId"]


async def test_an_error_fails_the_task():
    """`tasks/result` returns the same error (`TK4-13`, `TK4-21`)."""
    async with Server() as server, Client(server.channel, answers=Answers(sample=lambda p: None)):
        said = await server.ask("sampling/createMessage", **SAMPLING, task={})
        id = said["result"]["task"]["taskId"]
        bad = (await server.ask("tasks/result", taskId=id))["error"]
        assert bad == {"code": -1, "message": "User rejected sampling request"}
        state = (await server.ask("tasks/get", taskId=id))["result"]
        assert (state["status"], state["statusMessage"]) == ("failed", bad["message"])


async def test_a_task_is_cancelled():
    """The status is final, and a second cancellation is an error (`TK4-10`, `TK4-18`)."""
    person = Person()
    async with Server() as server, Client(server.channel, elicit=person):
        id = (await server.start())["taskId"]
        assert (await server.ask("tasks/cancel", taskId=id))["result"]["status"] == "cancelled"
        again = await server.ask("tasks/cancel", taskId=id)
        assert again["error"]["code"] == -32602
        assert person.answer.cancelled()
        assert (await server.ask("tasks/get", taskId=id))["result"]["status"] == "cancelled"
        assert (await server.ask("tasks/result", taskId=id))["error"]["code"] == -32602


async def test_unknown_tasks_and_cursors():
    """(`TK4-19`)"""
    async with Server() as server, Client(server.channel, elicit=lambda q: True):
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert (await server.ask(method, taskId="none"))["error"]["code"] == -32602
            assert (await server.ask(method))["error"]["code"] == -32602
        assert (await server.ask("tasks/list", cursor="none"))["error"]["code"] == -32602


async def test_the_list_of_tasks_has_pages():
    """(`TK4-20`)"""
    async with Server() as server, Client(server.channel, elicit=Person()):
        started = [(await server.start())["taskId"] for _ in range(60)]
        listed: list[str] = []
        cursor: dict[str, Any] = {}
        while True:
            page = (await server.ask("tasks/list", **cursor))["result"]
            listed += [task["taskId"] for task in page["tasks"]]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert listed == started


async def test_a_client_that_does_not_declare_tasks_answers_as_usual():
    """By revision, by kind of question, and without answers (`TK4-03`)."""
    async with (
        Server(R3) as server,
        Client(server.channel, elicit=lambda q: True, revision=R3),
    ):
        said = await server.ask("elicitation/create", **form()["params"], task={})
        assert said["result"]["action"] == "accept"
        assert (await server.ask("tasks/get", taskId="x"))["error"]["code"] == -32601
    async with Server() as server, Client(server.channel):
        assert (await server.ask("tasks/list"))["error"]["code"] == -32601
    async with Server() as server, Client(server.channel, elicit=lambda q: True):
        said = await server.ask("sampling/createMessage", **SAMPLING, task={})
        assert said["error"]["message"] == "Sampling not supported"


async def test_a_question_without_the_parameter_is_no_task():
    """This client does not refuse it (`TK4-27`)."""
    async with Server() as server, Client(server.channel, elicit=lambda q: True):
        said = await server.ask("elicitation/create", **form()["params"])
        assert said["result"]["action"] == "accept"
        assert (await server.ask("tasks/list"))["result"] == {"tasks": []}


async def test_another_connection_has_other_tasks():
    """(`TK4-23`)"""
    async with (
        Server() as one,
        Server() as two,
        Client(one.channel, elicit=Person()),
        Client(two.channel, elicit=Person()),
    ):
        id = (await one.start())["taskId"]
        assert (await two.ask("tasks/get", taskId=id))["error"]["code"] == -32602
        assert (await two.ask("tasks/list"))["result"] == {"tasks": []}


async def test_a_client_that_closes_withdraws_its_questions():
    person = Person()
    async with Server() as server:
        async with Client(server.channel, elicit=person):
            await server.start()
        assert person.answer.cancelled()


async def test_the_number_and_the_lifetime_of_tasks_are_bounded():
    """(`TK4-25`, `TK4-29`)"""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    tasks = QuestionTasks(Answers(elicit=print).capabilities, lambda: now[0])
    forever = asyncio.get_running_loop().create_future()

    async def ask() -> Any:
        return await asyncio.shield(forever)

    def question(ttl: int | None) -> t.ElicitRequest:
        params = t.ElicitRequestParams(message="?", task=t.TaskMetadata(ttl=ttl))
        return t.ElicitRequest(params)

    assert not tasks.accepts(t.ListRootsRequest())
    assert tasks.accepts(question(None))
    for _ in range(MOST_TASKS):
        tasks.create(question(10**12), ask)
    with pytest.raises(McpError, match="at most"):
        tasks.create(question(None), ask)
    now[0] += timedelta(milliseconds=MOST_TTL_MS)
    tasks.create(question(0), ask)
    with pytest.raises(McpError, match="not found"):
        await tasks.answer("tasks/get", GetTaskRequestParams(task_id="x"))
    assert await tasks.answer("tasks/list", ListTasksRequestParams()) == b'{"tasks":[]}'
    await tasks.aclose()
