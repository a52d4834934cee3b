"""What state a server is in, and what may be asked of it then: servers in this process, and a clock
that goes when it is told to.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import (
    REVISIONS,
    CallToolResult,
    Duplex,
    McpError,
    Server,
    TextContent,
    TimedOut,
    Unreachable,
)
from interlock.configs import Entry
from interlock.transport.channel import Channel
from interlock_apps.fleet.events import ServerState
from interlock_apps.fleet.hub import Backoff, HubLimits
from tests.client.peers import SILENCE, ByHand, Peer
from tests.fleet.hub.keeping import Kept, kept, turns


def shop(revisions: Any = REVISIONS) -> Server:
    """A server with a little of everything."""
    server = Server("somebody else", "3.1", instructions="Be kind.", revisions=revisions)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def wait() -> None:
        await asyncio.Event().wait()

    @server.resource("shop://shelf")
    async def shelf() -> str:
        return "full"

    @server.resource("shop://shelf/{row}")
    async def row(row: str) -> str:
        return row

    @server.prompt
    async def offer(what: str) -> str:
        return f"Buy {what}."

    @server.completion("offer", "what")
    async def whats(value: str) -> list[str]:
        return [f"{value}!"]

    return server


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_server_of_any_revision_is_kept_alike(revision: str) -> None:
    """It is known by the id of its entry, not by what it calls itself (`HST-04`, `TOL-21`), and all
    it has can be asked for.
    """
    async with kept(Entry(id="mine"), servers={"mine": shop(revision)}) as one:
        link = one["mine"]
        assert (link.id, link.state, link.words, link.revision, link.instructions) == (
            "mine",
            "up",
            "",
            revision,
            "Be kind.",
        )
        assert link.info is not None
        assert (link.info.name, link.info.version) == ("somebody else", "3.1")
        assert link.capabilities.tools is not None
        assert [tool.name for tool in link.tools] == ["add", "wait"]
        assert [prompt.name for prompt in link.prompts] == ["offer"]
        assert [resource.uri for resource in link.resources] == ["shop://shelf"]
        assert [template.uri_template for template in link.templates] == ["shop://shelf/{row}"]
        assert (await link.call("add", {"a": 1, "b": 2})).text == "3"
        assert (await link.read("shop://shelf/7")).contents[0].text == "7"
        assert (await link.get_prompt("offer", {"what": "tea"})).messages[
            0
        ].content.text == "Buy tea."
        assert (await link.complete("offer", "what", "te")).values == ["te!"]
        with pytest.raises(McpError):
            await link.read("shop://nothing")
        assert one.received.states("mine") == ["starting", "up"]
        up = one.received.all(ServerState)[-1]
        assert (up.revision, up.tools, up.resources, up.prompts) == (revision, 2, 1, 1)
        assert one.received.changed == [("mine", ["add", "wait"])]
    assert one.received.states("mine") == ["starting", "up", "off"]
    assert one.received.changed[1:] == [("mine", [])]
    assert (link.tools, link.prompts, link.resources, link.templates, link.revision, link.info) == (
        [],
        [],
        [],
        [],
        "",
        None,
    )


async def test_links_stand_in_the_order_of_the_configuration() -> None:
    """Whatever the order in which they come up (`HST-06`)."""
    ids = ["c", "a", "b"]
    async with kept(
        *(Entry(id=id, disabled=id == "a") for id in ids), servers={id: shop() for id in ids}
    ) as one:
        assert list(one.hub.servers) == ids
        assert [link.state for link in one.hub.servers.values()] == ["up", "off", "up"]
        with pytest.raises(
            Unreachable, match=r"a is stopped\. It is switched off in the configuration\."
        ):
            await one["a"].call("add")
        await one.hub.start("a")
        await one.received.state("a", "up")


def test_two_servers_have_two_ids() -> None:
    """Found before anything is started."""
    with pytest.raises(ValueError, match="two servers with the id a"):
        Kept([Entry(id="a"), Entry(id="a")])


class Slow(ByHand):
    """A server that is reached when it is told to be."""

    def __init__(self, **more: Any) -> None:
        self.go = asyncio.Event()
        super().__init__(opening=self.go.wait, **more)


async def test_a_call_waits_for_a_server_that_is_just_starting() -> None:
    """And no longer than that may take."""
    slow = Slow()
    async with kept(Entry(id="a"), servers={"a": lambda: slow}, opened=False) as one:
        await one.hub.open(0)
        assert one["a"].state == "starting"
        calls = [asyncio.ensure_future(one["a"].call("x")) for _ in range(2)]
        await turns()
        calls[0].cancel()
        await turns()
        assert not calls[1].done()
        slow._handler = _says_fine
        slow.go.set()
        assert (await calls[1]).text == "fine"
        assert calls[0].cancelled()


async def _says_fine(x: Any) -> Any:
    return CallToolResult(content=[TextContent("fine")])


async def test_a_server_that_hangs_at_its_start_is_down() -> None:
    """After its own seconds where its entry has some; who waits for it is told, and it is closed
    before it is tried again.
    """
    slow = [Slow(), Slow()]
    made = iter(slow)
    async with kept(
        Entry(id="a", start_seconds=7),
        Entry(id="b"),
        servers={"a": lambda: next(made), "b": shop()},
        opened=False,
    ) as one:
        opening = asyncio.ensure_future(one.hub.open(None))
        await one.received.state("b", "up")
        waiting = asyncio.ensure_future(one["a"].call("x"))
        await one.clock.advance(6.9)
        assert not opening.done()
        assert not waiting.done()
        await one.clock.advance(0.2)
        await opening
        with pytest.raises(Unreachable, match="did not start within 7 seconds"):
            await waiting
        assert one["a"].state == "down"
        assert one["a"].words == "It did not start within 7 seconds. Retrying in 0.5 s."
        assert slow[0].closes
        slow[1].go.set()
        await one.clock.advance(0.6)
        assert one["a"].state == "up"


async def test_a_server_is_down_at_once_though_its_end_takes_long() -> None:
    """And it is not begun again before it has ended."""
    gate = asyncio.Event()
    ways = list[ByHand]()

    class Stubborn(Slow):
        async def aclose(self) -> None:
            await super().aclose()
            await gate.wait()

    def road() -> Any:
        ways.append(Stubborn())
        return ways[-1]

    async with kept(Entry(id="a", start_seconds=7), servers={"a": road}, opened=False) as one:
        opening = asyncio.ensure_future(one.hub.open(None))
        await one.clock.until_asked(7)
        await one.clock.advance(7)
        await opening
        assert one["a"].state == "down"
        await one.clock.advance(100)
        assert len(ways) == 1
        gate.set()
        await one.clock.until_asked(0.5)
        await one.clock.advance(0.5)
        assert len(ways) == 2


async def test_opening_returns_after_a_while_though_a_server_is_slow() -> None:
    """The rest goes on in the background."""
    slow = Slow()
    async with kept(Entry(id="a"), servers={"a": lambda: slow}, opened=False) as one:
        opening = asyncio.ensure_future(one.hub.open(4))
        await one.clock.advance(3.9)
        assert not opening.done()
        await one.clock.advance(0.2)
        await opening
        assert one["a"].state == "starting"
        slow.go.set()
        await one.received.state("a", "up")


async def test_waits_grow_while_a_server_fails_and_begin_anew_once_it_was_up_for_a_while() -> None:
    """A server that comes up and goes at once has failed too."""
    peers: list[Peer] = []

    def road() -> Any:
        peer = Peer(capabilities={})
        peers.append(peer)
        return Duplex(_served(peer))

    async with kept(
        Entry(id="a"), servers={"a": road}, backoff=Backoff(first=1, most=10, factor=3, steady=60)
    ) as one:
        for lasts, wait in [(0, 1), (0, 3), (59, 9), (0, 10), (0, 10), (60, 1), (0, 3)]:
            assert one["a"].state == "up"
            await one.clock.advance(lasts)
            await peers[-1].own.aclose()
            down = await one.received.state("a", "down", len(peers))
            assert f"Retrying in {wait} s." in down.words
            count = len(peers)
            await one.clock.advance(wait - 0.01)
            assert len(peers) == count
            await one.clock.advance(0.02)
            await one.received.state("a", "up", count + 1)
        assert one.received.states("a").count("starting") == len(peers)
    await asyncio.gather(*(_over(peer) for peer in peers))


def _served(peer: Peer) -> Channel:
    peer._task = asyncio.ensure_future(peer._listen())
    return peer.channel


async def _over(peer: Peer) -> None:
    await peer.own.aclose()
    assert peer._task is not None
    await peer._task


async def test_a_call_that_takes_too_long_fails_and_the_others_go_on() -> None:
    """By the seconds of the call, of the entry, or of the host."""
    entries = [Entry(id="a", timeout=0.01), Entry(id="b")]
    async with kept(
        *entries, servers={"a": shop(), "b": shop()}, limits=HubLimits(call=0.02)
    ) as one:
        for id, seconds, given in [("a", "0.01", None), ("b", "0.02", None), ("a", "0.03", 0.03)]:
            calls = [one[id].call("wait", timeout=given), one[id].call("add", {"a": 1, "b": 1})]
            late, quick = await asyncio.gather(*calls, return_exceptions=True)
            assert isinstance(late, TimedOut)
            assert f"within {seconds} seconds" in str(late)
            assert not isinstance(quick, BaseException)
        assert [one[id].state for id in "ab"] == ["up", "up"]


@pytest.mark.parametrize("what", ["stop", "restart", "reload"])
async def test_a_call_to_a_server_that_is_ended_by_hand(what: str) -> None:
    """It fails at once, and says why."""
    async with kept(Entry(id="a"), servers={"a": shop()}) as one:
        call = asyncio.ensure_future(one["a"].call("wait"))
        await turns()
        await {
            "stop": lambda: one.hub.stop("a"),
            "restart": lambda: one.hub.restart("a"),
            "reload": lambda: one.hub.reload([]),
        }[what]()
        with pytest.raises(Unreachable) as caught:
            await call
        why = {
            "stop": "It was stopped.",
            "restart": "It is started again.",
            "reload": "It is no longer configured.",
        }[what]
        assert str(caught.value) == f"The server a is stopped. {why}".removesuffix(
            " It was stopped."
        )


async def test_a_server_that_is_down_can_be_started_at_once() -> None:
    """By hand, without waiting for the next try, and its waits begin anew."""
    ways: list[Any] = [Unreachable("no"), Unreachable("no"), Unreachable("no"), shop()]

    def road() -> Any:
        way = ways.pop(0)
        if isinstance(way, Exception):
            raise way
        return way

    async with kept(Entry(id="a"), servers={"a": road}) as one:
        await one.clock.advance(0.5)
        assert "1 s" in one["a"].words
        await one.hub.start("a")
        assert "0.5 s" in (await one.received.state("a", "down", 3)).words
        await one.hub.start("a")
        await one.received.state("a", "up")
        await one.hub.start("a")
        assert one.received.states("a").count("up") == 1


# -- leave to start


async def test_a_server_is_started_only_with_leave() -> None:
    """Asked once for each, before anything of it is reached (`HST-01`)."""
    asked: list[str] = []
    answers = {id: asyncio.get_running_loop().create_future() for id in "abc"}
    reached: list[str] = []

    async def admit(entry: Entry) -> bool:
        asked.append(entry.id)
        return bool(await answers[entry.id])

    def road(id: str) -> Any:
        reached.append(id)
        return shop()

    servers = {id: (lambda id=id: road(id)) for id in "abcd"}
    entries = [Entry(id=id, disabled=id == "d") for id in "abcd"]
    async with kept(*entries, servers=servers, admit=admit, opened=False) as one:
        opening = asyncio.ensure_future(one.hub.open(None))
        await turns()
        assert {id: one[id].state for id in "abcd"} == {
            "a": "waiting",
            "b": "waiting",
            "c": "waiting",
            "d": "off",
        }
        assert asked == ["a", "b", "c"]
        with pytest.raises(Unreachable, match="has not been started"):
            await one["a"].call("add")
        assert not reached
        answers["a"].set_result(True)
        answers["b"].set_result(False)
        answers["c"].set_exception(ZeroDivisionError("broken face"))
        await opening
        assert {id: one[id].state for id in "abcd"} == {
            "a": "up",
            "b": "refused",
            "c": "refused",
            "d": "off",
        }
        assert "broken face" in one["c"].words
        with pytest.raises(Unreachable, match="may not be started"):
            await one["b"].call("add")
        assert reached == ["a"]
        await one.hub.restart("a")
        await one.received.state("a", "up", 2)
        assert asked == ["a", "b", "c"]
        answers["b"] = asyncio.get_running_loop().create_future()
        await one.hub.start("b")
        await one.received.state("b", "waiting", 2)
        answers["b"].set_result(True)
        await one.received.state("b", "up")


async def test_a_question_that_has_become_moot_is_withdrawn() -> None:
    """The server was stopped, or the host ends, while the person thinks."""
    gone: list[str] = []

    async def admit(entry: Entry) -> bool:
        try:
            await asyncio.Event().wait()
        finally:
            gone.append(entry.id)
        return True

    async with kept(
        Entry(id="a"), Entry(id="b"), servers={"a": shop(), "b": shop()}, admit=admit, opened=False
    ) as one:
        await one.hub.open(0)
        await turns()
        await one.hub.stop("a")
        assert gone == ["a"]
        assert (one["a"].state, one["a"].words) == ("off", "It was stopped.")
    assert gone == ["a", "b"]


# -- signs of life


async def test_an_idle_server_of_the_handshake_era_is_pinged() -> None:
    """One that leaves pings unanswered is begun again.

    An error is an answer (`PNG-02`, `PNG-03`).
    """
    peers: list[Peer] = []

    def road() -> Any:
        peer = Peer(
            {
                "ping": [{}, McpError(-32601, "no ping"), SILENCE, {}, SILENCE, SILENCE],
                "tools/list": {"tools": []},
            },
            "2025-06-18",
            capabilities={"tools": {}},
        )
        peers.append(peer)
        return Duplex(_served(peer))

    async with kept(Entry(id="a"), servers={"a": road}, limits=HubLimits(ping=30, pong=5)) as one:
        peer = peers[0]
        for number in range(1, 7):
            await one.clock.advance(30)
            await peer.until("ping", number)
            await turns()
            assert one["a"].state == "up"
            if number in (3, 5, 6):
                await one.clock.advance(5)
        down = await one.received.state("a", "down")
        assert "left 2 pings unanswered" in down.words
        await one.clock.advance(1)
        await one.received.state("a", "up", 2)
    await asyncio.gather(*(_over(peer) for peer in peers))


async def test_a_busy_server_is_not_pinged() -> None:
    """Many do one thing at a time."""
    peer = Peer({"tools/call": SILENCE}, "2025-06-18", capabilities={})
    async with kept(
        Entry(id="a"),
        servers={"a": lambda: Duplex(_served(peer))},
        limits=HubLimits(ping=30, pong=5),
    ) as one:
        call = asyncio.ensure_future(one["a"].call("x"))
        await peer.until("tools/call")
        await one.clock.advance(300)
        assert peer.count("ping") == 0
        call.cancel()
        await turns()
        await one.clock.advance(30)
        await peer.until("ping")
    await _over(peer)


async def test_the_stateless_era_has_no_ping() -> None:
    """(`PNG-04`)"""
    peer = Peer(capabilities={})
    async with kept(Entry(id="a"), servers={"a": lambda: Duplex(_served(peer))}) as one:
        received = len(peer.received)
        await one.clock.advance(1000)
        assert len(peer.received) == received
    await _over(peer)


async def test_a_listener_that_fails_harms_nobody() -> None:
    """What hears of states and changes may be broken: servers are kept all the same."""

    def fail(_: Any) -> None:
        raise ZeroDivisionError

    async with kept(Entry(id="a"), servers={"a": shop()}, opened=False) as one:
        one.owner.publish = fail
        one.owner.features_changed = fail
        await one.hub.open(None)
        assert one["a"].state == "up"
        assert (await one["a"].call("add", {"a": 1, "b": 1})).text == "2"
