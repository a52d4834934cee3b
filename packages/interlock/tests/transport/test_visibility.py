"""Visibility over HTTP with and without principals, and over stdio, under every revision."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from interlock import Client, Http, Implementation, McpError, Stdio
from interlock.wire.revisions import REVISIONS
from tests.server.test_visibility import GUEST, NOTHING, seen
from tests.server.visible import office
from tests.transport.doorman import Doorman

TOP = Path(__file__).parents[4]
EACH = pytest.mark.parametrize("revision", REVISIONS)


async def refused(client: Client) -> None:
    """A hidden tool is unknown."""
    with pytest.raises(McpError) as caught:
        await client.call_tool("hire", {"name": "Bob"})
    assert caught.value.message.startswith(("Unknown tool", "Method not found"))


@EACH
async def test_over_http_by_principal(revision: str) -> None:
    """Each principal has its own capabilities, lists and calls at one endpoint; so has whoever has
    none.
    """
    async with (
        asyncio.timeout(60),
        office().serve_http(port=0, guard=Doorman(strangers=True)) as http,
    ):
        for headers, name, expected in (
            ({"x-who": "guest"}, "any", GUEST),
            ({"x-who": "nobody"}, "any", NOTHING),
            ({}, "guest", GUEST),
        ):
            async with Client(
                Http(http.url, headers=headers),
                revision=revision,
                info=Implementation(name=name, version="1"),
            ) as one:
                assert await seen(one) == expected
                await refused(one)
        staff = Http(http.url, headers={"x-who": "staff"})
        async with Client(staff, revision=revision) as client:
            assert (await client.call_tool("hire", {"name": "Bob"})).text == "hired Bob"


@EACH
async def test_over_stdio_by_the_name_of_the_client(revision: str) -> None:
    """A server of this machine has no principals; what the client says of itself can decide."""
    for name, expected in (("guest", GUEST), ("other", NOTHING)):
        command = [sys.executable, "-m", "tests.server.visible"]
        async with Client(
            Stdio(command, cwd=TOP), revision=revision, info=Implementation(name=name, version="1")
        ) as client:
            assert await seen(client) == expected
            await refused(client)
