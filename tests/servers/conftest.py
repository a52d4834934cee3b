"""The weather service on loopback, for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.weather_site import WeatherSite


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[WeatherSite]:
    """A weather service of this test's own, reached without any proxy."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = WeatherSite()
    yield made
    made.close()
