"""Mirrored headers of a request that was forwarded: they say what the forwarder sends, whoever
asked it and however."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from interlock import Client, Http, Server
from interlock import types as t
from interlock.exchange import AnyResult, Exchange, Handler
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.wire.revisions import NEWEST, REVISIONS

SCHEMA = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}


def behind() -> Server:
    """A server with a tool whose argument is mirrored in a header."""
    server = Server("behind")

    @server.tool(name="weather", input_schema=SCHEMA)
    async def weather(arguments: dict[str, Any]) -> str:
        return f"rain in {arguments['region']}"

    return server


@contextlib.asynccontextmanager
async def listened() -> AsyncIterator[tuple[str, list[Mapping[str, str]]]]:
    """The server over HTTP: its address, and the headers of each call that it got."""
    server = behind()
    seen: list[Mapping[str, str]] = []

    def noting(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method == "tools/call" and x.transport.request is not None:
                seen.append(x.transport.request.headers)
            return await handler(x)

        return handle

    server.use(noting)
    sock = listening_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    serving = asyncio.create_task(serve_http(server.http_app(), sock, grace=1.0))
    try:
        yield f"http://127.0.0.1:{port}/mcp", seen
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def gateway(back: Client) -> Server:
    """A server that forwards calls of `there_weather` under the tool's own name, and in
    capitals."""
    server = Server("front")

    @server.tool(name="there_weather", input_schema={"type": "object"})
    async def listed(arguments: dict[str, Any]) -> None:
        raise AssertionError("it is forwarded")

    def forwarding(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method != "tools/call":
                return await handler(x)
            region = json.loads(bytes(x.params.arguments))["region"].upper()
            params = t.CallToolRequestParams(
                name=x.params.name.removeprefix("there_"),
                arguments=Raw(json.dumps({"region": region}).encode()),
            )
            return await back.send(replace(x, params=params))

        return handle

    server.use(forwarding)
    return server


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_forwarder_writes_the_headers_of_what_it_sends(revision: str) -> None:
    """Name and argument were rewritten, so the headers are too; a front of any revision has none
    (`HDR-15`, `XMH-22`)."""
    async with (
        listened() as (url, seen),
        Client(Http(url), revision=NEWEST) as back,
        Client(gateway(back), revision=revision) as front,
    ):
        await back.list_tools()
        result = await front.call_tool("there_weather", {"region": "rome"})
    assert result.text == "rain in ROME"
    (call,) = seen
    assert (call["mcp-method"], call["mcp-name"]) == ("tools/call", "weather")
    assert call["mcp-param-region"] == "ROME"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_annotations_for_headers_are_nothing_to_other_transports(revision: str) -> None:
    """In memory the tool is called as any other, whatever its schema says of headers (`XMH-10`)."""
    said: list[bytes] = []
    transport = behind().transport(tap=lambda sender, frame: said.append(frame))
    async with Client(transport, revision=revision) as client:
        (tool,) = await client.list_tools()
        assert (await client.call_tool("weather", {"region": "rome"})).text == "rain in rome"
    assert tool.input_schema["properties"]["region"]["x-mcp-header"] == "Region"
    assert not any(b"Mcp-Param" in frame for frame in said)
