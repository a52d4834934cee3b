"""`interlock load`: its figures are those that the server's own metrics give."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import HttpFetch, Request
from interlock.observe.meters import BOUNDARIES, quantile
from tests.cli.conftest import Command
from tests.observe.test_meters import check_page

SERVER = """
import asyncio
from interlock import Server, ToolError

server = Server("shop")

@server.tool
async def slow() -> str:
    "Takes longer than a busy machine makes a call wait."
    await asyncio.sleep(1.1)
    return "done"

@server.tool
async def buy(what: str, count: int = 1) -> str:
    if what == "nothing":
        raise ToolError("there is nothing")
    return f"{count} {what}"

@server.tool
async def hang() -> str:
    await asyncio.Event().wait()
    return "never"
"""


@pytest.fixture(autouse=True)
def without_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command turns the request log of the servers that it starts off."""
    monkeypatch.setenv("INTERLOCK_LOG", "off")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(SERVER, encoding="utf-8")
    return path


@pytest.fixture
def serving(shop: Path) -> Iterator[tuple[str, str, int]]:
    """A server over HTTP: its URL, that of its metrics, and its PID."""
    command = [sys.executable, "-m", "interlock", "run", str(shop)]
    process = subprocess.Popen(
        [*command, "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    urls = {}
    for line in process.stderr:
        words, _, url = line.strip().rpartition(" at ")
        urls[words] = url
        if words == "Serving":
            break
    yield urls["Serving"], urls["Metrics"], process.pid
    process.terminate()
    process.communicate(timeout=30)


def metrics_of(url: str) -> dict[str, float]:
    async def read() -> bytes:
        fetch = HttpFetch()
        try:
            response = await fetch(Request("GET", url))
            return await response.read(10_000_000)
        finally:
            await fetch.aclose()

    return check_page(asyncio.run(read()))


def bucket(seconds: float) -> int:
    return bisect_left(BOUNDARIES, seconds)


@pytest.mark.parametrize("options", [["--concurrency", "3"], ["--rate", "3"]])
def test_figures_equal_those_of_the_metrics(
    interlock: Command, serving: tuple[str, str, int], options: list[str]
) -> None:
    """The same counts, and latencies within one bucket of the server's histogram."""
    url, metrics, pid = serving
    done = interlock("load", url, "slow", *options, "--for", "1s", "--json", "--pid", str(pid))
    assert done.exit_code == 0, done.output
    report: dict[str, Any] = json.loads(done.stdout)
    values = metrics_of(metrics)
    name = "mcp_server_operation_duration_seconds"
    labels = 'mcp_method_name="tools/call",gen_ai_tool_name="slow"'
    counts = [values[f'{name}_bucket{{{labels},le="{bound:g}"}}'] for bound in BOUNDARIES]
    total = values[f"{name}_count{{{labels}}}"]
    assert report["calls"] == sum(row["calls"] for row in report["histogram"]) == total == 3
    steps = [*counts, total]
    each = [int(now - before) for before, now in zip([0.0, *steps], steps, strict=False)]
    for part in (0.5, 0.99):
        theirs = bucket(quantile(each, part))
        assert abs(bucket(report["latency"][f"p{part * 100:g}"]) - theirs) <= 1
    assert report["server"]["processor"] >= 0
    assert report["server"]["resident_bytes"] > 1_000_000


def test_a_server_that_is_started(interlock: Command, shop: Path) -> None:
    """Arguments by its schema, its CPU and memory, and failures by kind with exit code 1."""
    done = interlock(
        *("load", shop, "buy", "what=nothing", "count=2", "--concurrency", "2", "--for", "50ms")
    )
    assert done.exit_code == 1, done.output
    first, *rest = done.stdout.splitlines()
    assert " calls in " in first
    assert first.endswith("(2 at once)")
    titles = {line.split()[0] for line in rest}
    assert titles == {"Failed", "Server", "Generator"}
    assert any("tool_error" in line for line in rest)


def test_the_open_loop_makes_all_calls(interlock: Command, shop: Path) -> None:
    done = interlock(
        *("load", shop, "buy", "--json", '{"what": "tea"}', "--rate", "50", "--for", "200ms"),
        "--json",
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["loop"], report["rate"], report["calls"], report["failed"]) == (
        "open",
        50,
        10,
        0,
    )
    assert report["latency"]["p50"] <= report["latency"]["p99.9"] <= report["latency"]["max"]


def test_an_interrupt_shows_what_was_measured(shop: Path) -> None:
    command = [sys.executable, "-m", "interlock", "load", str(shop), "hang", "-v", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if '"tools/call"' in line:
            break
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    report = json.loads(out)
    assert (report["calls"], report["interrupted"]) == (0, 1)


@pytest.mark.parametrize(
    "words, error",
    [
        (["buy", "--for", "soon"], "'soon' is not a duration"),
        (["buy", "--for", "0s"], "'0s' is not a duration"),
        (["buy", "--rate", "1", "--concurrency", "1"], "Choose --rate or --concurrency"),
        (["what=tea"], "Missing TOOL"),
    ],
)
def test_wrong_usage(interlock: Command, shop: Path, words: list[str], error: str) -> None:
    refused = interlock("load", shop, *words)
    assert refused.exit_code == 2
    assert error in refused.stderr


def test_a_tool_that_the_server_does_not_list(interlock: Command, shop: Path) -> None:
    refused = interlock("load", shop, "sell", "--for", "10ms")
    assert refused.exit_code == 3
    assert "it lists slow, buy, hang" in refused.stderr
