"""Third-party servers with tasks: Interlock's client waits through them, follows them, answers
their questions, and runs tasks for them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Answers, Client, McpError, TaskCancelled
from interlock.configs import Entry
from interlock.models.scripted import call
from interlock_apps.fleet.events import TurnEnded
from interlock_apps.fleet.questions import Filled
from scripts import existing_servers, peers
from tests.host.scene import ALLOW, Sitting, last, scene
from tests.interop.driver import MAN, command_of, led, on_the_web
from tests.ports import free_port

pytestmark = [pytest.mark.interop]
ANSWERS = Answers(elicit=lambda question: {"size": "L"}, sample=lambda params: "Paris")


@contextlib.asynccontextmanager
async def target_of(way: str, installed: Callable[[str], Path]) -> AsyncIterator[Any]:
    """The Python SDK's server with tasks."""
    command = command_of("tasks", "python-1", installed)
    if way == "stdio":
        yield command
        return
    port = free_port()
    async with on_the_web([*command, str(port)], port):
        yield f"http://127.0.0.1:{port}/mcp/"


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_the_python_sdk(way: str, installed: Callable[[str], Path]) -> None:
    """Questions during a task, an error, a cancellation, the list (`TK4-05`, `TK4-13`, `TK4-17`,
    `TK4-18`, `TK4-20`, `TK4-26`)."""
    async with target_of(way, installed) as target, Client(target, answers=ANSWERS) as client:
        assert client.revision == "2025-11-25"
        assert "accept {'size': 'L'}" in (await client.call_tool("order")).text
        assert (await client.call_tool("sample")).text == "no task"
        assert (await client.call_tool("plain")).text == "no task"
        handle = await client.start_tool("sample")
        assert handle.immediate_response == "Begun."
        assert (await handle.result()).text == "Paris"
        assert "completed" in [state.status async for state in handle]
        plain = await client.start_tool("plain")
        assert (plain.id, (await plain.result()).text) == (None, "no task")
        running = await client.start_tool("forever", ttl=60)
        assert running.id in [one.id for one in await client.tasks()]
        await client.task(running.id or "").cancel()
        with pytest.raises(TaskCancelled):
            await running.result()
        await client.task(handle.id or "").cancel()  # it has ended, and stays as it is
        with pytest.raises(McpError):
            await client.task("none").result()


@contextlib.asynccontextmanager
async def fastmcp_target(way: str, installed: Callable[[str], Path]) -> AsyncIterator[Any]:
    """FastMCP's server with tasks."""
    command = command_of("tasks", "fastmcp-tasks", installed)
    if way == "stdio":
        yield command
        return
    port = free_port()
    async with on_the_web([*command, str(port)], port):
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_the_tasks_of_fastmcp(way: str, installed: Callable[[str], Path]) -> None:
    """A result, a question, a failure and a cancellation under 2026-07-28 (`TKX-12`, `TKX-13`,
    `TKX-16`, `TKX-19`)."""
    async with fastmcp_target(way, installed) as target, Client(target, answers=ANSWERS) as client:
        assert client.revision == "2026-07-28"
        assert (await client.call_tool("plain")).text == "no task"
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert (await client.call_tool("order")).text == "accept {'size': 'L'}"
        failed = await client.call_tool("fail")
        assert (failed.is_error, failed.text) == (True, "no luck")
        handle = await client.start_tool("order")
        assert handle.id is not None
        assert [state.status async for state in handle][-1] == "completed"
        assert (await client.task(handle.id).result()).text == "accept {'size': 'L'}"
        running = await client.start_tool("forever")
        await client.task(running.id or "").cancel()
        with pytest.raises(TaskCancelled):
            await running.result()
        with pytest.raises(McpError):
            await client.task("none").result()


SERVE = [sys.executable, "-m", "interlock", "serve", "everything"]


async def test_a_client_of_fastmcp(installed: Callable[[str], Path]) -> None:
    """It waits through tasks of the everything server, answers their questions, and cancels one."""
    program = command_of("tasks_client", "fastmcp-tasks", installed)
    async with led(program, mode="2026-07-28", command=SERVE) as client:
        arguments = {"seconds": 0.1, "label": "x"}
        step = await client.do("call", name="slow_compute", arguments=arguments)
        assert step.text == "done x"
        step = await client.do("task", name="slow_compute", arguments=arguments)
        assert step.result["id"]
        assert step.text == "done x"
        step = await client.do("call", name="failing_job", arguments={})
        assert (step.result["isError"], step.text) == (True, "The job failed.")
        accepted = {"elicitation/create": {"action": "accept", "content": {"confirm": True}}}
        step = await client.do("call", answers=accepted, name="confirm_delete", arguments={})
        assert step.text == "deleted"
        step = await client.do("task", answers=accepted, name="multi_input", arguments={})
        assert step.text == "2 of 2"
        assert len(step.asked) == 2
        step = await client.do("cancel", name="slow_compute", arguments={"seconds": 60})
        assert step.result["status"] == "cancelled"


