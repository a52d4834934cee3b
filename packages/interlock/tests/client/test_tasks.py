"""Tasks of a server, as a client uses them: in both forms, without and with a handle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from interlock import Answers, Client, McpError, ProtocolError, TaskCancelled, TimedOut
from interlock import types as t
from interlock.tasks import TASKS
from tests.client.peers import KEY, SILENCE, Peer, complete, eventually, form, text

R4, R5 = "2025-11-25", "2026-07-28"
BOTH = pytest.mark.parametrize("revision", [R4, R5])
TASKS_ID = f"{KEY}tasks"
OFFERS: dict[str, dict[str, Any]] = {
    R4: {"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}},
    R5: {"tools": {}, "extensions": {TASKS_ID: {}}},
}
CREATED = "2026-01-01T00:00:00Z"


def state(status: str = "working", revision: str = R5, **more: Any) -> dict[str, Any]:
    """A task as `tasks/get` returns it."""
    task = {"taskId": "T", "status": status, "createdAt": CREATED, "lastUpdatedAt": CREATED}
    if revision == R5:
        return complete(**task, **{"ttlMs": None, "pollIntervalMs": 1, **more})
    return {**task, "ttl": None, "pollInterval": 1, **more}


def created(revision: str = R5, **more: Any) -> dict[str, Any]:
    """The result of a call that became a task."""
    if revision == R5:
        return {**state(**more), "resultType": "task"}
    return {"task": state(revision=R4, **more)}


def tools(support: str | None = "required") -> dict[str, Any]:
    """A list with the tool `crunch`."""
    tool: dict[str, Any] = {"name": "crunch", "inputSchema": {"type": "object"}}
    return complete(
        tools=[{**tool, **({"execution": {"taskSupport": support}} if support else {})}]
    )


def serving(revision: str, *states: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The answers of a server whose tool is a task with these states, and the result "done"."""
    done = {"result": text()} if revision == R5 else {}
    return {
        "tools/list": tools(),
        "tools/call": created(revision),
        "tasks/get": [*states, state("completed", revision, **done)],
        "tasks/result": {"content": [{"type": "text", "text": "done"}]},
        **{name.replace("_", "/"): answer for name, answer in more.items()},
    }


def peer(revision: str, *states: dict[str, Any], **more: Any) -> Peer:
    """A server that offers tasks."""
    return Peer(serving(revision, *states, **more), revision, capabilities=OFFERS[revision])


# -- calls that wait -------------------------------------------------------------------------------


@BOTH
async def test_a_call_waits_through_its_task(revision: str):
    """The result is the same as without a task (`TKX-06`, `TKX-25`, `TK4-12`, `TK4-13`)."""
    states = [state(revision=revision, statusMessage=f"part {n}") for n in range(3)]
    told: list[Any] = []
    async with peer(revision, *states) as server, Client(server.channel) as client:
        result = await client.call_tool("crunch", on_progress=lambda p: told.append(p.message))
        assert result.text == "done"
        assert server.count("tasks/get") == 4
        assert told == ["part 0", "part 1", "part 2"]
        assert {m["params"]["taskId"] for m in server.all("tasks/get")} == {"T"}


async def test_the_extension_is_declared_where_a_call_can_become_a_task():
    """On calls and requests about tasks, at servers that offer tasks; the old capability never
    (`TKX-01`, `TKX-02`).
    """
    async with peer(R5) as server, Client(server.channel) as client:
        await client.list_tools()
        await client.call_tool("crunch")
        for message in server.received:
            declared = message["params"]["_meta"][f"{KEY}clientCapabilities"]
            about_tasks = message["method"] in ("tools/call", "tasks/get", "subscriptions/listen")
            assert declared == ({"extensions": {TASKS_ID: {}}} if about_tasks else {})
            assert "task" not in message["params"]


