"""What a whole conversation of our own client looks like from the endpoint: every request and every
response, as they stand in HTTP.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from interlock import Client, Context, Server
from interlock import types as t
from interlock.testing import ScriptedAnswers
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.wire.revisions import R2, R3, R4, R5, REVISIONS
from interlock.wire.sse import EventReader


@dataclass
class Trip:
    """One request, and what was answered to it."""

    method: str
    headers: dict[str, str]
    body: bytes = b""
    kind: str = ""
    answer: bytes = b""

    @property
    def said(self) -> Any:
        """The body, read."""
        return json.loads(self.body) if self.body else None

    @property
    def told(self) -> list[Any]:
        """The messages of the answer, in their order."""
        if self.kind.startswith("text/event-stream"):
            return [
                json.loads(event.data) for event in EventReader().feed(self.answer) if event.data
            ]
        return [json.loads(self.answer)] if self.answer else []


class Recording:
    """An ASGI app around another one, which keeps what goes by."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.trips: list[Trip] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection."""
        trip = Trip(
            scope["method"], {name.decode(): value.decode() for name, value in scope["headers"]}
        )
        self.trips.append(trip)

        async def receive_message() -> Any:
            message = await receive()
            trip.body += message.get("body", b"")
            return message

        async def say(message: Any) -> None:
            if message["type"] == "http.response.start":
                trip.kind = dict(message["headers"]).get(b"content-type", b"").decode()
            trip.answer += message.get("body", b"")
            await send(message)

        await self._app(
            {name: value for name, value in scope.items() if name != "interlock.hold"},
            receive_message,
            say,
        )


def house() -> Server:
    """Everything that makes a client send and a server speak."""
    server = Server("house", "1")
    server.add_resource("note://one", "Buy milk")

    @server.tool
    async def count(to: int, ctx: Context) -> int:
        for n in range(1, to + 1):
            ctx.progress(n, to)
            ctx.log.error("step")
            await asyncio.sleep(0)
        return to

    @server.tool
    async def ask(ctx: Context) -> str:
        return f"Hello, {await ctx.elicit('Your name?', str)}!"

    @server.tool
    async def rest(ctx: Context) -> str:
        ctx.progress(1)
        await asyncio.Event().wait()
        return "never"

    return server


@asynccontextmanager
async def recorded(server: Server) -> AsyncIterator[tuple[str, list[Trip]]]:
    """The server at a free port, and what goes by there."""
    app = Recording(server.http_app())
    sock = listening_socket("127.0.0.1", 0)
    # it does what the app does
    task = asyncio.create_task(serve_http(app, sock, grace=0.5))
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}/mcp", app.trips
    finally:
        task.cancel()
        await task


async def converse(url: str, server: Server, revision: str) -> None:
    """Everything: calls at the same time, progress, a question, a subscription, a cancellation and
    the end.
    """
    answers = ScriptedAnswers(elicit={"name": {"value": "Ada"}}, sample={}, roots=[])
    async with (
        asyncio.timeout(30),
        Client(url, revision=revision, answers=answers, log_level="error") as client,
    ):
        await client.list_tools()
        await asyncio.gather(
            *(client.call_tool("count", {"to": n}, on_progress=lambda _: None) for n in range(1, 6))
        )
        if revision >= R3:
            assert (await client.call_tool("ask")).text == "Hello, Ada!"
        async with client.watch(tools=True, resources="note://one") as changes:
            server.updated("note://one")
            await anext(aiter(changes))
        begun = asyncio.Event()
        resting = asyncio.create_task(client.call_tool("rest", on_progress=lambda _: begun.set()))
        await begun.wait()
        resting.cancel()
        await asyncio.gather(resting, return_exceptions=True)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_a_client_sends(revision: str):
    """Each POST is one message (`HTL-04`), and in the newest revision a request or a notification
    (`RPC-32`); from 2025-06-18 on every request after `initialize` says the revision that was
    agreed on (`LIF-14`).
    """
    server = house()
    async with recorded(server) as (url, trips):
        await converse(url, server, revision)
    posts = [trip for trip in trips if trip.method == "POST"]
    assert len(posts) > 8
    assert all(isinstance(trip.said, dict) for trip in posts)
    kinds = {("method" in trip.said, "id" in trip.said) for trip in posts}
    assert (True, True) in kinds
    assert ((False, True) in kinds) == (R3 <= revision < R5)  # the answer to the question
    later = [trip for trip in trips if trip.said is None or trip.said.get("method") != "initialize"]
    assert {trip.headers.get("mcp-protocol-version") for trip in later} == {
        revision if revision >= R3 else None
    }
    assert {trip.method for trip in trips} == (
        {"POST"} if revision == R5 else {"POST", "GET", "DELETE"}
    )


@pytest.mark.parametrize("revision", [R2, R4, R5])
async def test_what_a_server_sends(revision: str):
    """Responses and notifications (`RPC-32`); progress and log of a call stand on its own stream,
    before its response, and nowhere else (`PRG-06`, `LOG-06`).
    """
    server = house()
    async with recorded(server) as (url, trips):
        await converse(url, server, revision)
    seen = 0
    for trip in trips:
        asked = trip.said or {}
        for message in trip.told:
            assert revision != R5 or ("method" in message) != ("id" in message)
            if message.get("method") == "notifications/progress":
                assert (
                    message["params"]["progressToken"] == asked["params"]["_meta"]["progressToken"]
                )
                seen += 1
            elif message.get("method") == "notifications/message":
                assert asked["params"]["name"] == "count"
        if asked.get("params", {}).get("name") == "count":
            assert len(trip.told) == 1 + 2 * asked["params"]["arguments"]["to"]
            assert trip.told[-1]["id"] == asked["id"]
            assert trip.told[-1]["result"]["content"][0]["text"] == str(
                asked["params"]["arguments"]["to"]
            )
    assert seen == 1 + 2 + 3 + 4 + 5 + 1


async def test_any_text_survives_http():
    """UTF-8 both ways, in bodies, in names and in events (`RPC-12`)."""
    server = Server("house", "1")
    told: list[str | None] = []

    async def echo(text: str, ctx: Context) -> str:
        ctx.progress(1, message=text)
        return text

    server.add_tool(echo)
    text = "é ü 🎈 \u2028\x00\r\n\ud7ff 漢字"
    async with recorded(server) as (url, _):
        for revision in (R2, R4, R5):
            async with Client(url, revision=revision) as client:
                got = await client.call_tool(
                    "echo",
                    {"text": text},
                    on_progress=lambda progress: told.append(progress.message),
                )
                assert got.text == text
                with pytest.raises(t.McpError, match="漢字"):
                    await client.call_tool("漢字")
    assert told == [text] * 3
