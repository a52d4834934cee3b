"""A real HTTP server as a child process, and raw sockets to talk to it: every byte that goes out,
and every byte that comes back."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.protocol.frames import initialize, stamped

PATIENCE = 60.0
MB = 1024 * 1024

# Its options come as JSON; `limits` and `rate` are those of `Limits`. The port is the first line of
# its output.
SITE = """
import asyncio, gc, json, logging, os, resource, sys, threading
from contextlib import asynccontextmanager
from interlock import Context, Limits, Rate, Server

# A test that was killed leaves no server behind: its end of this pipe closes with it.
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()

options = json.loads(sys.argv[1])
if "limits" in options:
    rate = options["limits"].pop("rate", None)
    options["limits"] = Limits(rate=Rate(**rate) if rate else None, **options["limits"])
if most := options.pop("descriptors", 0):
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
if options.pop("logs", False):
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")

@asynccontextmanager
async def life(server):
    print("born", file=sys.stderr, flush=True)
    yield None
    print("buried", file=sys.stderr, flush=True)

server = Server("site", lifespan=life)
seen = []
gate = asyncio.Event()

@server.tool
async def add(a: int, b: int) -> int:
    return a + b

@server.tool
async def text(size: int) -> str:
    return "x" * size

@server.tool
async def length(text: str) -> int:
    return len(text)

@server.tool
async def fail_badly() -> None:
    raise RuntimeError("oh")

@server.tool
async def wait_for_ever(ctx: Context) -> str:
    seen.append("begun")
    ctx.progress(1)
    try:
        await asyncio.Event().wait()
    finally:
        seen.append("ended")
    return "never"

@server.tool
async def wait_for_gate(ctx: Context) -> str:
    ctx.progress(1)
    seen.append("at the gate")
    await gate.wait()
    return "through"

@server.tool
async def open_gate() -> None:
    gate.set()

@server.tool
async def take(seconds: float, ctx: Context) -> str:
    ctx.progress(1)
    await asyncio.sleep(seconds)
    return "taken"

@server.tool
async def chatter(times: int, ctx: Context) -> int:
    for n in range(times):
        ctx.progress(n, message="x" * 1000)
        if n % 1000 == 0:
            await asyncio.sleep(0)
    seen.append("chattered")
    return times

@server.tool
async def happened() -> list[str]:
    return seen

@server.tool
async def tasks() -> int:
    gc.collect()
    return len(asyncio.all_tasks())

@server.tool
async def stir() -> None:
    server.changed("tools")

server.run("http", port=0, on_ready=lambda address: print(address[1], flush=True), **options)
"""


def raise_descriptors() -> None:
    """As many open files as the system lets this process, and its children, have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def until(done: Callable[[], Any], what: str = "it") -> Any:
    """Ask again and again until something is so, and return what was said."""
    end = time.monotonic() + PATIENCE
    while not (said := done()):
        assert time.monotonic() < end, f"{what} has not come about"
        time.sleep(0.01)
    return said


@dataclass
class Response:
    """The head of a response, and its body where it was read whole."""

    status: int
    headers: dict[str, str]
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


