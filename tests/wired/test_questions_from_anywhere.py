"""Middleware, methods of extensions and tools ask, over every transport and under every revision; the audit counts a call once."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, McpError, Stdio
from interlock.transport.http import Http
from interlock.transport.webserver import listening_socket, serve_http
from interlock.wire.revisions import HANDSHAKE_REVISIONS, NEWEST, REVISIONS, supports
from tests.server.wire import META, Peer

from .questions_server import make_server

TOP = Path(__file__).parents[2]
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
    transport: str, revision: str, suspend: bool, heard: list[str]
) -> AsyncIterator[Client]:
    """A client of the server, which notes what it is asked and says yes."""

    def answer(question: Any) -> Any:
        heard.append(question.message)
        return {"confirm": True}

    options: dict[str, Any] = {"revision": revision, "elicit": answer}
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
    """Where the revision has questions they are answered; where it has none the call fails in words, and nothing runs."""
    heard: list[str] = []
    async with connected(transport, revision, suspend, heard) as client:
        guarded = await client.call_tool("guarded")
        asks = await client.call_tool("asks")
        report = json.loads((await client.call_tool("report")).text)
    if supports(revision, "elicitation"):
        assert (guarded.text, asks.text) == ("ran", "True True")
        assert heard == ["May it run?", "One?", "Two?"]
        assert report == {"calls": ["guarded", "asks", "report"], "ran": ["guarded"]}
    else:
        assert guarded.is_error
        assert "elicitation" in guarded.text
        assert asks.is_error
        assert "elicitation" in asks.text
        assert heard == []
        assert report == {"calls": ["guarded", "asks", "report"], "ran": []}


@pytest.mark.parametrize("transport", ["memory", "http"])
async def test_middleware_that_hears_no(transport: str) -> None:
    """Its error is the answer, over HTTP too."""
    async with served(True) as address:
        target = make_server() if transport == "memory" else address
        async with Client(target, elicit=lambda question: False) as client:
            with pytest.raises(McpError, match="The person said no"):
                await client.call_tool("guarded")


# -- extensions, by frames written by hand -----------------------------------------------------------


def answers(questions: dict[str, Any]) -> dict[str, Any]:
    return {key: {"action": "accept", "content": {"confirm": True}} for key in questions}


async def goes_through(ask: Any) -> str:
    """Order, answer the rounds, and return what was said; `ask` sends params and returns a result."""
    params: dict[str, Any] = {"dish": "soup"}
    result = await ask(params)
    rounds = 0
    while result["resultType"] == "input_required":
        rounds += 1
        again = {
            "inputResponses": answers(result["inputRequests"]),
            "requestState": result["requestState"],
        }
        result = await ask({**params, **again})
    assert rounds == 2
    return str(result["said"])


@both_ways
async def test_a_method_of_an_extension_asks_in_memory(suspend: bool) -> None:
    """With rounds, as tools do."""
    peer = await Peer.of(make_server(suspend=suspend))

    async def ask(params: dict[str, Any]) -> Any:
        return (await peer.ask("restaurant/order", params))["result"]

    assert await goes_through(ask) == "soup [True, True]"
    await peer.aclose()


@both_ways
async def test_a_method_of_an_extension_asks_over_http(suspend: bool) -> None:
    """Each round is a request of its own."""
    async with served(suspend) as address:

        def post(params: dict[str, Any]) -> Any:
            body = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "restaurant/order",
                "params": {**params, "_meta": META},
            }
            headers = {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": NEWEST,
                "Mcp-Method": "restaurant/order",
            }
            request = urllib.request.Request(
                address, json.dumps(body).encode(), headers
            )  # our own address
            with urllib.request.urlopen(request) as response:  # our own address
                return json.load(response)["result"]

        async def ask(params: dict[str, Any]) -> Any:
            return await asyncio.to_thread(post, params)

        assert await goes_through(ask) == "soup [True, True]"


@pytest.mark.parametrize(
    "revision", [NEWEST, *(r for r in HANDSHAKE_REVISIONS if supports(r, "elicitation"))]
)
async def test_a_method_of_an_extension_asks_over_stdio(revision: str) -> None:
    """With rounds, or straight on the connection."""
    child = await asyncio.create_subprocess_exec(
        *command(True), cwd=TOP, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    stdin, stdout = child.stdin, child.stdout
    ids = iter(range(1, 100))

    def say(message: dict[str, Any]) -> None:
        stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def ask(params: dict[str, Any], method: str = "restaurant/order") -> Any:
        id = next(ids)
        meta = {"_meta": META} if revision == NEWEST else {}
        say({"id": id, "method": method, "params": {**params, **meta}})
        while True:
            message = json.loads(await stdout.readline())
            if message.get("method") == "elicitation/create":
                say({"id": message["id"], "result": answers({"": 0})[""]})
            elif message.get("id") == id and "method" not in message:
                return message["result"]

    async with asyncio.timeout(60):
        if revision == NEWEST:
            assert await goes_through(ask) == "soup [True, True]"
        else:
            hello = {
                "protocolVersion": revision,
                "capabilities": {"elicitation": {}},
                "clientInfo": {"name": "peer", "version": "1"},
            }
            await ask(hello, "initialize")
            say({"method": "notifications/initialized"})
            assert (await ask({"dish": "soup"}))["said"] == "soup [True, True]"
        stdin.close()
        await child.wait()
