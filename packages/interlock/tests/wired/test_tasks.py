"""Tasks from end to end: our client at our server, in both forms, in memory and over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    AnyResult,
    Client,
    Context,
    Exchange,
    Handler,
    McpError,
    Server,
    TaskCancelled,
    TaskLimits,
    ToolError,
)
from interlock.tasks import Tasks
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.wire.revisions import REVISIONS
from tests.client.peers import SECONDS

R3, R4, R5 = "2025-06-18", "2025-11-25", "2026-07-28"
FORMS = pytest.mark.parametrize("revision", [R4, R5])
WAYS = pytest.mark.parametrize("way", ["memory", "http"])


class Gate:
    """Holds the tasks of a server until the test opens it. `entered` counts the runs."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.entered = asyncio.Semaphore(0)
        self.cancelled = asyncio.Semaphore(0)

    async def passed(self) -> None:
        """Wait until the gate is open."""
        self.entered.release()
        try:
            async with asyncio.timeout(SECONDS):
                await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled.release()
            raise


def lab(gate: Gate, store: str = "memory:", revisions: Sequence[str] = REVISIONS) -> Server:
    """A server with tasks."""
    limits = TaskLimits(poll=0.05)
    server = Server("lab", revisions=revisions, extensions=[Tasks(store, limits=limits)])

    @server.tool(task="required")
    async def crunch(n: int, ctx: Context) -> int:
        """Crunch."""
        ctx.progress(1, 2, "half")
        await gate.passed()
        return n * 2

    @server.tool(task="optional")
    async def order(ctx: Context) -> str:
        """Ask."""
        return "ordered" if await ctx.confirm("Order?") else "left"

    @server.tool
    async def book(ctx: Context) -> str:
        """Ask, as a task of the client."""
        return "booked" if await ctx.confirm("Book?", task_ttl=60) else "left"

    @server.tool(task="required")
    async def fail() -> str:
        """Fail."""
        raise ToolError("no luck")

    @server.tool(task="required")
    async def refuse() -> str:
        """Refuse."""
        raise McpError(-32000, "no quota", {"left": 0})

    @server.tool
    async def plain() -> str:
        """Answer at once."""
        return "plain"

    return server


@contextlib.asynccontextmanager
async def reached(server: Server, way: str) -> AsyncIterator[Any]:
    """The target of clients: the server itself, or its address."""
    if way == "memory":
        yield server
        return
    sock = listening_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    serving = asyncio.create_task(serve_http(server.http_app(), sock, grace=1.0))
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


@FORMS
@WAYS
async def test_a_call_waits_through_its_task(way: str, revision: str) -> None:
    gate = Gate()
    gate.open.set()
    async with reached(lab(gate), way) as target, Client(target, revision=revision) as client:
        assert (await client.call_tool("crunch", {"n": 21})).value() == 42
        assert (await client.call_tool("plain")).text == "plain"
        failed = await client.call_tool("fail")
        assert (failed.is_error, failed.text) == (True, "no luck")
        with pytest.raises(McpError, match="no quota") as caught:
            await client.call_tool("refuse")
        assert caught.value.data == {"left": 0}


@FORMS
@WAYS
async def test_a_handle_follows_its_task(way: str, revision: str) -> None:
    """Its progress is the status message; another client takes it up by its id."""
    gate = Gate()
    async with reached(lab(gate), way) as target, Client(target, revision=revision) as client:
        handle = await client.start_tool("crunch", {"n": 4})
        seen: list[str] = []

        async def follow() -> None:
            async for state in handle:
                seen.append(f"{state.status}: {state.status_message}")
                if state.status_message is not None and "half" in state.status_message:
                    gate.open.set()

        async with asyncio.timeout(SECONDS):
            await follow()
        assert seen[-1].startswith("completed")
        assert any("half" in each for each in seen)
        assert (await handle.result()).value() == 8
        async with Client(target, revision=revision) as other:
            assert (await other.task(handle.id or "").result()).value() == 8


