"""HTTP servers that say exactly the bytes they are told to, and a way to run a test under both
event loops that finds what it leaves behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvloop

from interlock.http11.client import HttpFetch
from interlock.http11.fetch import Fetch, Request
from interlock.http11.proxies import Proxies
from tests.transport.ends import turns

LOOPS: dict[str, Any] = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
PATIENCE = 10.0


def both_loops(test: Callable[..., Any]) -> Any:
    """Run an async test under asyncio and under uvloop, each in a loop of its own; no task and no
    socket may be left.
    """

    def run(loop: str, **given: Any) -> None:
        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(tidily(test(**given)))
        # A socket or a transport that was forgotten warns, and warnings are errors; a full
        # collection takes far longer.
        gc.collect(1)

    functools.update_wrapper(run, test)
    # it is not a coroutine function any more, and nobody should look below
    del run.__wrapped__
    parameters = inspect.signature(test).parameters.values()
    first = inspect.Parameter("loop", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = inspect.Signature(
        [*(p.replace(kind=p.KEYWORD_ONLY) for p in parameters), first]
    )  # type: ignore[attr-defined]  # where pytest looks
    return pytest.mark.parametrize("loop", LOOPS)(run)


def open_sockets() -> int:
    """How many sockets this process has open; loops may keep other descriptors."""
    count = 0
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
    return count


async def tidily(test: Awaitable[None]) -> None:
    """Await a test and look at what it leaves."""
    async with asyncio.timeout(PATIENCE):
        await turns()
        before = open_sockets()
        await test
        await turns(20)
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, left
    assert open_sockets() <= before


def fetch_for_tests(**settings: Any) -> HttpFetch:
    """A client that does not look at the environment."""
    return HttpFetch(**{"proxies": Proxies(), **settings})


@dataclass
class Seen:
    """One request as it came."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of the one header of a name."""
        values = [value for given, value in self.headers if given.lower() == name]
        assert len(values) < 2
        return values[0] if values else None


@dataclass
class Talk:
    """One connection, as the server holds it; `number` counts from 0."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    peer: Peer

    async def read(self) -> Seen | None:
        """The next request, None once the client has closed."""
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *rest = head[:-4].split("\r\n")
            headers = [
                (name, value.strip()) for name, _, value in (one.partition(":") for one in rest)
            ]
            length = next(
                (int(value) for name, value in headers if name.lower() == "content-length"), 0
            )
            seen = Seen(line, headers, await self.reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        self.peer.requests.append(seen)
        return seen

    async def send(self, *pieces: bytes) -> None:
        """Send bytes; what the client no longer reads is no fault."""
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                self.writer.write(piece)
                await self.writer.drain()

    async def gone(self) -> None:
        """Wait until the client has closed."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass


Script = Callable[[Talk], Awaitable[None]]


@dataclass
class Peer:
    """A server, and what it has seen."""

    url: str = ""
    port: int = 0
    requests: list[Seen] = field(default_factory=list)
    opened: int = 0
    open: int = 0


@asynccontextmanager
async def serving(
    script: Script, tls: ssl.SSLContext | None = None, name: str = "127.0.0.1"
) -> AsyncIterator[Peer]:
    """A server that follows a script on each connection and closes it at the script's end; who
    leaves must find all of them closed.
    """
    peer = Peer()
    running = set[asyncio.Task[None]]()
    quiet = asyncio.Event()
    quiet.set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        quiet.clear()
        one = Talk(peer.opened, reader, writer, peer)
        peer.opened += 1
        peer.open += 1
        try:
            await script(one)
        except asyncio.CancelledError:  # the test has failed and says why
            pass
        finally:
            peer.open -= 1
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()
            running.discard(task)
            if not running:
                quiet.set()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    peer.port = server.sockets[0].getsockname()[1]
    peer.url = f"{'https' if tls else 'http'}://{name}:{peer.port}/mcp"
    try:
        yield peer
        server.close()
        await quiet.wait()
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()


def always(answer: bytes) -> Script:
    """Every request gets the same bytes."""

    async def script(talk: Talk) -> None:
        while await talk.read() is not None:
            await talk.send(answer)

    return script


def once(*pieces: bytes, then_wait: bool = False) -> Script:
    """The first request of a connection gets these bytes; then it is closed, or left to the client
    to close.
    """

    async def script(talk: Talk) -> None:
        if await talk.read() is not None:
            await talk.send(*pieces)
            if then_wait:
                await talk.gone()

    return script


def ok(body: bytes = b"{}", *headers: str, status: str = "200 OK") -> bytes:
    """A whole answer with a length."""
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def get(url: str, *headers: tuple[str, str]) -> Request:
    """A GET."""
    return Request("GET", url, headers)


def post(url: str, body: bytes = b"{}", *headers: tuple[str, str], again: bool = True) -> Request:
    """A POST, which may come twice unless it says otherwise."""
    return Request("POST", url, headers, body, again)


async def whole(fetch: Fetch, request: Request, limit: int = 1 << 20) -> tuple[int, bytes]:
    """Status and body of an answer."""
    answer = await fetch(request)
    return answer.status, await answer.read(limit)
