"""Servers of other makers behind the gateway: every flow, under each pair of revisions that both
sides have."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from interlock import Answers, Changed, McpError, TaskCancelled, Watch
from tests.gateway.running import RunningGateway, gateway
from tests.interop.driver import command_of, on_the_web
from tests.interop.test_peer_servers import (
    R4,
    R5,
    Maker,
    Talk,
    test_cancellation,
    test_completion,
    test_content_of_each_kind,
    test_elicitation,
    test_elicitation_by_url,
    test_failures,
    test_logging,
    test_progress,
    test_prompts,
    test_resources,
    test_roots,
    test_sampling,
    test_structured_results,
    test_text_survives,
)
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.asyncio(loop_scope="module")]

__all__ = [
    "behind",
    "talk",
    "test_cancellation",
    "test_completion",
    "test_content_of_each_kind",
    "test_elicitation",
    "test_elicitation_by_url",
    "test_failures",
    "test_logging",
    "test_progress",
    "test_prompts",
    "test_resources",
    "test_roots",
    "test_sampling",
    "test_structured_results",
    "test_text_survives",
]

MAKERS = [
    Maker("python-2", lenient=True, codes=(-32602, 0, -32603)),
    Maker("typescript-2"),
    Maker("fastmcp", unwatched=True, lenient=True, codes=(-32602, -32603)),
]
"""What still shows of each maker: its errors. The gateway has levels and subscriptions itself."""
WITH_TASKS = {"python-1": R4, "fastmcp-tasks": R5}
"""The makers with tasks, and the revision of these."""
PAIRS = [(maker, back, front) for maker in MAKERS for back in (R4, R5) for front in (R4, R5)]


def view_of(maker: str, revision: str) -> str:
    """The view of one server under one revision."""
    return f"{maker}-{revision[:4]}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def behind(
    installed: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningGateway]:
    """One gateway before all servers: a view for each server and revision behind."""
    programs: list[tuple[str, str, list[str], tuple[str, ...]]]
    programs = [(maker.name, "server", ["streamable-http"], (R4, R5)) for maker in MAKERS]
    programs += [(maker, "tasks", [], (revision,)) for maker, revision in WITH_TASKS.items()]
    text = '[views.default]\nservers = []\n[audit]\nfile = "off"\n'
    async with contextlib.AsyncExitStack() as stack:
        for maker, role, words, revisions in programs:
            port = free_port()
            command = [*command_of(role, maker, installed), *words, str(port)]
            await stack.enter_async_context(on_the_web(command, port))
            for revision in revisions:
                name = view_of(maker, revision)
                path = "mcp/" if maker == "python-1" else "mcp"
                text += (
                    f'[servers.{name}]\nurl = "http://127.0.0.1:{port}/{path}"\nprefix = ""\n'
                    f'revision = "{revision}"\n[views.{name}]\nservers = ["{name}"]\n'
                )
        folder = tmp_path_factory.mktemp("gateway")
        yield await stack.enter_async_context(gateway(folder, text))


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=PAIRS,
    ids=lambda pair: f"{pair[0].name} {pair[1]} before {pair[2]}",
)
async def talk(request: pytest.FixtureRequest, behind: RunningGateway) -> AsyncIterator[Talk]:
    """One conversation with one maker's server through the gateway."""
    maker, back, front = request.param
    talk = Talk(maker, None)  # type: ignore[arg-type]  # the client is made with the talk's own methods, so it comes second
    talk.client = behind.client(
        view_of(maker.name, back),
        revision=front,
        answers=Answers(elicit=talk.elicit, sample=talk.sample, roots=["file:///srv/data"]),
        on_log=talk.log,
        log_level="debug",
        timeout=30,
    )
    async with talk.client:
        yield talk


async def test_a_watched_resource(talk: Talk) -> None:
    """The client hears of its change, where the SDK has subscriptions."""
    if talk.maker.unwatched:
        return
    async with talk.client.watch(resources=["note://board"]) as changes:
        await talk.text("touch")
        assert (await heard(changes, "resource")).uri == "note://board"


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.name)
async def test_a_changed_list(maker: Maker, behind: RunningGateway) -> None:
    """Clients of both eras hear of it, and the new tool is listed. A server can grow only once; the
    one without subscriptions tells of it under 2025-11-25 only."""
    view = view_of(maker.name, R4 if maker.unwatched else R5)
    async with (
        behind.client(view, revision=R4) as old,
        behind.client(view, revision=R5) as new,
        old.watch(tools=True) as old_changes,
        new.watch(tools=True) as new_changes,
    ):
        assert not (await new.call_tool("grow")).is_error
        for client, changes in ((old, old_changes), (new, new_changes)):
            while "extra" not in {tool.name for tool in await client.list_tools()}:
                await heard(changes, "tools")


async def heard(changes: Watch, kind: str) -> Changed:
    """Return the next change of a kind: a list that became known late may be announced before."""
    async with asyncio.timeout(30):
        async for change in changes:
            if change.kind == kind:
                return change
    raise AssertionError(f"the subscription ended without a change of {kind}")


@pytest.mark.parametrize("front", [R4, R5])
@pytest.mark.parametrize("maker", WITH_TASKS)
async def test_tasks(maker: str, front: str, behind: RunningGateway) -> None:
    """A task with a question, a failure, and a cancellation."""
    answers = Answers(elicit=lambda question: {"size": "L"}, sample=lambda params: "Paris")
    view = view_of(maker, WITH_TASKS[maker])
    async with behind.client(view, revision=front, answers=answers) as client:
        await client.list_tools()
        assert "accept {'size': 'L'}" in (await client.call_tool("order")).text
        handle = await client.start_tool("order")
        assert handle.id is not None
        assert "accept {'size': 'L'}" in (await handle.result()).text
        running = await client.start_tool("forever")
        await client.task(running.id or "").cancel()
        with pytest.raises(TaskCancelled):
            await running.result()
        with pytest.raises(McpError):
            await client.task("none").result()
