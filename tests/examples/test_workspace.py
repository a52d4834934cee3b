"""The workspace server over HTTP: keys and toolsets of each request, filters, two services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from examples.workspace import workspace
from interlock import Client

OPEN = {"X-Site": "https://acme.example", "X-Key": "acme-key"}


@asynccontextmanager
async def connected(
    headers: Mapping[str, str], *, read_only: bool = False, revision: str = "2026-07-28"
) -> AsyncIterator[Client]:
    """A client of the server with some headers."""
    async with (
        workspace(read_only=read_only).serve_http(port=0) as http,
        Client(http.url, headers=headers, revision=revision) as client,
    ):
        yield client


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_each_request_brings_its_site_and_key(revision: str) -> None:
    async with connected(OPEN, revision=revision) as client:
        page = await client.call_tool("wiki__get_page", {"name": "handbook"})
        assert page.text == "Be kind."
        issue = await client.call_tool("tracker__close_issue", {"key": "A-1"})
        assert issue.text == "A-1 is closed at https://acme.example."
    async with connected({**OPEN, "X-Key": "stolen"}, revision=revision) as client:
        refused = await client.call_tool("wiki__get_page", {"name": "handbook"})
        assert refused.is_error
        assert "do not open any site" in refused.text


@pytest.mark.parametrize(
    "wanted, read_only, names",
    [
        ("", False, ["get_page", "delete_page", "get_issue", "close_issue"]),
        ("", True, ["get_page", "get_issue"]),
        ("wiki", False, ["get_page", "delete_page"]),
        ("wiki tracker", True, ["get_page", "get_issue"]),
    ],
)
async def test_tools_are_chosen_by_the_author_and_by_the_request(
    wanted: str, read_only: bool, names: list[str]
) -> None:
    async with connected({"X-Toolsets": wanted}, read_only=read_only) as client:
        listed = [tool.name.partition("__")[2] for tool in await client.list_tools()]
    assert listed == names
