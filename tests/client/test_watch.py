"""Listening to changes, in both eras: what is granted, what is heard, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from interlock import Changed, Client, McpError, ProtocolError, Server, TimedOut, Unreachable
from interlock import types as t
from interlock.wire.revisions import HANDSHAKE_REVISIONS, NEWEST, R4

from .peers import SILENCE, ByHand, Peer, complete, eventually, text

BOTH = pytest.mark.parametrize("revision", [R4, NEWEST])
TOOLS, PROMPTS, RESOURCES = Changed("tools"), Changed("prompts"), Changed("resources")


def shop() -> Server:
    """A server in which everything can change."""
    server = Server("shop")

    @server.tool
    async def touch(uri: str) -> None:
        """Say that something has changed."""
        server.updated(uri)

    @server.resource("shop://shelf")
    async def shelf() -> str:
        return "full"

    @server.resource("shop://shelf/{row}/{place}")
    async def place(row: str, place: str) -> str | None:
        return f"{row}{place}" if row != "z" else None

    @server.prompt
    async def offer() -> str:
        return "Buy."

    return server


def peer_of(revision: str, **more: Any) -> Peer:
    """A server on the wire that grants every subscription."""
    peer = Peer({"resources/subscribe": {}, "resources/unsubscribe": {}, **more}, revision)
    peer.on.setdefault("subscriptions/listen", peer.acknowledge)
    return peer


def tell(peer: Peer, method: str, params: dict[str, Any] | None = None, listen: int = 0) -> None:
    """Tell of a change as the era has it."""
    listens = peer.all("subscriptions/listen")
    peer.tell(method, params, subscription=listens[listen]["id"] if listens else None)


# -- what is heard ------------------------------------------------------------------------------------------


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
    async with peer_of(revision) as peer, Client(peer.channel) as client, client.watch(resources=["x:a"]) as changes:
        for method in ("tools", "prompts", "resources"):
            tell(peer, f"notifications/{method}/list_changed")
        for uri in ("x:b", "x:ab", "x:a"):
            tell(peer, "notifications/resources/updated", {"uri": uri})
        assert await anext(changes) == Changed("resource", "x:a")


@BOTH
async def test_parts_of_a_resource(revision: str):
    """A watched resource stands for all below it, by whole segments (`SUB-02`)."""
    async with Client(server := shop(), revision=revision) as client, client.watch(resources=["shop://shelf"]) as changes:
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
async def test_one_uri_alone(revision: str):
    """Text is one URI, not a list of letters."""
    async with Client(server := shop(), revision=revision) as client, client.watch(resources="shop://shelf") as changes:
        assert changes.wanted.resource_subscriptions == changes.honoured.resource_subscriptions == ["shop://shelf"]
        server.updated("shop://shelf")
        assert (await anext(changes)).uri == "shop://shelf"


@BOTH
async def test_several_watches_at_once(revision: str):
    """Each hears its own and is independent of the others (`LSN-07`)."""
    server = shop()
    async with Client(server, revision=revision) as client, contextlib.AsyncExitStack() as stack:
        one = await stack.enter_async_context(client.watch(tools=True))
        async with client.watch(tools=True, prompts=True) as other, client.watch(resources=["shop://shelf"]) as shelf:
            server.changed("tools")
            server.changed("prompts")
            server.updated("shop://shelf")
            assert [await anext(one), await anext(other), await anext(other), await anext(shelf)] == [
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
    async with Client(server, revision=revision) as client, client.watch(resources=["shop://shelf"]) as one:
        async with client.watch(resources=["shop://shelf"]):
            pass
        server.updated("shop://shelf")
        assert (await anext(one)).uri == "shop://shelf"


async def test_two_clients():
    """What one client does is heard by the other, whatever they speak."""
    server = shop()
    async with Client(server) as one, Client(server, revision=R4) as other, other.watch(resources=["shop://shelf"]) as changes:
        await one.call_tool("touch", {"uri": "shop://shelf"})
        assert (await anext(changes)).uri == "shop://shelf"


@BOTH
async def test_many_listeners_of_one_watch(revision: str):
    """Each change is for one of them."""
    async with peer_of(revision) as peer, Client(peer.channel) as client, client.watch(tools=True, prompts=True) as changes:
        listening = [asyncio.ensure_future(anext(changes)) for _ in range(2)]
        for kind in ("tools", "prompts"):
            tell(peer, f"notifications/{kind}/list_changed")
        assert set(await asyncio.gather(*listening)) == {TOOLS, PROMPTS}


# -- what is granted ----------------------------------------------------------------------------------------


@BOTH
async def test_what_is_granted_is_said(revision: str):
    """All of it, where the server can do all (`LSN-06`)."""
    async with (
        Client(shop(), revision=revision) as client,
        client.watch(tools=True, prompts=True, resources=True) as lists,
        client.watch(resources=["shop://shelf"]) as shelf,
    ):
        assert lists.honoured == t.SubscriptionFilter(tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True)
        assert shelf.honoured == t.SubscriptionFilter(resource_subscriptions=["shop://shelf"])


async def test_a_part_that_is_granted():
    """The acknowledgement is compared with the wish by whoever wants to know (`LSN-03`, `LSN-06`)."""
    async with Peer() as peer, Client(peer.channel) as client:
        peer.on["subscriptions/listen"] = lambda m: peer.acknowledge(m, promptsListChanged=None, resourceSubscriptions=["x:a"])
        async with client.watch(tools=True, prompts=True, resources=["x:a", "x:b"]) as changes:
            assert changes.wanted == t.SubscriptionFilter(
                tools_list_changed=True, prompts_list_changed=True, resource_subscriptions=["x:a", "x:b"]
            )
            assert changes.honoured == t.SubscriptionFilter(tools_list_changed=True, resource_subscriptions=["x:a"])


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
async def test_a_part_that_is_granted_by_capabilities(revision: str):
    """In the handshake era the capabilities say what will be told; what cannot be subscribed is not (`SUB-01`, `LIF-12`, `LSN-06`)."""
    offered = {"tools": {"listChanged": True}, "prompts": {}, "resources": {"listChanged": True}}
    async with Peer(None, revision, capabilities=offered) as peer, Client(peer.channel) as client:
        async with client.watch(tools=True, prompts=True, resources=True) as lists, client.watch(resources=["x:a"]) as one:
            assert lists.honoured == t.SubscriptionFilter(tools_list_changed=True, resources_list_changed=True)
            assert one.honoured == t.SubscriptionFilter()
        assert peer.count("resources/subscribe") == peer.count("resources/unsubscribe") == 0


@pytest.mark.parametrize("code", [t.RESOURCE_NOT_FOUND, t.INVALID_PARAMS])
async def test_resources_that_are_not_there(code: int):
    """Are not granted, and the others are (`ERR-13`, `LSN-06`)."""

    def subscribe(message: dict[str, Any]) -> Any:
        return {} if message["params"]["uri"] == "x:b" else McpError(code, "no such resource")

    async with peer_of(R4, **{"resources/subscribe": subscribe}) as peer, Client(peer.channel) as client:
        async with client.watch(resources=["x:a", "x:b", "x:c"]) as changes:
            assert changes.honoured == t.SubscriptionFilter(resource_subscriptions=["x:b"])
        assert [message["params"]["uri"] for message in peer.all("resources/unsubscribe")] == ["x:b"]


async def test_a_resource_that_may_not_be_watched():
    """Any other error is the caller's; what was subscribed before it is given back."""
    answers = [{}, McpError(-32603, "not you")]
    async with peer_of(R4, **{"resources/subscribe": answers}) as peer, Client(peer.channel) as client:
        with pytest.raises(McpError, match="not you"):
            async with client.watch(resources=["x:a", "x:b"]):
                raise AssertionError("it was opened")
        assert [message["params"]["uri"] for message in peer.all("resources/unsubscribe")] == ["x:a"]


