"""The ready-made middleware: one server with each of them, over a client in memory."""

from __future__ import annotations

import logging

import pytest

from interlock import (
    Client,
    Context,
    Exchange,
    McpError,
    Middleware,
    Principal,
    Server,
    Tasks,
    ToolError,
    Unreachable,
)
from interlock.middleware import (
    RequestEntry,
    cache,
    error_text,
    log,
    max_size,
    rate,
    retry,
    timing,
)
from interlock.testing import Clock
from interlock.types import CallToolRequestParams, CallToolResult


class Kitchen:
    """A server that counts the runs of its tools."""

    def __init__(self, *middleware: Middleware) -> None:
        self.runs: list[str] = []
        self.server = Server("kitchen", middleware=middleware)

        @self.server.tool
        async def soup(size: str = "small") -> str:
            """Cook soup."""
            self.runs.append(size)
            return f"{size} soup {len(self.runs)}"

        @self.server.tool
        async def burn() -> str:
            """Fail."""
            self.runs.append("burn")
            raise ToolError("The pot of /srv/kitchen burnt.")

        @self.server.tool
        async def choose(ctx: Context) -> str:
            """Ask."""
            self.runs.append("choose")
            return await ctx.elicit("Which?", str)


async def test_a_cached_call_runs_once_for_its_arguments() -> None:
    clock = Clock()
    kitchen = Kitchen(cache(60, "so*", clock=clock))
    async with Client(kitchen.server) as client:
        texts = [(await client.call_tool("soup")).text for _ in range(2)]
        large = (await client.call_tool("soup", {"size": "large"})).text
        clock.advance(61)
        later = (await client.call_tool("soup")).text
    assert texts == ["small soup 1", "small soup 1"]
    assert (large, later) == ("large soup 2", "small soup 3")


async def test_errors_and_answers_are_not_cached() -> None:
    kitchen = Kitchen(cache(60, "*"))
    answers = iter(["leek", "pea"])
    async with Client(kitchen.server, elicit=lambda question: {"value": next(answers)}) as client:
        for _ in range(2):
            assert (await client.call_tool("burn")).is_error
        chosen = [(await client.call_tool("choose")).text for _ in range(2)]
    assert kitchen.runs.count("burn") == 2
    assert chosen == ["leek", "pea"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("after", [None, 0.0], ids=["at once", "promoted"])
async def test_answers_of_tasks_and_of_older_revisions_are_not_cached(
    after: float | None, revision: str
) -> None:
    """Whatever carries the question: the connection, the task, or the call that becomes one."""
    answers = iter(["leek", "pea"])
    server = Server("kitchen", middleware=[cache(60, "*")], extensions=[Tasks()])

    @server.tool(task="optional", after=after)
    async def choose(ctx: Context) -> str:
        return await ctx.elicit("Which?", str)

    async with Client(
        server, revision=revision, elicit=lambda question: {"value": next(answers)}
    ) as client:
        chosen = [(await client.call_tool("choose")).text for _ in range(2)]
    assert chosen == ["leek", "pea"]


async def test_a_cached_result_belongs_to_its_principal() -> None:
    kitchen = Kitchen(cache(60, "soup"))
    texts = []
    for subject in ("ada", "bob", "ada"):
        principal = Principal(subject=subject)
        async with Client(kitchen.server.transport(principal=principal)) as client:
            texts.append((await client.call_tool("soup")).text)
    assert texts == ["small soup 1", "small soup 2", "small soup 1"]


def test_a_cache_needs_the_names_of_tools() -> None:
    with pytest.raises(ValueError, match="name the tools to cache"):
        cache(60)


async def test_a_read_is_repeated_and_a_call_only_if_it_is_named() -> None:
    pauses: list[float] = []
    tries: list[str] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def fails_twice(x: Exchange) -> CallToolResult:
        tries.append(x.method)
        if len(tries) < 3:
            raise Unreachable("gone")
        return CallToolResult(content=[])

    handler = retry(2, "read_*", pause=1.0, sleep=sleep)(fails_twice)
    async with Client(Kitchen().server) as client:
        caller = client.caller
    await handler(Exchange("tools/call", CallToolRequestParams(name="read_it"), caller))
    assert pauses == [1.0, 2.0]
    tries.clear()
    with pytest.raises(Unreachable):
        await handler(Exchange("tools/call", CallToolRequestParams(name="write"), caller))
    assert len(tries) == 1


async def test_the_text_of_errors_is_changed() -> None:
    kitchen = Kitchen(error_text(lambda words: words.replace("/srv/kitchen", "the kitchen")))
    async with Client(kitchen.server) as client:
        assert (await client.call_tool("burn")).text == "The pot of the kitchen burnt."


async def test_a_large_result_becomes_an_error() -> None:
    kitchen = Kitchen(max_size(200))
    async with Client(kitchen.server) as client:
        assert not (await client.call_tool("soup")).is_error
        large = await client.call_tool("soup", {"size": "x" * 300})
    assert large.is_error
    assert "at most 200 are allowed" in large.text


async def test_a_caller_has_so_many_requests() -> None:
    clock = Clock()
    kitchen = Kitchen(rate(1, "soup", burst=2, clock=clock))
    async with Client(kitchen.server) as client:
        for _ in range(2):
            await client.call_tool("soup")
        with pytest.raises(McpError, match=r"Try again in 1 s") as caught:
            await client.call_tool("soup")
        assert caught.value.data == {"reason": "rate", "retryAfter": 1}
        assert (await client.call_tool("burn")).is_error  # it does not count
        clock.advance(1)
        await client.call_tool("soup")
    assert len(kitchen.runs) == 4


async def test_each_request_is_timed_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    entries: list[RequestEntry] = []
    kitchen = Kitchen(timing(entries.append), log("kitchen.requests"))
    with caplog.at_level(logging.INFO, "kitchen.requests"):
        async with Client(kitchen.server) as client:
            await client.call_tool("burn")
    assert ("tools/call", "burn", "tool error") in [(e.method, e.name, e.outcome) for e in entries]
    assert any("tools/call burn: tool error" in record.message for record in caplog.records)
