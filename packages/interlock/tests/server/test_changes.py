"""What changes while a server runs: who is told, how often, and from which thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Change, Changed, Client, Context, Server
from interlock import types as t
from interlock.server.changes import Listener, MemoryBus
from tests.server.by_hand import R4, exchange

BOTH_ERAS = pytest.mark.parametrize("revision", [R4, "2026-07-28"])


def received(server: Server) -> list[Change]:
    """All that the server's bus carries from now on."""
    changes: list[Change] = []
    server.bus.listen(changes.append)
    return changes


async def feature() -> str:
    """A feature."""
    return ""


async def test_who_is_told_what():
    """Adding, replacing and removing tell of the list they are about; a template is a resource
    (`TOL-18`, `RES-17`, `PRM-08`).
    """
    server = Server("changing")
    changes = received(server)
    server.add_tool(feature)
    server.add_tool(feature, replace=True)
    server.add_prompt(feature)
    server.add_resource("docs://a", "text")
    server.add_resource("docs://{name}", lambda name: name)
    server.remove_resource("docs://{name}")
    server.remove_resource("docs://a")
    server.remove_prompt("feature")
    server.remove_tool("feature")
    server.updated("docs://a")
    server.changed("prompts")
    kinds = [
        "tools",
        "tools",
        "prompts",
        "resources",
        "resources",
        "resources",
        "resources",
        "prompts",
        "tools",
        "resource",
        "prompts",
    ]
    assert [change.kind for change in changes] == kinds
    assert changes[-2] == Change("resource", "docs://a")


async def test_what_fails_is_not_told():
    """A name that is taken, one that is not there, a list that is none: words that name it, and no
    notice.
    """
    server = Server("changing")
    server.add_tool(feature)
    server.add_prompt(feature)
    server.add_resource("docs://a", "text")
    server.add_resource("docs://{name}", lambda name: name)
    changes = received(server)
    with pytest.raises(ValueError, match="there is a tool 'feature' already; pass replace=True"):
        server.add_tool(feature)
    with pytest.raises(ValueError, match="there is a prompt 'feature' already"):
        server.add_prompt(feature)
    with pytest.raises(ValueError, match="there is a resource 'docs://a' already"):
        server.add_resource("docs://a", "other")
    with pytest.raises(ValueError, match="there is a resource template 'docs://{name}' already"):
        server.add_resource("docs://{name}", lambda name: name)
    with pytest.raises(KeyError, match="there is no tool 'other'"):
        server.remove_tool("other")
    with pytest.raises(KeyError, match="there is no prompt 'other'"):
        server.remove_prompt("other")
    with pytest.raises(KeyError, match="there is no resource template 'docs://b'"):
        server.remove_resource("docs://b")
    with pytest.raises(ValueError, match="'tool' is not a list: use 'tools', 'prompts' or"):
        server.changed("tool")
    assert changes == []


@BOTH_ERAS
async def test_a_plain_function_tells_from_its_thread(revision: str):
    """A tool in a thread adds a tool and touches a resource; the client hears of both."""
    server = Server("changing")
    server.add_resource("docs://a", "text")

    @server.tool
    def grow(ctx: Context) -> None:
        server.add_tool(feature)
        ctx.updated("docs://a")

    async with (
        Client(server, revision=revision) as client,
        client.watch(tools=True, resources=["docs://a"]) as changes,
        asyncio.timeout(30),
    ):
        await client.call_tool("grow")
        assert {await anext(changes), await anext(changes)} == {
            Changed("tools"),
            Changed("resource", "docs://a"),
        }
        assert [tool.name for tool in await client.list_tools()] == ["grow", "feature"]


@BOTH_ERAS
async def test_many_changes_at_once_are_told_once(revision: str):
    """A client that is slower than the changes hears of the list once, and then finds it whole."""
    server = Server("changing")

    @server.tool
    async def grow() -> None:
        for n in range(100):
            server.add_tool(feature, name=f"f{n}")

    told: list[str] = []
    async with Client(
        server, revision=revision, on_notification=lambda method, params: told.append(method)
    ) as client:
        async with client.watch(tools=True) as changes, asyncio.timeout(30):
            await client.call_tool("grow")
            assert await anext(changes) == Changed("tools")
        assert len(await client.list_tools()) == 101
    assert len(told) <= 1


async def test_the_bus_hears_from_every_thread():
    """A change that is published elsewhere arrives in the listener's own loop; who no longer
    listens hears nothing.
    """
    bus = MemoryBus()
    came = asyncio.Event()
    changes: list[tuple[Change, int]] = []

    def receive(change: Change) -> None:
        changes.append((change, threading.get_ident()))
        came.set()

    stop = bus.listen(receive)
    await asyncio.to_thread(bus.publish, Change("tools"))
    await asyncio.wait_for(came.wait(), 30)
    bus.publish(Change("prompts"))
    assert changes == [
        (Change("tools"), threading.get_ident()),
        (Change("prompts"), threading.get_ident()),
    ]
    stop()
    stop()
    bus.publish(Change("tools"))
    assert (len(changes), len(bus)) == (2, 0)


def test_listeners_of_a_loop_that_has_gone():
    """They are passed over."""
    bus = MemoryBus()
    changes: list[Change] = []

    async def listen() -> None:
        bus.listen(changes.append)

    asyncio.run(listen())
    bus.publish(Change("tools"))
    assert changes == []


