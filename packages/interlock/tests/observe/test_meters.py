"""Counters and histograms: what is counted as what, with which names, and what they look like to
Prometheus."""

from __future__ import annotations

import asyncio
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, Context, Server, ToolError
from interlock import types as t
from interlock.observe.meters import (
    BOUNDARIES,
    OTHER,
    Gauge,
    Histogram,
    Meters,
    Series,
    error_type,
    quantile,
)
from interlock.observe.prometheus import collect, exposition, merge


def shop() -> Server:
    """A server whose tools end in every way."""
    server = Server("shop")

    @server.tool
    async def buy(what: str) -> str:
        return f"bought {what}"

    @server.tool
    async def fail() -> str:
        raise ToolError("sold out")

    @server.tool
    async def refuse() -> str:
        raise t.McpError(-32050, "closed")

    @server.tool
    async def wait(ctx: Context) -> str:
        ctx.progress(1)
        await asyncio.Event().wait()
        return "never"

    @server.prompt
    async def greet() -> str:
        return "hello"

    return server


async def _use(server: Server, revision: str) -> None:
    """Make requests that end in every way."""
    async with Client(server, revision=revision) as client:
        await client.call_tool("buy", {"what": "a map"})
        assert (await client.call_tool("fail")).is_error
        with pytest.raises(t.McpError):
            await client.call_tool("refuse")
        with pytest.raises(t.McpError):
            await client.call_tool("nothing of that name")
        await client.get_prompt("greet")
        await client.list_tools()
        running = asyncio.Event()
        waiting = asyncio.create_task(
            client.call_tool("wait", on_progress=lambda progress: running.set())
        )
        await running.wait()
        assert server.meters.in_flight == 1
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


