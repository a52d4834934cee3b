"""Another configuration: what is exchanged, what is not touched, and that nothing is left of what
was there before.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from interlock import Answers, Server, Unreachable
from interlock.configs import Config, Entry
from interlock_apps.fleet.hub import Hub, HubOptions
from tests.client.peers import ByHand
from tests.fleet.hub.keeping import QUICK, Owner, Received, alive, kept, misbehaving, pids, turns

linux = pytest.mark.skipif(
    sys.platform != "linux", reason="watches processes through /proc, which only Linux has"
)


@linux
async def test_what_differs_is_exchanged_and_the_rest_is_not_touched(tmp_path: Path) -> None:
    """Added, removed, reached anew, or only taken note of.

    In the order of the new configuration.
    """
    old = {id: misbehaving(tmp_path, id) for id in ("same", "noted", "anew", "gone")}
    async with kept(*old.values(), limits=QUICK) as one:
        before = dict(one.hub.servers)
        processes = {id: pids(tmp_path, id)[0] for id in old}
        new = [
            misbehaving(tmp_path, "new"),
            replace(old["anew"], env={"MORE": "1"}),
            replace(old["noted"], timeout=0.01, secrets=frozenset({"pid"})),
            replace(old["same"], source="elsewhere"),
        ]
        found = await one.hub.reload(Config(entries=tuple(new)))
        assert [entry.id for entry in found.added] == ["new"]
        assert [entry.id for entry in found.removed] == ["gone"]
        assert {entry.id for entry in found.changed} == {"anew", "noted"}
        assert list(one.hub.servers) == ["new", "anew", "noted", "same"]
        assert {id: alive(pid) for id, pid in processes.items()} == {
            "same": True,
            "noted": True,
            "anew": False,
            "gone": False,
        }
        await one.received.state("new", "up")
        await one.received.state("anew", "up", 2)
        assert [one[id] is before[id] for id in ("same", "noted", "anew")] == [True, True, False]
        assert one["same"].entry.source == "elsewhere"
        assert one.received.states("same") == one.received.states("noted") == ["starting", "up"]
        assert one.received.states("gone") == ["starting", "up", "off"]
        assert one.received.changed[-1][0] in ("new", "anew")
        assert ("gone", []) in one.received.changed
        with pytest.raises(Unreachable, match="0.01 seconds"):
            await one["noted"].call("hang")
        with pytest.raises(Unreachable, match="gone is stopped. It is no longer configured"):
            await before["gone"].call("pid")
    assert not [pid for id in (*old, "new") for pid in pids(tmp_path, id) if alive(pid)]


@linux
async def test_two_at_once(tmp_path: Path) -> None:
    """The last one holds, and one process is left of each server, whatever they were begun with."""
    entries = [misbehaving(tmp_path, start="stubborn", env={"N": str(n)}) for n in range(5)]
    async with kept(entries[0], limits=QUICK) as one:
        await asyncio.gather(*(one.hub.reload([entry]) for entry in entries[1:]))
        await one.received.until(lambda: one["x"].state == "up")
        assert one["x"].entry == entries[-1]
        assert int((await one["x"].call("pid")).text) == pids(tmp_path)[-1]
        assert [pid for pid in pids(tmp_path) if alive(pid)] == pids(tmp_path)[-1:]
    assert not [pid for pid in pids(tmp_path) if alive(pid)]


@linux
@pytest.mark.parametrize("start", ["well", "mute", "deaf"])
async def test_while_it_is_starting(start: str, tmp_path: Path) -> None:
    """What was begun is ended, and who waits for it is told; the opening that was under way ends
    too.
    """
    async with kept(misbehaving(tmp_path, start=start), opened=False, limits=QUICK) as one:
        opening = asyncio.ensure_future(one.hub.open(None))
        await turns()
        waiting = asyncio.ensure_future(one["x"].call("pid"))
        await turns()
        await one.hub.reload([misbehaving(tmp_path, "y")])
        await opening
        with pytest.raises(Unreachable, match="no longer configured"):
            await waiting
        await one.received.state("y", "up")
        assert not [pid for pid in pids(tmp_path) if alive(pid)]


@linux
async def test_one_that_is_cancelled_has_been_done(tmp_path: Path) -> None:
    """The links are the new ones at once, and what has to go goes."""
    async with kept(misbehaving(tmp_path, start="stubborn"), limits=QUICK) as one:
        reloading = asyncio.ensure_future(one.hub.reload([misbehaving(tmp_path, "y")]))
        await turns(1)
        reloading.cancel()
        await asyncio.wait({reloading})
        assert list(one.hub.servers) == ["y"]
        await one.received.state("y", "up")
    assert not [pid for pid in pids(tmp_path) if alive(pid)]


async def test_what_is_begun_anew_waits_for_what_was_there() -> None:
    """Two processes of one server might want the same file or port."""
    gate = asyncio.Event()
    ways = list[ByHand]()

    class Stubborn(ByHand):
        async def aclose(self) -> None:
            await super().aclose()
            await gate.wait()

    def road() -> Any:
        ways.append(Stubborn())
        return ways[-1]

    async with kept(Entry(id="a"), servers={"a": road}) as one:
        reloads = [
            asyncio.ensure_future(one.hub.reload([Entry(id="a", start_seconds=seconds)]))
            for seconds in (3, 4)
        ]
        await turns()
        seen = ways[0].closes, len(ways), one["a"].state
        gate.set()
        assert seen == (1, 1, "starting")
        await asyncio.wait(reloads)
        await one.received.state("a", "up", 2)
        assert len(ways) == 2


async def test_who_was_stopped_by_hand_stays_so() -> None:
    """As long as nothing is different; and what is switched off is stopped."""
    servers = {id: Server(id) for id in "ab"}
    async with kept(Entry(id="a"), Entry(id="b"), servers=servers) as one:
        await one.hub.stop("a")
        await one.hub.reload([Entry(id="a"), Entry(id="b", disabled=True)])
        await turns()
        assert (one["a"].state, one["b"].state) == ("off", "off")
        assert one["a"].words == "It was stopped."
        await one.hub.reload([Entry(id="a", start_seconds=3), Entry(id="b")])
        await one.received.state("a", "up", 2)
        await one.received.state("b", "up", 2)


async def test_leave_is_asked_for_anew_where_it_is_reached_anew() -> None:
    """And only there: whoever admits it knows whether anything matters (`SEC-17`)."""
    asked: list[Entry] = []

    async def admit(entry: Entry) -> bool:
        asked.append(entry)
        return True

    entries = [Entry(id=id, command=(id,)) for id in "abc"]
    servers = {id: Server(id) for id in "abc"}
    async with kept(*entries, servers=servers, admit=admit) as one:
        new = [
            replace(entries[0], timeout=3),
            replace(entries[1], command=("rm", "-rf")),
            entries[2],
        ]
        await one.hub.reload(new)
        await one.received.state("b", "up", 2)
        assert asked == [*entries, new[1]]


async def test_before_it_is_open_and_after_it_is_closed() -> None:
    """Nothing is started before; nothing at all can be done after."""
    async with kept(Entry(id="a"), servers={"b": Server("b")}, opened=False) as one:
        await one.hub.reload([Entry(id="b")])
        await turns()
        assert list(one.hub.servers) == ["b"]
        assert one.received.states("b") == []
        with pytest.raises(ValueError, match="two servers"):
            await one.hub.reload([Entry(id="b"), Entry(id="b")])
        await one.hub.open(None)
        assert one["b"].state == "up"
        hub = one.hub
    for work in (hub.open(), hub.reload([]), hub.start("b"), hub.restart("b")):
        with pytest.raises(RuntimeError, match="closed"):
            await work
    await hub.aclose()
    await hub.stop("b")


async def test_other_folders_are_told_to_the_servers() -> None:
    """Of the handshake era.

    Those whose own folders have changed are told by themselves (`LIF-12`).
    """
    links = {id: ByHand(revision="2025-06-18") for id in "ab"}
    async with kept(
        Entry(id="a"),
        Entry(id="b"),
        servers={id: (lambda id=id: links[id]) for id in "ab"},
        answers=lambda id: Answers(roots=[]),
    ) as one:
        told = "notifications/roots/list_changed"
        await one.hub.reload([Entry(id="a", roots=("x",)), Entry(id="b")])
        assert [links[id].told for id in "ab"] == [[told], []]
        one.hub.roots_changed()
        one.hub.roots_changed(["b"])
        assert [links[id].told for id in "ab"] == [[told, told], [told, told]]


async def test_as_a_context_manager() -> None:
    """Open for as long as the block lasts, by real time."""
    received = Received()
    options = HubOptions(target=lambda entry: Server("a"))
    async with Hub([Entry(id="a")], Owner(received), options) as hub:
        assert hub.servers["a"].state == "up"
        assert received.changed == [("a", [])]
    assert hub.servers["a"].state == "off"
