"""Listening to changes, in both eras: what is heard, and what is granted."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from interlock import Changed, Client, McpError, TimedOut
from interlock import types as t
from interlock.wire.revisions import HANDSHAKE_REVISIONS, R4
from tests.client.peers import SILENCE, Peer
from tests.client.watched import BOTH, PROMPTS, RESOURCES, TOOLS, peer_of, shop, tell

# -- what is heard --------------------------------------------------------------------------------


@BOTH
async def test_changes_are_heard(revision: str):
    """Lists and resources, in the order in which they change (`LSN-01`, `LSN-13`)."""
    server = shop()
    async with (
        Client(server, revision=revision) as client,
        client.watch(tools=True, prompts=True, resources=True) as lists,
        client.watch(resources=["shop://shelf"]) as shelf,
    ):
        server.changed("prompts")
        assert await anext(lists) == PROMPTS
        server.remove_tool("touch")
        assert await anext(lists) == TOOLS
        server.add_resource("shop://new", "text")
        assert await anext(lists) == RESOURCES
        server.updated("shop://shelf")
        assert await anext(shelf) == Changed("resource", "shop://shelf")


@BOTH
async def test_what_was_not_wished_is_not_heard(revision: str):
    """(`LSN-02`)"""
    server = shop()
    async with Client(server, revision=revision) as client, client.watch(prompts=True) as changes:
        for _ in range(2):
            server.changed("tools")
            server.updated("shop://shelf")
            server.changed("resources")
            server.changed("prompts")
            assert await anext(changes) == PROMPTS


@BOTH
async def test_what_the_server_tells_beyond_the_wish_is_passed_over(revision: str):
    """A server that says too much is not believed to answer the wish."""
    async with (
        peer_of(revision) as peer,
        Client(peer.channel) as client,
        client.watch(resources=["x:a"]) as changes,
    ):
        for method in ("tools", "prompts", "resources"):
            tell(peer, f"notifications/{method}/list_changed")
        for uri in ("x:b", "x:ab", "x:a"):
            tell(peer, "notifications/resources/updated", {"uri": uri})
        assert await anext(changes) == Changed("resource", "x:a")


@BOTH
async def test_parts_of_a_resource(revision: str):
    """A watched resource stands for all below it, by whole segments (`SUB-02`)."""
    async with (
        Client(server := shop(), revision=revision) as client,
        client.watch(resources=["shop://shelf"]) as changes,
    ):
        for uri in ("shop://shelf2", "shop://she", "shop://shelf/a/1"):
            server.updated(uri)
        assert await anext(changes) == Changed("resource", "shop://shelf/a/1")


@BOTH
async def test_a_change_that_waits_is_not_noted_twice(revision: str):
    """A slow listener hears once of what changed often, and in order of the first time."""
    async with (
        peer_of(revision) as peer,
        Client(peer.channel) as client,
        client.watch(tools=True, prompts=True) as changes,
    ):
        for kind in ("tools", "prompts", "tools", "tools"):
            tell(peer, f"notifications/{kind}/list_changed")
        assert [await anext(changes), await anext(changes)] == [TOOLS, PROMPTS]
        tell(peer, "notifications/prompts/list_changed")
        tell(peer, "notifications/tools/list_changed")
        assert [await anext(changes), await anext(changes)] == [PROMPTS, TOOLS]


@BOTH
async def test_changes_that_nobody_looks_at_are_bounded(
    revision: str, caplog: pytest.LogCaptureFixture
):
    """Of one resource after another, 8 MiB wait; how many more there were is told."""
    async with (
        peer_of(revision) as peer,
        Client(peer.channel) as client,
        client.watch(resources=["shop://shelf"]) as watch,
    ):
        long = "x" * 100_000
        for n in range(100):
            tell(peer, "notifications/resources/updated", {"uri": f"shop://shelf/{n:03}{long}"})
        for _ in range(500):  # all that was told comes in
            await asyncio.sleep(0)
        fit = 8 * 1024 * 1024 // (100_000 + 200 + 16)
        received = [await anext(watch) for _ in range(fit)]
        assert len(set(received)) == fit
        tell(peer, "notifications/resources/updated", {"uri": "shop://shelf"})
        assert await anext(watch) == Changed("resource", "shop://shelf")
    assert f"{100 - fit} changes were dropped" in caplog.text


@BOTH
async def test_one_uri_alone(revision: str):
    """Text is one URI, not a list of letters."""
    async with (
        Client(server := shop(), revision=revision) as client,
        client.watch(resources="shop://shelf") as changes,
    ):
        assert (
            changes.wanted.resource_subscriptions
            == changes.honoured.resource_subscriptions
            == ["shop://shelf"]
        )
        server.updated("shop://shelf")
        assert (await anext(changes)).uri == "shop://shelf"


@BOTH
async def test_several_watches_at_once(revision: str):
    """Each hears its own and is independent of the others (`LSN-07`)."""
    server = shop()
    async with Client(server, revision=revision) as client, contextlib.AsyncExitStack() as stack:
        one = await stack.enter_async_context(client.watch(tools=True))
        async with (
            client.watch(tools=True, prompts=True) as other,
            client.watch(resources=["shop://shelf"]) as shelf,
        ):
            server.changed("tools")
            server.changed("prompts")
            server.updated("shop://shelf")
            assert [
                await anext(one),
                await anext(other),
                await anext(other),
                await anext(shelf),
            ] == [
                TOOLS,
                TOOLS,
                PROMPTS,
                Changed("resource", "shop://shelf"),
            ]
        server.changed("prompts")
        server.changed("tools")
        assert await anext(one) == TOOLS


@BOTH
async def test_two_watches_of_one_resource(revision: str):
    """The end of one is not the end of the other (`LSN-07`, `SUB-05`)."""
    server = shop()
    async with (
        Client(server, revision=revision) as client,
        client.watch(resources=["shop://shelf"]) as one,
    ):
        async with client.watch(resources=["shop://shelf"]):
            pass
        server.updated("shop://shelf")
        assert (await anext(one)).uri == "shop://shelf"


async def test_two_clients():
    """What one client does is heard by the other, whatever they speak."""
    server = shop()
    async with (
        Client(server) as one,
        Client(server, revision=R4) as other,
        other.watch(resources=["shop://shelf"]) as changes,
    ):
        await one.call_tool("touch", {"uri": "shop://shelf"})
        assert (await anext(changes)).uri == "shop://shelf"


@BOTH
async def test_many_listeners_of_one_watch(revision: str):
    """Each change is for one of them."""
    async with (
        peer_of(revision) as peer,
        Client(peer.channel) as client,
        client.watch(tools=True, prompts=True) as changes,
    ):
        listening = [asyncio.ensure_future(anext(changes)) for _ in range(2)]
        for kind in ("tools", "prompts"):
            tell(peer, f"notifications/{kind}/list_changed")
        assert set(await asyncio.gather(*listening)) == {TOOLS, PROMPTS}


# -- what is granted ------------------------------------------------------------------------------


@BOTH
async def test_what_is_granted_is_said(revision: str):
    """All of it, where the server can do all (`LSN-06`)."""
    async with (
        Client(shop(), revision=revision) as client,
        client.watch(tools=True, prompts=True, resources=True) as lists,
        client.watch(resources=["shop://shelf"]) as shelf,
    ):
        assert lists.honoured == t.SubscriptionFilter(
            tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
        )
        assert shelf.honoured == t.SubscriptionFilter(resource_subscriptions=["shop://shelf"])


async def test_a_part_that_is_granted():
    """The acknowledgement is compared with the wish by whoever wants to know (`LSN-03`,
    `LSN-06`).
    """
    async with Peer() as peer, Client(peer.channel) as client:
        peer.on["subscriptions/listen"] = lambda m: peer.acknowledge(
            m, promptsListChanged=None, resourceSubscriptions=["x:a"]
        )
        async with client.watch(tools=True, prompts=True, resources=["x:a", "x:b"]) as changes:
            assert changes.wanted == t.SubscriptionFilter(
                tools_list_changed=True,
                prompts_list_changed=True,
                resource_subscriptions=["x:a", "x:b"],
            )
            assert changes.honoured == t.SubscriptionFilter(
                tools_list_changed=True, resource_subscriptions=["x:a"]
            )


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
async def test_a_part_that_is_granted_by_capabilities(revision: str):
    """In the handshake era the capabilities say what will be told; what cannot be subscribed is not
    (`SUB-01`, `LIF-12`, `LSN-06`).
    """
    offered = {"tools": {"listChanged": True}, "prompts": {}, "resources": {"listChanged": True}}
    async with Peer(None, revision, capabilities=offered) as peer, Client(peer.channel) as client:
        async with (
            client.watch(tools=True, prompts=True, resources=True) as lists,
            client.watch(resources=["x:a"]) as one,
        ):
            assert lists.honoured == t.SubscriptionFilter(
                tools_list_changed=True, resources_list_changed=True
            )
            assert one.honoured == t.SubscriptionFilter()
        assert peer.count("resources/subscribe") == peer.count("resources/unsubscribe") == 0


@pytest.mark.parametrize("code", [t.RESOURCE_NOT_FOUND, t.INVALID_PARAMS])
async def test_resources_that_are_not_there(code: int):
    """Are not granted, and the others are (`ERR-13`, `LSN-06`)."""

    def subscribe(message: dict[str, Any]) -> Any:
        return {} if message["params"]["uri"] == "x:b" else McpError(code, "no such resource")

    async with (
        peer_of(R4, **{"resources/subscribe": subscribe}) as peer,
        Client(peer.channel) as client,
    ):
        async with client.watch(resources=["x:a", "x:b", "x:c"]) as changes:
            assert changes.honoured == t.SubscriptionFilter(resource_subscriptions=["x:b"])
        assert [message["params"]["uri"] for message in peer.all("resources/unsubscribe")] == [
            "x:b"
        ]


async def test_a_resource_that_may_not_be_watched():
    """Any other error is the caller's; what was subscribed before it is given back."""
    answers = [{}, McpError(-32603, "not you")]
    async with (
        peer_of(R4, **{"resources/subscribe": answers}) as peer,
        Client(peer.channel) as client,
    ):
        with pytest.raises(McpError, match="not you"):
            async with client.watch(resources=["x:a", "x:b"]):
                raise AssertionError("it was opened")
        assert [message["params"]["uri"] for message in peer.all("resources/unsubscribe")] == [
            "x:a"
        ]


async def test_a_subscription_that_is_refused():
    async with (
        Peer({"subscriptions/listen": McpError(-32603, "not today")}) as peer,
        Client(peer.channel) as client,
    ):
        with pytest.raises(McpError, match="not today"):
            async with client.watch(tools=True):
                raise AssertionError("it was opened")


async def test_a_subscription_that_is_never_acknowledged():
    """The client does not wait for ever, and takes it back (`LSN-04`, `LSN-09`)."""
    async with (
        Peer({"subscriptions/listen": SILENCE}) as peer,
        Client(peer.channel, timeout=0.01) as client,
    ):
        with pytest.raises(TimedOut, match="acknowledge"):
            async with client.watch(tools=True):
                raise AssertionError("it was opened")
        cancelled = await peer.until("notifications/cancelled")
        assert cancelled["params"]["requestId"] == peer.all("subscriptions/listen")[0]["id"]
