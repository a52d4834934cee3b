"""A mounted endpoint while the web server around it ends: uvicorn waits for open responses, so the
endpoint has to end its streams by itself.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from interlock import Client, Server
from tests.faults.web import Wire, head, post, stateless
from tests.protocol.frames import initialize, request

LISTEN = {"notifications": {"toolsListChanged": True}}

PROGRAM = """
import asyncio, contextlib, socket, sys
import uvicorn
from fastapi import FastAPI
from interlock import Context, Server

server = Server("hosted")

@server.tool
async def take(seconds: float, ctx: Context) -> str:
    ctx.progress(1)
    await asyncio.sleep(seconds)
    return "taken"

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
app = server.http_app("/mcp", legacy_sse=True, grace=0.5)
if sys.argv[1] == "mounted":
    alone, app = app, FastAPI()
    app.mount("/", alone)
with contextlib.suppress(KeyboardInterrupt):  # which uvicorn raises once it has ended
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
"""


@pytest.fixture(params=["mounted", "alone"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """The program, its port, and what it writes to its standard error."""
    told = tmp_path / "stderr"
    with (
        told.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, request.param], stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        assert process.stdout is not None
        yield process, int(process.stdout.readline()), told
        process.kill()


def begun(port: int, said: bytes) -> Wire:
    """A connection whose stream has begun."""
    wire = Wire(port)
    wire.say(said)
    assert wire.head().status == 200
    return wire


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_end_ends(program: Any, number: int) -> None:
    """Streams that listen end in good order, short calls are answered, and those beyond the grace
    are told (`LSN-10`).
    """
    process, port, told = program
    with Wire(port) as wire:
        id = wire.ask(post(initialize(0, "2025-11-25", {}))).headers["mcp-session-id"]
    mine = (f"Mcp-Session-Id: {id}", "MCP-Protocol-Version: 2025-11-25")

    def tool(n: int, seconds: float) -> bytes:
        params = {"name": "take", "arguments": {"seconds": seconds}, "_meta": {"progressToken": n}}
        return post(request(n, "tools/call", params), *mine)

    listener = begun(port, stateless(1, "subscriptions/listen", LISTEN))
    feed = begun(port, head("GET", *mine, "Accept: text/event-stream"))
    old = begun(port, head("GET", "Accept: text/event-stream", target="/sse"))
    short = begun(port, tool(2, 0.3))
    long = begun(port, tool(3, 3600))
    process.send_signal(number)
    with listener, feed, old, short, long:
        assert [message["id"] for message in listener.messages() if "id" in message] == [1]
        assert list(feed.messages()) == []
        assert [event["event"] for event in old.events() if event.get("event")] == ["endpoint"]
        assert list(short.messages())[-1]["result"]["content"][0]["text"] == "taken"
        assert list(long.messages())[-1]["error"]["data"] == {"reason": "shutdown"}
    assert process.wait(30) in (0, -number)  # uvicorn ends by the signal itself
    assert "Traceback" not in told.read_text()


async def test_an_app_may_be_served_again() -> None:
    """One server has ended, the next one serves the same app, which takes requests as ever."""
    server = Server("again")
    app = Starlette(routes=[Mount("/", server.http_app("/mcp"))])
    for _ in range(2):
        listener = socket.create_server(("127.0.0.1", 0))
        host = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        task = asyncio.create_task(host.serve(sockets=[listener]))
        async with asyncio.timeout(30):
            async with Client(
                f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", revision="2025-11-25"
            ) as client:
                await client.ping()
                host.should_exit = True  # while the client listens
                await task
