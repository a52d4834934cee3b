"""Recordings as regression tests of servers at URLs: HTTP under every revision, and sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import Meta

from interlock import Client, Context, Server, Unreachable
from interlock.tape import Line, Tape, replay_recording, server_at
from interlock.testing import ScriptedAnswers, channel_pair
from interlock.transport.sockets import listen
from tests.cli.sites import Site
from tests.tape.test_replay import RECORDED, named, record
from tests.tapes.scenarios import Scenario


async def replay_at(url: str, tape: Tape, **options: Any) -> list[str]:
    async with server_at(url) as channel:
        return await replay_recording(tape, channel, **options)


@pytest.mark.matrix(pairs=False, seconds=0.2)
@pytest.mark.parametrize("scenario, revision", RECORDED, ids=named)
async def test_a_recording_replays_over_http(scenario: Scenario, revision: str) -> None:
    """The transport of the recording does not matter: questions, `input_required`, notifications,
    subscriptions and cancellation.
    """
    tape = await record(scenario, revision)
    async with scenario.make_server(revision).serve_http(port=0) as web:
        assert await replay_at(web.url, tape) == []


def make_server(greeting: str = "Hello") -> Server:
    server = Server("greeter", "1")

    @server.tool
    async def greet(name: str, ctx: Context) -> str:
        ctx.progress(1, 2)
        return f"{greeting} {name}"

    @server.tool
    async def order(item: str, ctx: Context) -> str:
        return f"{item}: {await ctx.confirm(f'Order {item}?')}"

    return server


async def conversation(server: Server, revision: str) -> Tape:
    tape = Tape()
    answers = ScriptedAnswers(elicit={"Order": {"confirm": True}})
    async with Client(
        server.transport(tap=tape.record), revision=revision, answers=answers
    ) as client:
        await client.call_tool("greet", {"name": "Ada"}, on_progress=lambda *_: None)
        await client.call_tool("order", {"item": "tea"})
    return tape


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_differences_of_a_server_at_a_url(revision: str) -> None:
    tape = await conversation(make_server(), revision)
    async with make_server("Hi").serve_http(port=0) as web:
        found = await replay_at(web.url, tape)
    assert len(found) == len({each.partition(": ")[0] for each in found})
    assert all('greet, /result/content/0/text: expected "Hello Ada"' in each for each in found[:1])
    assert not any("order" in each for each in found)


async def test_a_recording_replays_over_a_socket(tmp_path: Path) -> None:
    tape = await conversation(make_server(), "2026-07-28")
    path = tmp_path / "shop.sock"
    ready = asyncio.Event()
    serving = asyncio.ensure_future(
        listen(path, make_server().serve, on_ready=lambda _: ready.set())
    )
    await ready.wait()
    try:
        assert await replay_at(f"unix://{path}", tape) == []
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    with pytest.raises(ValueError, match="is not an address"):
        await replay_at("ftp://example.com", tape)


async def test_headers_that_repeat_arguments_are_found_out() -> None:
    """The tape has no list of tools, so the replay asks for one when the server misses a header."""
    server = Server("mirrors", "1")

    @server.tool
    async def visit(
        tenant: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Tenant"})],
    ) -> str:
        return f"{tenant} visited"

    tape = Tape()
    async with Client(server.transport(tap=tape.record), revision="2026-07-28") as client:
        await client.call_tool("visit", {"tenant": "acme"})
    assert "tools/list" not in tape.methods()
    async with server.serve_http(port=0) as web:
        assert await replay_at(web.url, tape) == []


BATCH = [
    Line(
        "client",
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26",'
        b'"capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}',
    ),
    Line("client", b'{"jsonrpc":"2.0","method":"notifications/initialized"}'),
    Line(
        "client",
        b'[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"tools/call",'
        b'"params":{"name":"greet","arguments":{"name":"Ada"}}}]',
    ),
    Line(
        "server",
        b'[{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"Hello Ada"}]}},'
        b'{"jsonrpc":"2.0","id":2,"result":{}}]',
    ),
]


async def test_responses_to_a_batch_are_compared_one_by_one() -> None:
    """Their order and grouping are the server's own, over HTTP and over a channel (`RPC-13`)."""
    tape = Tape(BATCH)
    ours, theirs = channel_pair()
    serving = asyncio.create_task(make_server("Hi").serve(theirs))
    over_channel = await replay_recording(tape, ours)
    await serving
    async with make_server("Hi").serve_http(port=0) as web:
        over_http = await replay_at(web.url, tape)
    assert over_channel == over_http
    (found,) = over_http
    assert found.endswith(
        'the answer to tools/call greet, /result/content/0/text: expected "Hello Ada", got "Hi Ada"'
    )


def questions(*names: str) -> bytes:
    asked = {
        name: {"method": "elicitation/create", "params": {"message": f"Question {number}?"}}
        for number, name in enumerate(names)
    }
    result = {"resultType": "input_required", "inputRequests": asked, "requestState": names[0]}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


def retry(state: str, *names: str) -> bytes:
    params = {
        "name": "order",
        "requestState": state,
        "inputResponses": {
            name: {"action": "accept", "content": {"number": number}}
            for number, name in enumerate(names)
        },
    }
    return json.dumps(
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    ).encode()


async def test_questions_in_results_may_have_other_names() -> None:
    """A server may name its questions anew in each run; the answers get the names of this run."""
    tape = Tape(
        [
            Line("client", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}'),
            Line("server", questions("a-1", "b-1")),
            Line("client", retry("a-1", "a-1", "b-1")),
            Line("server", b'{"jsonrpc":"2.0","id":2,"result":{}}'),
        ]
    )
    ours, theirs = channel_pair()
    received: list[Any] = []

    async def serve() -> None:
        for answer in (questions("a-9", "b-9"), b'{"jsonrpc":"2.0","id":2,"result":{}}'):
            received.extend(map(json.loads, await theirs.receive()))
            theirs.send([answer])

    serving = asyncio.create_task(serve())
    assert await replay_recording(tape, ours) == []
    await serving
    assert received[1] == json.loads(retry("a-9", "a-9", "b-9"))


OPENING = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}'
)


@pytest.mark.parametrize(
    "path, words", [("/locked", "log in"), ("/missing", "address of the server's MCP endpoint")]
)
async def test_a_server_that_cannot_be_used_is_an_error(path: str, words: str) -> None:
    """It is no difference, and says what to do."""
    tape = Tape([Line("client", OPENING), Line("server", b'{"jsonrpc":"2.0","id":1,"result":{}}')])
    with contextlib.closing(Site()) as site, pytest.raises(Unreachable, match=words):
        await replay_at(f"{site.root}{path}", tape)
    with pytest.raises(Unreachable):  # nobody listens there any more
        await replay_at(site.url, tape)