async def test_a_subscription_that_is_refused():
    async with Peer({"subscriptions/listen": McpError(-32603, "not today")}) as peer, Client(peer.channel) as client:
        with pytest.raises(McpError, match="not today"):
            async with client.watch(tools=True):
                raise AssertionError("it was opened")


async def test_a_subscription_that_is_never_acknowledged():
    """The client does not wait for ever, and takes it back (`LSN-04`, `LSN-09`)."""
    async with Peer({"subscriptions/listen": SILENCE}) as peer, Client(peer.channel, timeout=0.01) as client:
        with pytest.raises(TimedOut, match="acknowledge"):
            async with client.watch(tools=True):
                raise AssertionError("it was opened")
        cancelled = await peer.until("notifications/cancelled")
        assert cancelled["params"]["requestId"] == peer.all("subscriptions/listen")[0]["id"]


# -- how it ends --------------------------------------------------------------------------------------------


async def test_the_client_ends_it():
    """By cancelling the listen request; what comes after that is nobody's (`LSN-09`, `STD-12`)."""
    heard: list[str] = []
    async with (
        peer_of(NEWEST, **{"tools/call": text()}) as peer,
        Client(peer.channel, on_notification=lambda method, params: heard.append(method)) as client,
    ):
        async with client.watch(tools=True) as changes:
            pass
        cancelled = await peer.until("notifications/cancelled")
        assert cancelled["params"]["requestId"] == peer.all("subscriptions/listen")[0]["id"]
        tell(peer, "notifications/tools/list_changed")
        await client.call_tool("x")
        with pytest.raises(StopAsyncIteration):
            await anext(changes)
    assert heard == []