async def test_a_client_of_fastmcp_over_http(installed: Callable[[str], Path]) -> None:
    """Its requests about tasks lack the header Mcp-Name, so they are refused (`TKX-30`)."""
    port = free_port()
    program = command_of("tasks_client", "fastmcp-tasks", installed)
    async with (
        on_the_web([*SERVE, "--http", f":{port}"], port),
        led(program, mode="2026-07-28", url=f"http://127.0.0.1:{port}/mcp") as client,
    ):
        step = await client.do("call", name="greet", arguments={"name": "Ann"})
        assert step.text == "Hello, Ann!"
        step = await client.do("call", name="slow_compute", arguments={"seconds": 0})
        assert step.error is not None
        assert step.error["code"] == -32020
        assert "Mcp-Name is missing" in step.error["message"]


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("maker", ["python-1", "typescript-1"])
async def test_the_clients_of_2025_11_25(
    maker: str, way: str, installed: Callable[[str], Path]
) -> None:
    """The SDKs 1.x ask for tasks of the everything server (`TK4-07`, `TK4-13`, `TK4-15`, `TK4-18`,
    `TK4-20`, `TK4-24`)."""
    async with contextlib.AsyncExitStack() as stack:
        target: dict[str, Any] = {"command": SERVE}
        if way == "http":
            port = free_port()
            await stack.enter_async_context(on_the_web([*SERVE, "--http", f":{port}"], port))
            target = {"url": f"http://127.0.0.1:{port}/mcp", "road": "http"}
        program = command_of("client", maker, installed)
        client = await stack.enter_async_context(led(program, mode="legacy", **target))
        arguments = {"seconds": 0.05, "label": "x"}
        step = await client.do("task", name="slow_compute", arguments=arguments)
        assert step.text == "done x"
        assert step.result["states"][-1] == "completed"
        assert step.result["_meta"] == {
            "io.modelcontextprotocol/related-task": {"taskId": step.result["id"]}
        }
        accepted = {"elicitation/create": {"action": "accept", "content": {"confirm": True}}}
        step = await client.do("task", answers=accepted, name="confirm_delete")
        assert step.text == "deleted"
        ((_, asked),) = step.asked
        assert asked["_meta"]["io.modelcontextprotocol/related-task"]["taskId"]
        step = await client.do("cancel_task", name="slow_compute", arguments={"seconds": 60})
        assert step.result["status"] == "cancelled"
        step = await client.do("list_tasks")
        if way == "stdio":
            assert len(step.result["tasks"]) == 3
        else:  # an anonymous caller has no list
            assert step.error is not None
        step = await client.do("task", name="failing_job")
        if maker == "python-1":
            assert (step.result["isError"], step.text) == (True, "The job failed.")
        else:  # it does not ask for the result of a failed task
            assert step.error is not None
            assert step.error["message"].endswith("failed")


