"""The gateway under every pair of revisions: each flow that both revisions have comes through it,
in memory and over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from interlock import Answers, Client, ClientSettings
from interlock.wire.revisions import REVISIONS
from tests.gateway.made import entries, made
from tests.wired.behind import server_behind
from tests.wired.test_gateway import (
    SECONDS,
    Chain,
    Pair,
    chain,
    served,
    test_a_list_that_changes,
    test_a_resource_that_changes,
    test_cancelling,
    test_errors,
    test_log_messages,
    test_many_calls_at_once_on_one_connection,
    test_many_questions_at_once_on_one_connection,
    test_progress,
    test_roots,
    test_sampling,
    test_two_questions_in_one_call,
)

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.matrix]

__all__ = [
    "chain",
    "test_a_list_that_changes",
    "test_a_resource_that_changes",
    "test_cancelling",
    "test_errors",
    "test_log_messages",
    "test_many_calls_at_once_on_one_connection",
    "test_many_questions_at_once_on_one_connection",
    "test_progress",
    "test_roots",
    "test_sampling",
    "test_two_questions_in_one_call",
]

PAIRS = [
    Pair(transport, ahead, behind)
    for transport in ("memory", "http")
    for ahead in REVISIONS
    for behind in REVISIONS
]


@asynccontextmanager
async def through(pair: Pair, folder: Path) -> AsyncIterator[Chain]:
    """Start the server, the gateway and the client of a pair."""
    started = Chain(pair)
    async with AsyncExitStack() as stack:
        behind = server_behind(pair.behind)
        reached: Any = await served(behind, stack) if pair.transport == "http" else behind
        settings = entries({"behind": 'prefix = ""'})
        gateway = await stack.enter_async_context(
            made(folder, settings, {"behind": lambda: reached})
        )
        front = gateway.server
        target: Any = await served(front, stack) if pair.transport == "http" else front
        started.client = Client(
            target,
            revision=pair.ahead,
            answers=Answers(elicit=started.answer, sample=started.sample, roots="file:///home/ada"),
            on_log=started.logged.append,
            log_level="info",
            settings=ClientSettings(probe_timeout=SECONDS),
            timeout=SECONDS,
        )
        await stack.enter_async_context(started.client)
        await started.client.list_tools()  # the server is opened: its first list is no change
        yield started


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=PAIRS, ids=str)
async def whole_chain(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Chain]:
    """A chain that lives until the next one's turn."""
    async with through(request.param, tmp_path_factory.mktemp("gateway")) as started:
        yield started


async def test_it_offers_what_the_server_behind_offers(chain: Chain) -> None:
    """The lists are those of the server, and the name is that of the gateway."""
    info = chain.client.server_info
    assert info is None or info.name == "interlock-gateway"
    assert {tool.name for tool in await chain.client.list_tools()} >= {"order", "steps"}
    assert [r.uri for r in await chain.client.list_resources()] == ["note://one"]
    read = await chain.client.read_resource("note://one")
    assert read.contents[0].text == "Buy milk"
    prompt = await chain.client.get_prompt("greeting", {"name": "Ada"})
    assert prompt.messages[0].content.text == "Greet Ada."
