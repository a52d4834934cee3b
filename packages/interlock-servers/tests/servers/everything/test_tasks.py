"""Tasks of the everything server over each transport and under each revision: results, failures,
questions, a promotion and a cancellation.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from interlock import Answers, Client, Http, McpError, Stdio, TaskCancelled
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.types import CreateMessageRequestParams, ElicitRequestParams, TaskMetadata
from interlock.wire.revisions import HANDSHAKE_REVISIONS, REVISIONS, supports
from interlock_servers.everything import everything_server

WITH_TASKS = ("2025-11-25", "2026-07-28")
CELLS = [
    (transport, revision)
    for revision in REVISIONS
    for transport in ("memory", "stdio", "http", "sse")
    if transport != "sse" or revision in HANDSHAKE_REVISIONS
]
pytestmark = pytest.mark.matrix(always="memory")


@asynccontextmanager
async def connected(transport: str, revision: str, **options: Any) -> AsyncIterator[Client]:
    """A client of a server of its own."""
    async with AsyncExitStack() as stack:
        target: Any = everything_server()
        if transport == "stdio":
            target = Stdio([sys.executable, "-m", "interlock", "serve", "everything"])
        elif transport != "memory":
            sock = listening_socket("127.0.0.1", 0)
            is_legacy = transport == "sse"
            app = target.http_app(legacy_sse=is_legacy)
            serving = asyncio.create_task(serve_http(app, sock, grace=1.0))

            async def end() -> None:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)

            stack.push_async_callback(end)
            path = "/sse" if is_legacy else "/mcp"
            target = Http(f"http://127.0.0.1:{sock.getsockname()[1]}{path}", legacy_sse=is_legacy)
        yield await stack.enter_async_context(Client(target, revision=revision, **options))


@pytest.mark.parametrize("transport, revision", CELLS, ids=" ".join)
async def test_every_flow(transport: str, revision: str) -> None:
    """As far as the revision has it. Before 2025-11-25 the tools are plain calls (`TKX-32`)."""
    asked: list[str] = []
    messages: list[str | None] = []

    def elicit(question: Any) -> dict[str, Any]:
        asked.append(question.message)
        return {"confirm": True} if "name" not in question.message else {"name": "Ann"}

    has_tasks = revision in WITH_TASKS
    async with connected(transport, revision, elicit=elicit) as client:
        handle = await client.start_tool("slow_compute", {"seconds": 0.01, "label": "x"})
        assert (handle.id is not None) is has_tasks
        assert (await handle.result()).text == "done x"
        with pytest.raises(McpError, match="broke"):
            await client.call_tool("protocol_error_job")
        result = await client.call_tool(
            "slow_compute", {"seconds": 0}, on_progress=lambda p: messages.append(p.message)
        )
        assert result.text == "done"
        if not has_tasks:
            with pytest.raises(McpError, match="runs only as a task"):
                await client.call_tool("failing_job")
            assert messages == [None if revision == "2024-11-05" else "computing"]
            return
        failed = await client.call_tool("failing_job")
        assert (failed.is_error, failed.text) == (True, "The job failed.")
        assert supports(revision, "elicitation")
        handle = await client.start_tool("multi_input")
        assert handle.id is not None
        assert (await handle.result()).text == "2 of 2"
        assert sorted(asked) == ["The first?", "The second?"]
        assert (await client.call_tool("test_tool_with_task")).text == "Hello, Ann!"
        running = await client.start_tool("slow_compute", {"seconds": 60})
        await client.task(running.id or "").cancel()
        with pytest.raises(TaskCancelled):
            await running.result()


@pytest.mark.parametrize("transport, revision", CELLS, ids=" ".join)
async def test_questions_become_tasks_of_the_client(transport: str, revision: str) -> None:
    """Only under 2025-11-25 the questions have task metadata; the answers are the same everywhere
    (`TK4-02`, `TK4-07`, `TK4-12`, `TK4-13`).
    """
    wanted: list[TaskMetadata | None] = []

    def elicit(question: ElicitRequestParams) -> dict[str, Any]:
        wanted.append(question.task)
        return {"value": "Ann"}

    def sample(request: CreateMessageRequestParams) -> str:
        wanted.append(request.task)
        return "Hello"

    answers = Answers(elicit=elicit, sample=sample)
    async with connected(transport, revision, answers=answers) as client:
        result = await client.call_tool("ask_as_tasks", {"seconds": 90})
        if not supports(revision, "elicitation"):
            assert result.is_error
            return
        assert result.text == "Hello Ann"
    expected = TaskMetadata(ttl=90_000) if supports(revision, "core_tasks") else None
    assert wanted == [expected, expected]