@FORMS
@WAYS
async def test_a_question_of_a_task(way: str, revision: str) -> None:
    asked: list[str] = []

    def elicit(question: Any) -> dict[str, bool]:
        asked.append(question.message)
        return {"confirm": True}

    async with (
        reached(lab(Gate()), way) as target,
        Client(target, revision=revision, elicit=elicit) as client,
    ):
        handle = await client.start_tool("order")
        assert handle.id is not None
        assert (await handle.result()).text == "ordered"
        assert asked == ["Order?"]
        assert (await client.call_tool("order")).text == "ordered"


@FORMS
@WAYS
async def test_a_wait_can_be_dropped_while_a_question_is_open(way: str, revision: str) -> None:
    """The question is withdrawn, and asked again by the next wait (`TK4-28`)."""
    asked = asyncio.Semaphore(0)
    away = asyncio.Event()

    async def elicit(question: Any) -> dict[str, bool]:
        asked.release()
        if not away.is_set():
            await asyncio.Event().wait()
        return {"confirm": True}

    async with (
        reached(lab(Gate()), way) as target,
        Client(target, revision=revision, elicit=elicit) as client,
        asyncio.timeout(SECONDS),
    ):
        handle = await client.start_tool("order")
        wait = asyncio.ensure_future(handle.result())
        await asked.acquire()
        wait.cancel()
        await asyncio.gather(wait, return_exceptions=True)
        away.set()
        assert (await handle.result()).text == "ordered"


@FORMS
@WAYS
async def test_a_task_is_cancelled(way: str, revision: str) -> None:
    """By its handle, and by the end of the call that waits for it."""
    gate = Gate()
    async with reached(lab(gate), way) as target, Client(target, revision=revision) as client:
        handle = await client.start_tool("crunch", {"n": 1})
        await gate.entered.acquire()
        await handle.cancel()
        with pytest.raises(TaskCancelled):
            await handle.result()
        call = asyncio.ensure_future(client.call_tool("crunch", {"n": 2}))
        await gate.entered.acquire()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(McpError):
            await client.task("none").result()


@FORMS
async def test_a_task_survives_its_server(revision: str, tmp_path: Path) -> None:
    """A client that starts later takes it up at a server that starts later."""
    store = f"sqlite:///{tmp_path / 'tasks.db'}"
    gate = Gate()
    async with Client(lab(gate, store), revision=revision) as client:
        handle = await client.start_tool("crunch", {"n": 3})
        await gate.entered.acquire()
    gate.open.set()
    async with Client(lab(gate, store), revision=revision) as client, asyncio.timeout(SECONDS):
        assert (await client.task(handle.id or "").result()).value() == 6


async def test_requests_about_a_task_name_it_in_a_header() -> None:
    """Load balancers route by it (`TKX-30`)."""
    seen: dict[str, set[tuple[str | None, str]]] = {}

    def noting(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method.startswith("tasks/") and x.transport.request is not None:
                named = x.transport.request.headers.get("mcp-name")
                seen.setdefault(x.method, set()).add((named, x.params.task_id))
            return await handler(x)

        return handle

    server = lab(Gate())
    server.use(noting)
    async with (
        reached(server, "http") as target,
        Client(target, elicit=lambda question: {"confirm": True}) as client,
    ):
        handle = await client.start_tool("order")
        await handle.refresh()
        assert (await handle.result()).text == "ordered"
        await client.task(handle.id or "").cancel()
        expected = {(handle.id, handle.id)}
        assert seen == {f"tasks/{name}": expected for name in ("get", "update", "cancel")}


async def test_older_revisions_have_no_tasks() -> None:
    """The client says so (`TKX-32`)."""
    async with Client(lab(Gate()), revision=R3) as client:
        with pytest.raises(McpError, match="does not offer tasks"):
            client.task("T")
        assert (await client.call_tool("plain")).text == "plain"
        handle = await client.start_tool("plain")
        assert (handle.id, (await handle.result()).text) == (None, "plain")
