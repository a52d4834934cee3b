"""Extensions with the official Python SDK 2.x, whose servers and clients have them too: our client
with its server, its client with ours."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Extension, McpError, Method, types
from interlock.wire.revisions import R4, R5
from tests.interop.driver import PEERS, on_the_web
from tests.ports import free_port

pytestmark = pytest.mark.interop

ROADS = ("stdio", "http")


class FindParams(types.Params, frozen=True, kw_only=True):
    """Params of `search/find`."""

    catalog: str
    query: str


class Hits(types.Result, frozen=True, kw_only=True):
    """Its result."""

    hits: list[str]


class Ticket(types.Result, frozen=True, kw_only=True):
    """A result of the extension."""

    ticket: str


SEARCH = Extension(
    "com.example/search",
    methods={"search/find": Method(FindParams, Hits, mirrored="catalog")},
    results={"tools/call": {"com.example.ticket": Ticket}},
)


@pytest.mark.parametrize("revision", [R4, R5])
@pytest.mark.parametrize("road", ROADS)
async def test_our_client_uses_the_extension_of_a_python_server(
    road: str, revision: str, installed: Callable[[str], Path]
) -> None:
    """Requests and results of the extension; in the handshake era that server does not declare it
    (`SDX-12`, `EXT-03`)."""
    program = [str(installed("python-2")), str(PEERS / "extension_server_python_2.py")]
    async with contextlib.AsyncExitStack() as stack:
        target: Any = program
        if road == "http":
            port = free_port()
            command = [*program, "streamable-http", str(port)]
            await stack.enter_async_context(on_the_web(command, port))
            target = f"http://127.0.0.1:{port}/mcp"
        async with Client(target, revision=revision, extensions=[SEARCH]) as client:
            if revision == R4:
                with pytest.raises(McpError, match="does not offer the extension"):
                    await client.request("search/find", FindParams(catalog="books", query=""))
                return
            assert SEARCH.settings_in(client.server_capabilities) == {"version": 1}
            for catalog, hits in (("books", ["Emma"]), ("bücher", ["Effi Briest"])):
                params = FindParams(catalog=catalog, query="E")
                assert (await client.request("search/find", params, Hits)).hits == hits
            params = types.CallToolRequestParams(name="slow")
            assert (await client.request("tools/call", params, Ticket)).ticket == "t-1"
        undeclared = Extension(
            "com.example/none", methods={"search/find": Method(FindParams, Hits)}
        )
        async with Client(target, revision=revision, extensions=[undeclared]) as client:
            with pytest.raises(McpError, match="does not offer the extension com.example/none"):
                await client.request("search/find", FindParams(catalog="books", query=""))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("road", ROADS)
async def test_a_python_client_uses_the_extension_of_our_server(
    road: str, mode: str, installed: Callable[[str], Path]
) -> None:
    """Requests, their mirrored header, notifications and results (`SDX-12`, `SDX-13`, `RPC-19`,
    `EXT-03`).

    In the handshake era that client does not declare an extension with result types, and gets an
    error.
    """
    client = [str(installed("python-2")), str(PEERS / "extension_client_python_2.py"), mode]
    async with contextlib.AsyncExitStack() as stack:
        target = [sys.executable, str(Path(__file__).parent / "extension_server.py")]
        if road == "http":
            port = free_port()
            await stack.enter_async_context(on_the_web([*target, str(port)], port))
            target = [f"http://127.0.0.1:{port}/mcp"]
        process = await asyncio.create_subprocess_exec(
            *client, *target, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, err.decode()[-3000:]
    seen = json.loads(out)
    newest = mode == "auto"
    missing = types.MISSING_CLIENT_CAPABILITY if newest else types.INVALID_REQUEST
    lacking = {"requiredCapabilities": {"extensions": {"com.example/search": {}}}}
    assert seen["undeclared"] == [missing, lacking]
    if not newest:
        assert seen == {"undeclared": [missing, lacking], "slow": "at last"}
        return
    assert seen["found"] == ["Emma"]
    assert seen["encoded"] == ["Effi Briest"]
    assert seen["selected"].startswith("Emma by ")
    assert seen["slow"] == "redeemed t-1"
    if road == "http":
        assert seen["without the header"] == types.HEADER_MISMATCH
    else:
        assert "without the header" not in seen
