"""`python -m benchmarks.observing`: what metrics, traces, the request log and the recorder cost a
call, the page of metrics, and how many calls the load generator makes from one core."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from interlock import Client, Server, Stdio
from interlock.exchange import AnyResult, Exchange, Handler
from interlock.observe.meters import Meters
from interlock.observe.opentelemetry import OpenTelemetry
from interlock.observe.prometheus import collect, exposition
from interlock.server.request_log import RequestLog, StderrLines
from interlock.tape import Recorder
from interlock.testing.load import LoadGenerator
from interlock.types import CallToolResult

from .rounds import FIXED_SERVER

CALLS = 10_000
ROUNDS = 15
SERIES = 1_000
SECONDS = 3.0  # of each run of the load generator
DONE = CallToolResult(content=[])


def main() -> None:
    """Print the figures: processor time in microseconds for each call, above that of a handler that
    does nothing. Lowest and median of interleaved rounds."""
    asyncio.run(_calls())
    _recorder()
    _page()
    asyncio.run(_load())


async def _nothing(x: Exchange) -> AnyResult:
    return DONE


async def _calls() -> None:
    x = await _exchange()
    unread = Meters(lambda method, name: True)
    read = Meters(lambda method, name: True)
    read.readers = 1
    sink = os.open(os.devnull, os.O_WRONLY)
    lines = StderrLines(str, sink)
    variants: dict[str, tuple[Handler, str]] = {
        "metrics, not read": (unread.around(_nothing), "0.3"),
        "metrics, read": (read.around(_nothing), "4"),
        "request log": (RequestLog(lines.write)(_nothing), ""),
        "trace, not sampled": (_traced(TracerProvider(sampler=ALWAYS_OFF)), "8"),
        "trace": (_traced(TracerProvider()), "40"),
    }
    found: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(ROUNDS):
        bare = await _cost(_nothing, x, lines.flush)
        for name, (handler, _goal) in variants.items():
            found[name].append(await _cost(handler, x, lines.flush) - bare)
    for name, (_handler, goal) in variants.items():
        _print(name, found[name], "us", goal)


async def _exchange() -> Exchange:
    """A call of a tool, as a server gets it."""
    seen: list[Exchange] = []

    def keep(handler: Handler) -> Handler:
        def handle(x: Exchange) -> Awaitable[AnyResult]:
            seen.append(x)
            return handler(x)

        return handle

    server = Server("observed", middleware=[keep])
    server.tool(_same, name="same")
    async with Client(server) as client:
        await client.call_tool("same", {"a": 1})
    return next(x for x in seen if x.method == "tools/call")


def _same(a: int) -> int:
    return a


def _traced(provider: TracerProvider) -> Handler:
    return OpenTelemetry(provider).server(_nothing)


async def _cost(handler: Handler, x: Exchange, flush: Callable[[], None]) -> float:
    began = time.process_time()
    for number in range(CALLS):
        await handler(x)
        if number % 200 == 0:  # lines are written together, as in a server under load
            flush()
    return (time.process_time() - began) / CALLS * 1e6


def _recorder() -> None:
    frame = (
        b'{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"search","arguments":'
        b'{"query":"tea","limit":10},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}'
    )
    costs = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            with Recorder(Path(folder) / f"{number}.tape") as recorder:
                record = recorder.connection()
                began = time.process_time()
                for _ in range(CALLS):
                    record("client", frame)
                costs.append((time.process_time() - began) / CALLS * 1e6)
    _print("recorder, each message", costs, "us", "15")


def _page() -> None:
    meters = Meters(lambda method, name: True)
    meters.readers = 1
    for number in range(SERIES):
        meters.record(
            "interlock_store_operation_duration", 0.001, (("operation", f"part.operation{number}"),)
        )
    costs = []
    for _ in range(ROUNDS):
        began = time.process_time()
        exposition(collect(meters))
        costs.append((time.process_time() - began) * 1000)
    _print(f"/metrics of {SERIES:,} histograms", costs, "ms", "5")


async def _load() -> None:
    for callers in (16, 64):
        costs = []
        async with Client(Stdio(list(FIXED_SERVER))) as client:
            for _ in range(3):
                call = partial(client.call_tool, "aadd", {"a": 1, "b": 2})
                generator = LoadGenerator(call, seconds=SECONDS, concurrency=callers)
                began = time.process_time()
                await generator.run()
                costs.append((time.process_time() - began) / generator.figures.ended)
        name = f"load generator, {callers} callers"
        _print(name, [1 / cost for cost in costs], "calls/s from one core", "15,000", best=max)


def _print(
    name: str,
    values: Sequence[float],
    unit: str,
    goal: str,
    *,
    best: Callable[[Sequence[float]], Any] = min,
) -> None:
    median = statistics.median(values)
    words = f"{best(values):10,.2f}{median:10,.2f} {unit}"
    print(f"{name:32}{words}{f'  (goal {goal})' if goal else ''}")


if __name__ == "__main__":
    main()
