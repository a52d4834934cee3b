"""Tasks on the wire: 2025-11-25, where the client asks for a task and collects its result with
`tasks/result`, and what 2026-07-28 adds to results.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from interlock import Principal, Server, TaskLimits
from interlock.types.tasks import RELATED_TASK, TASKS_EXTENSION
from tests.server.wire import Peer
from tests.tasks.test_extension import Offered, make_server

R4 = "2025-11-25"
YES = {"action": "accept", "content": {"confirm": True}}


@asynccontextmanager
async def connected(server: Server, revision: str = R4, **options: Any) -> AsyncIterator[Peer]:
    """A peer of a server."""
    peer = await Peer.of(server, revision, **options)
    try:
        yield peer
    finally:
        await peer.aclose()


async def create(peer: Peer, tool: str, ttl: int | None = None, **arguments: Any) -> dict[str, Any]:
    """Ask for a task, and return it."""
    wanted = {} if ttl is None else {"ttl": ttl}
    answer = await peer.ask("tools/call", {"name": tool, "arguments": arguments, "task": wanted})
    assert answer["result"].keys() == {"task"}, answer
    task: dict[str, Any] = answer["result"]["task"]
    return task


async def code(peer: Peer, method: str, **params: Any) -> int:
    """Send a request that is refused, and return the code."""
    answer = await peer.ask(method, params)
    assert "error" in answer, answer
    number: int = answer["error"]["code"]
    return number


async def question(peer: Peer) -> dict[str, Any]:
    """Wait for a question of the server."""
    while True:
        for message in peer.received:
            if message.get("method") == "elicitation/create":
                peer.received.remove(message)
                return message
        await peer.listen()


async def notification(peer: Peer, method: str, **members: Any) -> dict[str, Any]:
    """Wait for a notification whose params have these members, and return its params."""
    while True:
        for message in peer.received:
            params: dict[str, Any] = message.get("params", {})
            if message.get("method") == method and members.items() <= params.items():
                return params
        await peer.listen()


async def test_capabilities_and_tools_say_what_can_be_a_task() -> None:
    """`TK4-01`, `TKX-02`, `TKX-32`: the capability of the core in 2025-11-25, the extension later,
    neither before.
    """
    server = make_server()
    settings = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    for revision, has_tasks in (("2025-06-18", False), (R4, True)):
        peer = Peer(server, revision)
        hello = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "p", "version": "1"},
        }
        declared = (await peer.ask("initialize", hello))["result"]["capabilities"]
        assert declared.get("tasks") == (settings if has_tasks else None)
        assert TASKS_EXTENSION not in declared.get("extensions", {})
        peer.say({"method": "notifications/initialized"})
        tools = {tool["name"]: tool for tool in (await peer.ask("tools/list"))["result"]["tools"]}
        assert tools["wait"].get("execution") == (
            {"taskSupport": "required"} if has_tasks else None
        )
        assert tools["add"].get("execution") == ({"taskSupport": "optional"} if has_tasks else None)
        assert "execution" not in tools["greet"]
        await peer.aclose()
    async with connected(server, "2026-07-28") as peer:
        declared = (await peer.ask("server/discover"))["result"]["capabilities"]
        assert "tasks" not in declared
        assert declared["extensions"] == {TASKS_EXTENSION: {}}
        tools = (await peer.ask("tools/list"))["result"]["tools"]
        assert not any("execution" in tool for tool in tools)


async def test_a_client_asks_for_a_task_and_collects_its_result() -> None:
    """`TK4-07`, `TK4-08`, `TK4-09`, `TK4-11`, `TK4-13`, `TK4-14`, `TK4-16`."""
    server = make_server()
    async with connected(server) as peer:
        task = await create(peer, "wait", ttl=60_000)
        assert task["status"] == "working"
        assert task["ttl"] == 60_000
        assert task["pollInterval"] == 1000
        assert task["createdAt"].endswith("Z")
        assert "resultType" not in task
        id = task["taskId"]
        other = await create(peer, "wait")
        waiting = peer.begin(
            "tasks/result",
            {"taskId": id, "_meta": {RELATED_TASK: {"taskId": other["taskId"]}}},
        )
        state = (await peer.ask("tasks/get", {"taskId": id}))["result"]
        assert state["status"] == "working"
        assert "_meta" not in state
        assert not any(message.get("id") == waiting for message in peer.received)
        server.gate.set()
        result = (await peer.answer(waiting))["result"]
        assert result["content"] == [{"type": "text", "text": "waited"}]
        assert result["_meta"][RELATED_TASK] == {"taskId": id}
        assert "resultType" not in result
        assert (await peer.ask("tasks/get", {"taskId": id}))["result"]["status"] == "completed"


async def test_wrong_use_of_a_tool_is_an_unknown_method() -> None:
    """`TK4-06`, `TK4-27`: required without a task, and a task of a tool that is never one."""
    async with connected(make_server()) as peer:
        assert await code(peer, "tools/call", name="wait", arguments={}) == -32601
        assert (
            await code(peer, "tools/call", name="greet", arguments={"name": "x"}, task={}) == -32601
        )
        assert await code(peer, "tools/call", name="missing", arguments={}, task={}) == -32602
        plain = await peer.ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        assert plain["result"]["content"][0]["text"] == "3"


async def test_a_server_without_tasks_ignores_the_request_for_one() -> None:
    """`TK4-03`: the call is processed as ever."""
    server = Server("plain")

    @server.tool
    async def greet() -> str:
        return "Hello!"

    async with connected(server) as peer:
        answer = await peer.ask(
            "tools/call", {"name": "greet", "arguments": {}, "task": {"ttl": 1}}
        )
        assert answer["result"]["content"][0]["text"] == "Hello!"
        assert await code(peer, "tasks/get", taskId="x") == -32601


async def test_older_revisions_run_the_tool_as_ever() -> None:
    """Only a tool that must be a task fails, in clear words."""
    async with connected(make_server(), "2025-06-18") as peer:
        plain = await peer.ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        assert plain["result"]["content"][0]["text"] == "3"
        refused = (await peer.ask("tools/call", {"name": "wait", "arguments": {}}))["error"]
        assert refused["code"] == -32601
        assert "runs only as a task" in refused["message"]
        assert await code(peer, "tasks/get", taskId="x") == -32601


async def test_a_failed_tool_is_a_failed_task_with_its_result() -> None:
    """`TK4-21`, `TK4-13`: the status is failed, and `tasks/result` gives exactly the outcome."""
    async with connected(make_server()) as peer:
        id = (await create(peer, "fail"))["taskId"]
        result = (await peer.ask("tasks/result", {"taskId": id}))["result"]
        assert result["isError"] is True
        task = (await peer.ask("tasks/get", {"taskId": id}))["result"]
        assert (task["status"], task["statusMessage"]) == ("failed", "no luck")
        id = (await create(peer, "crash"))["taskId"]
        error = (await peer.ask("tasks/result", {"taskId": id}))["error"]
        assert error == {"code": -32001, "message": "broken", "data": {"part": "axle"}}
        task = (await peer.ask("tasks/get", {"taskId": id}))["result"]
        assert (task["status"], task["statusMessage"]) == ("failed", "broken")


async def test_tasks_result_delivers_the_questions() -> None:
    """`TK4-15`, `TK4-30`: each question names its task, and the task goes on with the answers."""
    async with connected(make_server()) as peer:
        id = (await create(peer, "confirm"))["taskId"]
        waiting = peer.begin("tasks/result", {"taskId": id})
        for _ in range(3):
            asked = await question(peer)
            assert asked["params"]["_meta"][RELATED_TASK] == {"taskId": id}
            state = (await peer.ask("tasks/get", {"taskId": id}))["result"]
            assert state["status"] == "input_required"
            peer.say({"id": asked["id"], "result": YES})
        result = (await peer.answer(waiting))["result"]
        assert result["content"][0]["text"] == "True True True"


async def test_tasks_result_reports_the_status_and_the_progress() -> None:
    """`TK4-22`, `TK4-14`: each status, and the progress with the token of the call."""
    server = make_server()
    async with connected(server) as peer:
        wanted = {"name": "steps", "arguments": {}, "task": {}, "_meta": {"progressToken": "p"}}
        id = (await peer.ask("tools/call", wanted))["result"]["task"]["taskId"]
        waiting = peer.begin("tasks/result", {"taskId": id})
        asked = await question(peer)
        peer.say({"id": asked["id"], "result": YES})
        working = await notification(peer, "notifications/tasks/status", status="working")
        assert working["taskId"] == id
        assert working.keys() >= {"ttl", "pollInterval", "createdAt", "lastUpdatedAt"}
        progress = await notification(peer, "notifications/progress", progress=2)
        assert progress["progressToken"] == "p"
        assert progress["_meta"] == {RELATED_TASK: {"taskId": id}}
        server.gate.set()
        await notification(peer, "notifications/tasks/status", status="completed")
        result = (await peer.answer(waiting))["result"]
        assert result["content"][0]["text"] == "done"


async def test_cancellation_is_done_before_the_answer() -> None:
    """`TK4-18`, `TK4-19`: once only; a task that has ended cannot be cancelled."""
    async with connected(make_server()) as peer:
        id = (await create(peer, "wait"))["taskId"]
        waiting = peer.begin("tasks/result", {"taskId": id})
        task = (await peer.ask("tasks/cancel", {"taskId": id}))["result"]
        assert (task["taskId"], task["status"]) == (id, "cancelled")
        assert (await peer.answer(waiting))["error"]["code"] == -32603
        refused = (await peer.ask("tasks/cancel", {"taskId": id}))["error"]
        assert refused["code"] == -32602
        assert "already in terminal status 'cancelled'" in refused["message"]
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert await code(peer, method, taskId="unknown") == -32602


async def test_a_list_has_all_own_tasks_page_by_page() -> None:
    """`TK4-20`, `TK4-23`: everything that can be read, and nothing of another principal."""
    server = make_server()
    alice = Principal(subject="alice")
    async with (
        connected(server, principal=alice) as peer,
        connected(server, principal=Principal(subject="bob")) as bob,
    ):
        made = {(await create(peer, "add", a=n, b=1))["taskId"] for n in range(105)}
        foreign = (await create(bob, "wait"))["taskId"]
        listed: list[str] = []
        page: dict[str, Any] = {}
        while page.get("nextCursor") or not listed:
            cursor = {"cursor": page["nextCursor"]} if page else {}
            page = (await peer.ask("tasks/list", cursor))["result"]
            listed += [task["taskId"] for task in page["tasks"]]
        assert len(listed) == 105
        assert set(listed) == made
        assert await code(peer, "tasks/list", cursor="nonsense") == -32602
        assert await code(peer, "tasks/get", taskId=foreign) == -32602
        assert await code(peer, "tasks/result", taskId=foreign) == -32602
        assert await code(peer, "tasks/cancel", taskId=foreign) == -32602


async def test_anonymous_callers_have_no_list() -> None:
    """`TK4-24`: their ids are the only key, and cannot be guessed."""
    async with connected(make_server(), anonymous=True) as peer:
        id = (await create(peer, "wait"))["taskId"]
        assert len(id) == 32
        hello = {
            "protocolVersion": R4,
            "capabilities": {},
            "clientInfo": {"name": "p", "version": "1"},
        }
        declared = (await peer.ask("initialize", hello))["result"]["capabilities"]["tasks"]
        assert declared == {"cancel": {}, "requests": {"tools": {"call": {}}}}
        assert (await peer.ask("tasks/get", {"taskId": id}))["result"]["taskId"] == id
        assert await code(peer, "tasks/list") == -32601


async def test_the_server_bounds_the_time_to_live() -> None:
    """`TK4-08`, `TK4-25`: a client's wish is a wish."""
    async with connected(make_server(limits=TaskLimits(longest_ttl=100.0))) as peer:
        assert (await create(peer, "wait", ttl=10**9))["ttl"] == 100_000


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
async def test_the_extension_has_no_results_and_no_list(method: str) -> None:
    """`TKX-21`: -32601."""
    declared = {"extensions": {TASKS_EXTENSION: {}}}
    async with connected(make_server(), "2026-07-28", capabilities=declared) as peer:
        assert await code(peer, method, taskId="x") == -32601


async def test_every_answer_about_a_task_is_complete() -> None:
    """`TKX-08`, `TKX-12`, `TKX-16`, `TKX-19`: only the answer to the call is a task."""
    declared = {"extensions": {TASKS_EXTENSION: {}}}
    server: Offered = make_server()
    async with connected(server, "2026-07-28", capabilities=declared) as peer:
        made = (await peer.ask("tools/call", {"name": "wait", "arguments": {}}))["result"]
        assert made["resultType"] == "task"
        assert {"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"} <= set(
            made
        )
        id = made["taskId"]
        for method, params in (
            ("tasks/get", {}),
            ("tasks/update", {"inputResponses": {}}),
            ("tasks/cancel", {}),
            ("tasks/get", {}),
        ):
            result = (await peer.ask(method, {"taskId": id, **params}))["result"]
            assert result["resultType"] == "complete"
            assert method == "tasks/get" or result.keys() <= {"resultType", "_meta"}
