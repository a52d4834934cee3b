"""`python -m benchmarks.inspector`: the inspector from start to page beside the official one, the
cost of an inspected call, and a large tape.

The script time of a frame is the processor time of a headless Chromium, while a list of 100,000
messages is scrolled by a thousand rows and by three rows in turn. The cost of a call is what the
recording and its index add, in processor time of one process with both ends of the call.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from interlock import Client, ClientSettings, Server, listening_socket
from interlock.tape import Recorder
from interlock_apps.inspector.act import run_act
from interlock_apps.inspector.acts import ACTS
from interlock_apps.inspector.session import Inspector
from interlock_apps.inspector.site import InspectorSite, serve
from interlock_apps.inspector.targets import InspectorTarget
from scripts.peers import INSTALLERS, OLDEST_NODE_OF_THE_SUITE, node
from tests.browser import browsing

from .tables import grid

SERVER = """
from interlock import Server
server = Server("bench")
@server.tool
def add(a: int, b: int) -> int:
    return a + b
"""
ROWS = 100_000
FRAMES = 200
CALLS = 5000
TITLES = {
    "page": "start to page (s)",
    "official": "start to page, official inspector (s)",
    "connected": "start to connected (s)",
    "call": "an inspected call adds (us)",
    "first": "100 MB tape, first rows (s)",
    "indexed": "100 MB tape, all rows (s)",
    "filtered": "filter of 100,000 rows by tool (s)",
    "median": "script of a frame, median (ms)",
    "worst": "script of a frame, 99th of 100 (ms)",
    "memory": "JavaScript heap after scrolling (MB)",
}


def main() -> None:
    """Measure, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    kinds = ["start", "call", "tape", "frames"]
    parser.add_argument("--only", choices=kinds, action="append")
    options = parser.parse_args()
    wanted = options.only or kinds
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        tape = Path(folder) / "long.tape"
        if "tape" in wanted or "frames" in wanted:
            write_tape(tape)
        for _ in range(options.rounds):
            if "start" in wanted:
                _add(found, measure_start(Path(folder)))
                _add(found, measure_official_start(Path(folder)))
            if "call" in wanted:
                _add(found, asyncio.run(measure_call(Path(folder))))
            if "tape" in wanted:
                _add(found, asyncio.run(measure_tape(tape, Path(folder))))
        if "frames" in wanted:
            _add(found, asyncio.run(measure_frames(tape, Path(folder))))
    lines = [
        [TITLES[name], f"{statistics.median(found[name]):.3g}"] for name in TITLES if name in found
    ]
    print(grid(["", "median"], lines))


def _add(found: dict[str, list[float]], figures: dict[str, float]) -> None:
    for name, value in figures.items():
        found.setdefault(name, []).append(value)