async def test_the_extension_is_not_declared_to_other_servers():
    async with Peer({"tools/call": text()}) as server, Client(server.channel) as client:
        await client.call_tool("crunch")
        declared = server.all("tools/call")[0]["params"]["_meta"][f"{KEY}clientCapabilities"]
        assert declared == {}
        with pytest.raises(McpError, match="does not offer tasks"):
            client.task("T")


async def test_a_call_that_is_not_made_a_task():
    """The server decides for each call (`TKX-06`)."""
    async with peer(R5, tools_call=text("at once")) as server, Client(server.channel) as client:
        assert (await client.call_tool("crunch")).text == "at once"
        handle = await client.start_tool("crunch")
        assert (handle.id, handle.ended) == (None, True)
        assert [s async for s in handle] == []
        assert (await handle.result()).text == "at once"
        await handle.cancel()
        assert server.count("tasks/cancel") == 0


async def test_a_task_is_no_result_of_other_requests():
    """(`TKX-06`)"""
    async with (
        Peer({"prompts/get": created()}, capabilities=OFFERS[R5]) as server,
        Client(server.channel) as client,
    ):
        with pytest.raises(ProtocolError, match="cannot be read"):
            await client.get_prompt("p")


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("support", ["required", "optional", "forbidden", None])
async def test_what_the_client_asks_for(support: str | None, declared: bool):
    """A call asks for a task only where it must, a handle where it can, and neither at a server
    that has not declared it (`TK4-02`, `TK4-04`, `TK4-05`, `TK4-07`).
    """
    capabilities = OFFERS[R4] if declared else {"tools": {}, "tasks": {"list": {}}}

    def call(message: dict[str, Any]) -> dict[str, Any]:
        return created(R4) if "task" in message["params"] else text()

    on = {**serving(R4), "tools/list": tools(support), "tools/call": call}
    async with Peer(on, R4, capabilities=capabilities) as server, Client(server.channel) as client:
        assert (await client.call_tool("crunch")).text == "done"
        server.on["tasks/get"] = [state("completed", R4)]
        handle = await client.start_tool("crunch", ttl=60)
        assert (await handle.result()).text == "done"
        plain, started = (m["params"].get("task") for m in server.all("tools/call"))
        assert plain == ({} if declared and support == "required" else None)
        may = declared and support in ("required", "optional")
        assert started == ({"ttl": 60_000} if may else None)


async def test_the_tools_are_listed_once():
    """Whether a tool needs a task is known until the list changes (`TK4-05`)."""
    async with peer(R4) as server, Client(server.channel) as client:
        for _ in range(2):
            server.on["tasks/get"] = [state("completed", R4)]
            await client.call_tool("crunch")
        assert server.count("tools/list") == 1
        server.tell("notifications/tools/list_changed")
        await client.ping()
        server.on["tasks/get"] = [state("completed", R4)]
        await client.call_tool("crunch")
        assert server.count("tools/list") == 2


# -- errors ----------------------------------------------------------------------------------------


@BOTH
async def test_the_error_of_a_call_is_the_error_of_its_task(revision: str):
    """(`TK4-13`, `TK4-21`)"""
    error = {"code": -32000, "message": "no quota", "data": {"left": 0}}
    failed = state("failed", revision, **({"error": error} if revision == R5 else {}))
    refused = McpError(-32000, "no quota", {"left": 0})
    async with (
        peer(revision, failed, tasks_result=refused) as server,
        Client(server.channel) as client,
    ):
        with pytest.raises(McpError, match="no quota") as caught:
            await client.call_tool("crunch")
        assert (caught.value.code, caught.value.data) == (-32000, {"left": 0})
        assert server.count("tasks/cancel") == 0


@BOTH
async def test_a_task_that_somebody_else_cancelled(revision: str):
    cancelled = state("cancelled", revision, statusMessage="by the admin")
    async with peer(revision, cancelled) as server, Client(server.channel) as client:
        with pytest.raises(TaskCancelled, match="by the admin"):
            await client.call_tool("crunch")