class Wire:
    """One TCP connection to a server, held by hand."""

    def __init__(self, port: int, *, small: bool = False) -> None:
        self.socket = socket.socket()
        if small:  # so that little is on its way when nobody reads
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")
        self._kept = b""  # of an event that has not ended

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self.file.close()
        self.socket.close()

    def say(self, *pieces: bytes) -> None:
        """Send bytes, each piece in a packet of its own as far as the system lets us; a server that
        has closed is no fault here."""
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                self.socket.sendall(piece)

    def head(self) -> Response:
        """The head of the next response."""
        line = self.file.readline()
        assert line.startswith(b"HTTP/1.1 "), line
        headers: dict[str, str] = {}
        while (one := self.file.readline()) != b"\r\n":
            assert one.endswith(b"\r\n"), one
            name, _, value = one.decode("latin-1").partition(":")
            assert name not in headers, f"{name} comes twice"
            headers[name] = value.strip()
        return Response(int(line[9:12]), headers)

    def read(self, *, bodyless: bool = False) -> Response:
        """The next response, whole."""
        response = self.head()
        if response.headers.get("transfer-encoding") == "chunked":
            response.body = b"".join(self.chunks())
        elif not bodyless:
            response.body = self.file.read(int(response.headers.get("content-length", "0")))
        return response

    def chunks(self) -> Iterator[bytes]:
        """The chunks of a body, up to its last."""
        while size := int(self.file.readline(), 16):
            chunk = self.file.read(size)
            assert self.file.read(2) == b"\r\n"
            yield chunk
        assert self.file.read(2) == b"\r\n"

    def events(self) -> Iterator[dict[str, str]]:
        """The events of a stream as they come: the fields of each; a comment is an event of
        nothing."""
        for chunk in self.chunks():
            self._kept += chunk
            while b"\n\n" in self._kept:
                one, _, self._kept = self._kept.partition(b"\n\n")
                pairs = (line.partition(": ") for line in one.decode().split("\n"))
                yield {name: value for name, colon, value in pairs if colon or value}

    def messages(self) -> Iterator[dict[str, Any]]:
        """The messages of a stream as they come."""
        return (json.loads(event["data"]) for event in self.events() if event.get("data"))

    def ask(self, *pieces: bytes) -> Response:
        """Send a request and read its response."""
        self.say(*pieces)
        return self.read()

    def is_closed(self) -> bool:
        """Wait until the server closes; whether it says nothing more before that."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True


def head(method: str, *headers: str, target: str = "/mcp", host: str = "127.0.0.1") -> bytes:
    """The head of a request."""
    return "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode(
        "latin-1"
    )


def post(body: bytes, *headers: str, target: str = "/mcp", host: str = "127.0.0.1") -> bytes:
    """A POST with a body of JSON."""
    lines = (
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(body)}",
    )
    return head("POST", *lines, *headers, target=target, host=host) + body


def stateless(
    id: Any,
    method: str,
    params: dict[str, Any] | None = None,
    *headers: str,
    host: str = "127.0.0.1",
    target: str = "/mcp",
) -> bytes:
    """A request of 2026-07-28, with the headers that mirror it."""
    name = (params or {}).get("name")
    mirrors = [
        "MCP-Protocol-Version: 2026-07-28",
        f"Mcp-Method: {method}",
        *([f"Mcp-Name: {name}"] if name else []),
    ]
    return post(
        stamped(id, method, params, capabilities={}), *mirrors, *headers, target=target, host=host
    )


def call(id: Any, tool: str, /, *headers: str, **arguments: Any) -> bytes:
    """A tool call of 2026-07-28; with a progress token, so that it may become a stream."""
    params = {"name": tool, "arguments": arguments}
    body = json.loads(stamped(id, "tools/call", params, capabilities={}))
    body["params"]["_meta"]["progressToken"] = id
    return post(
        json.dumps(body).encode(),
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {tool}",
        *headers,
    )


LISTEN = {"notifications": {"toolsListChanged": True}}


class Site:
    """A server that runs as a process of its own; `options` are those of `server.run("http")`."""

    def __init__(self, folder: Path, **options: Any) -> None:
        raise_descriptors()
        (folder / "site.py").write_text(SITE, encoding="utf-8")
        self.told = folder / "stderr"
        with self.told.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(folder / "site.py"), json.dumps(options)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.told.read_text(encoding="utf-8")
        self.port = int(line)
        self._wires: list[Wire] = []

    def wire(self, *, small: bool = False) -> Wire:
        """A new connection; closed with the server at the latest."""
        self._wires.append(Wire(self.port, small=small))
        return self._wires[-1]

    def ask(self, *pieces: bytes) -> Response:
        """One request on a connection of its own."""
        with Wire(self.port) as wire:
            return wire.ask(*pieces)

    def value(self, tool: str, **arguments: Any) -> Any:
        """What a tool gives."""
        response = self.ask(stateless(1, "tools/call", {"name": tool, "arguments": arguments}))
        result = response.json["result"]
        assert not result.get("isError"), result
        return result["structuredContent"]["result"] if "structuredContent" in result else None

    def session(self, wire: Wire, revision: str = "2025-11-25", *headers: str) -> str:
        """Open a session; its id."""
        response = wire.ask(post(initialize(0, revision, {}), *headers))
        assert response.status == 200, response
        return response.headers["mcp-session-id"]

    def resident(self) -> int:
        """Bytes of memory that the server has in use."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )

    def peak(self) -> int:
        """Bytes of memory that it had in use at the most."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def descriptors(self) -> int:
        """How many files and sockets it has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def log(self) -> str:
        """What it has written to its standard error."""
        return self.told.read_text(encoding="utf-8")

    def settles(self, descriptors: int, tasks: int) -> None:
        """Wait until no more is open, and no more is running, than there was."""
        until(lambda: self.descriptors() <= descriptors, "the end of the connections")
        until(lambda: self.value("tasks") <= tasks, "the end of the tasks")

    def end(self, number: int) -> int:
        """Send a signal and wait; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """Be rid of it."""
        for wire in self._wires:
            wire.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
