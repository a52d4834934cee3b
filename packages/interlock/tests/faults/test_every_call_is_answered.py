"""Whatever a tool raises or returns, its call is answered, over every transport and in both eras,
and the next call too."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from interlock import Client, ClientSettings, ClientTransport, McpError, Server, Stdio
from interlock.exchange import AnyResult, Exchange, Handler
from interlock.http11.proxies import Proxies
from interlock.transport.http.client.transport import Http
from interlock.transport.http.limits import Limits
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.wire.revisions import NEWEST, R1, R4
from tests.faults.everything_raised import CASES, TOOLS, Bare, server

TOP = Path(__file__).parents[4]
SECONDS = 60  # after which a call has not been answered; none takes a hundredth of it

WAYS = [
    ("memory", R4),
    ("memory", NEWEST),
    ("stdio", R4),
    ("stdio", NEWEST),
    ("http", R4),
    ("http", NEWEST),
    ("sse", R1),
]


@asynccontextmanager
async def reached(way: str) -> AsyncIterator[ClientTransport]:
    """A transport to the server whose tools raise and return everything."""
    if way == "memory":
        yield server.transport()
    elif way == "stdio":
        yield Stdio([sys.executable, "-m", "tests.faults.everything_raised"], cwd=TOP)
    else:
        sock = listening_socket("127.0.0.1", 0)
        port = sock.getsockname()[1]
        app = server.http_app(limits=Limits(), legacy_sse=way == "sse")
        serving = asyncio.create_task(serve_http(app, sock, grace=1.0))
        url = f"http://127.0.0.1:{port}/{'sse' if way == 'sse' else 'mcp'}"
        yield Http(url, legacy_sse=way == "sse", proxies=Proxies())
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        sock.close()


@pytest.mark.parametrize("way, revision", WAYS)
async def test_every_call_is_answered(way: str, revision: str) -> None:
    """All that a function can raise or give, in the loop, in a thread and where it may ask; one
    client for all of it."""
    async with (
        reached(way) as transport,
        Client(
            transport,
            revision=revision,
            timeout=None,
            settings=ClientSettings(probe_timeout=SECONDS),
        ) as client,
    ):
        for tool in TOOLS:
            for kind, name in CASES:
                async with asyncio.timeout(SECONDS):
                    try:
                        result = await client.call_tool(tool, {"kind": kind, "name": name})
                        said = result.text if result.is_error else ""
                    except McpError as bad:
                        said = bad.message
                    assert "no words" not in said, (tool, name)
                    if kind == "raise" and "half" not in name and "odd" not in name:
                        assert "reference" in said or "cancelled" in said, (tool, name)
                    if kind == "return" and name.startswith("half"):
                        assert said == "", (tool, name)
                        assert "\ufffd" in result.text, (tool, name)
            async with asyncio.timeout(SECONDS):
                assert (await client.call_tool("fine")).text == "fine"


def broken(error: BaseException) -> Server:
    """A server whose middleware raises."""

    def breaks(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method == "tools/call":
                raise error
            return await handler(x)

        return handle

    made = Server("broken", middleware=[breaks])

    @made.tool
    async def fine() -> str:
        return "fine"

    return made


@pytest.mark.parametrize("revision", [R4, NEWEST])
@pytest.mark.parametrize("error", [Bare("a secret"), SystemExit(3), ValueError("a secret")])
async def test_what_middleware_raises_is_answered_with_a_reference(
    revision: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """The words are the log's, and the reference leads to them."""
    async with Client(broken(error), revision=revision) as client:
        with pytest.raises(McpError, match=r"^Internal error \(reference [0-9a-f]{8}\)") as caught:
            await client.call_tool("fine")
    assert caught.value.message.partition("reference ")[2][:8] in caplog.text


async def test_a_keyboard_interrupt_is_answered_and_ends_the_program() -> None:
    """It is the person at the machine who wants the server to end, and no call is to hang for
    that."""
    program = """
from interlock import Server
server = Server("ends")
@server.tool
async def stop() -> str:
    raise KeyboardInterrupt
server.run()
"""
    async with (
        asyncio.timeout(SECONDS),
        Client(
            Stdio([sys.executable, "-c", program]),
            timeout=None,
            settings=ClientSettings(probe_timeout=SECONDS),
        ) as c,
    ):
        with pytest.raises(Exception, match="Internal error|has ended") as caught:
            await c.call_tool("stop")
    assert caught.value is not None