@BOTH
async def test_an_unknown_task(revision: str):
    unknown = McpError(-32602, "Task not found")
    async with (
        peer(revision, tasks_get=unknown, tasks_cancel=unknown) as server,
        Client(server.channel) as client,
    ):
        handle = client.task("T")
        with pytest.raises(McpError, match="not found"):
            await handle.result()
        with pytest.raises(McpError, match="not found"):
            _ = [s async for s in handle]
        with pytest.raises(McpError, match="not found"):
            await handle.cancel()


@BOTH
async def test_a_failure_of_the_tool_is_a_result(revision: str):
    failure = {"content": [{"type": "text", "text": "bad input"}], "isError": True}
    last = {"result": failure} if revision == R5 else {}
    ended = state("completed" if revision == R5 else "failed", revision, **last)
    async with (
        peer(revision, ended, tasks_result=failure) as server,
        Client(server.channel) as client,
    ):
        result = await client.call_tool("crunch")
        assert (result.is_error, result.text) == (True, "bad input")


@BOTH
async def test_a_result_is_checked_against_the_output_schema(revision: str):
    tool = {
        "name": "crunch",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "execution": {"taskSupport": "required"},
    }
    bad = {"content": [], "structuredContent": {"n": "many"}}
    ended = state("completed", revision, **({"result": bad} if revision == R5 else {}))
    async with (
        peer(revision, ended, tools_list=complete(tools=[tool]), tasks_result=bad) as server,
        Client(server.channel) as client,
    ):
        await client.list_tools()
        with pytest.raises(ProtocolError, match="does not fit its output schema"):
            await client.call_tool("crunch")


async def test_a_task_that_outlives_its_time_to_live_is_given_up():
    """(`TKX-27`)"""
    async with (
        peer(R5, tasks_get=lambda m: state(ttlMs=-5_000)) as server,
        Client(server.channel) as client,
    ):
        with pytest.raises(TimedOut, match="time to live"):
            await client.task("T").result()


# -- the end of a wait -----------------------------------------------------------------------------


@BOTH
async def test_a_call_that_is_given_up_cancels_its_task(revision: str):
    """With `tasks/cancel`, and never with `notifications/cancelled` for the call (`TKX-20`)."""
    async with (
        peer(
            revision,
            tasks_get=lambda m: state(revision=revision),
            tasks_cancel=state("cancelled", revision),
        ) as server,
        Client(server.channel) as client,
    ):
        call = asyncio.ensure_future(client.call_tool("crunch"))
        await server.until("tasks/get")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert server.all("tasks/cancel")[0]["params"]["taskId"] == "T"
        called = server.all("tools/call")[0]["id"]
        withdrawn = [m["params"]["requestId"] for m in server.all("notifications/cancelled")]
        assert called not in withdrawn


@BOTH
async def test_the_timeout_of_a_call_includes_its_task(revision: str):
    async with (
        peer(
            revision,
            tasks_get=lambda m: state(revision=revision),
            tasks_cancel=state("cancelled", revision),
        ) as server,
        Client(server.channel) as client,
    ):
        with pytest.raises(TimedOut, match="tools/call"):
            await client.call_tool("crunch", timeout=0.2)
        assert server.count("tasks/cancel") == 1


@BOTH
async def test_the_timeout_of_the_client_does_not_end_a_task(revision: str):
    """It applies to each request about the task."""
    states = [state(revision=revision, pollInterval=100, pollIntervalMs=100) for _ in range(4)]
    async with (
        peer(revision, *states) as server,
        Client(server.channel, timeout=0.25) as client,
    ):
        server.on["tools/call"] = created(revision, pollInterval=100, pollIntervalMs=100)
        assert (await client.call_tool("crunch")).text == "done"


# -- handles ---------------------------------------------------------------------------------------


