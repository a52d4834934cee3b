"""The metrics endpoint: over every transport, in one process and in several, apart from the
endpoint of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from interlock import (
    Client,
    Duplex,
    HttpFetch,
    McpError,
    Observe,
    Request,
    Server,
    Tasks,
    Unreachable,
)
from interlock.observe.meters import Meters
from interlock.testing import channel_pair
from tests.observe.test_meters import check_page

SERVER = """
from interlock import Context, Server
import os

server = Server("shop")

@server.tool
async def buy(what: str, ctx: Context) -> str:
    ctx.count("orders", what=what)
    return str(os.getpid())
"""


async def page(url: str, method: str = "GET") -> tuple[int, bytes]:
    """Return the status and the body of a page."""
    fetch = HttpFetch()
    try:
        response = await fetch(Request(method, url))
        body = await response.read(10_000_000)
        return response.status, body
    finally:
        await fetch.aclose()


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[tuple[str, str]]:
    """A server over HTTP in this process: the URLs of the endpoint and of the metrics."""
    urls: list[str] = []
    server = Server("shop", observe=Observe(metrics=":0", on_ready=urls.append))

    @server.tool
    async def buy(what: str) -> str:
        return what

    async with server.serve_http(port=0) as http:
        yield http.url, urls[0]


async def test_metrics_are_on_a_listener_of_their_own() -> None:
    async with listening() as (url, metrics):
        assert metrics.startswith("http://127.0.0.1:")
        async with Client(url) as client:
            for _ in range(3):
                await client.call_tool("buy", {"what": "a map"})
        status, body = await page(metrics)
        values = check_page(body)
        assert status == 200
        assert values['interlock_requests_total{outcome="ok"}'] >= 3
        duration = "mcp_server_operation_duration_seconds"
        labels = 'mcp_method_name="tools/call",gen_ai_tool_name="buy"'
        assert values[f"{duration}_count{{{labels}}}"] == 3
        assert values[f'{duration}_bucket{{{labels},le="+Inf"}}'] == 3
        assert values['interlock_quota_limit{resource="calls"}'] > 0
        assert values["process_resident_memory_bytes"] > 1_000_000
        assert "interlock_event_loop_lag_seconds" in values
        assert (await page(metrics, "HEAD"))[1] == b""
        assert (await page(metrics, "POST"))[0] == 405
        assert (await page(metrics.replace("/metrics", "/mcp")))[0] == 404
        assert (await page(url.replace("/mcp", "/metrics")))[0] == 404
    with pytest.raises(Unreachable):
        await page(metrics)


@pytest.mark.parametrize("address", ["9464", "here", ":http", ""])
def test_an_address_that_cannot_be_read_is_refused(address: str) -> None:
    server = Server("shop", observe=Observe(metrics=address))
    with pytest.raises(ValueError, match=r"\[HOST\]:PORT"):
        server.run("tcp", port=0)


@contextlib.contextmanager
def program(folder: Path, *options: str) -> Iterator[tuple[str, str]]:
    """`interlock run` with these options: the URLs of the endpoint and of the metrics."""
    file = folder / "shop.py"
    file.write_text(SERVER)
    process = subprocess.Popen(
        [sys.executable, "-m", "interlock", "run", str(file), "--metrics", ":0", *options],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        found: dict[str, str] = {}
        assert process.stderr is not None
        while len(found) < 2:
            line = process.stderr.readline()
            assert line, "the program has ended"
            if match := re.search(r"(Serving|Metrics) at (http\S+)", line):
                found[match[1]] = match[2]
        yield found["Serving"], found["Metrics"]
    finally:
        process.terminate()
        process.communicate()


async def test_any_worker_answers_for_all(tmp_path: Path) -> None:
    with program(tmp_path, "--http", ":0", "--workers", "2") as (url, metrics):
        by_worker: dict[str, int] = {}
        while len(by_worker) < 2:  # the system distributes connections as it likes
            async with Client(url) as client:
                result = await client.call_tool("buy", {"what": "maps"})
            by_worker[result.text] = by_worker.get(result.text, 0) + 1
        for _ in range(3):
            values = check_page((await page(metrics))[1])
            assert {
                worker: values[f'orders_total{{worker="{worker}",what="maps"}}']
                for worker in by_worker
            } == by_worker


async def test_sessions_tasks_bytes_and_the_store_are_measured(tmp_path: Path) -> None:
    """What is not a request: durations of sessions and of the store's operations, tasks by status,
    bytes.
    """
    urls: list[str] = []
    store = f"sqlite://{tmp_path / 'shop.db'}"
    server = Server(
        "shop",
        observe=Observe(metrics=":0", on_ready=urls.append),
        extensions=[Tasks(store=store)],
    )
    ready = asyncio.Event()

    @server.tool(task="required")
    async def knit(well: bool) -> str:
        if not well:
            raise McpError(-32050, "a dropped stitch")
        return "a scarf"

    @server.tool(task="required")
    async def wait() -> str:
        ready.set()
        await asyncio.Event().wait()
        return "never"

    async with server.serve_http(port=0, store=store) as http:
        async with Client(http.url, revision="2025-11-25") as client:
            assert (await client.call_tool("knit", {"well": True})).text == "a scarf"
            with pytest.raises(McpError):
                await client.call_tool("knit", {"well": False})
            waiting = await client.start_tool("wait")
            await ready.wait()
            running = check_page((await page(urls[0]))[1])
            await waiting.cancel()
        values = check_page((await page(urls[0]))[1])
    assert running['interlock_tasks{status="working"}'] == 1
    ended = {
        status: values[f'interlock_tasks_ended_total{{status="{status}"}}']
        for status in ("completed", "failed", "cancelled")
    }
    assert ended == {"completed": 1, "failed": 1, "cancelled": 1}
    assert 'interlock_tasks{status="working"}' not in values
    assert values['mcp_server_session_duration_seconds_count{network_transport="tcp"}'] == 1
    loads = values['interlock_store_operation_duration_seconds_count{operation="sessions.load"}']
    assert loads >= 5
    assert values["interlock_http_received_bytes_total"] > 1000
    assert values["interlock_http_sent_bytes_total"] > 1000


async def test_connections_without_http_are_sessions_too() -> None:
    server = Server("shop")
    server.tool(lambda: "done", name="do")
    server.meters.readers += 1
    ours, theirs = channel_pair()
    serving = asyncio.create_task(server.serve(theirs))
    async with Client(Duplex(ours)) as client:
        await client.list_tools()
    await serving
    (found,) = server.meters.durations()
    assert found[:2] == ("mcp_server_session_duration", (("network_transport", "pipe"),))
    assert found[2].count == 1


def test_without_readers_no_durations_are_kept() -> None:
    meters = Meters()
    meters.record("mcp_server_session_duration", 1.0)
    assert list(meters.durations()) == []


async def test_bytes_of_stdio_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(SERVER)
    command = [sys.executable, "-m", "interlock", "run", str(file), "--metrics", ":0"]
    lines: asyncio.Queue[str] = asyncio.Queue()
    async with asyncio.timeout(60), Client(command, on_stderr=lines.put_nowait) as client:
        while (found := re.search(r"Metrics at (http\S+)", await lines.get())) is None:
            pass
        await client.call_tool("buy", {"what": "maps" * 1000})
        values = check_page((await page(found[1]))[1])
    assert values["interlock_stdio_received_bytes_total"] > 4000
    assert values["interlock_stdio_sent_bytes_total"] > 100


async def test_the_state_of_mounted_servers() -> None:
    """Which of them can be used now; `upstreams` says why one cannot."""
    urls: list[str] = []
    server = Server("front", observe=Observe(metrics=":0", on_ready=urls.append))
    server.mount(Server("inner"), prefix="here")
    server.mount(Client("http://127.0.0.1:1/mcp"), prefix="away")
    async with server.serve_http(port=0):
        values = check_page((await page(urls[0]))[1])
        problems = {each.name: each.problem for each in server.upstreams}
    assert values['interlock_upstream_up{upstream="here"}'] == 1
    assert values['interlock_upstream_up{upstream="away"}'] == 0
    assert problems["here"] is None
    assert "127.0.0.1:1" in (problems["away"] or "")
