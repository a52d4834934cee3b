"""What the tests of several servers need: a client of the one that a file's `server` gives, and the
weather service on loopback.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from interlock import Client, Server
from tests.servers.weather_site import WeatherSite


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    """A client that checks results against the output schemas, with a person who agrees to
    everything.
    """
    async with Client(server, elicit=lambda question: {"confirm": True}) as opened:
        await opened.list_tools()
        yield opened


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[WeatherSite]:
    """A weather service of this test's own, reached without any proxy."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = WeatherSite()
    yield made
    made.close()