async def notices_of(listener: Listener) -> AsyncIterator[tuple[str, t.Params]]:
    """Yield the notifications of a listener until it is closed."""
    while True:
        await listener.wait()
        while (notice := listener.next_notice()) is not None:
            yield notice
        if listener.is_closed:
            return


async def drained(listener: Listener) -> list[tuple[str, Any]]:
    """What a listener has to tell until it is closed."""
    return [(method, getattr(params, "uri", None)) async for method, params in notices_of(listener)]


async def test_a_listener_tells_what_is_wanted_and_no_more():
    """By kind and by URI; a part of what is watched counts as it, a name that only begins alike
    does not (`LSN-02`, `SUB-02`).
    """
    listener = Listener(
        t.SubscriptionFilter(
            tools_list_changed=True, resource_subscriptions=["docs://a", "docs://folder/"]
        )
    )
    for kind in ("tools", "prompts", "resources"):
        listener.receive(Change(kind))
    for uri in (
        "docs://a",
        "docs://a/part",
        "docs://ab",
        "docs://folder/b",
        "docs://folder",
        "docs://b",
    ):
        listener.receive(Change("resource", uri))
    listener.close()
    assert await drained(listener) == [
        ("notifications/tools/list_changed", None),
        ("notifications/resources/updated", "docs://a"),
        ("notifications/resources/updated", "docs://a/part"),
        ("notifications/resources/updated", "docs://folder/b"),
    ]


async def test_a_listener_that_wants_nothing():
    """An empty filter is legal, and hears nothing."""
    listener = Listener(t.SubscriptionFilter())
    for kind in ("tools", "prompts", "resources"):
        listener.receive(Change(kind))
    listener.receive(Change("resource", "docs://a"))
    listener.close()
    assert await drained(listener) == []


uris = st.sampled_from([f"docs://{n}" for n in range(4)])
steps = st.lists(st.one_of(uris, st.none()), max_size=30)


@given(steps)
def test_nothing_that_changed_is_forgotten(plan: list[str | None]):
    """Whatever changes after it was told is told again, and what waits to be told is told once
    (None: take one notice).
    """

    async def main() -> None:
        listener = Listener(
            t.SubscriptionFilter(resource_subscriptions=[f"docs://{n}" for n in range(4)])
        )
        notices = notices_of(listener)
        waiting: list[str] = []
        for step in plan:
            if step is not None:
                listener.receive(Change("resource", step))
                waiting += [step] if step not in waiting else []
            elif waiting:
                _, params = await anext(notices)
                assert params.uri == waiting.pop(0)  # type: ignore[attr-defined]  # they all are of resources
        listener.close()
        assert [params.uri async for _, params in notices] == waiting  # type: ignore[attr-defined]  # as above

    asyncio.run(main())


def wish(**wanted: Any) -> t.SubscriptionFilter:
    return t.SubscriptionFilter(**wanted)


EVERYTHING = wish(
    tools_list_changed=True,
    prompts_list_changed=True,
    resources_list_changed=True,
    resource_subscriptions=["docs://a", "docs://x/b"],
)


async def test_what_is_granted():
    """Of the lists those that the server offers, of the URIs those behind which there is something
    (`LSN-03`).
    """
    caller = exchange("ping", None).caller
    server = Server("changing")
    assert server.catalogue.granted(EVERYTHING, server.capabilities(caller), caller) == wish()
    server.add_tool(feature)
    assert server.catalogue.granted(EVERYTHING, server.capabilities(caller), caller) == wish(
        tools_list_changed=True
    )
    server.add_resource("docs://x/{name}", lambda name: name)
    granted = server.catalogue.granted(EVERYTHING, server.capabilities(caller), caller)
    assert granted == wish(
        tools_list_changed=True, resources_list_changed=True, resource_subscriptions=["docs://x/b"]
    )
    server.remove_resource("docs://x/{name}")
    server.add_prompt(feature)
    granted = server.catalogue.granted(EVERYTHING, server.capabilities(caller), caller)
    assert granted == wish(
        tools_list_changed=True,
        prompts_list_changed=True,
        resources_list_changed=True,
        resource_subscriptions=[],
    )
    assert server.catalogue.granted(wish(), server.capabilities(caller), caller) == wish()


class Postbox:
    """A bus of another make."""

    def __init__(self) -> None:
        self.published: list[Change] = []
        self.listeners: list[Any] = []

    def publish(self, change: Change) -> None:
        self.published.append(change)
        for receive in list(self.listeners):
            receive(change)

    def listen(self, receive: Any) -> Any:
        self.listeners.append(receive)
        return lambda: self.listeners.remove(receive)


async def test_another_bus():
    """Two servers on one bus, as two workers would be: a change of one reaches who listens to the
    other (`LSN-13`).
    """
    bus = Postbox()
    one = Server("one")
    other = Server("other")
    one.bus = other.bus = bus
    other.add_tool(feature)
    async with Client(other) as client, client.watch(tools=True) as changes, asyncio.timeout(30):
        one.add_tool(feature)
        assert await anext(changes) == Changed("tools")
    assert bus.listeners == []
