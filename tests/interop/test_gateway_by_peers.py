"""The gateway between our client and servers of other makers, and between clients of other makers
and our server: every test of the catalogue passes through it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.gateway.running import gateway
from tests.interop import catalogue
from tests.interop.driver import command_of, led, on_the_web
from tests.interop.test_peer_clients import (
    R4,
    R5,
    Talk,
    Way,
    test_cancellation,
    test_completion,
    test_content_of_each_kind,
    test_elicitation,
    test_elicitation_by_url,
    test_failures,
    test_logging,
    test_progress,
    test_prompts,
    test_resources,
    test_roots,
    test_several_questions_in_one_call,
    test_structured_results,
    test_text_survives,
)
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.asyncio(loop_scope="module")]

__all__ = [
    "talk",
    "test_cancellation",
    "test_completion",
    "test_content_of_each_kind",
    "test_elicitation",
    "test_elicitation_by_url",
    "test_failures",
    "test_logging",
    "test_progress",
    "test_prompts",
    "test_resources",
    "test_roots",
    "test_several_questions_in_one_call",
    "test_structured_results",
    "test_text_survives",
]

WAYS = [
    Way("python-2", "auto", R5, road="http"),
    Way("python-2", "legacy", R4, road="http"),
    Way("python-1", "legacy", R4, road="http"),
    Way("typescript-2", "auto", R5, road="http"),
    Way("typescript-2", "legacy", R4, road="http"),
    Way("typescript-1", "legacy", R4, road="http"),
]
"""The official clients before the gateway."""

BEHIND = (R4, R5)
"""The revisions of the server behind it, which have all that the tests look at."""


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[(way, behind) for way in WAYS for behind in BEHIND],
    ids=lambda p: f"{p[0]} before {p[1]}",
)
async def talk(
    request: pytest.FixtureRequest,
    installed: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Talk]:
    """One conversation of a client of another maker, through the gateway."""
    way, behind = request.param
    async with contextlib.AsyncExitStack() as stack:
        port = free_port()
        program = [sys.executable, catalogue.__file__, str(port), behind]
        await stack.enter_async_context(on_the_web(program, port))
        settings = (
            f'[servers.behind]\nurl = "http://127.0.0.1:{port}/mcp"\nprefix = ""\n'
            '[audit]\nfile = "off"\n'
        )
        folder = tmp_path_factory.mktemp("gateway")
        made = await stack.enter_async_context(gateway(folder, settings))
        target: dict[str, Any] = {"url": made.url(), "road": way.road}
        command = command_of("client", way.peer, installed)
        client = await stack.enter_async_context(
            led(command, mode=way.mode, log_level="info", **target)
        )
        yield Talk(way, client)


async def test_all_tools_are_listed(talk: Talk) -> None:
    """With their schemas. Another test may have added one."""
    tools = {tool["name"]: tool for tool in (await talk.client.do("list_tools")).result["tools"]}
    assert tools.keys() - {"extra"} == {tool.key for tool in catalogue.server.tools.all()}
    assert tools["add"]["inputSchema"]["required"] == ["a", "b"]
    assert "outputSchema" in tools["add"]


async def test_the_model_of_the_client_is_asked(talk: Talk) -> None:
    """Its answer reaches the tool; a refusal ends the call in an error, of the tool or of the call
    as the revision of the server has it."""
    step = await talk.client.call("ask_model", {"prompt": "Where?"})
    assert step.text == "Paris"
    refused = await talk.client.call("ask_model", {"prompt": "Where?"}, answers={})
    assert refused.error is not None or refused.result["isError"]


async def test_a_watched_resource(talk: Talk) -> None:
    """Whoever watches it hears of its change."""
    if talk.stateless:
        wanted = {"resource_subscriptions": ["note://board"]}
        step = await talk.client.do("listen", wanted=wanted, tools=["touch"])
        assert ["notifications/resources/updated", "note://board"] in step.result["events"]
        return
    await talk.client.do("subscribe", uri="note://board")
    heard = []
    for _ in range(3):  # a list that became known after the handshake may be announced before
        heard += [method for method, _ in (await talk.client.call("touch", until=1)).heard]
    assert "notifications/resources/updated" in heard
    await talk.client.do("unsubscribe", uri="note://board")