@BOTH
async def test_a_handle_tells_each_state_once(revision: str):
    states = [
        state(revision=revision),
        state(revision=revision),
        state(revision=revision, statusMessage="half"),
    ]
    async with peer(revision, *states) as server, Client(server.channel) as client:
        handle = await client.start_tool("crunch", {"a": 1})
        assert (handle.id, handle.status, handle.ended) == ("T", "working", False)
        seen = [(s.status, s.status_message) async for s in handle]
        assert seen == [("working", None), ("working", "half"), ("completed", None)]
        assert (await handle.result()).text == "done"
        assert (await handle.result()).text == "done"
        assert server.count("tasks/get") == 4
        assert handle.ended


@BOTH
async def test_those_who_wait_for_one_task_share_the_polls(revision: str):
    states = [state(revision=revision, statusMessage=str(n)) for n in range(5)]
    async with peer(revision, *states) as server, Client(server.channel) as client:
        handle = await client.start_tool("crunch")

        async def iterate() -> int:
            return len([s async for s in handle])

        found = await asyncio.gather(handle.result(), iterate(), handle.result(), iterate())
        assert {r.text for r in (found[0], found[2])} == {"done"}
        assert (found[1], found[3]) == (7, 7)
        assert server.count("tasks/get") == 6


@BOTH
async def test_a_wait_that_is_cancelled_leaves_the_task(revision: str):
    more: list[Callable[[], dict[str, Any]]] = []

    def get(message: dict[str, Any]) -> dict[str, Any]:
        return more[0]() if more else state(revision=revision)

    async with peer(revision, tasks_get=get) as server, Client(server.channel) as client:
        handle = await client.start_tool("crunch")
        wait = asyncio.ensure_future(handle.result())
        await server.until("tasks/get", 2)
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        assert server.count("tasks/cancel") == 0
        done = {"result": text()} if revision == R5 else {}
        more.append(lambda: state("completed", revision, **done))
        assert (await handle.result()).text == "done"


@BOTH
async def test_a_task_is_taken_up_by_its_id(revision: str):
    """In a client that did not start it (`TKX-25`)."""
    async with peer(revision, state(revision=revision)) as server, Client(server.channel) as client:
        handle = client.task("T")
        assert handle.state is None
        assert (await handle.refresh()).status == "working"
        assert (await handle.result()).text == "done"
        assert server.count("tools/call") == 0


@BOTH
async def test_a_handle_cancels_its_task(revision: str):
    async with (
        peer(
            revision,
            tasks_get=[state(revision=revision), state("cancelled", revision)],
            tasks_cancel=state("cancelled", revision) if revision == R4 else complete(),
        ) as server,
        Client(server.channel) as client,
    ):
        handle = await client.start_tool("crunch")
        assert (await handle.refresh()).status == "working"
        await handle.cancel()
        with pytest.raises(TaskCancelled):
            await handle.result()
        await handle.cancel()
        assert server.count("tasks/cancel") == 1


async def test_the_cancellation_of_a_task_that_has_ended_meanwhile():
    """2025-11-25 has an error for it (`TK4-18`)."""
    async with (
        peer(
            R4,
            tasks_get=[state("completed", R4)],
            tasks_cancel=McpError(-32602, "already in terminal status"),
        ) as server,
        Client(server.channel) as client,
    ):
        handle = await client.start_tool("crunch")
        await handle.cancel()


async def test_a_text_for_the_model_while_the_task_runs():
    """(`TK4-26`)"""
    meta = {f"{KEY}model-immediate-response": "Still counting."}
    async with (
        peer(R4, tools_call={**created(R4), "_meta": meta}) as server,
        Client(server.channel) as client,
    ):
        assert (await client.start_tool("crunch")).immediate_response == "Still counting."


