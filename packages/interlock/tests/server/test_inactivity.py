"""Inactivity timeouts of calls over HTTP: they begin again with progress, stand still while a
question is open, and leave nothing behind.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextvars import ContextVar
from typing import Any

import pytest

from interlock import Answers, Client, Context, Server, ServerLimits
from interlock import types as t
from interlock.exchange import Caller, Exchange
from interlock.server.calls.context import RunningCall
from interlock.server.calls.inactivity import InactivityTimeouts
from interlock.wire.revisions import NEWEST, R4
from tests.transport.raw_web import call, serving

PATIENCE = 60.0
TICKS = 20  # checks within one timeout


async def test_a_call_without_progress_is_stopped():
    """The client gets the reason as the result of the tool."""
    server = Server("slow", limits=ServerLimits(http_inactivity=0.02))

    @server.tool
    async def stuck() -> str:
        await asyncio.Event().wait()
        return "never"

    async with asyncio.timeout(PATIENCE), serving(server) as web:
        stopped = await web.ask(call("stuck", {}))
    result = stopped.json["result"]
    assert result["isError"]
    assert "no progress for 0.02 seconds" in result["content"][0]["text"]


@pytest.mark.parametrize("seconds", [None, 600.0])
async def test_a_timeout_of_the_author_replaces_it(seconds: float | None):
    """A call with a timeout of its own has no inactivity timeout; the option can be off."""
    server = Server("slow", limits=ServerLimits(http_inactivity=seconds))
    watched: list[int] = []

    def look() -> str:
        timeouts = server.handlers._inactivity
        watched.append(0 if timeouts is None else len(timeouts))
        return "done"

    @server.tool(timeout=PATIENCE)
    async def limited() -> str:
        return look()

    @server.tool
    async def plain() -> str:
        return look()

    async with asyncio.timeout(PATIENCE), serving(server) as web:
        for name in ("limited", "plain"):
            assert not (await web.ask(call(name, {}))).json["result"].get("isError")
        timeouts = server.handlers._inactivity
        assert timeouts is None or len(timeouts) == 0
    assert watched == [0, 0 if seconds is None else 1]


class Watched:
    """A call that waits in a task of its own, and whose time passes by hand."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.timeouts = InactivityTimeouts(600.0, loop)
        exchange = Exchange("tools/call", None, Caller(NEWEST))
        environment = Server("x").environment
        self.context = Context(exchange, environment, loop)
        self.call = RunningCall(
            exchange=exchange, environment=environment, loop=loop, context=self.context
        )
        self.error: t.TimedOut | None = None
        self.task = loop.create_task(self._wait())

    async def _wait(self) -> None:
        self.timeouts.add(self.call)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.error = self.timeouts.discard_expired(self.call)
            if self.error is None:
                raise

    def lasts(self) -> int:
        """How many checks it survives, of at most 100."""
        for ticks in range(100):
            self.timeouts.check()
            if self.call.expired:
                return ticks
        return 100


async def test_the_time_stands_still_while_a_question_is_open():
    """What was left before the questions is left after the last of them; progress gives all of
    it.
    """
    watched = Watched()
    await asyncio.sleep(0)
    watched.timeouts.check()
    watched.context._open_questions = 2
    assert watched.lasts() == 100
    watched.context._open_questions = 1
    assert watched.lasts() == 100
    watched.context._open_questions = 0
    for _ in range(TICKS - 1):
        watched.timeouts.check()
    assert not watched.call.expired
    watched.context.progress(1)
    assert watched.lasts() == TICKS
    await asyncio.wait({watched.task})
    assert watched.error is not None
    assert len(watched.timeouts) == 0
    watched.timeouts.close()


@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_a_question_holds_the_time_of_its_call(revision: str):
    """Its call lasts as long as the question, however long that is, and ends with the answer."""
    server = Server("asks", limits=ServerLimits(http_inactivity=600))
    expired: list[bool] = []

    @server.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Sure?", bool)
        expired.append(ctx._open_questions > 0)
        return str(answer)

    def answer(_: object) -> dict[str, Any]:
        timeouts = server.handlers._inactivity
        assert timeouts is not None
        assert len(timeouts) == 1
        for _ in range(3 * TICKS):
            timeouts.check()
        return {"value": True}

    async with asyncio.timeout(PATIENCE), serving(server) as web:
        url = f"http://127.0.0.1:{web.port}/mcp"
        async with Client(url, answers=Answers(elicit=answer), revision=revision) as client:
            assert (await client.call_tool("ask")).text == "True"
    assert expired == [False]


async def test_a_cancellation_from_outside_stays_one():
    """Also if the time of the call is over in the same turn of the loop."""
    watched = Watched()
    await asyncio.sleep(0)
    assert watched.lasts() == TICKS
    watched.task.cancel()
    await asyncio.wait({watched.task})
    assert watched.task.cancelled()
    watched.timeouts.close()


async def test_a_call_that_returns_although_its_time_is_over_is_not_cancelled():
    """Its task, which may serve further requests, has no cancellation left."""
    timeouts = InactivityTimeouts(600.0, asyncio.get_running_loop())
    watched = Watched()
    watched.task.cancel()
    call = watched.call

    async def return_anyway() -> int:
        timeouts.add(call)
        for _ in range(TICKS + 1):
            timeouts.check()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            timeouts.discard_expired(call)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    assert await asyncio.create_task(return_anyway()) == 0
    timeouts.close()
    await asyncio.wait({watched.task})


async def test_the_clock_does_not_keep_the_context_of_a_call() -> None:
    """The first call starts the clock, which ticks on when that call has ended."""

    class Large:
        """A value of the call, such as its arguments."""

    timeouts = InactivityTimeouts(PATIENCE, asyncio.get_running_loop())
    variable: ContextVar[Large] = ContextVar("variable")
    kept: list[weakref.ref[Large]] = []
    exchange = Exchange("tools/call", None, Caller(NEWEST))
    environment = Server("x").environment

    async def run() -> None:
        value = Large()
        kept.append(weakref.ref(value))
        variable.set(value)
        call = RunningCall(exchange=exchange, environment=environment, loop=timeouts.loop)
        timeouts.add(call)
        del timeouts.calls[call]

    await asyncio.create_task(run())
    await asyncio.sleep(0)  # the loop has let go of the task
    gc.collect()
    try:
        assert [reference() for reference in kept] == [None]
    finally:
        timeouts.close()
