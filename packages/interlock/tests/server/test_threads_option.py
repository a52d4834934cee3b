"""Where plain functions run: in a thread, in place, or in place while they are quick."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from interlock import Client, Context, Server
from interlock.server.calls import pace as module
from interlock.server.calls.pace import QUICK, RUNS_TO_PROVE, SLOW, Pace
from tests.server.by_hand import call, read, text, written
from tests.server.test_workers import LONG


def where() -> str:
    """The thread that runs this."""
    return "in place" if threading.current_thread() is threading.main_thread() else "in a thread"


@pytest.mark.parametrize(
    "thread, place", [(None, "in a thread"), (True, "in a thread"), (False, "in place")]
)
async def test_the_author_says_where(thread: Any, place: str):
    """Of tools, prompts and resources, with a Context and without."""
    server = Server("threads")

    def with_context(ctx: Context) -> str:
        return where()

    server.add_tool(where, thread=thread)
    server.add_tool(with_context, thread=thread)
    server.add_tool(where, name="limited", thread=thread, timeout=LONG, concurrency=1)
    server.add_prompt(where, thread=thread)
    server.add_resource("docs://a", where, thread=thread)
    server.add_resource("docs://{name}/b", lambda name: where(), thread=thread)
    for tool in ("where", "with_context", "limited"):
        assert await text(server, tool) == place
    assert (await read(server, "docs://a")).contents[0].text == place
    assert (await read(server, "docs://x/b")).contents[0].text == place
    (message,) = await written(server, "where")
    assert getattr(message.content, "text", None) == place
    await server.aclose()


async def test_what_a_function_in_place_returns_is_awaited():
    """An awaitable, or an async generator."""
    server = Server("threads")

    async def later() -> str:
        return "later"

    async def items() -> AsyncIterator[str]:
        yield "first"
        yield "last"

    server.add_tool(lambda: later(), name="awaitable", thread=False)
    server.add_tool(lambda: items(), name="generator", thread=False)
    assert await text(server, "awaitable") == "later"
    assert await text(server, "generator") == "last"
    await server.aclose()


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration(), SystemExit(3)], ids=repr)
async def test_errors_of_a_function_in_place_are_answered(error: BaseException):
    """As those of a function in a thread; the server goes on."""
    server = Server("threads")

    def fail() -> str:
        raise error

    server.add_tool(fail, thread=False)
    server.add_tool(where, thread=False)
    assert (await call(server, "fail")).is_error
    assert await text(server, "where") == "in place"
    await server.aclose()


async def test_waiting_in_place_is_refused():
    """`ctx.wait` would wait for the event loop in the event loop."""
    server = Server("threads")

    def ask(ctx: Context) -> str:
        with pytest.raises(RuntimeError, match="plain functions that run in a thread"):
            ctx.wait(ctx.confirm("Really?"))
        return "refused"

    server.add_tool(ask, thread=False)
    assert await text(server, "ask") == "refused"
    await server.aclose()


def test_options_that_make_no_sense():
    """An async function has its place, and there are three modes."""
    server = Server("threads")

    async def later() -> str:
        return ""

    async def items() -> AsyncIterator[str]:
        yield ""

    for function in (later, items):
        for thread in (True, "auto"):
            with pytest.raises(ValueError, match="thread= is for plain functions"):
                server.add_tool(function, thread=thread)
        server.add_tool(function, thread=False)
    with pytest.raises(ValueError, match="must be True, False or 'auto'"):
        server.add_tool(where, thread="never")  # type: ignore[typeddict-item] # the mistake


def test_a_function_proves_itself_in_threads():
    """By quick runs without a slow one between them."""
    pace = Pace()
    for _ in range(RUNS_TO_PROVE - 1):
        pace.note(QUICK, in_place=False)
    pace.note(QUICK * 2, in_place=False)
    for _ in range(RUNS_TO_PROVE - 1):
        pace.note(QUICK, in_place=False)
    assert not pace.is_quick
    pace.note(QUICK, in_place=False)
    assert pace.is_quick


def test_one_slow_run_in_place_is_the_last_one():
    """However many quick ones come before and after it."""
    pace = Pace()
    for _ in range(RUNS_TO_PROVE):
        pace.note(0.0, in_place=False)
    for _ in range(1000):
        pace.note(SLOW, in_place=True)
    assert pace.is_quick
    pace.note(SLOW * 2, in_place=True)
    for _ in range(RUNS_TO_PROVE * 10):
        pace.note(0.0, in_place=False)
    assert not pace.is_quick


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_an_adversarial_function_holds_other_calls_up_once(
    monkeypatch: pytest.MonkeyPatch,
):
    """It is quick a thousand times, and then blocks for a second each time: once in place, and in
    threads from then on, however long it is quick again in between.
    """
    clock = Clock()
    monkeypatch.setattr(module, "perf_counter", clock)
    server = Server("threads")
    runs = 0
    blocked: list[str] = []

    @server.tool(thread="auto")
    def adversary() -> str:
        nonlocal runs
        runs += 1
        if runs > 1000 and runs % 500 < 5:
            blocked.append(where())
            clock.now += 1.0  # a second in which its thread runs nothing else
        return where()

    places = []
    async with Client(server) as client:
        for _ in range(1600):
            places.append((await client.call_tool("adversary")).text)
    assert places[:RUNS_TO_PROVE] == ["in a thread"] * RUNS_TO_PROVE
    assert set(places[RUNS_TO_PROVE:1000]) == {"in place"}
    assert blocked.count("in place") == 1
    assert blocked.count("in a thread") == 8
    assert places[1000] == "in place"
    assert set(places[1001:]) == {"in a thread"}


async def test_a_function_with_a_context_stays_in_threads():
    """It may wait for a question, which it cannot in place."""
    server = Server("threads")

    @server.tool(thread="auto")
    def quick(ctx: Context) -> str:
        return where()

    for _ in range(RUNS_TO_PROVE * 2):
        assert await text(server, "quick") == "in a thread"
    await server.aclose()


async def test_functions_are_judged_one_by_one(monkeypatch: pytest.MonkeyPatch):
    """A slow function does not move a quick one."""
    monkeypatch.setattr(module, "perf_counter", Clock())
    server = Server("threads")
    released = threading.Event()
    server.add_tool(where, name="quick", thread="auto")
    server.add_tool(lambda: released.wait(LONG), name="slow", thread="auto")
    slow = [asyncio.create_task(call(server, "slow")) for _ in range(3)]
    places = [await text(server, "quick") for _ in range(RUNS_TO_PROVE + 1)]
    released.set()
    await asyncio.gather(*slow)
    assert places[0] == "in a thread"
    assert places[-1] == "in place"
    await server.aclose()