@BOTH
async def test_the_tasks_of_a_server(revision: str):
    """All pages, which only 2025-11-25 has (`TK4-20`)."""
    pages = [
        {"tasks": [state("working", R4)], "nextCursor": "2"},
        {"tasks": [{**state("completed", R4), "taskId": "U"}]},
    ]
    async with peer(revision, tasks_list=pages) as server, Client(server.channel) as client:
        if revision == R5:
            with pytest.raises(McpError, match="no list of tasks"):
                await client.tasks()
            assert server.count("tasks/list") == 0
            return
        found = await client.tasks()
        assert [(h.id, h.status) for h in found] == [("T", "working"), ("U", "completed")]
        assert server.all("tasks/list")[1]["params"]["cursor"] == "2"


async def test_a_server_that_lists_no_tasks():
    capabilities = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    async with Peer({}, R4, capabilities=capabilities) as server, Client(server.channel) as client:
        with pytest.raises(McpError, match="no list of tasks"):
            await client.tasks()


# -- notices ---------------------------------------------------------------------------------------


async def test_a_server_that_sends_each_state_is_hardly_polled():
    """(`TKX-23`)"""
    async with (
        peer(R5, tools_call=created(pollIntervalMs=60_000)) as server,
        Client(server.channel) as client,
    ):
        server.on["subscriptions/listen"] = server.acknowledge
        handle = await client.start_tool("crunch")
        result = asyncio.ensure_future(handle.result())
        listen = await server.until("subscriptions/listen")
        assert listen["params"]["notifications"] == {"taskIds": ["T"]}
        for status in (state(statusMessage="half"), state("completed", result=text("told"))):
            server.tell("notifications/tasks", status, subscription=listen["id"])
        assert (await result).text == "told"
        assert server.count("tasks/get") == 0
        ended = await server.until("notifications/cancelled")  # of the subscription
        assert ended["params"]["requestId"] == listen["id"]


@pytest.mark.parametrize("less", [{"taskIds": None}, {"taskIds": ["U"]}])
async def test_a_server_that_grants_no_notices_is_polled(less: dict[str, Any]):
    async with peer(R5, state()) as server, Client(server.channel) as client:
        server.on["subscriptions/listen"] = lambda m: server.acknowledge(m, **less)
        assert (await client.call_tool("crunch")).text == "done"
        assert server.count("tasks/get") == 2


async def test_a_notice_of_2025_11_25_is_a_state():
    """The task is polled all the same (`TK4-22`)."""
    async with (
        peer(R4, tools_call=created(R4, pollInterval=60_000)) as server,
        Client(server.channel) as client,
    ):
        handle = await client.start_tool("crunch")
        result = asyncio.ensure_future(handle.result())
        server.tell("notifications/tasks/status", state("completed", R4))
        assert (await result).text == "done"


async def test_a_status_that_comes_late_changes_nothing():
    """(`TK4-10`)"""
    async with peer(R4) as server, Client(server.channel) as client:
        handle = await client.start_tool("crunch")
        await handle.result()
        server.tell("notifications/tasks/status", state("working", R4))
        await client.ping()
        assert handle.status == "completed"


async def test_notices_without_a_handle_are_notifications():
    received: list[str] = []
    async with (
        peer(R4) as server,
        Client(
            server.channel, on_notification=lambda method, params: received.append(method)
        ) as client,
    ):
        server.tell("notifications/tasks/status", state("working", R4))
        await client.ping()
        assert received == ["notifications/tasks/status"]


# -- questions -------------------------------------------------------------------------------------


async def test_questions_of_a_task_are_asked_once():
    """Also if they are listed again after the answer (`TKX-25`, `TKX-26`)."""
    asked: list[str] = []
    one, two = form("One?"), form("Two?")
    open_ = state("input_required", inputRequests={"one": one})
    more = state("input_required", inputRequests={"one": one, "two": two})
    states = [open_, open_, open_, more, more, state("working")]

    def get(message: dict[str, Any]) -> dict[str, Any]:
        updates = server.count("tasks/update")
        if updates < 2 and len(states) <= 3:
            return more
        return states.pop(0) if states else state("completed", result=text())

    def elicit(question: t.ElicitRequestParams) -> dict[str, Any]:
        asked.append(question.message)
        return {"value": question.message}

    async with (
        peer(R5, tasks_get=get, tasks_update=complete()) as server,
        Client(server.channel, elicit=elicit) as client,
    ):
        assert (await client.call_tool("crunch")).text == "done"
        assert asked == ["One?", "Two?"]
        sent = [m["params"]["inputResponses"] for m in server.all("tasks/update")]
        assert [list(s) for s in sent] == [["one"], ["two"]]
        assert sent[0]["one"] == {"action": "accept", "content": {"value": "One?"}}


