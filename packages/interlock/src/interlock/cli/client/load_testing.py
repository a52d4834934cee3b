"""`interlock load`: call a tool again and again, and measure how long the calls take."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from ... import Client, ClientTransport, Stdio
from ... import types as t
from ...client.optional_lists import unless_missing
from ...server.run.program import LOG_VARIABLE
from ...testing.load import LoadFigures, LoadGenerator
from ...transport.channel import Tap
from .. import exits
from ..screen import Bar, note, print_json, say, size
from ..targets.reach import OnLine, Reach
from .calling import VALUES, CallCommand
from .connection import ConnectionSettings
from .options import target_command
from .process_usage import ProcessUsage, process_usage
from .values import tool_arguments

_QUANTILES: Final = (0.5, 0.9, 0.99, 0.999)
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LATE: Final = 0.01  # seconds; a generator whose calls start later than this is at its limit
_BUSY: Final = 0.95  # of a core, likewise


def _duration(_: click.Context, __: click.Parameter, value: str) -> float:
    """A duration such as 500ms, 30s or 2m in seconds, as the callback of an option."""
    found = _DURATION.fullmatch(value)
    if found is None or not float(found[1]):
        raise click.BadParameter(f"{value!r} is not a duration; write 500ms, 30s or 2m.")
    return float(found[1]) * _UNITS[found[2] or "s"]


class _Usage(Struct):
    """The resources that the server and this program have used.

    Attributes:
        server: The processor time of the server, in seconds; None if it is not a local process.
        resident: The largest resident memory that was seen, in bytes.
        own: The processor time of this program, in seconds.
    """

    server: float | None = None
    resident: int = 0
    own: float = 0.0


class _UsageMeter:
    """Reads the usage of the server and of this program from the start of a load test on."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._first = self._read()
        self._own = time.process_time()
        self.usage = _Usage()

    def update(self) -> None:
        """Read the usage until now."""
        self.usage.own = time.process_time() - self._own
        now = self._read()
        if now is not None and self._first is not None:
            self.usage.server = now.processor - self._first.processor
            self.usage.resident = max(self.usage.resident, now.resident)

    def _read(self) -> ProcessUsage | None:
        return process_usage(self._pid) if self._pid is not None else None


@target_command("load", "TOOL [KEY=VALUE]...", epilog=VALUES, kind=CallCommand)
@click.option("--arguments", metavar="JSON", help="The arguments as one JSON object, or @FILE.")
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    metavar="R",
    help="Open loop: start R calls in each second, whatever the server does.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    metavar="N",
    help="Closed loop: N callers, which each wait for their call.  [default: 1]",
)
@click.option(
    "--for",
    "seconds",
    callback=_duration,
    default="10s",
    show_default=True,
    metavar="TIME",
    help="How long calls are started: 500ms, 30s, 2m.",
)
@click.option(
    "--pid", type=int, help="The process of a local server at a URL, to measure its CPU and memory."
)
def load(
    connection: ConnectionSettings,
    words: Sequence[str],
    arguments: str | None,
    rate: float | None,
    concurrency: int | None,
    seconds: float,
    pid: int | None,
) -> None:
    """Call a TOOL again and again, and measure how long the calls take.

    With --rate, the latency of a call counts from the time at which it should have started. So a
    server that stalls shows the waits of all calls that were due meanwhile, as its users feel
    them. With --concurrency, a slow answer delays the next call: this measures how many calls the
    server can answer.

    The tool is really called: choose one that may be called thousands of times. The exit code is 1
    if a call has failed. Ctrl-C ends the test, and shows what was measured until then.

    \b
    interlock load server.py search query=tea --rate 200 --for 30s
    interlock load https://lab.example/mcp search query=tea --concurrency 16 --json
    """
    if not words or "=" in words[0]:
        raise click.UsageError("Missing TOOL.")
    if rate is not None and concurrency is not None:
        raise click.UsageError("Choose --rate or --concurrency.")
    # A file is served in development mode, whose request log would be part of what is measured.
    os.environ.setdefault(LOG_VARIABLE, "off")
    started: list[ClientTransport] = []

    def reach(tap: Tap | None, on_stderr: OnLine | None) -> ClientTransport:
        started.append(connection.reach(tap, on_stderr))
        return started[-1]

    async def work(client: Client) -> int:
        given = await _arguments(client, words, arguments)
        generator = LoadGenerator(
            lambda: client.call_tool(words[0], given),
            seconds=seconds,
            rate=rate,
            concurrency=concurrency or 1,
        )
        meter = _UsageMeter(pid or _child_of(started))
        with Bar() as bar:
            watching = asyncio.create_task(_watch(generator, meter, bar, seconds))
            try:
                await generator.run()
            finally:
                watching.cancel()
                meter.update()
                bar.erase()
                report = _report(words[0], rate, concurrency or 1, generator.figures, meter.usage)
                if connection.machine:
                    print_json(report)
                else:
                    _show(report)
        return exits.TOOL_FAILED if generator.figures.errors else exits.OK

    chosen: Reach = reach
    msgspec.structs.replace(connection, reach=chosen).run(work)


