"""The response cache of a client that forwards requests: a private answer stays with the principal
that got it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from interlock import Client, Exchange, Principal, Server
from interlock import types as t
from interlock.wire.revisions import R4, R5


def counting(scope: t.CacheScope) -> Server:
    """A server whose resource is another one at each reading, and may be cached for an hour."""
    numbers = itertools.count(1)

    def numbered(handler: Any) -> Any:
        async def handle(x: Exchange) -> Any:
            if x.method != "resources/read":
                return await handler(x)
            contents = [t.ResourceContents(uri=x.params.uri, text=f"{next(numbers)}")]
            return t.ReadResourceResult(contents=contents, ttl_ms=3_600_000, cache_scope=scope)

        return handle

    server = Server("behind", middleware=[numbered])
    server.add_resource("note://one", "")
    return server


@pytest.mark.parametrize("scope, seen", [("private", "121"), ("public", "111")])
async def test_whose_answer_a_forwarded_request_gets(scope: t.CacheScope, seen: str) -> None:
    """Of ada, bob and ada again, who share the client of a server in between (`CAC-03`)."""
    front = Server("front")
    front.mount(Client(counting(scope)))
    found = ""
    for name in ("ada", "bob", "ada"):
        async with Client(front.transport(principal=Principal(subject=name))) as client:
            if not found:
                keeps_it_open = Client(front)
                await keeps_it_open.open()
            found += (await client.read_resource("note://one")).contents[0].text or ""
    await keeps_it_open.aclose()
    assert found == seen


async def test_a_source_of_the_handshake_era_gets_cache_hints() -> None:
    """2026-07-28 requires them in each result that may be cached."""
    behind = Server("behind", revisions=[R4])
    behind.add_resource("note://one", "Buy milk")
    front = Server("front")
    front.mount(Client(behind))
    async with Client(front, revision=R5) as client:
        read = await client.read_resource("note://one")
    assert (read.ttl_ms, read.cache_scope) == (0, "private")