@pytest.mark.parametrize("way", ["stdio", "http", "sse"])
@pytest.mark.parametrize("maker", ["python-1", "typescript-1"])
async def test_the_clients_of_2025_11_25_run_questions_as_tasks(
    maker: str, way: str, installed: Callable[[str], Path]
) -> None:
    """The SDKs 1.x run the questions of the everything server as tasks (`TK4-02`, `TK4-07`,
    `TK4-12`, `TK4-13`)."""
    async with contextlib.AsyncExitStack() as stack:
        target: dict[str, Any] = {"command": SERVE}
        if way != "stdio":
            port = free_port()
            legacy = ["--serve-legacy-sse"] if way == "sse" else []
            served = [*SERVE, "--http", f":{port}", *legacy]
            await stack.enter_async_context(on_the_web(served, port))
            path = "sse" if way == "sse" else "mcp"
            target = {"url": f"http://127.0.0.1:{port}/{path}", "road": way}
        program = command_of("client", maker, installed)
        opening = {"mode": "legacy", "question_tasks": True, **target}
        client = await stack.enter_async_context(led(program, **opening))
        answers = {**MAN, "elicitation/create": {"action": "accept", "content": {"value": "Ann"}}}
        step = await client.call("ask_as_tasks", {"seconds": 90}, answers=answers)
        assert step.text == "Paris Ann"
        wanted = {method: params["task"] for method, params in step.asked}
        ttl = {"ttl": 90_000}
        assert wanted == {"elicitation/create": ttl, "sampling/createMessage": ttl}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector(era: str, installed: Callable[[str], Path]) -> None:
    """Its command calls a tool as a task, waits, and lists the tasks of 2025-11-25 (`TK4-07`,
    `TK4-13`, `TK4-20`, `TKX-12`)."""
    program = installed("npm-inspector") / "node_modules" / ".bin" / "mcpdo"
    node = peers.node(peers.OLDEST_NODE_OF_THE_SUITE)

    def mcpdo(*words: str) -> Any:
        done = subprocess.run(
            [str(node), str(program), "--format", "json", *words],
            capture_output=True,
            text=True,
            timeout=60,
            env={"PATH": f"{node.parent}:{os.environ['PATH']}", "HOME": home},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    # The socket of its daemon is in the folder, and the name of a socket is short.
    with tempfile.TemporaryDirectory() as home:
        mcpdo("connect", "--era", era, "--connection", "ours", "--", *SERVE)
        try:
            wanted = ["--task"] if era == "legacy" else []
            arguments = ["slow_compute", "seconds:=0.1", "label:=x"]
            result = mcpdo("--connection", "ours", "tools/call", *wanted, *arguments)
            assert result["content"][0]["text"] == "done x"
            listed = mcpdo("--connection", "ours", "tasks/list")["tasks"]
            if era == "legacy":
                related = result["_meta"]["io.modelcontextprotocol/related-task"]
                assert [task["taskId"] for task in listed] == [related["taskId"]]
                assert listed[0]["raw"]["status"] == "completed"
        finally:
            mcpdo("daemon", "stop")


async def test_the_research_tool_of_the_everything_server(
    installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """It cannot be called without a task (`TK4-05`, `TK4-12`, `TK4-17`)."""
    installed("servers-npm")
    messages: list[str | None] = []
    async with Client(
        existing_servers.started("everything", tmp_path),
        elicit=lambda question: {"interpretation": "snake"},
    ) as client:
        call = {"topic": "python", "ambiguous": True}
        result = await client.call_tool(
            "simulate-research-query", call, on_progress=lambda p: messages.append(p.message)
        )
        assert "python (snake)" in result.text
        assert "Gathering sources..." in messages
        handle = await client.start_tool("simulate-research-query", call)
        seen = [state.status async for state in handle]
        assert seen[-1] == "completed"
        assert "Research Report" in (await client.task(handle.id or "").result()).text


@pytest.mark.parametrize("kind", ["sampling", "elicitation"])
async def test_the_everything_server_makes_tasks_of_questions(
    kind: str, installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """The client declares this, runs the task, and keeps the answer (`TK4-01`, `TK4-07`,
    `TK4-14`)."""
    installed("servers-npm")
    answers = Answers(elicit=lambda question: {"name": "Ann"}, sample=lambda params: "Paris")
    async with Client(existing_servers.started("everything", tmp_path), answers=answers) as client:
        result = await client.call_tool(
            f"trigger-{kind}-request-async", {"prompt": "?"} if kind == "sampling" else {}
        )
        assert "[COMPLETED]" in result.text
        assert ("Paris" if kind == "sampling" else "Ann") in result.text
        assert "io.modelcontextprotocol/related-task" in result.text


async def test_the_research_tool_in_the_host(
    installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """It goes on after the turn, its question comes to the person, and its report to the model."""
    installed("servers-npm")
    command = existing_servers.command("everything", tmp_path)
    entry = Entry(id="research", command=tuple(command))
    arguments = {"topic": "python", "ambiguous": True}
    person = Sitting(form=Filled(action="accept", content={"interpretation": "snake"}))
    async with scene(
        {"research": entry},
        call("research__simulate-research-query", **arguments),
        "Later.",
        "Here it is.",
        person=person,
        policy=ALLOW,
        task_wait=0,
    ) as one:
        await one.host.session().say("Look it up.")
        await one.until(lambda: len(one.of(TurnEnded)) == 2)
        assert len(person.of("form")) == 1
        assert "python (snake)" in last(one)


def test_the_research_tool_from_the_command_line(
    installed: Callable[[str], Path], tmp_path: Path
) -> None:
    installed("servers-npm")
    server = existing_servers.command("everything", tmp_path)
    words = ["call", "simulate-research-query", "topic=bees", "ambiguous:=true"]
    answers = ["--answers", '{"interpretation": "technical"}']
    done = subprocess.run(
        [sys.executable, "-m", "interlock", *words, *answers, "--", *server],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "bees (technical)" in done.stdout