async def _arguments(client: Client, words: Sequence[str], arguments: str | None) -> dict[str, Any]:
    """The arguments of the calls. Raises McpError for a tool that the server does not have."""
    offered = client.server_capabilities.tools is not None
    listed = await unless_missing(client.list_tools()) if offered else None
    tools = {tool.name: tool for tool in listed or ()}
    if listed is not None and words[0] not in tools:
        raise t.McpError(
            t.INVALID_PARAMS,
            f"The server lists no tool {words[0]}; it lists {', '.join(tools) or 'none'}.",
        )
    schema = tools[words[0]].input_schema if words[0] in tools else {}
    return tool_arguments(words[1:], arguments, schema)


def _child_of(transports: Sequence[ClientTransport]) -> int | None:
    """The process that was started for the connection."""
    return next((each.pid for each in transports if isinstance(each, Stdio)), None)


async def _watch(generator: LoadGenerator, meter: _UsageMeter, bar: Bar, seconds: float) -> None:
    """Draw the progress, and read the memory of the server, each second."""
    while True:
        await asyncio.sleep(1)
        await asyncio.to_thread(meter.update)
        figures = generator.figures
        elapsed = generator.elapsed
        bar.update(
            t.ProgressNotificationParams(
                progress_token="",
                progress=min(elapsed, seconds),
                total=seconds,
                message=f"{figures.ended / elapsed:.0f} calls a second, {figures.failed} failed",
            )
        )


def _report(
    tool: str, rate: float | None, concurrency: int, figures: LoadFigures, usage: _Usage
) -> dict[str, Any]:
    """The figures as JSON. Durations are in seconds."""
    latencies = figures.latencies
    report: dict[str, Any] = {
        "tool": tool,
        "loop": "closed" if rate is None else "open",
        **({"concurrency": concurrency} if rate is None else {"rate": rate}),
        "seconds": figures.seconds,
        "calls": figures.ended,
        "per_second": figures.per_second,
        "failed": figures.failed,
        "errors": dict(figures.errors.most_common()),
        "not_started": figures.not_started,
        "interrupted": figures.started - figures.ended,
        "most_in_flight": figures.most_in_flight,
        "latency": {
            "mean": latencies.mean,
            **{f"p{part * 100:g}": latencies.quantile(part) for part in _QUANTILES},
            "max": latencies.longest,
        },
        "histogram": [{"at_most": bound, "calls": count} for bound, count in latencies.buckets()],
        "generator": {"processor": usage.own, "latest_start": figures.latest_start},
    }
    if usage.server is not None:
        report["server"] = {"processor": usage.server, "resident_bytes": usage.resident}
    return report


def _show(report: dict[str, Any]) -> None:
    calls = report["calls"]
    seconds = report["seconds"] or 1e-9
    loop = (
        f"{report['concurrency']} at once"
        if report["loop"] == "closed"
        else f"{report['rate']:g} a second were due, at most {report['most_in_flight']} at once"
    )
    say(
        f"{calls} calls in {seconds:.1f} s: {report['per_second']:.1f} a second ({loop})", bold=True
    )
    latency = report["latency"]
    if report["histogram"]:
        values = "  ".join(f"{name} {span(value)}" for name, value in latency.items())
        say(f"Latency    {values}")
    if report["errors"]:
        kinds = "  ".join(f"{kind} {count}" for kind, count in report["errors"].items())
        say(f"Failed     {report['failed']}: {kinds}", fg="red")
    if server := report.get("server"):
        each = f", {server['processor'] / calls * 1e6:.0f} us a call" if calls else ""
        say(
            f"Server     {server['processor'] / seconds:.0%} of a core{each}, "
            f"{size(server['resident_bytes'])} of memory"
        )
    generator = report["generator"]
    say(f"Generator  {generator['processor'] / seconds:.0%} of a core")
    if report["not_started"]:
        note(
            f"{report['not_started']} calls were due and never started: the server cannot answer "
            f"{report['rate']:g} calls a second.",
            fg="yellow",
        )
    is_late = generator["latest_start"] > _LATE
    if is_late or (report["loop"] == "closed" and generator["processor"] > _BUSY * seconds):
        late = f" It started a call {span(generator['latest_start'])} late." if is_late else ""
        note(
            f"The generator is at its limit, so the server may be faster than this.{late}"
            " Use several generators at the same time.",
            fg="yellow",
        )


def span(seconds: float) -> str:
    """A duration in words."""
    for unit, factor in (("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"
