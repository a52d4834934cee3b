"""What a gateway passes on arrives byte for byte, over every transport and revision; middleware can
look at it all the same."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from interlock import (
    AnyResult,
    CallToolResult,
    Client,
    ClientSettings,
    ClientTransport,
    Exchange,
    Handler,
    Http,
    McpError,
    RawResult,
    Server,
    Stdio,
)
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.types import CallToolRequestParams
from interlock.wire.revisions import NEWEST, REVISIONS
from tests.wired.odd import ARGUMENTS, LIST, MEMBERS, odd_server

TOP = Path(__file__).parents[4]
SECONDS = 60  # after which a way hangs


def taken(frames: list[bytes]) -> Callable[[str, bytes], None]:
    """A tap that keeps what the server sends."""

    def tap(sender: str, frame: bytes) -> None:
        if sender == "server":
            frames.append(frame)

    return tap


@asynccontextmanager
async def reached(
    server: Server, transport: str, frames: list[bytes] | None = None
) -> AsyncIterator[ClientTransport]:
    """A way to a server, in memory or over HTTP; `frames` gets what the server sends."""

    tap = taken([] if frames is None else frames)
    if transport != "http":
        yield server.transport(tap=tap)
        return
    sock = listening_socket("127.0.0.1", 0)
    serving = asyncio.create_task(serve_http(server.http_app(), sock, grace=1.0))
    try:
        yield Http(f"http://127.0.0.1:{sock.getsockname()[1]}/mcp", tap=tap)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def gateway(back: Client, seen: list[AnyResult], revision: str) -> Server:
    """Forwards every call of a tool, and notes what comes back."""

    def forward(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method not in ("tools/call", "tools/list"):
                return await handler(x)
            result = await back.send(x)
            seen.append(result)
            return result

        return handle

    server = Server("front", revisions=revision, middleware=[forward])
    server.add_tool(lambda: "", name="odd")
    return server


@asynccontextmanager
async def chained(
    ahead: str, behind: str, transport: str, seen: list[AnyResult], frames: list[bytes]
) -> AsyncIterator[Client]:
    """A client of a gateway under `ahead`, before a server under `behind`."""
    async with asyncio.timeout(SECONDS):
        if transport == "stdio":
            command = [sys.executable, "-m", "tests.wired.odd", behind]
            async with (
                Client(
                    Stdio(command, cwd=TOP), settings=ClientSettings(probe_timeout=SECONDS)
                ) as back,
                Client(gateway(back, seen, ahead).transport(tap=taken(frames))) as client,
            ):
                yield client
            return
        async with (
            reached(odd_server(behind), transport) as way_back,
            Client(way_back) as back,
            reached(gateway(back, seen, ahead), transport, frames) as way,
            Client(way) as client,
        ):
            yield client


def call(name: str, client: Client) -> Exchange:
    """A call with odd arguments, and a key of the author's."""
    meta = Raw(b'{"example.com/mine":1.0}')
    params = CallToolRequestParams(name=name, arguments=Raw(ARGUMENTS), meta=meta)
    return Exchange("tools/call", params, client.caller)


@pytest.mark.parametrize("transport", ["memory", "http", "stdio"])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_arguments_and_results_pass_byte_for_byte(revision: str, transport: str) -> None:
    """Under one revision on both sides (`RPC-23`)."""
    seen: list[AnyResult] = []
    frames: list[bytes] = []
    async with chained(revision, revision, transport, seen, frames) as client:
        result = await client.send(call("odd", client))
        assert isinstance(result, CallToolResult)
        assert MEMBERS in frames[-1]
        assert result.content[0].text == "é/ 😀"
        (passed,) = seen
        assert isinstance(passed, RawResult)
        looked = passed.decode()
        assert isinstance(looked, CallToolResult)
        assert looked.text == "é/ 😀"
        arrived = (await client.call_tool("last")).text
        assert ARGUMENTS.decode() in arrived
        assert '"example.com/mine":1.0' in arrived
        assert "progressToken" not in arrived, "nobody asked for progress"
        if revision == NEWEST:
            assert b'"name":"front"' in frames[-1], "the gateway says that it is the server"
            assert b'"name":"odd"' not in frames[-1]


@pytest.mark.parametrize(
    "ahead, behind", [(NEWEST, REVISIONS[0]), (REVISIONS[0], NEWEST), (REVISIONS[2], REVISIONS[3])]
)
async def test_between_two_revisions_a_result_is_translated(ahead: str, behind: str) -> None:
    """Then it is read, and written in the words of the other revision."""
    seen: list[AnyResult] = []
    frames: list[bytes] = []
    async with chained(ahead, behind, "memory", seen, frames) as client:
        result = await client.send(call("odd", client))
    assert isinstance(result, CallToolResult)
    assert [type(result) for result in seen] == [CallToolResult]
    assert MEMBERS not in frames[-1]
    assert (b"structuredContent" in frames[-1]) == (ahead >= REVISIONS[2])
    assert (b"serverInfo" in frames[-1]) == (ahead == NEWEST)


async def test_a_result_of_the_server_behind_that_is_no_object_is_an_error() -> None:
    """It is not passed on."""

    def broken(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            return RawResult(b"[1]") if x.method == "tools/call" else await handler(x)

        return handle

    server = Server("back", revisions=REVISIONS[3], middleware=[broken])
    server.add_tool(lambda: "", name="odd")
    async with (
        Client(server) as back,
        Client(gateway(back, [], REVISIONS[3]), revision=REVISIONS[3]) as client,
    ):
        with pytest.raises(
            McpError, match="The server behind this one gave an answer that cannot be read"
        ):
            await client.call_tool("odd")


@pytest.mark.parametrize("transport", ["memory", "http"])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_list_passes_byte_for_byte_though_the_client_reads_it(
    revision: str, transport: str
) -> None:
    """Also from its cache; and whoever asks that client itself gets the list read (`CAC-02`)."""
    seen: list[AnyResult] = []
    frames: list[bytes] = []
    calls: list[bytes] = []
    async with (
        asyncio.timeout(SECONDS),
        reached(odd_server(revision, calls), transport) as way_back,
        Client(way_back) as back,
        reached(gateway(back, seen, revision), transport, frames) as way,
        Client(way, settings=ClientSettings(cache=False)) as client,
    ):
        for _ in range(2):
            assert [tool.name for tool in await client.list_tools()] == ["odd"]
            assert LIST[1:-1] in frames[-1]
        assert calls == [b"list"]
        assert [tool.name for tool in await back.list_tools()] == ["odd"]
        assert calls == [b"list"]
    assert all(isinstance(result, RawResult) for result in seen)


async def test_a_list_that_the_client_has_read_for_itself_is_asked_for_anew() -> None:
    """What was read has lost what its revision does not know."""
    frames: list[bytes] = []
    calls: list[bytes] = []
    async with Client(odd_server(NEWEST, calls)) as back:
        await back.list_tools()
        way = gateway(back, [], NEWEST).transport(tap=taken(frames))
        async with Client(way) as client:
            await client.list_tools()
    assert LIST[1:-1] in frames[-1]
    assert calls == [b"list", b"list"]


async def test_middleware_of_a_server_can_read_its_own_lists() -> None:
    """They are kept as bytes."""
    seen: list[Any] = []

    def looking(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            result = await handler(x)
            if isinstance(result, RawResult):
                seen.append(result.decode())
            return result

        return handle

    server = Server("lists", middleware=[looking])
    server.add_tool(lambda: "", name="one")
    async with Client(server) as client:
        await client.list_tools()
    (page,) = seen
    assert [tool.name for tool in page.tools] == ["one"]
