"""Things that change while a server runs, over every cell of the matrix: who listens is told, in
both eras in the same words."""

from __future__ import annotations

import asyncio

import pytest

from interlock import Changed, McpError
from interlock.types import (
    RESOURCE_NOT_FOUND,
    EmptyResult,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)
from interlock.wire.revisions import R5
from tests.wired.cells import Cell, before, since

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    "what, kind", [("tool", "tools"), ("resource", "resources"), ("prompt", "prompts")]
)
async def test_lists_that_change(cell: Cell, what: str, kind: str):
    """Adding and removing is told to those who listen, and shows in the list at once (`TOL-18`,
    `RES-17`, `PRM-08`, `LSN-03`, `LSN-13`)."""

    async def names() -> set[str]:
        items = {
            "tools": cell.client.list_tools,
            "resources": cell.client.list_resources,
            "prompts": cell.client.list_prompts,
        }[kind]
        return {getattr(item, "uri", item.name) for item in await items()}

    name = "note://grown" if what == "resource" else "grown"
    async with cell.client.watch(**{kind: True}) as changes, asyncio.timeout(10):
        assert getattr(changes.honoured, f"{kind}_list_changed")
        await cell.client.call_tool("grow", {"what": what})
        assert await anext(changes) == Changed(kind)  # type: ignore[arg-type]  # a kind
        assert name in await names()
        await cell.client.call_tool("shrink", {"what": what})
        assert await anext(changes) == Changed(kind)  # type: ignore[arg-type]  # a kind
        assert name not in await names()


async def test_watching_resources(cell: Cell):
    """Who watches a resource hears of it and of its parts, and of no other (`SUB-02`, `LSN-01`,
    `LSN-02`)."""
    async with cell.client.watch(resources=["note://one"]) as changes, asyncio.timeout(10):
        assert changes.honoured.resource_subscriptions == ["note://one"]
        for uri in ("note://two", "note://one/part", "note://onerous", "note://one"):
            await cell.client.call_tool("touch", {"uri": uri})
        assert [await anext(changes), await anext(changes)] == [
            Changed("resource", "note://one/part"),
            Changed("resource", "note://one"),
        ]


async def test_watching_ends(cell: Cell):
    """Who no longer watches is no longer told (`SUB-05`, `LSN-09`)."""
    async with cell.client.watch(resources=["note://one"]) as changes, asyncio.timeout(10):
        await cell.client.call_tool("touch", {"uri": "note://one"})
        await anext(changes)
    start = len(cell.tape)
    await cell.client.call_tool("touch", {"uri": "note://one"})
    await cell.client.ping()
    assert "notifications/resources/updated" not in cell.since(start).methods("server")


async def test_watching_several_things(cell: Cell):
    """Several subscriptions at once do not know of each other (`LSN-07`)."""
    async with (
        cell.client.watch(tools=True) as tools,
        cell.client.watch(resources=["note://two"]) as notes,
        asyncio.timeout(10),
    ):
        await cell.client.call_tool("touch", {"uri": "note://two"})
        await cell.client.call_tool("grow", {"what": "tool"})
        assert await anext(notes) == Changed("resource", "note://two")
        assert await anext(tools) == Changed("tools")
        await cell.client.call_tool("shrink", {"what": "tool"})
        assert await anext(tools) == Changed("tools")


async def test_what_is_granted(cell: Cell):
    """The client learns which part of its wish the server grants, in both eras alike (`LSN-06`,
    `SUB-01`)."""
    async with (
        cell.client.watch(tools=True, resources=["note://one", "nothing://here"]) as changes,
        asyncio.timeout(10),
    ):
        granted = changes.honoured
        await cell.client.call_tool("touch", {"uri": "note://one"})
        assert await anext(changes) == Changed("resource", "note://one")
    assert (granted.tools_list_changed, granted.resource_subscriptions) == (True, ["note://one"])


@since(R5)
async def test_acknowledgement_comes_first(cell: Cell):
    """The first word of a subscription is what it grants, and every word carries its id (`LSN-03`,
    `LSN-04`, `LSN-05`)."""
    start = len(cell.tape)
    async with (
        cell.client.watch(tools=True, resources=["note://one"]) as changes,
        asyncio.timeout(10),
    ):
        await cell.client.call_tool("touch", {"uri": "note://one"})
        await anext(changes)
    listen = next(
        m for m in cell.since(start).messages("client") if m["method"] == "subscriptions/listen"
    )
    told = [m for m in cell.since(start).messages("server") if "method" in m]
    assert [m["method"] for m in told] == [
        "notifications/subscriptions/acknowledged",
        "notifications/resources/updated",
    ]
    assert [m["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] for m in told] == [
        listen["id"]
    ] * 2


@since(R5)
async def test_a_notice_makes_what_was_kept_stale(cell: Cell):
    """What the client keeps is asked for anew once the server says that it has changed (`CAC-09`,
    `CAC-13`)."""
    start = len(cell.tape)
    await cell.client.read_resource("config://settings")
    async with cell.client.watch(resources=["config://settings"]) as changes, asyncio.timeout(10):
        await cell.client.call_tool("touch", {"uri": "config://settings"})
        await anext(changes)
    before = cell.since(start).methods("client").count("resources/read")
    await cell.client.read_resource("config://settings")
    await cell.client.read_resource("config://settings")
    assert cell.since(start).methods("client").count("resources/read") == before + 1


@before(R5)
async def test_unsubscribing_from_what_was_never_subscribed(cell: Cell):
    """It is no fault (`SUB-01`)."""
    assert (
        await cell.client.request(
            "resources/unsubscribe", UnsubscribeRequestParams(uri="note://one")
        )
        == EmptyResult()
    )


@before(R5)
@pytest.mark.parametrize("uri", ["nothing://here", "note://a%2Fb"])
async def test_subscribing_to_nothing(cell: Cell, uri: str):
    """What does not exist cannot be watched (`RES-04`)."""
    with pytest.raises(McpError, match="Resource not found") as caught:
        await cell.client.request("resources/subscribe", SubscribeRequestParams(uri=uri))
    assert caught.value.code == RESOURCE_NOT_FOUND
