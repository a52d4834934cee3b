"""How listening to changes ends: by the client, by the server, or because one of them has gone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Changed, Client, ProtocolError, TimedOut, Unreachable
from interlock import types as t
from interlock.wire.revisions import NEWEST, R4
from tests.client.peers import SILENCE, ByHand, Peer, complete, eventually, text
from tests.client.watched import BOTH, TOOLS, peer_of, shop, tell


async def test_the_client_ends_it():
    """By cancelling the listen request; what comes after that is nobody's (`LSN-09`, `STD-12`)."""
    received: list[str] = []
    async with (
        peer_of(NEWEST, **{"tools/call": text()}) as peer,
        Client(
            peer.channel, on_notification=lambda method, params: received.append(method)
        ) as client,
    ):
        async with client.watch(tools=True) as changes:
            pass
        cancelled = await peer.until("notifications/cancelled")
        assert cancelled["params"]["requestId"] == peer.all("subscriptions/listen")[0]["id"]
        tell(peer, "notifications/tools/list_changed")
        await client.call_tool("x")
        with pytest.raises(StopAsyncIteration):
            await anext(changes)
    assert received == []


async def test_the_client_ends_it_in_the_handshake_era():
    """By unsubscribing what it had subscribed; what comes after that is nobody's (`SUB-05`)."""
    async with peer_of(R4) as peer, Client(peer.channel) as client:
        async with client.watch(resources=["x:a", "x:b"]) as changes:
            assert peer.count("resources/subscribe") == 2
        assert [message["params"]["uri"] for message in peer.all("resources/unsubscribe")] == [
            "x:a",
            "x:b",
        ]
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
    """With a response, or (stdio) a cancellation: the client takes either; what was heard before is
    not lost (`LSN-10`, `LSN-11`).
    """
    async with (
        peer_of(NEWEST) as peer,
        Client(peer.channel) as client,
        client.watch(tools=True) as changes,
    ):
        id = peer.all("subscriptions/listen")[0]["id"]
        if how == "a response after changes":
            tell(peer, "notifications/tools/list_changed")
        if how == "a cancellation":
            peer.tell("notifications/cancelled", {"requestId": id})
        else:
            peer.say(id=id, result=complete())
        assert [change async for change in changes] == (
            [TOOLS] if how == "a response after changes" else []
        )
        assert [change async for change in changes] == []


async def test_the_server_ends_it_at_once():
    """Before it has said what it grants: nothing is granted, and there is nothing to hear."""
    async with (
        Peer({"subscriptions/listen": complete()}) as peer,
        Client(peer.channel) as client,
        client.watch(tools=True) as changes,
    ):
        assert changes.honoured == t.SubscriptionFilter()
        assert [change async for change in changes] == []


@BOTH
async def test_the_server_is_lost(revision: str):
    """Whoever listens is told, after what was heard before (`LSN-12`, `ERR-21`)."""
    async with (
        peer_of(revision) as peer,
        Client(peer.channel) as client,
        client.watch(resources=["x:a"]) as changes,
    ):
        tell(peer, "notifications/resources/updated", {"uri": "x:a"})
        waiting = asyncio.ensure_future(_gather(changes))
        await peer.own.aclose()
        received, error = await waiting
        assert received == [Changed("resource", "x:a")]
        assert isinstance(error, Unreachable)
        await client.aclose()
        with pytest.raises(Unreachable, match="The server has closed the connection"):
            await anext(changes)  # that was first


async def _gather(changes: Any) -> tuple[list[Changed], BaseException | None]:
    received = []
    try:
        async for change in changes:
            received.append(change)
    except Unreachable as bad:
        return received, bad
    return received, None


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
    async with (
        peer_of(NEWEST) as peer,
        Client(peer.channel) as client,
        client.watch(tools=True) as changes,
    ):
        peer.say(id=peer.all("subscriptions/listen")[0]["id"], result={"resultType": "task"})
        with pytest.raises(ProtocolError, match="subscriptions/listen"):
            await anext(changes)


async def test_a_watch_is_no_other_request():
    """It waits for no bound of time, and `on_notification` does not hear what belongs to it
    (`STD-14`).
    """
    received: list[str] = []
    async with (
        peer_of(NEWEST, **{"tools/call": SILENCE}) as peer,
        Client(
            peer.channel, on_notification=lambda method, params: received.append(method)
        ) as client,
        client.watch(tools=True) as changes,
    ):
        with pytest.raises(TimedOut):
            await client.call_tool("x", timeout=0.01)
        tell(peer, "notifications/tools/list_changed")
        assert await anext(changes) == TOOLS
        peer.tell("notifications/prompts/list_changed")
        tell(peer, "notifications/tools/list_changed")
        assert await anext(changes) == TOOLS
    assert received == ["notifications/prompts/list_changed"]


async def test_a_transport_by_hand():
    """A listen request is an exchange like any other: its `notify` is the way back."""

    async def serve(x: Any) -> Any:
        acknowledged = t.SubscriptionsAcknowledgedNotificationParams(
            notifications=x.params.notifications
        )
        x.notify("notifications/subscriptions/acknowledged", acknowledged)
        x.notify("notifications/tools/list_changed", t.ListChangedNotificationParams())
        return t.SubscriptionsListenResult()

    async with Client(ByHand(serve)) as client, client.watch(tools=True) as changes:
        assert [change async for change in changes] == [TOOLS]
        assert changes.honoured.tools_list_changed
