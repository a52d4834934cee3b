"""Recordings as regression tests of servers, and as mock servers, in every revision."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest

from interlock import Client, Context, Duplex, InterlockError, McpError, Server
from interlock.tape import Line, MockServer, Tape, replay_recording
from interlock.testing import channel_pair
from tests.tapes.record import SCENARIOS  # `record` imports all scenarios
from tests.tapes.scenarios import Scenario

RECORDED = [
    (scenario, revision) for scenario in SCENARIOS.values() for revision in scenario.revisions
]


def named(value: object) -> str:
    return value.name if isinstance(value, Scenario) else str(value)


async def record(scenario: Scenario, revision: str) -> Tape:
    """A tape with all values as they were."""
    ours, theirs = channel_pair()
    tape = Tape()
    serving = asyncio.create_task(scenario.make_server(revision).serve(theirs))
    async with Client(Duplex(ours, tap=tape.record), **scenario.client_options(revision)) as client:
        await scenario.drive(client)
    await serving
    return tape


async def replay(tape: Tape, server: Server, **options: Any) -> list[str]:
    ours, theirs = channel_pair()
    serving = asyncio.create_task(server.serve(theirs))
    try:
        return await replay_recording(tape, ours, **options)
    finally:
        await serving


@pytest.mark.parametrize("scenario, revision", RECORDED, ids=named)
async def test_a_recording_replays_to_the_same_server(scenario: Scenario, revision: str) -> None:
    """States, ids of elicitations and times are other ones in the second run."""
    tape = await record(scenario, revision)
    assert await replay(tape, scenario.make_server(revision)) == []


@pytest.mark.parametrize("scenario, revision", RECORDED, ids=named)
async def test_a_mock_takes_the_place_of_the_server(scenario: Scenario, revision: str) -> None:
    """The client gets the same results, and asks nothing that the recording does not have."""
    tape = await record(scenario, revision)
    mock = MockServer(tape)
    ours, theirs = channel_pair()
    serving = asyncio.create_task(mock.serve(theirs))
    again = Tape()
    async with Client(
        Duplex(ours, tap=again.record), **scenario.client_options(revision)
    ) as client:
        await scenario.drive(client)
    await serving
    assert mock.unanswered == []
    assert again.methods("client") == tape.methods("client")


def make_server(greeting: str = "Hello", version: str = "1") -> Server:
    server = Server("greeter", version)

    @server.tool
    def greet(name: str) -> str:
        return f"{greeting} {name}"

    @server.tool
    async def order(ctx: Context, ticket: str = "") -> dict[str, str]:
        if ticket:
            return {"closed": ticket, "at": "2026-01-01T00:00:00Z"}
        return {"ticket": str(uuid.uuid4()), "shell": "${HOME} and ${x}"}

    return server


async def conversation(server: Server) -> Tape:
    tape = Tape()
    async with Client(server.transport(tap=tape.record)) as client:
        await client.call_tool("greet", {"name": "Ada"})
        ticket = (await client.call_tool("order")).structured_content["ticket"]
        await client.call_tool("order", {"ticket": ticket})
    return tape


async def test_the_first_difference_has_a_path() -> None:
    tape = await conversation(make_server())
    assert await replay(tape, make_server(version="2")) == []
    found = await replay(tape, make_server("Hi"))
    assert found[0].endswith(
        'of the server, the answer to tools/call greet, /result/content/0/text: expected "Hello'
        ' Ada", got "Hi Ada"'
    )
    ignored = ["/result/content/0/text", "/result/structuredContent"]
    assert await replay(tape, make_server("Hi"), ignore=ignored) == []


async def test_values_of_the_server_are_sent_back() -> None:
    """A ticket of this run takes the place of the recorded one."""
    tape = await conversation(make_server())
    recorded = tape.messages("client")[-1]["params"]["arguments"]["ticket"]
    tickets: list[str] = []
    server = Server("greeter", "1")

    @server.tool
    def greet(name: str) -> str:
        return f"Hello {name}"

    @server.tool
    async def order(ticket: str = "") -> dict[str, str]:
        tickets.append(ticket or str(uuid.uuid4()))
        if ticket:
            return {"closed": ticket, "at": "2027-02-03T04:05:06.789+01:00"}
        return {"ticket": tickets[0], "shell": "${HOME} and ${x}"}

    assert await replay(tape, server) == []
    assert tickets[0] == tickets[1] != recorded


async def test_a_missing_answer_is_named() -> None:
    tape = Tape(
        [
            Line("client", b'{"jsonrpc":"2.0","id":1,"method":"notifications/none"}'),
            Line("server", b'{"jsonrpc":"2.0","id":2,"result":{}}'),
        ]
    )
    (words,) = await replay(tape, make_server(), patience=0.05)
    assert words == (
        "message 2 of the server, the answer to an unknown request: it did not come within 0.05"
        " seconds"
    )


async def test_a_mock_says_what_it_has_no_answer_for() -> None:
    tape = await conversation(make_server())
    ours, theirs = channel_pair()
    mock = MockServer(tape)
    serving = asyncio.create_task(mock.serve(theirs))
    async with Client(Duplex(ours)) as client:
        assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello Ada"
        assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello Ada"
        with pytest.raises(McpError) as refused:
            await client.call_tool("greet", {"name": "Eve"})
        with pytest.raises(InterlockError, match="it has no request prompts/get"):
            await client.get_prompt("x")
    await serving
    assert refused.value.code == -32602
    assert '/arguments/name: expected "Ada", got "Eve"' in refused.value.message
    assert len(mock.unanswered) == 2


def test_a_mock_takes_whatever_comes() -> None:
    mock = MockServer(Tape())
    for frame in (b"", b"[]", b"{", b'"x"', b"{}", b'{"id":1}', b'{"method":"x"}', b"\xff"):
        assert mock.respond(frame) == []
    (answer,) = mock.respond(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert json.loads(answer)["result"] == {}
