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
    R1,
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
    test_sampling,
    test_several_questions_in_one_call,
    test_structured_results,
    test_subscriptions,
    test_text_survives,
    test_the_list_of_tools,
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
    "test_sampling",
    "test_several_questions_in_one_call",
    "test_structured_results",
    "test_subscriptions",
    "test_text_survives",
    "test_the_list_of_tools",
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

BEHIND = (R1, R4, R5)
"""The revisions of the server behind it."""


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
