"""Servers as programs: every transport by its name, what is missing said in words, and an end in
good order.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Client, Server
from tests.server.wire import META

LONG = 30.0

PROGRAM = """
import asyncio
import sys
from contextlib import asynccontextmanager

from interlock import Context, Server


@asynccontextmanager
async def lifespan(server):
    print("entered", file=sys.stderr, flush=True)
    if "--broken" in sys.argv:
        raise ConnectionError("no database")
    yield
    print("left", file=sys.stderr, flush=True)


server = Server("program", lifespan=lifespan)
go = asyncio.Event()


@server.tool
async def finish(ctx: Context) -> str:
    ctx.progress(1)
    await go.wait()
    return "finished"


@server.tool
async def hang(ctx: Context) -> str:
    ctx.progress(1)
    await asyncio.Event().wait()
    return "this is never reached"


@server.tool
async def let_go() -> str:
    asyncio.get_running_loop().call_later(0.01, go.set)
    return "soon"


@server.tool
async def where() -> str:
    return type(asyncio.get_running_loop()).__module__


def ready(address):
    print("ready", address[1] if isinstance(address, tuple) else address, file=sys.stderr,
        flush=True)


transport, *options = sys.argv[1].split(":")
server.run(transport, **dict(option.split("=") for option in options),
    **({"on_ready": ready} if options else {}))
"""


class Program:
    """A server that runs in a process of its own, and what it says."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.received: list[dict[str, Any]] = []
        self.complained = ""

    def say(self, id: int, method: str, params: dict[str, Any]) -> None:
        """Send a request over stdio."""
        assert self.process.stdin is not None
        message = {
            "jsonrpc": "2.0",
            "id": id,
            "method": method,
            "params": {**params, "_meta": {**META, "progressToken": id}},
        }
        self.process.stdin.write(msgspec.json.encode(message) + b"\n")

    async def receive(self) -> dict[str, Any]:
        """The next message."""
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), LONG)
        assert line, "the program has closed its output"
        self.received.append(msgspec.json.decode(line))
        return self.received[-1]

    async def until(self, words: str) -> str:
        """The first line of stderr that begins so."""
        assert self.process.stderr is not None
        while True:
            line = (await asyncio.wait_for(self.process.stderr.readline(), LONG)).decode()
            self.complained += line
            assert line, self.complained
            if line.startswith(words):
                return line.strip()

    async def ended(self) -> int:
        """Its exit code; takes in what it says last."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        out, err = await asyncio.wait_for(
            asyncio.gather(self.process.stdout.read(), self.process.stderr.read()), LONG
        )
        self.received += [msgspec.json.decode(line) for line in out.splitlines()]
        self.complained += err.decode()
        return await self.process.wait()


@asynccontextmanager
async def program(tmp_path: Path, *arguments: str) -> AsyncIterator[Program]:
    """The program above, while the block lasts."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    pipes = {name: asyncio.subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        str(script),
        *arguments,
        env={**os.environ, "INTERLOCK_LOG": "off"},
        **pipes,
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_a_stdio_server_in_good_order(tmp_path: Path, number: signal.Signals):
    """The subscription gets its response, the lifespan is left, the exit code is 0 and nothing is
    complained about (`LSN-11`).
    """
    async with program(tmp_path, "stdio") as running:
        running.say(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        assert (await running.receive())["method"] == "notifications/subscriptions/acknowledged"
        running.process.send_signal(number)
        assert await running.ended() == 0
    response = next(message for message in running.received if message.get("id") == 1)
    assert response["result"]["resultType"] == "complete"
    assert response["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1
    assert running.complained == "entered\nleft\n"


async def test_calls_that_run_when_the_signal_comes(tmp_path: Path):
    """They have a moment to finish; those that do not are given up, and hold up nothing."""
    async with program(tmp_path, "stdio") as running:
        running.say(1, "tools/call", {"name": "finish"})
        running.say(2, "tools/call", {"name": "hang"})
        assert {(await running.receive())["params"]["progressToken"] for _ in range(2)} == {1, 2}
        running.say(3, "tools/call", {"name": "let_go"})
        assert (await running.receive())["id"] == 3
        running.process.send_signal(signal.SIGTERM)
        assert await running.ended() == 0
    assert [message["id"] for message in running.received if "result" in message] == [3, 1]
    assert running.complained == "entered\nleft\n"


async def test_the_end_of_stdin_ends_the_server(tmp_path: Path):
    """The peer has gone: that is how a stdio server usually ends."""
    async with program(tmp_path, "stdio") as running:
        running.say(1, "tools/list", {})
        await running.receive()
        assert running.process.stdin is not None
        running.process.stdin.close()
        assert await running.ended() == 0
    assert running.complained == "entered\nleft\n"


async def test_a_server_that_cannot_begin(tmp_path: Path):
    """The program fails, and says why."""
    async with program(tmp_path, "stdio", "--broken") as running:
        assert await running.ended() == 1
    assert running.complained.endswith("ConnectionError: no database\n")


async def test_tcp(tmp_path: Path):
    """On loopback, at a port of the system's choice, for several clients at once; a signal
    ends it.
    """
    async with program(tmp_path, "tcp:port=0") as running:
        port = (await running.until("ready")).split()[1]
        async with (
            Client(f"tcp://127.0.0.1:{port}") as one,
            Client(f"tcp://127.0.0.1:{port}", revision="2025-11-25") as other,
        ):
            assert (await one.call_tool("let_go")).text == "soon"
            assert (await other.call_tool("where")).text.startswith(("uvloop", "asyncio"))
            async with other.watch(tools=True):
                running.process.send_signal(signal.SIGTERM)
                assert await running.ended() == 0
    assert re.sub(r"ready \d+\n", "", running.complained) == "entered\nleft\n"


async def test_unix(tmp_path: Path):
    """At a path that is its owner's only, and that is gone when the server is."""
    path = tmp_path / "socket"
    async with program(tmp_path, f"unix:path={path}") as running:
        await running.until("ready")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        async with Client(f"unix://{path}") as client:
            assert [tool.name for tool in await client.list_tools()] == [
                "finish",
                "hang",
                "let_go",
                "where",
            ]
        running.process.send_signal(signal.SIGTERM)
        assert await running.ended() == 0
    assert not path.exists()
    assert running.complained == f"ready {path}\nentered\nleft\n"


@pytest.mark.parametrize(
    "transport, options, error, words",
    [
        (
            "pigeon",
            {},
            ValueError,
            "unknown transport 'pigeon'; known are stdio, http, unix, tcp",
        ),
        ("", {}, ValueError, "unknown transport ''"),
        (
            "tcp",
            {},
            ValueError,
            r"the transport tcp needs the option port: server\.run\('tcp', port=\.\.\.\)",
        ),
        ("tcp", {"host": "127.0.0.1"}, ValueError, "needs the option port"),
        (
            "unix",
            {},
            ValueError,
            r"the transport unix needs the option path: server\.run\('unix', path=\.\.\.\)",
        ),
        ("tcp", {"port": "many"}, ValueError, "many"),
        ("stdio", {"port": 1}, TypeError, r"server\.run\('stdio'\) got an unexpected .*'port'"),
        (
            "http",
            {"wokers": 2},
            TypeError,
            r"server\.run\('http'\) got an unexpected keyword argument 'wokers'; did you mean"
            r" 'workers'",
        ),
    ],
)
def test_transports_that_there_are_not(
    transport: str, options: dict[str, Any], error: type[Exception], words: str
):
    """Words for whoever called it, before anything is begun."""
    with pytest.raises(error, match=words):
        Server("program").run(transport, **options)
