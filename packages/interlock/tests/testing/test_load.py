"""The load generator: what it counts, and that a stalled server hides no latency."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, Server
from interlock.testing.load import GROWTH, LatencyHistogram, LoadGenerator
from interlock.types import CallToolResult, McpError, TextContent, Unreachable

DONE = CallToolResult(content=[TextContent(text="done")])
BAD = CallToolResult(content=[TextContent(text="no")], is_error=True)


@given(st.lists(st.floats(1e-6, 1e4), min_size=1), st.floats(0, 1))
def test_quantiles_are_at_most_five_percent_too_high(latencies: list[float], part: float) -> None:
    histogram = LatencyHistogram()
    for each in latencies:
        histogram.record(each)
    ordered = sorted(latencies)
    exact = next(each for rank, each in enumerate(ordered, 1) if rank >= part * len(ordered))
    assert exact * (1 - 1e-9) <= histogram.quantile(part) <= exact * GROWTH * (1 + 1e-9)
    assert histogram.count == sum(count for _, count in histogram.buckets()) == len(latencies)
    assert histogram.longest == max(latencies)


def test_an_empty_histogram() -> None:
    histogram = LatencyHistogram()
    assert (histogram.count, histogram.mean, histogram.quantile(0.5)) == (0, 0.0, 0.0)


async def test_calls_that_were_due_during_a_stall_show_it() -> None:
    """No coordinated omission: the server stalls once, and not one slow call but all that should
    have started meanwhile are slow. A closed loop of one caller sees a single slow call.
    """
    stall = 0.4
    released: asyncio.Event | None = None

    async def call() -> CallToolResult:
        nonlocal released
        if released is None:
            released = asyncio.Event()
            asyncio.get_running_loop().call_later(stall, released.set)
        await released.wait()
        return DONE

    generator = LoadGenerator(call, seconds=0.5, rate=100)
    await generator.run()
    figures = generator.figures
    assert (figures.started, figures.ended, figures.not_started) == (50, 50, 0)
    slow = sum(count for bound, count in figures.latencies.buckets() if bound >= stall / 2)
    assert slow >= 20  # those due in the first half of the stall
    assert figures.most_in_flight >= 20


async def test_a_server_that_cannot_keep_the_rate_leaves_calls_unstarted() -> None:
    """The calls in flight are bounded, and the rest is reported."""
    ends = asyncio.Event()

    async def call() -> CallToolResult:
        if generator.figures.started == 8:
            asyncio.get_running_loop().call_later(0.2, ends.set)
        await ends.wait()
        return DONE

    generator = LoadGenerator(call, seconds=0.1, rate=1000, most_in_flight=8)
    await generator.run()
    figures = generator.figures
    assert figures.most_in_flight == 8
    assert figures.started == figures.ended
    assert figures.started + figures.not_started == 100
    assert figures.not_started > 0


async def test_callers_of_the_closed_loop() -> None:
    """Each waits for its call; at the end the calls in flight are awaited."""
    in_flight = 0

    async def call() -> CallToolResult:
        nonlocal in_flight
        in_flight += 1
        await asyncio.sleep(0.01)
        in_flight -= 1
        return DONE

    generator = LoadGenerator(call, seconds=0.05, concurrency=3)
    await generator.run()
    assert in_flight == 0
    assert generator.figures.most_in_flight == 3
    assert generator.figures.started == generator.figures.ended >= 3
    assert generator.figures.seconds >= 0.05


async def test_errors_are_counted_by_kind() -> None:
    """They are no latencies: an error is often quicker than an answer."""
    outcomes = iter([BAD, McpError(-32000, "busy"), Unreachable("gone"), BAD])

    async def call() -> CallToolResult:
        outcome = next(outcomes, DONE)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    generator = LoadGenerator(call, seconds=0.02, rate=500)
    await generator.run()
    figures = generator.figures
    assert figures.errors == {"tool_error": 2, "-32000": 1, "Unreachable": 1}
    assert figures.failed == 4
    assert figures.latencies.count == figures.ended - 4 == 6


@pytest.mark.parametrize("rate", [None, 1000.0])
async def test_a_defect_of_the_caller_is_raised(rate: float | None) -> None:
    async def call() -> CallToolResult:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await LoadGenerator(call, seconds=0.01, rate=rate).run()


@pytest.mark.parametrize("rate", [None, 1000.0])
async def test_an_interrupted_test_keeps_its_figures(rate: float | None) -> None:
    """The calls in flight are cancelled, also at the server."""
    server = Server("slow")
    arrived = asyncio.Event()
    cancelled: list[str] = []

    @server.tool
    async def wait() -> str:
        arrived.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("wait")
            raise
        return "never"

    async with Client(server) as client:
        generator = LoadGenerator(
            lambda: client.call_tool("wait"), seconds=600, rate=rate, most_in_flight=1
        )
        running = asyncio.create_task(generator.run())
        await arrived.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert (generator.figures.started, generator.figures.ended) == (1, 0)
    assert cancelled == ["wait"]
