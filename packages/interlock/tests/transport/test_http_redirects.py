"""A client that was given an address with a slash too many, or too few, reaches the endpoint."""

from __future__ import annotations

import pytest

from interlock import Client, Server
from interlock.auth import ApiKeys, Guard
from tests.auth.served import serving


def _server() -> Server:
    server = Server("slashed")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return server


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("path, asked", [("/mcp", "/mcp/"), ("/a/b", "/a/b/"), ("/mcp/", "/mcp")])
async def test_a_client_follows_the_redirect(path: str, asked: str, revision: str) -> None:
    """With its session and its calls, in both eras."""
    async with (
        serving(lambda url: _server().http_app(path)) as url,
        Client(url + asked, revision=revision) as client,
    ):
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"


async def test_a_guard_refuses_what_the_redirect_leads_to() -> None:
    """The redirect is for everybody, so that a client learns for which address it needs a token."""
    key = "only-used-in-this-test-and-nowhere-else"
    guard = Guard(ApiKeys({"ci": key}), resource="http://127.0.0.1/mcp")
    async with serving(lambda url: _server().http_app(guard=guard)) as url:
        async with Client(f"{url}/mcp/", headers={"Authorization": f"Bearer {key}"}) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        with pytest.raises(Exception, match="401|not authori|token"):
            async with Client(f"{url}/mcp/"):
                """Nobody gets in here."""
