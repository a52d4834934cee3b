"""What servers offer, as it is fetched, and what they say of its changing: servers on the wire, by
hand.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Duplex, McpError
from interlock.configs import Entry
from interlock.wire.revisions import NEWEST, R4
from interlock_apps.fleet.events import ResourceUpdated
from interlock_apps.fleet.hub import Backoff, HubLimits
from tests.client.peers import SILENCE, Peer, complete
from tests.fleet.hub.keeping import Kept, kept, turns

BOTH = pytest.mark.parametrize("revision", [R4, NEWEST])
CHANGED = "notifications/tools/list_changed"


def tools(*names: str, **more: Any) -> dict[str, Any]:
    """A page of tools."""
    return complete(
        tools=[{"name": name, "inputSchema": {"type": "object"}} for name in names],
        ttlMs=0,
        cacheScope="private",
        **more,
    )


def empty(field: str) -> dict[str, Any]:
    """A list with nothing in it."""
    return complete(**{field: []}, ttlMs=0, cacheScope="private")


class Shop:
    """A server on the wire whose lists can be exchanged, and which may be begun again; `peer` is
    the last one.
    """

    def __init__(self, revision: str = NEWEST, **on: Any) -> None:
        self.revision = revision
        self.peers = list[Peer]()
        self.on = {
            "tools/list": lambda _: tools("a"),
            "prompts/list": empty("prompts"),
            "resources/list": empty("resources"),
            "resources/templates/list": empty("resourceTemplates"),
            "resources/subscribe": {},
            "resources/unsubscribe": {},
        } | on

    def __call__(self) -> Any:
        peer = Peer(dict(self.on), self.revision)
        peer.on.setdefault("subscriptions/listen", peer.acknowledge)
        self.peers.append(peer)
        peer._task = asyncio.ensure_future(peer._listen())
        return Duplex(peer.channel)

    @property
    def peer(self) -> Peer:
        return self.peers[-1]

    def tell(self, method: str, params: dict[str, Any] | None = None, **wish: Any) -> None:
        """Tell of a change as the era has it."""
        listens = [
            m
            for m in self.peer.all("subscriptions/listen")
            if all(m["params"]["notifications"].get(k) == v for k, v in wish.items())
        ]
        self.peer.tell(method, params, subscription=listens[-1]["id"] if listens else None)

    async def aclose(self) -> None:
        for peer in self.peers:
            await peer.__aexit__()


async def ended(shop: Shop) -> None:
    """See that all of its ends are closed."""
    await shop.aclose()


def names(one: Kept) -> list[str]:
    return [tool.name for tool in one["a"].tools]


# -- the first time


@BOTH
async def test_a_list_that_fails_leaves_the_others(revision: str) -> None:
    """With a notice that says why; resource templates, which many do not know, are not missed."""
    shop = Shop(
        revision,
        **{
            "prompts/list": McpError(-32603, "the key is sesame"),
            "resources/templates/list": McpError(-32601, "what?"),
        },
    )
    async with kept(Entry(id="a", secrets=frozenset({"sesame"})), servers={"a": shop}) as one:
        assert one["a"].state == "up"
        assert names(one) == ["a"]
        (words,) = one.received.notices()
        assert words.startswith("Its prompts could not be listed: the key is ••")
        assert "sesame" not in words
    await ended(shop)


async def test_a_list_that_does_not_come_leaves_the_others() -> None:
    """After its seconds the server is up without it; calls need not wait for that."""
    shop = Shop(
        **{
            "tools/list": SILENCE,
            "prompts/list": complete(prompts=[{"name": "p"}], ttlMs=0, cacheScope="private"),
            "tools/call": complete(content=[]),
        }
    )
    async with kept(
        Entry(id="a"), servers={"a": shop}, limits=HubLimits(lists=20), opened=False
    ) as one:
        opening = asyncio.ensure_future(one.hub.open(None))
        await one.clock.until_asked(20)
        await turns()
        assert one["a"].state == "starting"
        assert (await one["a"].call("x")).content == []
        await one.clock.advance(20)
        await opening
        assert one["a"].state == "up"
        assert [prompt.name for prompt in one["a"].prompts] == ["p"]
        (words,) = one.received.notices()
        assert words == "Its tools could not be listed within 20 seconds."
        await shop.peer.until("notifications/cancelled")
    await ended(shop)


async def test_a_list_whose_pages_never_end_is_bounded() -> None:
    """By the number of its items, however small the pages; and by its seconds, were they empty
    (`TOL-29`).
    """
    count = iter(range(10**9))
    endless = Shop(
        **{
            "tools/list": lambda _: tools(
                *(f"t{next(count)}" for _ in range(10)), nextCursor=str(next(count))
            )
        }
    )
    hollow = Shop(**{"tools/list": lambda _: tools(nextCursor=str(next(count)))})
    servers = {"a": endless, "b": hollow}
    async with kept(
        Entry(id="a"),
        Entry(id="b"),
        servers=servers,
        limits=HubLimits(most_items=95, lists=20),
        opened=False,
    ) as one:
        opening = asyncio.ensure_future(one.hub.open(None))
        await one.received.state("a", "up")
        assert one.received.notices() == [
            "Its tools could not be listed: It is longer than 95 items."
        ]
        assert endless.peer.count("tools/list") == 10
        await hollow.peer.until("tools/list", 50)
        assert one["b"].state == "starting"
        await one.clock.advance(20)
        await opening
        assert one["b"].state == "up"
        assert len(one.received.notices()) == 2
        await turns()
        asked = hollow.peer.count("tools/list")
        await turns(100)
        assert hollow.peer.count("tools/list") == asked
    await ended(endless)
    await ended(hollow)


async def test_a_list_may_have_as_many_items_as_are_allowed() -> None:
    """Over all its pages, each time anew."""
    pages = {
        None: tools(*(f"a{n}" for n in range(50)), nextCursor="b"),
        "b": tools(*(f"b{n}" for n in range(45))),
    }
    shop = Shop(**{"tools/list": lambda message: pages[message["params"].get("cursor")]})
    async with kept(Entry(id="a"), servers={"a": shop}, limits=HubLimits(most_items=95)) as one:
        assert len(names(one)) == 95
        shop.tell(CHANGED)
        await shop.peer.until("tools/list", 4)
        await turns()
        assert len(names(one)) == 95
        assert not one.received.notices()
    await ended(shop)


# -- changes


@BOTH
async def test_a_changed_list_is_fetched_again(revision: str) -> None:
    """And told where it is another than before, once for each change."""
    shop = Shop(revision)
    async with kept(Entry(id="a"), servers={"a": shop}) as one:
        assert one.received.changed == [("a", ["a"])]
        shop.peer.on["tools/list"] = tools("a", "b")
        shop.tell(CHANGED)
        await one.received.until(lambda: len(one.received.changed) == 2)
        assert one.received.changed[-1] == ("a", ["a", "b"])
        assert shop.peer.count("prompts/list") == 1
        await one.clock.advance(1)
        shop.tell(CHANGED)
        await shop.peer.until("tools/list", 3)
        await one.clock.advance(1)
        assert len(one.received.changed) == 2
    await ended(shop)


@BOTH
async def test_a_flood_of_notices_leads_to_two_fetches(revision: str) -> None:
    """One at once, and one when it is over, or after every half second of it."""
    shop = Shop(revision)
    async with kept(Entry(id="a"), servers={"a": shop}, limits=HubLimits(refresh=0.5)) as one:
        for _ in range(50):
            for _ in range(40):
                shop.tell(CHANGED)
            await turns(5)
        shop.peer.on["tools/list"] = tools("last")
        shop.tell(CHANGED)
        await turns()
        assert shop.peer.count("tools/list") == 2
        await one.clock.advance(0.49)
        assert shop.peer.count("tools/list") == 2
        await one.clock.advance(0.02)
        await one.received.until(lambda: one.received.changed[-1] == ("a", ["last"]))
        await one.clock.advance(100)
        assert shop.peer.count("tools/list") == 3
    await ended(shop)


async def test_a_list_that_fails_later_stays_as_it_was() -> None:
    """With a notice."""
    shop = Shop()
    async with kept(Entry(id="a"), servers={"a": shop}) as one:
        shop.peer.on["tools/list"] = McpError(-32603, "broken")
        shop.tell(CHANGED)
        await one.received.until(one.received.notices)
        assert names(one) == ["a"]
        assert one["a"].state == "up"
    await ended(shop)


async def test_no_change_falls_between_listening_and_fetching() -> None:
    """The lists are fetched once the subscription is acknowledged (`LSN-06`); where that takes
    long, once more when it is.
    """
    shop = Shop(**{"subscriptions/listen": SILENCE})
    async with kept(
        Entry(id="a"), servers={"a": shop}, limits=HubLimits(acknowledge=1), opened=False
    ) as one:
        opening = asyncio.ensure_future(one.hub.open(None))
        await turns()
        listen = await shop.peer.until("subscriptions/listen")
        await turns()
        assert shop.peer.count("tools/list") == 0
        await one.clock.until_asked(1)
        await one.clock.advance(1)
        await opening
        assert shop.peer.count("tools/list") == 1
        shop.peer.on["tools/list"] = tools("newer")
        shop.peer.acknowledge(listen)
        await one.received.until(lambda: one.received.changed[-1] == ("a", ["newer"]))
    await ended(shop)


async def test_a_listener_that_ends_is_begun_again() -> None:
    """As when servers are exchanged one by one; everything is fetched anew, also what may still be
    kept, for nothing is replayed (`LSN-10`, `LSN-12`).
    """
    shop = Shop(**{"tools/list": tools("a") | {"ttlMs": 3_600_000}})
    async with kept(Entry(id="a"), servers={"a": shop}, backoff=Backoff(first=1, steady=60)) as one:
        for number, (lasts, wait) in enumerate([(0, 1), (0, 2), (61, 1)], 1):
            await one.clock.advance(lasts)
            shop.peer.on["tools/list"] = tools(f"a{number}") | {"ttlMs": 3_600_000}
            listen = shop.peer.all("subscriptions/listen")[-1]
            shop.peer.say(id=listen["id"], result=complete())
            await one.clock.until_asked(wait)
            await one.clock.advance(wait)
            await shop.peer.until("subscriptions/listen", number + 1)
            await one.received.until(
                lambda number=number: one.received.changed[-1] == ("a", [f"a{number}"])
            )
            await one.clock.advance(0.5)
        assert one.received.states("a") == ["starting", "up"]
    await ended(shop)


async def test_a_server_that_refuses_to_be_listened_to_is_used_all_the_same() -> None:
    """And is not waited for."""
    shop = Shop(**{"subscriptions/listen": McpError(-32601, "what?")})
    async with kept(Entry(id="a"), servers={"a": shop}) as one:
        assert names(one) == ["a"]
        await one.clock.advance(1000)
        assert shop.peer.count("subscriptions/listen") == 1
    await ended(shop)


# -- single resources


@BOTH
async def test_what_stands_behind_a_uri_is_watched(revision: str) -> None:
    """Also when the server has been away, and at most once in half a second (`SUB-03`)."""
    shop = Shop(revision)
    updated = {"method": "notifications/resources/updated", "params": {"uri": "x://1"}}
    wish = {"resourceSubscriptions": ["x://1"]} if revision == NEWEST else {}
    async with kept(Entry(id="a"), servers={"a": shop}) as one:
        assert await one["a"].watch_uri("x://1")
        for _ in range(100):
            shop.tell(**updated, **wish)
        shop.tell("notifications/resources/updated", {"uri": "x://2"}, **wish)
        await one.received.until(lambda: one.received.all(ResourceUpdated))
        await one.clock.advance(2)
        told = one.received.all(ResourceUpdated)
        assert 1 <= len(told) <= 2
        assert {(event.server, event.uri) for event in told} == {("a", "x://1")}
        await shop.peer.own.aclose()
        await one.received.state("a", "down")
        await one.clock.advance(1)
        await one.received.state("a", "up", 2)
        await one.received.until(lambda: len(one.received.all(ResourceUpdated)) > len(told))
        await one["a"].unwatch_uri("x://1")
        await turns()
        await one.clock.advance(1)
        count = len(one.received.all(ResourceUpdated))
        shop.tell(**updated, **wish)
        await turns()
        assert len(one.received.all(ResourceUpdated)) == count
    await ended(shop)


@BOTH
async def test_a_uri_that_nobody_tells_of(revision: str) -> None:
    """The server does not grant it, does not answer, or is not there."""
    shop = Shop(revision, **{"resources/subscribe": McpError(-32602, "no such thing")})
    async with kept(Entry(id="a"), servers={"a": shop}, limits=HubLimits(pong=5)) as one:
        shop.peer.on["subscriptions/listen"] = lambda message: shop.peer.acknowledge(
            message, resourceSubscriptions=[]
        )
        assert not await one["a"].watch_uri("x://1")
        shop.peer.on["subscriptions/listen"] = shop.peer.on["resources/subscribe"] = SILENCE
        asked = asyncio.ensure_future(one["a"].watch_uri("x://2"))
        await one.clock.until_asked(5)
        await one.clock.advance(5)
        assert not await asked
        await one.hub.stop("a")
        assert not await one["a"].watch_uri("x://3")
    await ended(shop)