async def test_a_question_that_is_withdrawn_is_no_longer_asked():
    """Somebody else has answered it, for example another client of the same task."""
    withdrawn = asyncio.Event()
    begun = asyncio.Event()

    async def elicit(question: t.ElicitRequestParams) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()

    def get(message: dict[str, Any]) -> dict[str, Any]:
        if withdrawn.is_set():
            return state("completed", result=text())
        return state() if begun.is_set() else state("input_required", inputRequests={"q": form()})

    async with (
        peer(R5, tasks_get=get) as server,
        Client(server.channel, elicit=elicit) as client,
    ):
        assert (await client.call_tool("crunch")).text == "done"
        assert server.count("tasks/update") == 0


async def test_a_question_that_nobody_can_answer_ends_the_wait():
    """The task is cancelled if no handle is left of it."""
    asking = state("input_required", inputRequests={"q": form()})
    async with (
        peer(R5, tasks_get=lambda m: asking, tasks_cancel=complete()) as server,
        Client(server.channel) as client,
    ):
        handle = await client.start_tool("crunch")
        with pytest.raises(McpError, match="Elicitation not supported"):
            await handle.result()
        assert server.count("tasks/cancel") == 0
        with pytest.raises(McpError, match="Elicitation not supported"):
            await client.call_tool("crunch")
        assert server.count("tasks/cancel") == 1


async def test_the_time_of_a_question_does_not_count():
    """As with questions of calls that are no tasks."""

    async def elicit(question: t.ElicitRequestParams) -> bool:
        await asyncio.sleep(0.5)
        return True

    def get(message: dict[str, Any]) -> dict[str, Any]:
        if server.count("tasks/update"):
            return state("completed", result=text())
        return state("input_required", inputRequests={"q": form()})

    async with (
        peer(R5, tasks_get=get, tasks_update=complete()) as server,
        Client(server.channel, elicit=elicit) as client,
    ):
        assert (await client.call_tool("crunch", timeout=0.4)).text == "done"


async def test_the_asker_of_a_handle_answers_its_questions():
    class Model:
        async def ask(self, request: t.InputRequest, key: str | None = None) -> t.InputResponse:
            assert isinstance(request, t.CreateMessageRequest)
            content = t.TextContent(f"answer to {key}")
            return t.CreateMessageResult(role="assistant", content=content, model="m")

        async def once(self, name: str, do: Any, *, idempotent: bool = False) -> Any:
            return await do()

    request = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}

    def get(message: dict[str, Any]) -> dict[str, Any]:
        if server.count("tasks/update"):
            return state("completed", result=text())
        return state("input_required", inputRequests={"q": request})

    async with (
        peer(R5, tasks_get=get, tasks_update=complete()) as server,
        Client(server.channel) as client,
    ):
        handle = await client.start_tool("crunch", asker=Model())
        await handle.result()
        update = server.all("tasks/update")[0]["params"]["inputResponses"]["q"]
        assert update["content"]["text"] == "answer to q"


