"""A server in the same process: the caller's own task runs the call, and all the rest is as over a
wire.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import types as t
from interlock.exchange import NO_CAPABILITIES, AnyResult, Caller, Exchange
from interlock.transport.memory import Memory
from interlock.wire.jsonrpc import open_envelope
from interlock.wire.revisions import NEWEST, R4, REVISIONS
from tests.protocol.frames import identity
from tests.transport.ends import turns
from tests.transport.programs import hello


def text(words: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(words)])


def call(revision: str = NEWEST, name: str = "x", **more: Any) -> Exchange:
    return Exchange("tools/call", t.CallToolRequestParams(name=name), Caller(revision), **more)


async def handler(x: Exchange) -> AnyResult:
    """Serve discovery, listen for ever, and call tools by their names."""
    if x.method == "server/discover":
        return t.DiscoverResult(
            supported_versions=list(REVISIONS), capabilities=t.ServerCapabilities()
        )
    if x.method == "subscriptions/listen":
        await asyncio.Event().wait()
    name = x.params.name
    if name == "task":
        return text(str(id(asyncio.current_task())))
    if name == "fails":
        raise t.McpError(-32000, "as I said", {"a": 1})
    if name == "breaks":
        raise ValueError("1234")
    if name == "waits":
        await asyncio.Event().wait()
    if name == "asks":
        roots: Any = await x.asker.ask(t.ListRootsRequest())
        return text(roots.roots[0].uri)
    if name == "tells":
        for n in range(3):
            x.notify(
                "notifications/progress",
                t.ProgressNotificationParams(progress_token=x.progress_token or 0, progress=n),
            )
    return text(name)


async def opened(
    revision: str = NEWEST,
    serve: Any = handler,
    *,
    capabilities: t.ClientCapabilities = NO_CAPABILITIES,
    **more: Any,
) -> Memory:
    memory = Memory(serve, identity(), **more)
    said = hello(revisions=(revision,), capabilities=capabilities)
    assert (await memory.open(said)).revision == revision
    return memory


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_runs_in_the_callers_own_task(revision: str) -> None:
    """Nothing is handed from task to task."""
    memory = await opened(revision)
    result: Any = await memory(call(revision, "task"))
    assert result.text == str(id(asyncio.current_task()))
    await memory.aclose()


async def test_real_frames_go_both_ways() -> None:
    """The tap sees each of them, as a wire would carry it."""
    seen: list[tuple[str, bytes]] = []
    memory = await opened(R4, tap=lambda who, frame: seen.append((who, frame)))
    await memory(call(R4, "tells", notify=lambda method, params: None))
    await memory.aclose()
    kinds = [(who, open_envelope(frame).method or "answer") for who, frame in seen]
    assert kinds == [
        ("client", "initialize"),
        ("server", "answer"),
        ("client", "notifications/initialized"),
        ("client", "tools/call"),
        *[("server", "notifications/progress")] * 3,
        ("server", "answer"),
    ]


async def test_what_a_handler_raises_is_what_a_wire_would_bring() -> None:
    """Its own error, or none of its words (`ERR-20`)."""
    memory = await opened()
    with pytest.raises(t.McpError, match="as I said") as caught:
        await memory(call(name="fails"))
    assert (caught.value.code, caught.value.data) == (-32000, {"a": 1})
    with pytest.raises(t.McpError, match="Internal error"):
        await memory(call(name="breaks"))
    await memory.aclose()


async def test_a_call_that_is_given_up_is_cancelled_at_once() -> None:
    """By the caller's own cancelling, and by a timeout around it; the next call is served
    (`CAN-05`).
    """
    memory = await opened()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await memory(call(name="waits"))
    waiting = asyncio.ensure_future(memory_call(memory, "waits"))
    await turns()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await memory_call(memory, "fine") == "fine"
    await memory.aclose()


async def memory_call(memory: Memory, name: str, revision: str = NEWEST) -> str:
    result: Any = await memory(call(revision, name))
    return str(result.text)


async def test_a_clean_up_may_still_call() -> None:
    """Also in a task that is being cancelled."""
    memory = await opened()
    cleaned = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(await memory_call(memory, "tidy"))

    task = asyncio.ensure_future(work())
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["tidy"]
    await memory.aclose()


async def test_closing_throws_running_calls_out() -> None:
    """Each is told that the client was closed, and its task is not cancelled by that (`ERR-21`)."""
    memory = await opened()
    calls = [asyncio.ensure_future(memory_call(memory, "waits")) for _ in range(5)]
    await turns()
    await memory.aclose()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {t.Unreachable}
    with pytest.raises(t.Unreachable):
        await memory(call())
    await memory.aclose()


async def test_questions_go_back_and_forth_while_the_call_waits() -> None:
    """In a session (`ELI-04`)."""

    class Person:
        async def ask(self, request: Any, key: str | None = None) -> Any:
            return t.ListRootsResult(roots=[t.Root(uri="file:///x")])

        async def once(self, name: str, do: Any) -> Any:
            raise AssertionError(name)

    memory = await opened(R4, capabilities=t.ClientCapabilities(roots=t.RootsCapability()))
    result: Any = await memory(call(R4, "asks", asker=Person()))
    assert result.text == "file:///x"
    await memory.aclose()


async def test_beyond_the_limit_a_call_is_refused() -> None:
    """As over a wire; what a session listens to does not count."""
    memory = await opened(R4, most_calls=3)
    calls = [asyncio.ensure_future(memory_call(memory, "waits", R4)) for _ in range(3)]
    await turns()
    with pytest.raises(t.McpError) as caught:
        await memory(call(R4))
    assert caught.value.data == {"reason": "busy"}
    calls[0].cancel()
    await asyncio.gather(calls[0], return_exceptions=True)
    assert await memory_call(memory, "fine", R4) == "fine"
    await memory.aclose()
    await asyncio.gather(*calls, return_exceptions=True)


async def test_what_stands_at_its_two_ends_is_entered_and_left_once() -> None:
    """Also where closing is done twice, and where nothing was opened."""
    seen: list[str] = []

    async def enter() -> None:
        seen.append("enter")

    async def leave() -> None:
        seen.append("leave")

    memory = await opened(enter=enter, leave=leave)
    await memory.aclose()
    await memory.aclose()
    assert seen == ["enter", "leave"]
    await Memory(handler, identity(), enter=enter, leave=leave).aclose()
    assert seen == ["enter", "leave"]


async def test_nothing_of_it_is_left_running() -> None:
    """Neither the session's subscription nor a call."""
    before = asyncio.all_tasks()
    for revision in REVISIONS:
        memory = await opened(revision)
        await memory_call(memory, "fine", revision)
        await memory.aclose()
    assert asyncio.all_tasks() <= before