async def test_the_client_ends_it_in_the_handshake_era():
    """By unsubscribing what it had subscribed; what comes after that is nobody's (`SUB-05`)."""
    async with peer_of(R4) as peer, Client(peer.channel) as client:
        async with client.watch(resources=["x:a", "x:b"]) as changes:
            assert peer.count("resources/subscribe") == 2
        assert [message["params"]["uri"] for message in peer.all("resources/unsubscribe")] == ["x:a", "x:b"]
        tell(peer, "notifications/resources/updated", {"uri": "x:a"})
        await client.ping()
        with pytest.raises(StopAsyncIteration):
            await anext(changes)


@BOTH
async def test_nothing_is_left_at_the_server(revision: str):
    """A subscription that has ended costs it nothing (`SUB-05`)."""
    server = shop()
    async with Client(server, revision=revision) as client:
        await client.ping()
        before = len(server.listeners)
        for _ in range(3):
            async with client.watch(resources=["shop://shelf"]):
                assert len(server.listeners) == before + 1
            await eventually(lambda: len(server.listeners) == before)
    assert len(server.listeners) == 0


@BOTH
async def test_an_error_in_the_block_is_raised_as_it_is(revision: str):
    """And the subscription ends all the same."""
    async with peer_of(revision) as peer, Client(peer.channel) as client:
        with pytest.raises(ZeroDivisionError):
            async with client.watch(resources=["x:a"]):
                raise ZeroDivisionError
        await peer.until("resources/unsubscribe" if revision == R4 else "notifications/cancelled")


@BOTH
async def test_whoever_listens_is_cancelled(revision: str):
    """And the subscription ends all the same."""
    async with peer_of(revision) as peer, Client(peer.channel) as client:
        listening = asyncio.Event()

        async def listen() -> None:
            async with client.watch(resources=["x:a"]) as changes:
                listening.set()
                await anext(changes)

        task = asyncio.create_task(listen())
        await listening.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await peer.until("resources/unsubscribe" if revision == R4 else "notifications/cancelled")


@pytest.mark.parametrize("how", ["a response", "a response after changes", "a cancellation"])
async def test_the_server_ends_it(how: str):
    """With a response, or (stdio) a cancellation: the client takes either; what was heard before is not lost (`LSN-10`, `LSN-11`)."""
    async with peer_of(NEWEST) as peer, Client(peer.channel) as client, client.watch(tools=True) as changes:
        id = peer.all("subscriptions/listen")[0]["id"]
        if how == "a response after changes":
            tell(peer, "notifications/tools/list_changed")
        if how == "a cancellation":
            peer.tell("notifications/cancelled", {"requestId": id})
        else:
            peer.say(id=id, result=complete())
        assert [change async for change in changes] == ([TOOLS] if how == "a response after changes" else [])
        assert [change async for change in changes] == []


async def test_the_server_ends_it_at_once():
    """Before it has said what it grants: nothing is granted, and there is nothing to hear."""
    async with Peer({"subscriptions/listen": complete()}) as peer, Client(peer.channel) as client, client.watch(tools=True) as changes:
        assert changes.honoured == t.SubscriptionFilter()
        assert [change async for change in changes] == []


