"""A server, and clients of it that can be asked anything."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from interlock import Answers, Client, Server
from interlock_servers.everything import EverythingLimits, everything_server
from tests.servers.everything.scripted_client import APPS, model, person


@pytest.fixture(scope="session")
def server() -> Server:
    """One server for all: what it remembers begins anew with the first client and ends with the
    last.

    Its lists have small pages, so that each test that lists something follows cursors.
    """
    return everything_server(EverythingLimits(page_size=8))


@pytest.fixture(params=["2026-07-28", "2025-11-25"])
async def client(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[Client]:
    """A client that answers all questions and has apps, under the newest revision of each era.

    It checks results against the output schemas.
    """
    answers = Answers(elicit=person, sample=model, roots=["/srv"], extensions=APPS)
    async with Client(server, revision=request.param, answers=answers) as opened:
        yield opened
