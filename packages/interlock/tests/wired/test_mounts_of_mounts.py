"""A server that has mounted a server that has mounted a client: every flow of a gateway comes
through, under every pair of revisions and over every transport."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from interlock import Answers, Client, ClientSettings, Stdio
from interlock.wire.revisions import REVISIONS
from tests.wired.behind import server_behind
from tests.wired.mounted import mounted
from tests.wired.test_gateway import (
    SECONDS,
    TOP,
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
    test_the_gateway_offers_what_the_server_behind_offers,
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
    "test_the_gateway_offers_what_the_server_behind_offers",
    "test_two_questions_in_one_call",
]

PAIRS = [
    Pair(transport, ahead, behind)
    for transport in ("memory", "http", "stdio")
    for ahead in REVISIONS
    for behind in REVISIONS
]


@asynccontextmanager
async def mounted_chain(pair: Pair) -> AsyncIterator[Chain]:
    """Start the servers and the client of a pair."""
    made = Chain(pair)
    async with AsyncExitStack() as stack:
        if pair.transport == "stdio":
            program = [sys.executable, "-m", "tests.wired.mounted", pair.behind]
            target: Any = Stdio(program, cwd=TOP)
        else:
            behind = server_behind(pair.behind)
            reached: Any = await served(behind, stack) if pair.transport == "http" else behind
            front = mounted(reached)
            target = await served(front, stack) if pair.transport == "http" else front
        made.client = Client(
            target,
            revision=pair.ahead,
            answers=Answers(elicit=made.answer, sample=made.sample, roots="file:///home/ada"),
            on_log=made.logged.append,
            log_level="info",
            settings=ClientSettings(probe_timeout=SECONDS),
            timeout=SECONDS,
        )
        await stack.enter_async_context(made.client)
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=PAIRS, ids=str)
async def whole_chain(request: pytest.FixtureRequest) -> AsyncIterator[Chain]:
    """A chain that lives until the next one's turn."""
    async with mounted_chain(request.param) as made:
        yield made
