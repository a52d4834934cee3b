"""A web on loopback for each test of the fetch server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.servers.fetch.site import Site, running


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A web of this test's own."""
    async with running() as made:
        yield made
