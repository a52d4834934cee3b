"""What a call tells of itself over every cell of the matrix: progress and log messages; and how it
is cancelled or timed out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from msgspec import Raw

from interlock import Caller, CallToolResult, Client, Exchange, McpError, TimedOut
from interlock.exchange import TraceContext
from interlock.types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    Implementation,
    LoggingMessageNotificationParams,
    ProgressNotificationParams,
)
from interlock.types.lifecycle import LOGGING_LEVELS
from interlock.wire.revisions import R2
from tests.wired.cells import MOST_CALLS, Cell

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_progress(cell: Cell):
    """Progress reaches whoever made the call, in order and before the result (`PRG-01`, `PRG-02`,
    `PRG-03`)."""
    received: list[ProgressNotificationParams] = []
    result = await cell.client.call_tool("steps", {"to": 3}, on_progress=received.append)
    assert result.text == "arrived"
    assert [(p.progress, p.total) for p in received] == [(1, 3), (2, 3), (3, 3)]
    assert [p.message for p in received] == (
        ["step 1", "step 2", "step 3"] if cell.revision >= R2 else [None] * 3
    )


async def test_a_tool_sees_the_http_request_that_brought_it(cell: Cell):
    """On every revision over HTTP; there is none over stdio and in memory."""
    seen = json.loads((await cell.client.call_tool("received")).text)
    if cell.transport in ("http", "sse"):
        path = "/messages" if cell.transport == "sse" else "/mcp"
        assert seen["http"] == ["POST", path, "127.0.0.1"]
        assert seen["accept"] is True
    else:
        assert seen["http"] is None


async def test_a_forwarded_exchange_keeps_its_trace_and_nothing_else_of_its_sender(cell: Cell):
    """The forwarder speaks for itself; trace context and the author's `_meta` go on (`OTL-01`,
    `OTL-03`, `RPC-23`)."""
    sender = Caller(
        "2025-06-18",
        info=Implementation(name="somebody else", version="1"),
        trace=TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None, "a=b"),
    )
    params = CallToolRequestParams(name="received", meta=Raw(b'{"example.com/mine":[1]}'))
    result = await cell.client.send(Exchange("tools/call", params, sender))
    assert isinstance(result, CallToolResult)
    seen = json.loads(result.text)
    assert seen["trace"] == ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=b"]
    assert seen["meta"] == {"example.com/mine": [1]}


async def test_progress_of_a_forwarded_exchange_carries_the_token_of_whoever_hears_it(cell: Cell):
    """Each conversation has tokens of its own (`PRG-01`)."""
    received: list[float] = []
    x = Exchange(
        "tools/call",
        CallToolRequestParams(name="steps", arguments=Raw(b'{"to":2}')),
        Caller("2025-06-18"),
        notify=lambda method, params: received.append(params.progress),
    )
    await cell.client.send(x)
    assert received == [1, 2]


async def test_progress_from_a_thread(cell: Cell):
    """Progress grows each time: what does not is not sent (`PRG-02`)."""
    received: list[float] = []
    assert (
        await cell.client.call_tool("climb", on_progress=lambda p: received.append(p.progress))
    ).text == "up"
    assert received == [1, 2, 3.5]


async def test_progress_that_nobody_wants(cell: Cell):
    """Without a token nothing is sent (`PRG-04`)."""
    start = len(cell.tape)
    await cell.client.call_tool("steps", {"to": 3})
    assert cell.since(start).methods("server") == []


@asynccontextmanager
async def logging_client(
    cell: Cell, level: str | None
) -> AsyncIterator[tuple[Client, list[LoggingMessageNotificationParams]]]:
    """The cell's client, its log heard; the level it had before is put back where the era remembers
    one."""
    received: list[LoggingMessageNotificationParams] = []
    client = cell.client
    client._on_log = received.append
    try:
        if level is not None:
            await client.set_log_level(level)  # type: ignore[arg-type]  # a level
        yield client, received
    finally:
        client._on_log = None
        if level is not None and cell.handshake:
            await client.set_log_level("info")


@pytest.mark.parametrize("level", LOGGING_LEVELS)
async def test_log_levels(cell: Cell, level: str):
    """Log messages come from the wanted level on, whichever way the era says it, and before the
    result (`LOG-01`, `LOG-03`, `LOG-06`)."""
    async with logging_client(cell, level) as (client, received):
        await client.call_tool("chatter", {"logger": "test"})
    wanted = LOGGING_LEVELS[LOGGING_LEVELS.index(level) :]  # type: ignore[arg-type]  # a level
    assert [(m.level, m.logger, m.data) for m in received] == [
        (w, "test", {"level": w}) for w in wanted
    ]


async def test_log_without_a_level(cell: Cell):
    """Who asked for none gets none in the newest revision, and from `info` on in the older ones
    (`LOG-04`, `LOG-05`)."""
    cell.client._caller = (
        None if cell.client._caller is None else type(cell.client._caller)(*_without_level(cell))
    )
    async with logging_client(cell, None) as (client, received):
        await client.call_tool("chatter", {"logger": "test"})
    assert [m.level for m in received] == (list(LOGGING_LEVELS[1:]) if cell.handshake else [])


def _without_level(cell: Cell) -> tuple[object, ...]:
    caller = cell.client.caller
    return caller.revision, caller.capabilities, caller.info, None, caller.principal, caller.session


async def test_ping(cell: Cell):
    """The server says that it is there, whichever way the era has for it (`PNG-01`, `PNG-04`)."""
    start = len(cell.tape)
    await cell.client.ping()
    assert cell.since(start).methods("client") == ["ping" if cell.handshake else "server/discover"]


async def begun(cell: Cell, tool: str, **arguments: object) -> asyncio.Task:
    """A call that has begun to run at the server."""
    running = asyncio.Event()
    task = asyncio.create_task(
        cell.client.call_tool(tool, arguments, on_progress=lambda p: running.set())
    )
    waiting = asyncio.create_task(running.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=10)
    waiting.cancel()
    if task.done():
        pytest.fail(f"it has ended already: {await task}")
    return task


@pytest.mark.parametrize("tool", ["hang", "spin"])
async def test_cancelling(cell: Cell, tool: str):
    """A call that nobody waits for is cancelled, in place and in a thread, and never answered
    (`CAN-01`, `CAN-05`, `STD-12`, `STD-13`, `HTL-22`, `HTM-14`)."""
    start = len(cell.tape)
    task = await begun(cell, tool, name=tool)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert (await cell.client.call_tool("ended", {"name": tool})).text == "true"
    await cell.client.ping()
    messages = cell.since(start)
    call = next(m for m in messages.messages("client") if m.get("params", {}).get("name") == tool)
    cancels = [
        m["params"]["requestId"]
        for m in messages.messages("client")
        if m["method"] == "notifications/cancelled"
    ]
    assert cancels == ([] if cell.closes else [call["id"]])
    assert call["id"] not in [m.get("id") for m in messages.messages("server")]


async def test_timing_out_at_the_client(cell: Cell):
    """A request that takes too long is given up, and cancelled at the server (`LIF-18`,
    `LIF-19`)."""
    start = len(cell.tape)
    with pytest.raises(TimedOut, match=r"within 0\.05 seconds"):
        await cell.client.call_tool("hang", {"name": "timed out"}, timeout=0.05)
    assert (await cell.client.call_tool("ended", {"name": "timed out"})).text == "true"
    assert ("notifications/cancelled" in cell.since(start).methods("client")) is not cell.closes


async def test_timing_out_at_the_server(cell: Cell):
    """A tool with a limit is stopped, and the model is told."""
    result = await cell.client.call_tool("late")
    assert (result.is_error, result.text) == (
        True,
        "The call took longer than 0.05 seconds and was stopped.",
    )


async def test_one_at_a_time(cell: Cell):
    """Beyond the calls that run and the ones that wait, a call is refused at once, in words
    (`TOL-23`)."""
    first = await begun(cell, "alone")
    second = asyncio.create_task(cell.client.call_tool("alone"))
    await asyncio.sleep(0)  # it sets out,
    await cell.client.ping()  # and by now it waits at the server
    with pytest.raises(
        McpError, match="The tool alone is busy: 1 calls are running and 1 wait"
    ) as caught:
        await cell.client.call_tool("alone")
    assert (caught.value.code, caught.value.data) == (INTERNAL_ERROR, {"reason": "busy"})
    await cell.client.call_tool("release")
    assert (await first).text == "done"
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert (await cell.client.call_tool("hello", {"name": "Ada"})).text == "Hello, Ada!"


async def served(cell: Cell, make: Callable[[], Awaitable[Any]]) -> Any:
    """What a call gives, made again while the server is too busy, where it may be so for a moment.

    Over HTTP the end of a call travels apart from the next call: as a closed stream, or as a
    notification in a request of its own. Repeats that come fast may reach the limit of requests a
    second too.
    """
    async with asyncio.timeout(60):
        while True:
            try:
                return await make()
            except McpError as bad:
                assert cell.transport == "http", bad
                assert bad.data["reason"] in ("busy", "rate"), bad


async def test_too_many_at_once(cell: Cell):
    """A peer that has as many requests open as it may have is refused the next, and served again
    once some have ended."""
    running = [
        await served(cell, partial(begun, cell, "hang", name=f"many {n}"))
        for n in range(MOST_CALLS)
    ]
    with pytest.raises(
        McpError,
        match="The server is busy"
        if cell.transport == "http"
        else f"busy: {MOST_CALLS} requests are running",
    ) as caught:
        await cell.client.call_tool("hello", {"name": "Ada"})
    assert caught.value.data["reason"] == "busy"
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for n in range(MOST_CALLS):
        assert (
            await served(cell, partial(cell.client.call_tool, "ended", {"name": f"many {n}"}))
        ).text == "true"


async def test_many_at_once(cell: Cell):
    """Many calls at once each get their own answer (`RPC-05`)."""
    results = await asyncio.gather(
        *(cell.client.call_tool("hello", {"name": str(n)}) for n in range(90))
    )
    assert [result.text for result in results] == [f"Hello, {n}!" for n in range(90)]
