"""What a client keeps of a server's answers: by a clock that the test moves, and with notices that
make it stale.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import (
    AnyResult,
    Caller,
    Client,
    ClientSettings,
    Exchange,
    McpError,
    Principal,
    RawResult,
)
from interlock import types as t
from interlock.client.caching import caching
from interlock.protocol.response_cache import ResponseCache
from interlock.testing import Clock
from interlock.wire.revisions import NEWEST, R4
from tests.client.peers import SILENCE, ByHand, Peer, asks, complete, form


def tools(*names: str, **more: Any) -> dict[str, Any]:
    return complete(
        tools=[{"name": name, "inputSchema": {"type": "object"}} for name in names], **more
    )


def contents(words: str, **more: Any) -> dict[str, Any]:
    return complete(contents=[{"uri": "x:y", "text": words}], **more)


KEPT: dict[str, Any] = {"ttlMs": 60_000, "cacheScope": "private"}
LISTS: dict[str, tuple[Any, dict[str, Any]]] = {
    # method, the client's call, and an answer without anything in it
    "tools/list": (lambda client: client.list_tools(), {"tools": []}),
    "prompts/list": (lambda client: client.list_prompts(), {"prompts": []}),
    "resources/list": (lambda client: client.list_resources(), {"resources": []}),
    "resources/templates/list": (
        lambda client: client.list_resource_templates(),
        {"resourceTemplates": []},
    ),
    "resources/read": (
        lambda client: client.read_resource("x:y"),
        {"contents": [{"uri": "x:y", "text": "1"}]},
    ),
    "server/discover": (
        lambda client: client.request("server/discover", t.DiscoverRequestParams()),
        {"supportedVersions": [NEWEST], "capabilities": {}},
    ),
}


@pytest.mark.parametrize("method", LISTS)
async def test_an_answer_is_asked_for_again_when_it_is_old(method: str):
    """Fresh for as long as it says, from receipt on; nobody asks before it is used (`CAC-07`,
    `CAC-08`, `CAC-13`, `HST-08`).
    """
    call, empty = LISTS[method]
    clock = Clock()
    async with (
        Peer({method: complete(**empty, ttlMs=1500)}) as peer,
        Client(peer.channel, settings=ClientSettings(clock=clock)) as client,
    ):
        before = peer.count(method)
        first = await call(client)
        clock.advance(1.499)
        assert await call(client) == first
        assert peer.count(method) == before + 1
        clock.advance(0.001)
        assert peer.count(method) == before + 1
        assert await call(client) == first
        assert peer.count(method) == before + 2


HINTS: dict[str, tuple[dict[str, Any], bool]] = {
    # the hints of an answer, and whether it is kept
    "private": (KEPT, True),
    "public": ({**KEPT, "cacheScope": "public"}, True),
    "of no scope": ({"ttlMs": 60_000}, True),
    "no time": ({"ttlMs": 0, "cacheScope": "public"}, False),
    "a time in the past": ({"ttlMs": -1, "cacheScope": "public"}, False),
    "no hint": ({}, False),
    "a scope alone": ({"cacheScope": "public"}, False),
    "null": ({"ttlMs": None}, False),
}


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("hints, kept", HINTS.values(), ids=HINTS)
async def test_what_is_kept(hints: dict[str, Any], kept: bool, cache: bool):
    """What has no time to live is stale at once; `cache=False` keeps nothing (`CAC-07`)."""
    async with (
        Peer({"tools/list": tools("a", **hints)}) as peer,
        Client(peer.channel, settings=ClientSettings(cache=cache)) as client,
    ):
        for _ in range(3):
            assert [tool.name for tool in await client.list_tools()] == ["a"]
        assert peer.count("tools/list") == (1 if kept and cache else 3)


NOT_KEPT: dict[str, tuple[Any, dict[str, Any]]] = {
    # method, the client's call, and an answer
    "tools/call": (lambda client: client.call_tool("x"), {"content": []}),
    "prompts/get": (lambda client: client.get_prompt("x"), {"messages": []}),
    "completion/complete": (
        lambda client: client.complete("x", "a"),
        {"completion": {"values": []}},
    ),
}


@pytest.mark.parametrize("method", NOT_KEPT)
async def test_what_is_never_kept(method: str):
    """Whatever hints come with it (`CAC-01`)."""
    call, empty = NOT_KEPT[method]
    async with Peer({method: complete(**empty, **KEPT)}) as peer, Client(peer.channel) as client:
        for _ in range(2):
            await call(client)
        assert peer.count(method) == 2


async def test_each_resource_and_each_page_has_an_entry_of_its_own():
    """(`CAC-02`, `PAG-03`)"""
    pages = {
        None: tools("a", nextCursor="", **KEPT),
        "": tools("b", nextCursor="2", **KEPT),
        "2": tools("c", **KEPT),
    }
    answers = {
        "tools/list": lambda message: pages[message["params"].get("cursor")],
        "resources/read": lambda message: contents(message["params"]["uri"], **KEPT),
    }
    async with Peer(answers) as peer, Client(peer.channel) as client:
        for _ in range(2):
            assert [tool.name for tool in await client.list_tools()] == ["a", "b", "c"]
            for uri in ("x:y", "x:z"):
                assert (await client.read_resource(uri)).contents[0].text == uri
        assert (peer.count("tools/list"), peer.count("resources/read")) == (3, 2)


async def test_an_old_page_is_asked_for_by_its_cursor():
    """The others are kept for as long as they say themselves (`CAC-10`)."""
    pages = {None: tools("a", nextCursor="2", ttlMs=60_000), "2": tools("b", ttlMs=1000)}
    clock = Clock()
    async with (
        Peer({"tools/list": lambda m: pages[m["params"].get("cursor")]}) as peer,
        Client(peer.channel, settings=ClientSettings(clock=clock)) as client,
    ):
        await client.list_tools()
        clock.advance(1)
        await client.list_tools()
        assert [message["params"].get("cursor") for message in peer.all("tools/list")] == [
            None,
            "2",
            "2",
        ]


@pytest.mark.parametrize("code, recovers", [(t.INVALID_PARAMS, True), (t.INTERNAL_ERROR, False)])
async def test_a_kept_page_whose_cursor_is_no_longer_good(code: int, recovers: bool):
    """All pages are dropped, and the list is read from its beginning; any other error is the
    caller's (`CAC-10`).
    """
    pages: dict[Any, Any] = {
        None: tools("a", nextCursor="1", ttlMs=60_000),
        "1": tools("b", ttlMs=1000),
    }
    clock = Clock()
    async with (
        Peer({"tools/list": lambda m: pages[m["params"].get("cursor")]}) as peer,
        Client(peer.channel, settings=ClientSettings(clock=clock)) as client,
    ):
        await client.list_tools()
        clock.advance(1)
        pages = {
            None: tools("c", nextCursor="2"),
            "1": McpError(code, "no such cursor"),
            "2": tools("d"),
        }
        if recovers:
            assert [tool.name for tool in await client.list_tools()] == ["c", "d"]
            assert [message["params"].get("cursor") for message in peer.all("tools/list")] == [
                None,
                "1",
                "1",
                None,
                "2",
            ]
        else:
            with pytest.raises(McpError, match="no such cursor"):
                await client.list_tools()


@pytest.mark.parametrize("cache", [True, False])
async def test_a_cursor_that_is_never_good(cache: bool):
    """The error of the server is raised, and not tried for ever."""
    pages: dict[Any, Any] = {
        None: tools("a", nextCursor="1", ttlMs=60_000),
        "1": McpError(t.INVALID_PARAMS, "no such cursor"),
    }
    async with (
        Peer({"tools/list": lambda m: pages[m["params"].get("cursor")]}) as peer,
        Client(peer.channel, settings=ClientSettings(cache=cache)) as client,
    ):
        with pytest.raises(McpError, match="no such cursor"):
            await client.list_tools()
        assert peer.count("tools/list") == (4 if cache else 2)


# -- notices --------------------------------------------------------------------------------------

NOTICES: dict[str, tuple[dict[str, Any] | None, set[str]]] = {
    # a notice, its params, and what is asked for again after it
    "notifications/tools/list_changed": (None, {"tools/list"}),
    "notifications/prompts/list_changed": (None, {"prompts/list"}),
    "notifications/resources/list_changed": (None, {"resources/list", "resources/templates/list"}),
    "notifications/resources/updated": ({"uri": "x:y"}, {"resources/read"}),
    "notifications/message": ({"level": "info", "data": "tools/list"}, set()),
}


async def ask_for_all(client: Client) -> None:
    for call, _ in LISTS.values():
        await call(client)


@pytest.mark.parametrize("notice", NOTICES)
async def test_a_notice_makes_stale_what_it_is_about(notice: str):
    """Though it comes unasked, and whatever time is left (`CAC-09`, `SUB-03`)."""
    params, stale = NOTICES[notice]
    received = asyncio.Event()
    on = {method: complete(**empty, **KEPT) for method, (_, empty) in LISTS.items()}
    async with (
        Peer(on) as peer,
        Client(
            peer.channel, on_notification=lambda *_: received.set(), on_log=lambda _: received.set()
        ) as client,
    ):
        await ask_for_all(client)
        before = {method: peer.count(method) for method in LISTS}
        peer.tell(notice, params)
        await received.wait()
        await ask_for_all(client)
        assert {method for method in LISTS if peer.count(method) > before[method]} == stale


WATCHED = [notice for notice, (_, stale) in NOTICES.items() if stale]


@pytest.mark.parametrize("notice", WATCHED)
async def test_a_notice_of_a_subscription_does_so_too(notice: str):
    """What a watch hears is stale by the time it says so (`CAC-09`)."""
    params, stale = NOTICES[notice]
    on: dict[str, Any] = {method: complete(**empty, **KEPT) for method, (_, empty) in LISTS.items()}
    async with Peer(on) as peer, Client(peer.channel) as client:
        peer.on["subscriptions/listen"] = peer.acknowledge
        await ask_for_all(client)
        before = {method: peer.count(method) for method in LISTS}
        async with client.watch(
            tools=True, prompts=True, resources=["x:y"] if params else True
        ) as changes:
            peer.tell(notice, params, subscription=peer.all("subscriptions/listen")[0]["id"])
            await anext(changes)
            await ask_for_all(client)
        assert {method for method in LISTS if peer.count(method) > before[method]} == stale


async def test_a_notice_that_overtakes_the_answer():
    """What was asked for before the notice may be from before it, and is not kept (`CAC-09`)."""
    async with Peer({"tools/list": SILENCE}) as peer, Client(peer.channel) as client:
        listing = asyncio.create_task(client.list_tools())
        asked = await peer.until("tools/list")
        peer.tell("notifications/tools/list_changed")
        peer.say(id=asked["id"], result=tools("old", **KEPT))
        assert [tool.name for tool in await listing] == ["old"]
        peer.on["tools/list"] = tools("new", **KEPT)
        for _ in range(2):
            assert [tool.name for tool in await client.list_tools()] == ["new"]
        assert peer.count("tools/list") == 2


async def test_an_answer_after_questions_is_not_kept():
    """Nor is it found by a retry (`CAC-11`, `MRT-19`)."""
    asking = [
        asks("s", a=form()),
        contents("1", **KEPT),
        asks("s", a=form()),
        contents("2", **KEPT),
        contents("3", **KEPT),
    ]
    async with (
        Peer({"resources/read": asking}) as peer,
        Client(peer.channel, elicit=lambda p: True) as client,
    ):
        said = [(await client.read_resource("x:y")).contents[0].text for _ in range(4)]
        assert said == ["1", "2", "3", "3"]
        assert peer.count("resources/read") == 5


async def test_errors_are_not_kept():
    answers = [McpError(-32603, "no"), tools("a", **KEPT)]
    async with Peer({"tools/list": answers}) as peer, Client(peer.channel) as client:
        with pytest.raises(McpError):
            await client.list_tools()
        for _ in range(2):
            assert len(await client.list_tools()) == 1
        assert peer.count("tools/list") == 2


async def test_a_ping_is_always_sent():
    """Though what it asks may be kept (`PNG-04`)."""
    discovered = complete(supportedVersions=[NEWEST], capabilities={}, **KEPT)
    async with Peer({"server/discover": discovered}) as peer, Client(peer.channel) as client:
        before = peer.count("server/discover")
        for _ in range(3):
            await client.ping()
        assert peer.count("server/discover") == before + 3


# -- the layer by itself --------------------------------------------------------------------------

READ = t.ReadResourceRequestParams(uri="x:y")


async def test_who_is_served_what():
    """A private answer is for the principal that got it, a public one for all; revisions do not mix
    (`CAC-02`, `CAC-03`, `CAC-04`).
    """
    ada = Principal(subject="ada")
    ben = Principal(subject="ben", issuer="there")
    count = 0

    async def answer(x: Exchange) -> AnyResult:
        nonlocal count
        count += 1
        scope: Any = "public" if x.method == "tools/list" else "private"
        if x.method == "tools/list":
            return t.ListToolsResult(tools=[], ttl_ms=1000, cache_scope=scope)
        return t.ReadResourceResult(contents=[], ttl_ms=1000, cache_scope=scope)

    clock = Clock()
    handle = caching(ResponseCache(), clock)(answer)
    asked = [
        (method, params, who, revision)
        for method, params in (("tools/list", t.ListToolsRequestParams()), ("resources/read", READ))
        for who in (ada, ben, None)
        for revision in (NEWEST, R4)
    ]
    for _ in range(2):
        for method, params, who, revision in asked:
            await handle(Exchange(method, params, Caller(revision, principal=who)))
    assert count == 2 + 6
    clock.advance(1)
    await handle(Exchange("resources/read", READ, Caller(NEWEST, principal=ada)))
    assert count == 9


@pytest.mark.parametrize(
    "result",
    [RawResult(b"{}"), t.InputRequiredResult(request_state="s"), t.CallToolResult(content=[])],
)
async def test_results_of_other_kinds_go_by(result: AnyResult):
    count = 0

    async def answer(x: Exchange) -> AnyResult:
        nonlocal count
        count += 1
        return result

    handle = caching(ResponseCache())(answer)
    for _ in range(2):
        assert await handle(Exchange("resources/read", READ, Caller(NEWEST))) is result
    assert count == 2


async def test_a_transport_that_keeps_nothing_of_its_own():
    """Middleware of the author sees every exchange, also those that are answered from what is
    kept.
    """
    seen: list[str] = []

    def noting(handler: Any) -> Any:
        async def handle(x: Exchange) -> AnyResult:
            seen.append(x.method)
            result: AnyResult = await handler(x)
            return result

        return handle

    async def answer(x: Exchange) -> AnyResult:
        return t.ListToolsResult(tools=[], ttl_ms=1000)

    transport = ByHand(answer)
    async with Client(transport, middleware=[noting]) as client:
        await client.list_tools()
        await client.list_tools()
    assert (len(seen), len(transport.seen)) == (2, 1)
