"""Middleware, methods of extensions and tools ask, over every transport and under every revision;
the audit counts a call once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, McpError, Stdio
from interlock.transport.http.client.transport import Http
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.wire.revisions import REVISIONS, supports
from tests.wired.questions_server import RESTAURANT, Ordered, OrderParams, make_server

pytestmark = pytest.mark.matrix

TOP = Path(__file__).parents[4]
both_ways = pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "replayed"])


@asynccontextmanager
async def served(suspend: bool) -> AsyncIterator[str]:
    """The server over HTTP; its address."""
    sock = listening_socket("127.0.0.1", 0)
    address = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
    app = make_server(suspend=suspend).http_app()
    serving = asyncio.create_task(serve_http(app, sock, grace=1.0))
    try:
        yield address
    finally:
        serving.cancel()
        await asyncio.wait([serving])


def command(suspend: bool) -> list[str]:
    replayed = [] if suspend else ["--replayed"]
    return [sys.executable, "-m", "tests.wired.questions_server", *replayed]


@asynccontextmanager
async def connected(
    transport: str, revision: str, suspend: bool, received: list[str]
) -> AsyncIterator[Client]:
    """A client of the server, which notes what it is asked and says yes."""

    def answer(question: Any) -> Any:
        received.append(question.message)
        return {"confirm": True}

    options: dict[str, Any] = {
        "revision": revision,
        "elicit": answer,
        "extensions": [RESTAURANT],
        "timeout": 60,
    }
    if transport == "memory":
        async with Client(make_server(suspend=suspend), **options) as client:
            yield client
    elif transport == "stdio":
        async with Client(Stdio(command(suspend), cwd=TOP), **options) as client:
            yield client
    else:
        async with served(suspend) as address, Client(Http(address), **options) as client:
            yield client


@both_ways
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["memory", "stdio", "http"])
async def test_middleware_and_tools_ask(transport: str, revision: str, suspend: bool) -> None:
    """Where the revision has questions they are answered; where it has none the call fails in
    words, and nothing runs."""
    received: list[str] = []
    async with connected(transport, revision, suspend, received) as client:
        guarded = await client.call_tool("guarded")
        asks = await client.call_tool("asks")
        report = json.loads((await client.call_tool("report")).text)
    if supports(revision, "elicitation"):
        assert (guarded.text, asks.text) == ("ran", "True True")
        assert received == ["May it run?", "One?", "Two?"]
        assert report == {"calls": ["guarded", "asks", "report"], "ran": ["guarded"]}
    else:
        assert guarded.is_error
        assert "elicitation" in guarded.text
        assert asks.is_error
        assert "elicitation" in asks.text
        assert received == []
        assert report == {"calls": ["guarded", "asks", "report"], "ran": []}


@pytest.mark.parametrize("transport", ["memory", "http"])
async def test_middleware_that_hears_no(transport: str) -> None:
    """Its error is the answer, over HTTP too."""
    async with served(True) as address:
        target = make_server() if transport == "memory" else address
        async with Client(target, elicit=lambda question: False) as client:
            with pytest.raises(McpError, match="The person said no"):
                await client.call_tool("guarded")


@both_ways
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["memory", "stdio", "http"])
async def test_a_method_of_an_extension_asks(transport: str, revision: str, suspend: bool) -> None:
    """In rounds, or straight on the connection or the session's stream; without questions it is an
    error."""
    received: list[str] = []
    async with connected(transport, revision, suspend, received) as client:
        ordering = client.request("restaurant/order", OrderParams(dish="soup"), Ordered)
        if supports(revision, "elicitation"):
            assert (await ordering).said == "soup [True, True]"
            assert received == ["soup?", "Sure?"]
        else:
            with pytest.raises(McpError, match="elicitation"):
                await ordering
            assert received == []
