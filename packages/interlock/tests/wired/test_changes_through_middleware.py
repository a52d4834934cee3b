"""Server middleware and what a server says without being asked: list changes and updated resources
pass through the `notify` of an exchange under every revision."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from msgspec.structs import replace

from interlock import Changed, Client, Server
from interlock.exchange import AnyResult, Exchange, Handler
from interlock.wire.revisions import R1, REVISIONS
from tests.wired.test_gateway import served

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Editor:
    """Middleware that notes every notification, and drops those of prompts."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def __call__(self, handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            def notify(method: str, params: Any) -> None:
                if method != ACKNOWLEDGED:
                    self.seen.append((x.method, method))
                if method != "notifications/prompts/list_changed":
                    x.notify(method, params)

            return await handler(replace(x, notify=notify))

        return handle


ROADS = [
    (road, revision)
    for revision in REVISIONS
    for road in ("memory", "http")
    if (road, revision) != ("http", R1)  # which knows HTTP+SSE only
]


@pytest.mark.parametrize("road, revision", ROADS)
async def test_changes_pass_through_server_middleware(road: str, revision: str) -> None:
    """Also in the handshake era, where they belong to no request of the client: the server listens
    on its behalf. What middleware drops does not reach the client."""
    editor = Editor()
    server = Server("growing", middleware=[editor])
    server.add_resource("note://one", "text")
    server.tool(lambda: "first", name="first")
    server.prompt(lambda: "ask", name="ask")
    async with AsyncExitStack() as stack:
        target: Any = await served(server, stack) if road == "http" else server
        client = await stack.enter_async_context(Client(target, revision=revision))
        watch = client.watch(tools=True, prompts=True, resources=["note://one"])
        changes = await stack.enter_async_context(watch)
        async with asyncio.timeout(30):
            server.prompt(lambda: "more", name="more")
            server.tool(lambda: "second", name="second")
            assert (await anext(changes)) == Changed("tools")
            server.updated("note://one")
            assert (await anext(changes)) == Changed("resource", "note://one")
    assert [method for method, _ in editor.seen] == ["subscriptions/listen"] * 3
    assert {notification for _, notification in editor.seen} == {
        "notifications/prompts/list_changed",
        "notifications/tools/list_changed",
        "notifications/resources/updated",
    }
