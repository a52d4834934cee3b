"""The HTTP servers on which tests of the endpoint run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.transport.raw_web import WebServer


@pytest.fixture(scope="module", params=["ours", "uvicorn"])
def web_server(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test of the endpoint on our HTTP server, and on uvicorn, in which others mount it."""
    WebServer.is_uvicorn = request.param == "uvicorn"
    yield request.param
    WebServer.is_uvicorn = False