def write_tape(path: Path) -> None:
    """Write a tape of 100,000 messages with about 1 KB each."""
    pad = b"x" * 900
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t%d","text":"%b"}}'
    answer = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%b"}]}}'
    with Recorder(path) as recorder:
        connection = recorder.connection()
        for start in range(0, ROWS // 2, 1000):
            ids = range(start, start + 1000)
            connection.frames("client", [call % (id, id, pad) for id in ids])
            connection.frames("server", [answer % (id, pad) for id in ids])


# -- the start -------------------------------------------------------------------------------------


def measure_start(folder: Path) -> dict[str, float]:
    """The seconds from the start of the command to its page, and to a connected server."""
    server = folder / "server.py"
    server.write_text(SERVER)
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "interlock", "inspect", str(server)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        cookies = urllib.request.HTTPCookieProcessor()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
        with opener.open(found[0], timeout=30) as page:
            assert b"Inspector" in page.read()
            place = page.url
        shown = time.perf_counter() - begun
        with opener.open(f"{place}api/events", timeout=30) as events:
            for line in events:
                if b'"status":"open"' in line:
                    break
        connected = time.perf_counter() - begun
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
    return {"page": shown, "connected": connected}


def measure_official_start(folder: Path) -> dict[str, float]:
    """The seconds from the start of the official inspector's command to its page."""
    server = folder / "server.py"
    server.write_text(SERVER)
    place = INSTALLERS["npm-inspector"]() / "node_modules/@modelcontextprotocol/inspector"
    program = [str(node(OLDEST_NODE_OF_THE_SUITE)), str(place / "clients/launcher/build/index.js")]
    with listening_socket("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    environment = {"MCP_AUTO_OPEN_ENABLED": "false", "HOST": "127.0.0.1", "CLIENT_PORT": str(port)}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [*program, "--web", "--", sys.executable, "-m", "interlock", "run", str(server)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment, "MCP_INSPECTOR_SECRET_STORE": "memory"},
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        found = None
        while found is None:
            line = process.stdout.readline()
            assert line, "the official inspector has ended"
            found = re.search(r"http://\S+TOKEN=\S+", line)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(found[0], timeout=30) as page:
            assert b"Inspector" in page.read()
        shown = time.perf_counter() - begun
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
        process.stdout.close()
    return {"official": shown}


# -- a call ----------------------------------------------------------------------------------------


async def measure_call(folder: Path) -> dict[str, float]:
    """The microseconds of processor time that the inspector adds to a call."""
    server = Server("bench")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    # With a tap that does nothing: without one, no bytes are made in memory.
    transport = server.transport(tap=lambda _, __: None)
    async with Client(transport, settings=ClientSettings(cache=False, validate=False)) as client:
        plain = await _seconds_of_calls(client)
    tape = folder / "call.tape"
    tape.unlink(missing_ok=True)
    with Recorder(tape) as recorder:
        target = InspectorTarget("bench", "bench", transport=lambda tap: server.transport(tap=tap))
        inspector = Inspector([target], recorder, calls=folder / "calls.json")
        following = asyncio.create_task(inspector.follow())
        connection = inspector.connections["bench"]
        await connection.open()
        assert connection.client is not None
        inspected = await _seconds_of_calls(connection.client)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await inspector.aclose()
    return {"call": (inspected - plain) * 1e6}


async def _seconds_of_calls(client: Client) -> float:
    """The processor time of one of many calls."""
    for _ in range(200):
        await client.call_tool("add", {"a": 1, "b": 2})
    begun = time.process_time()
    for _ in range(CALLS):
        await client.call_tool("add", {"a": 1, "b": 2})
    return (time.process_time() - begun) / CALLS


# -- a tape ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def inspecting(tape: Path, folder: Path) -> Iterator[Inspector]:
    """An inspector of a tape."""
    with Recorder(folder / "live.tape") as recorder:
        target = InspectorTarget("long", "long", tape=tape)
        yield Inspector([target], recorder, calls=folder / "calls.json")


async def measure_tape(tape: Path, folder: Path) -> dict[str, float]:
    """The seconds until the first and the last row of a tape are shown, and for a filter."""
    begun = time.perf_counter()
    with inspecting(tape, folder) as inspector:
        following = asyncio.create_task(inspector.follow())

        async def rows(**more: Any) -> Any:
            body = msgspec.json.encode({"act": "rows", "recording": "long", **more})
            return await run_act(ACTS, inspector, body)

        await rows()
        first = time.perf_counter() - begun
        while not (await rows())["complete"]:
            pass  # each request indexes a piece
        indexed = time.perf_counter() - begun
        begun = time.perf_counter()
        assert (await rows(filter="tool:t4999? request"))["total"] == 10
        filtered = time.perf_counter() - begun
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await inspector.aclose()
    return {"first": first, "indexed": indexed, "filtered": filtered}


# -- frames ----------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def served(inspector: Inspector) -> AsyncIterator[str]:
    """The address of an inspector's page."""
    ready: asyncio.Future[InspectorSite] = asyncio.get_running_loop().create_future()
    set_ready: Callable[[InspectorSite], None] = ready.set_result
    work = asyncio.gather(serve(inspector, on_ready=set_ready), inspector.follow())
    try:
        yield (await ready).entry
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def measure_frames(tape: Path, folder: Path) -> dict[str, float]:
    """The milliseconds of script in each frame while the list is scrolled."""
    with inspecting(tape, folder) as inspector:
        async with served(inspector) as address, browsing(INSTALLERS["chromium"]()) as browser:
            page = await browser.new_page(viewport={"width": 1320, "height": 860})
            await page.goto(address)
            await page.get_by_text("100,000 lines", exact=True).wait_for()
            meter = await page.context.new_cdp_session(page)
            # The processor time of the page: other programs of the machine are no part of it.
            await meter.send("Performance.enable", {"timeDomain": "threadTicks"})
            await page.evaluate("box => { window.box = document.querySelector('.timeline-box'); }")
            spent = []
            for number in range(FRAMES):
                rows = 1000 if number % 2 else 3
                before = await _metric(meter, "ScriptDuration")
                await page.evaluate(
                    """async rows => {
                      window.box.scrollTop -= rows * 28;
                      await new Promise(requestAnimationFrame);
                      await new Promise(requestAnimationFrame);
                    }""",
                    rows,
                )
                spent.append((await _metric(meter, "ScriptDuration") - before) * 1000)
            heap = await _metric(meter, "JSHeapUsedSize") / 1e6
        await inspector.aclose()
    return {
        "median": statistics.median(spent),
        "worst": statistics.quantiles(spent, n=100)[98],
        "memory": heap,
    }


async def _metric(meter: Any, name: str) -> float:
    found = await meter.send("Performance.getMetrics")
    return float(next(one["value"] for one in found["metrics"] if one["name"] == name))


if __name__ == "__main__":
    main()