REVISIONS = ["2025-11-25", "2026-07-28"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_counters_are_always_on(revision: str) -> None:
    server = shop()
    await _use(server, revision)
    meters = server.meters
    assert meters.tool_errors == 1
    assert meters.failed == 2
    assert meters.cancelled == 1
    assert meters.in_flight == 0
    assert meters.started == meters.ended + meters.failed + meters.cancelled
    assert list(meters.histograms()) == []  # nobody reads them


@pytest.mark.parametrize("revision", REVISIONS)
async def test_histograms_are_kept_for_readers(revision: str) -> None:
    server = shop()
    server.meters.readers += 1
    await _use(server, revision)
    found = {series: histogram.count for series, histogram in server.meters.histograms()}
    assert found[Series("tools/call", "buy", "")] == 1
    assert found[Series("tools/call", "fail", "tool_error")] == 1
    assert found[Series("tools/call", "refuse", "-32050")] == 1
    assert found[Series("tools/call", OTHER, "-32602")] == 1
    assert found[Series("tools/call", "wait", "cancelled")] == 1
    assert found[Series("prompts/get", "greet", "")] == 1
    assert found[Series("tools/list", "", "")] == 1
    assert sum(found.values()) == server.meters.started


async def test_names_that_callers_invent_are_no_labels() -> None:
    """A stranger who calls tools of a thousand names adds one series."""
    server = shop()
    server.meters.readers += 1
    async with Client(server) as client:
        for number in range(1000):
            with pytest.raises(t.McpError):
                await client.call_tool(f"guess {number}")
    named = [series for series, _ in server.meters.histograms() if series.method == "tools/call"]
    assert named == [Series("tools/call", OTHER, "-32602")]


async def test_the_names_of_middleware_are_known_by_their_results() -> None:
    """A gateway has no tools of its own; the ones behind it are labels once they have answered."""

    def gateway(handler: Any) -> Any:
        async def handle(x: Any) -> Any:
            if x.method == "tools/call" and x.params.name == "far away":
                return t.CallToolResult(content=[])
            return await handler(x)

        return handle

    server = Server("front", middleware=[gateway])
    server.tool(lambda: "", name="here", description="")
    server.meters.readers += 1
    async with Client(server) as client:
        await client.call_tool("far away")
    assert Series("tools/call", "far away", "") in dict(server.meters.histograms())


def test_series_are_bounded() -> None:
    meters = Meters()
    for number in range(10_000):
        meters.count("orders", 1, (("customer", str(number)),))
    samples = [labels for _, labels, _ in meters.counters()]
    assert len(samples) == 2001
    assert sum(value for *_, value in meters.counters()) == 10_000


@given(st.lists(st.floats(0, 1000, allow_nan=False)))
def test_every_duration_is_in_the_first_bucket_that_is_long_enough(seconds: list[float]) -> None:
    histogram = Histogram()
    for one in seconds:
        histogram.record(one)
    assert histogram.count == len(seconds)
    assert math.isclose(histogram.total, math.fsum(seconds), abs_tol=1e-6)
    seen = 0
    for bound, count in zip(BOUNDARIES, histogram.counts, strict=False):
        seen += count
        assert seen == sum(one <= bound for one in seconds)


@given(st.lists(st.floats(0.00005, 300), min_size=1), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_the_end_of_its_bucket(seconds: list[float], part: float) -> None:
    histogram = Histogram()
    for one in seconds:
        histogram.record(one)
    exact = sorted(seconds)[max(0, math.ceil(part * len(seconds)) - 1)]
    assert quantile(histogram.counts, part) == next(b for b in BOUNDARIES if b >= exact)


@pytest.mark.parametrize(
    "bad, name",
    [
        (t.McpError(-32602, "no"), "-32602"),
        (asyncio.CancelledError(), "cancelled"),
        (KeyError("x"), "KeyError"),
    ],
)
def test_errors_have_short_names(bad: BaseException, name: str) -> None:
    assert error_type(bad) == name


# -- the format of Prometheus ------------------------------------------------------------------

_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
_SAMPLE = re.compile(
    rf"[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{{{_LABEL}(?:,{_LABEL})*\}})? (?:[-+0-9.e]+|\+Inf|-Inf|NaN)"
)


_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.]*", fullmatch=True)


def check_page(page: bytes) -> dict[str, float]:
    """Check each line against the grammar, and return the values by name and labels."""
    text = page.decode()
    assert text.endswith("\n")
    values = {}
    typed: list[str] = []
    for line in text[:-1].split("\n"):
        if line.startswith("# TYPE "):
            typed.append(line.split(" ")[2])
            continue
        if line.startswith("# HELP "):
            continue
        assert _SAMPLE.fullmatch(line), line
        key, _, value = line.rpartition(" ")
        assert key not in values, "a sample stands twice"
        assert key.startswith(typed[-1]), "a sample belongs to the metric above it"
        values[key] = float(value)
    assert len(set(typed)) == len(typed), "a metric stands twice"
    return values


@given(
    st.lists(st.tuples(_NAMES, st.text(), st.sampled_from(["", "tool_error"]))),
    st.dictionaries(_NAMES, st.text(), max_size=1),
)
def test_the_page_is_correct_whatever_the_names(
    names: list[tuple[str, str, str]], labels: dict[str, str]
) -> None:
    meters = Meters(lambda method, name: True)

    async def handler(x: Any) -> t.CallToolResult:
        return t.CallToolResult(content=[], is_error=x.caller == "tool_error")

    async def work() -> None:
        meters.readers += 1
        handle = meters.around(handler)
        for _, name, outcome in names:
            await handle(_Call(name, outcome))  # type: ignore[arg-type]  # what the meters read of it

    asyncio.run(work())
    for own, _, _ in names:
        meters.count(own, 1, tuple(labels.items()))
    check_page(exposition(collect(meters)))


class _Call:
    method = "tools/call"

    def __init__(self, name: str, outcome: str) -> None:
        self.params = t.CallToolRequestParams(name=name)
        self.caller = outcome


@pytest.mark.parametrize("name", ["", "two words", "1st", "a-b", "\n"])
def test_names_of_counters_are_checked(name: str) -> None:
    with pytest.raises(ValueError, match="begins with a letter"):
        Meters().count(name, 1)
    with pytest.raises(ValueError, match="begins with a letter"):
        Meters().count("orders", 1, ((name, "x"),))


def test_counters_only_grow() -> None:
    with pytest.raises(ValueError, match="only grows"):
        Meters().count("orders", -1)


def test_several_processes_are_one_page() -> None:
    first = Meters()
    first.started = first.ended = 3
    second = Meters()
    second.started = second.ended = 4
    second.add_gauge(Gauge("rooms", "Free rooms.", lambda: {(("floor", "2"),): 7.5}))
    values = check_page(exposition(merge({"11": collect(first), "12": collect(second)})))
    assert values['interlock_requests_total{worker="11",outcome="ok"}'] == 3
    assert values['interlock_requests_total{worker="12",outcome="ok"}'] == 4
    assert values['rooms{worker="12",floor="2"}'] == 7.5
