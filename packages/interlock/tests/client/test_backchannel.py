"""Servers that can ask only under an older revision:

the client goes back to it, and repeats only what does no harm.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, ClientSettings, McpError, TextContent, ToolError
from interlock import types as t
from interlock.client.backchannel import lacks_back_channel
from interlock.wire.revisions import NEWEST, R4
from tests.transport.programs import NO_BACK_CHANNEL, UNAVAILABLE, asking_server, count


def size(question: Any) -> dict[str, str]:
    """The answer to every question."""
    return {"size": "L"}


FAILURES: dict[str, dict[str, Any]] = {
    "as an error": {"words": NO_BACK_CHANNEL},
    "as a failed result": {"words": f"Error executing tool: {NO_BACK_CHANNEL}", "in_result": True},
    "in other words": {"words": UNAVAILABLE, "in_result": True},
}


@pytest.mark.parametrize("program", FAILURES.values(), ids=FAILURES)
async def test_a_call_that_only_reads_is_made_again_under_the_older_revision(
    program: dict[str, Any], tmp_path: Path
) -> None:
    """The user is told, and the client stays there, also when it is opened again."""
    said: list[Any] = []
    client = Client(asking_server(tmp_path, **program), elicit=size, on_log=said.append)
    async with client:
        assert (client.revision, client.asks_under) == (NEWEST, None)
        assert (await client.call_tool("look")).text == '{"size": "L"}'
        assert (client.revision, client.asks_under) == (R4, R4)
        assert (await client.call_tool("order")).text == '{"size": "L"}'
    (notice,) = [message.data for message in said]
    assert "only under 2025-11-25" in notice
    assert "The call of look is sent again" in notice
    assert (count(tmp_path, "runs"), count(tmp_path, "starts")) == (3, 2)
    async with client:
        assert client.revision == R4
    assert count(tmp_path, "starts") == 3


@pytest.mark.parametrize("program", FAILURES.values(), ids=FAILURES)
async def test_a_call_that_may_do_harm_twice_is_not_made_again(
    program: dict[str, Any], tmp_path: Path
) -> None:
    """It fails as the server had it; the next call goes well."""
    said: list[Any] = []
    async with Client(
        asking_server(tmp_path, **program), elicit=size, on_log=said.append
    ) as client:
        with pytest.raises((McpError, ToolError), match="server-initiated requests"):
            (await client.call_tool("order")).value()
        assert (client.revision, count(tmp_path, "runs")) == (R4, 1)
        assert (await client.call_tool("order")).text == '{"size": "L"}'
    assert "The call of order is not sent again" in said[0].data


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
async def test_the_user_may_say_that_a_call_is_made_again(
    answer: bool, is_async: bool, tmp_path: Path
) -> None:
    """Asked about calls of which the tool says nothing, and about no others."""
    asked: list[str] = []

    def may_repeat(params: t.CallToolRequestParams) -> bool:
        asked.append(params.name)
        return answer

    async def may_repeat_later(params: t.CallToolRequestParams) -> bool:
        return may_repeat(params)

    async with Client(
        asking_server(tmp_path),
        elicit=size,
        settings=ClientSettings(older_for_questions=may_repeat_later if is_async else may_repeat),
    ) as client:
        if answer:
            assert (await client.call_tool("order")).text == '{"size": "L"}'
        else:
            with pytest.raises(McpError, match="no back-channel"):
                await client.call_tool("order")
    assert asked == ["order"]
    assert count(tmp_path, "runs") == (2 if answer else 1)


async def test_prompts_and_resources_are_only_read(tmp_path: Path) -> None:
    """So they are asked for again."""
    for folder, read in (("p", False), ("r", True)):
        (tmp_path / folder).mkdir()
        async with Client(asking_server(tmp_path / folder), elicit=size) as client:
            if read:
                contents = (await client.read_resource("a:b")).contents
                assert contents[0].text == '{"size": "L"}'
            else:
                (message,) = (await client.get_prompt("plan")).messages
                assert isinstance(message.content, TextContent)
                assert message.content.text == '{"size": "L"}'
            assert client.revision == R4


async def test_calls_under_way_are_not_cut_off(tmp_path: Path) -> None:
    """The client waits for them before it goes back; calls that fail meanwhile for the same reason
    go back once together.
    """
    async with Client(asking_server(tmp_path), elicit=size) as client:
        waits = asyncio.create_task(client.call_tool("wait"))
        looks = [asyncio.create_task(client.call_tool("look")) for _ in range(3)]
        done, _ = await asyncio.wait(looks, timeout=0.3)
        assert not done
        assert client.revision == NEWEST
        await client.complete("plan", "x")  # lets go of the one that waits
        assert (await waits).text == "waited"
        assert [(await look).text for look in looks] == ['{"size": "L"}'] * 3
        assert client.revision == R4
    assert count(tmp_path, "starts") == 2


STAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a client that can answer nothing": ({}, {}),
    "only the newest revision allowed": ({}, {"elicit": size, "revision": NEWEST}),
    "switched off": ({}, {"elicit": size, "settings": ClientSettings(older_for_questions=False)}),
    "a server that speaks no older one": ({"older": False}, {"elicit": size}),
}


@pytest.mark.parametrize("program, options", STAYS.values(), ids=STAYS)
async def test_where_there_is_nothing_to_go_back_to_the_error_is_told(
    program: dict[str, Any], options: dict[str, Any], tmp_path: Path
) -> None:
    """Each call is made once."""
    async with Client(asking_server(tmp_path, **program), **options) as client:
        for number in (1, 2):
            with pytest.raises(McpError, match="no back-channel"):
                await client.call_tool("look")
            assert (client.revision, count(tmp_path, "runs")) == (NEWEST, number)


async def test_a_client_that_is_closed_while_it_goes_back_is_closed(tmp_path: Path) -> None:
    """What waits says so, and nothing is left."""
    client = Client(asking_server(tmp_path), elicit=size)
    async with client:
        waits = asyncio.create_task(client.call_tool("wait"))
        look = asyncio.create_task(client.call_tool("look"))
        await asyncio.wait({look}, timeout=0.3)
    outcomes = await asyncio.gather(waits, look, return_exceptions=True)
    assert all(isinstance(outcome, t.InterlockError) for outcome in outcomes), outcomes
    assert not client.connected


OUTCOMES: dict[str, tuple[t.Result | McpError, bool]] = {
    "the words of the Python SDK": (McpError(-32600, NO_BACK_CHANNEL), True),
    "another error": (McpError(-32600, "no such tool"), False),
    "the words in a result that is none": (
        t.CallToolResult(content=[TextContent(text=NO_BACK_CHANNEL)]),
        False,
    ),
    "the words of FastMCP": (
        t.CallToolResult(content=[TextContent(text=UNAVAILABLE)], is_error=True),
        True,
    ),
    "the words far down in a long error": (
        t.CallToolResult(content=[TextContent(text="x" * 3000 + NO_BACK_CHANNEL)], is_error=True),
        False,
    ),
}


@pytest.mark.parametrize("outcome, found", OUTCOMES.values(), ids=OUTCOMES)
def test_what_counts_as_a_missing_back_channel(outcome: t.Result | McpError, found: bool) -> None:
    """Errors with the words of known servers; a tool that merely speaks of it is believed
    nothing.
    """
    assert lacks_back_channel(outcome) is found