@BOTH
async def test_the_server_is_lost(revision: str):
    """Whoever listens is told, after what was heard before (`LSN-12`, `ERR-21`)."""
    async with peer_of(revision) as peer, Client(peer.channel) as client, client.watch(resources=["x:a"]) as changes:
        tell(peer, "notifications/resources/updated", {"uri": "x:a"})
        waiting = asyncio.ensure_future(_gather(changes))
        await peer.own.aclose()
        heard, error = await waiting
        assert heard == [Changed("resource", "x:a")]
        assert isinstance(error, Unreachable)
        await client.aclose()
        with pytest.raises(Unreachable, match="The server has closed the connection"):
            await anext(changes)  # that was first


async def _gather(changes: Any) -> tuple[list[Changed], BaseException | None]:
    heard = []
    try:
        async for change in changes:
            heard.append(change)
    except Unreachable as bad:
        return heard, bad
    return heard, None


@BOTH
async def test_the_server_is_lost_while_it_is_asked(revision: str):
    peer = Peer({"subscriptions/listen": SILENCE, "resources/subscribe": SILENCE}, revision)
    async with peer, Client(peer.channel) as client:
        opening = asyncio.ensure_future(client.watch(resources=["x:a"]).__aenter__())
        await peer.until("resources/subscribe" if revision == R4 else "subscriptions/listen")
        await peer.own.aclose()
        with pytest.raises(Unreachable):
            await opening


@BOTH
async def test_the_client_is_closed(revision: str):
    """Whoever listens is told so, and the end of the block does no harm."""
    async with Client(shop(), revision=revision) as client:
        async with client.watch(resources=["shop://shelf"]) as changes:
            waiting = asyncio.ensure_future(anext(changes))
            await asyncio.sleep(0)
            await client.aclose()
            with pytest.raises(Unreachable, match="The client was closed"):
                await waiting
        with pytest.raises(Unreachable, match="not open"):
            async with client.watch(tools=True):
                raise AssertionError("it was opened")


async def test_middleware_that_breaks():
    """Whatever ends the listening is raised by it."""

    def broken(handler: Any) -> Any:
        async def handle(x: Any) -> Any:
            if x.method == "subscriptions/listen":
                raise ZeroDivisionError
            return await handler(x)

        return handle

    async with Client(shop(), middleware=[broken]) as client:
        with pytest.raises(ZeroDivisionError):
            async with client.watch(tools=True):
                raise AssertionError("it was opened")


async def test_a_listen_request_that_is_answered_with_nonsense():
    async with peer_of(NEWEST) as peer, Client(peer.channel) as client, client.watch(tools=True) as changes:
        peer.say(id=peer.all("subscriptions/listen")[0]["id"], result={"resultType": "task"})
        with pytest.raises(ProtocolError, match="subscriptions/listen"):
            await anext(changes)


async def test_a_watch_is_no_other_request():
    """It waits for no bound of time, and `on_notification` does not hear what belongs to it (`STD-14`)."""
    heard: list[str] = []
    async with (
        peer_of(NEWEST, **{"tools/call": SILENCE}) as peer,
        Client(peer.channel, on_notification=lambda method, params: heard.append(method)) as client,
        client.watch(tools=True) as changes,
    ):
        with pytest.raises(TimedOut):
            await client.call_tool("x", timeout=0.01)
        tell(peer, "notifications/tools/list_changed")
        assert await anext(changes) == TOOLS
        peer.tell("notifications/prompts/list_changed")
        tell(peer, "notifications/tools/list_changed")
        assert await anext(changes) == TOOLS
    assert heard == ["notifications/prompts/list_changed"]


async def test_a_transport_by_hand():
    """A listen request is an exchange like any other: its `notify` is the way back."""

    async def serve(x: Any) -> Any:
        acknowledged = t.SubscriptionsAcknowledgedNotificationParams(notifications=x.params.notifications)
        x.notify("notifications/subscriptions/acknowledged", acknowledged)
        x.notify("notifications/tools/list_changed", t.ListChangedNotificationParams())
        return t.SubscriptionsListenResult()

    async with Client(ByHand(serve)) as client, client.watch(tools=True) as changes:
        assert [change async for change in changes] == [TOOLS]
        assert changes.honoured.tools_list_changed