async def test_questions_of_2025_11_25_arrive_with_the_result():
    """It is requested at once, polling goes on, and the answer names the task (`TK4-12`, `TK4-15`,
    `TK4-16`, `TK4-17`).
    """
    related = {f"{KEY}related-task": {"taskId": "T"}}
    polls_while_asked = 3

    def get(message: dict[str, Any]) -> dict[str, Any]:
        answered = any(m.get("id") == "q" and "result" in m for m in server.received)
        return state("completed" if answered else "input_required", R4)

    def result(message: dict[str, Any]) -> object:
        question = form()["params"]
        server.say(id="q", method="elicitation/create", params={**question, "_meta": related})
        waiting.append(message)
        return SILENCE

    async def elicit(question: t.ElicitRequestParams) -> dict[str, Any]:
        await server.until("tasks/get", server.count("tasks/get") + polls_while_asked)
        return {"value": "x"}

    waiting: list[dict[str, Any]] = []
    async with (
        peer(R4, tasks_get=get, tasks_result=result) as server,
        Client(server.channel, elicit=elicit) as client,
    ):
        call = asyncio.ensure_future(client.call_tool("crunch"))
        answer = await server.until_received(lambda m: m.get("id") == "q")
        assert answer["result"]["_meta"] == related
        assert "_meta" not in waiting[0]["params"]
        server.say(id=waiting[0]["id"], result={"content": [], "_meta": related})
        assert not (await call).is_error
        assert len(waiting) == 1


async def test_the_asker_of_a_handle_answers_questions_of_2025_11_25():
    """Other requests are running on the same channel; the question names its task (`TK4-15`)."""
    related = {f"{KEY}related-task": {"taskId": "T"}}
    asked: list[str] = []

    class Person:
        async def ask(self, request: t.InputRequest, key: str | None = None) -> t.InputResponse:
            asked.append("handle")
            return t.ElicitResult(action="decline")

        async def once(self, name: str, do: Any, *, idempotent: bool = False) -> Any:
            return await do()

    def result(message: dict[str, Any]) -> object:
        question = form()["params"]
        server.say(id="q", method="elicitation/create", params={**question, "_meta": related})
        return SILENCE

    async with (
        peer(R4, tasks_get=lambda m: state("input_required", R4), tasks_result=result) as server,
        Client(server.channel, elicit=lambda q: asked.append("client")) as client,
    ):
        server.on["prompts/get"] = SILENCE
        others = [asyncio.ensure_future(client.get_prompt(str(n))) for n in range(2)]
        handle = await client.start_tool("crunch", asker=Person())
        waiting = asyncio.ensure_future(handle.result())
        await server.until_received(lambda m: m.get("id") == "q")
        assert asked == ["handle"]
        for one in (waiting, *others):
            one.cancel()
        await asyncio.gather(waiting, *others, return_exceptions=True)


async def test_a_server_that_refuses_the_result_before_the_end():
    """It is requested again once the task has ended."""
    refused = McpError(-32602, "Task is not completed")
    done = {"content": [{"type": "text", "text": "late"}]}
    states = [state("input_required", R4), state("working", R4)]
    async with (
        peer(R4, *states, tasks_result=[refused, done]) as server,
        Client(server.channel, answers=Answers(elicit=lambda q: True)) as client,
    ):
        assert (await client.call_tool("crunch")).text == "late"
        assert server.count("tasks/result") == 2


# -- the extension as an option --------------------------------------------------------------------


async def test_a_client_that_was_given_the_extension_declares_it_everywhere():
    async with (
        peer(R5) as server,
        Client(server.channel, extensions=[TASKS]) as client,
    ):
        await client.list_tools()
        assert (await client.call_tool("crunch")).text == "done"
        for message in server.received:
            declared = message["params"]["_meta"][f"{KEY}clientCapabilities"]
            assert declared == {"extensions": {TASKS_ID: {}}}


async def test_a_client_that_closes_ends_the_waits():
    async with peer(R5, tasks_get=lambda m: state()) as server:
        client = Client(server.channel)
        await client.open()
        handle = await client.start_tool("crunch")
        wait = asyncio.ensure_future(handle.result())
        await server.until("tasks/get")
        await client.aclose()
        with pytest.raises(t.Unreachable):
            await wait
        await eventually(lambda: handle.status == "working")
