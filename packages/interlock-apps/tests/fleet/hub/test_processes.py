"""Real processes as servers, which die, hang, shout and will not go: none of them is ever left
behind.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from interlock import McpError, TimedOut, Unreachable
from interlock.configs import DOTS, Entry
from interlock_apps.fleet.events import Notice, ServerLogLine
from interlock_apps.fleet.hub import HubLimits
from tests.fleet.hub.keeping import QUICK, alive, kept, misbehaving, pids, turns

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="watches processes through /proc, which only Linux has"
)


async def test_the_house_s_own_server(tmp_path: Path) -> None:
    """Everything that it offers is there, and its process is not after the end."""
    entry = Entry(id="e", command=(sys.executable, "-m", "interlock", "serve", "everything"))
    async with kept(entry) as one:
        link = one["e"]
        assert link.state == "up"
        assert "add" in [tool.name for tool in link.tools]
        assert link.resources
        assert link.templates
        assert link.prompts
        progress: list[float] = []
        assert (
            await link.call(
                "count_down",
                {"start": 2},
                on_progress=lambda params: progress.append(params.progress),
            )
        ).content
        assert progress


@pytest.mark.parametrize("tool, code", [("die", 7), ("kill", -9), ("leave", 5)])
async def test_a_server_that_dies_in_a_call(tool: str, code: int, tmp_path: Path) -> None:
    """The call fails with the exit code and the last lines of stderr, without secrets; the server
    is begun again.
    """
    entries = [
        misbehaving(tmp_path, env={"KEY": "sesame"}, secrets=frozenset({"sesame"})),
        misbehaving(tmp_path, "other"),
    ]
    async with kept(*entries, limits=QUICK) as one:
        link = one["x"]
        with pytest.raises(Unreachable) as caught:
            await link.call(tool)
        assert caught.value.exit_code == code
        assert f"(exit code {code})" in str(caught.value)
        down = await one.received.state("x", "down")
        assert down.words.startswith(f"The server has ended (exit code {code}). Retrying in 0.5 s.")
        if tool == "die":
            for words in (str(caught.value), down.words, "\n".join(said.text for said in link.log)):
                assert "before the end" in words
                assert f"the key is {DOTS}" in words
                assert "sesame" not in words
        with pytest.raises(Unreachable, match="The server x is not reachable"):
            await link.call("pid")
        assert one.received.changed[-1] == ("x", [])
        assert one["other"].state == "up"
        await one.clock.advance(0.5)
        await one.received.state("x", "up", 2)
        assert int((await link.call("pid")).text) == pids(tmp_path)[-1]
        assert one.received.states("x") == ["starting", "up", "down", "starting", "up"]
        assert one.received.states("other") == ["starting", "up"]
    assert len(pids(tmp_path)) == (3 if tool == "leave" else 2)
    assert not [pid for pid in pids(tmp_path) if alive(pid)]


async def test_a_server_that_is_killed_while_nobody_asks(tmp_path: Path) -> None:
    """It is found out all the same, and begun again."""
    async with kept(misbehaving(tmp_path), limits=QUICK) as one:
        os.kill(pids(tmp_path)[0], signal.SIGKILL)
        down = await one.received.state("x", "down")
        assert "(exit code -9)" in down.words
        await one.clock.advance(0.5)
        await one.received.state("x", "up", 2)
    assert not [pid for pid in pids(tmp_path) if alive(pid)]


async def test_a_server_that_cannot_start_is_tried_less_and_less(tmp_path: Path) -> None:
    """The words name the exit code and what it wrote; each process has ended before the next
    begins.
    """
    async with kept(
        misbehaving(tmp_path, start="fails", env={"KEY": "sesame"}, secrets=frozenset({"sesame"})),
        limits=QUICK,
    ) as one:
        for number, wait in enumerate([0.5, 1, 2, 4], 1):
            down = await one.received.state("x", "down", number)
            assert down.words.startswith(
                f"The server has ended (exit code 3). Retrying in {wait:g} s."
            )
            assert down.words.endswith(f"no config; key {DOTS}")
            await one.clock.until_asked(wait)
            assert len(pids(tmp_path)) == number
            assert not [pid for pid in pids(tmp_path) if alive(pid)]
            await one.clock.advance(wait)
    assert not [pid for pid in pids(tmp_path) if alive(pid)]


async def test_a_server_that_dies_while_it_is_listed(tmp_path: Path) -> None:
    """It was never up, and its lists are not complained about."""
    async with kept(misbehaving(tmp_path, start="falls"), limits=QUICK) as one:
        assert "(exit code 4)" in (await one.received.state("x", "down")).words
        await one.clock.advance(0.5)
        await one.received.state("x", "down", 2)
        assert one.received.states("x") == ["starting", "down", "starting", "down"]
        assert not one.received.notices()
    assert not [pid for pid in pids(tmp_path) if alive(pid)]


@pytest.mark.parametrize("start", ["mute", "deaf"])
async def test_a_server_that_hangs_at_its_start(start: str, tmp_path: Path) -> None:
    """It is down after its seconds, its process is ended whatever it ignores, and meanwhile the
    others are used.
    """
    entries = [misbehaving(tmp_path, start=start, start_seconds=5), misbehaving(tmp_path, "well")]
    async with kept(*entries, opened=False, limits=QUICK) as one:
        opening = asyncio.ensure_future(one.hub.open(None))
        await one.received.state("well", "up")
        assert (await one["well"].call("pid")).text
        assert one["x"].state == "starting"
        while not pids(tmp_path):  # noqa: ASYNC110 - it is another process that writes there
            await asyncio.sleep(0.01)
        await one.clock.advance(5)
        await opening
        assert one["x"].words.startswith("It did not start within 5 seconds.")
        await one.clock.until_asked(0.5)
        assert not [pid for pid in pids(tmp_path) if alive(pid)]
    assert not [pid for pid in pids(tmp_path) + pids(tmp_path, "well") if alive(pid)]


async def test_a_call_that_hangs_holds_up_no_other(tmp_path: Path) -> None:
    """Neither at the same server nor at others."""
    async with kept(misbehaving(tmp_path), misbehaving(tmp_path, "y"), limits=QUICK) as one:
        hanging = asyncio.ensure_future(one["x"].call("hang", timeout=0.3))
        pid = (await one["x"].call("pid")).text
        assert (await one["y"].call("pid")).text
        with pytest.raises(TimedOut):
            await hanging
        assert (await one["x"].call("pid")).text == pid
        assert one.received.states("x") == ["starting", "up"]


async def test_a_server_that_blocks_is_given_up_by_its_pings(tmp_path: Path) -> None:
    """A process that does nothing any more is ended and begun again (`PNG-02`)."""
    async with kept(
        misbehaving(tmp_path, start="older"), limits=HubLimits(ping=30, pong=5, patience=0.05)
    ) as one:
        with pytest.raises(TimedOut):
            await one["x"].call("block", timeout=0.05)
        for _ in range(2):
            await one.clock.advance(30)
            await one.clock.advance(5)
        await one.received.state("x", "down")
        await one.clock.until_asked(0.5)
        assert not alive(pids(tmp_path)[0])
        await one.clock.advance(0.5)
        await one.received.state("x", "up", 2)
    assert not [pid for pid in pids(tmp_path) if alive(pid)]


async def test_garbage_on_stdout_is_passed_over(tmp_path: Path) -> None:
    """Also in the middle of a call."""
    async with kept(misbehaving(tmp_path), limits=QUICK) as one:
        assert (await one["x"].call("garbage")).text == str(pids(tmp_path)[0])
        assert (await one["x"].call("pid")).text == str(pids(tmp_path)[0])
        assert one["x"].state == "up"


async def test_a_flood_of_lines_is_bounded(tmp_path: Path) -> None:
    """In number and length, with one notice and a count; the call that made it gets its answer."""
    async with kept(
        misbehaving(tmp_path), limits=HubLimits(lines_a_second=50, patience=0.05)
    ) as one:
        link = one["x"]
        await link.call("lines", {"count": 20_000})
        await one.received.until(lambda: one.received.all(Notice))
        said = one.received.all(ServerLogLine)
        assert [s.text for s in said] == [f"line {n}" for n in range(50)]
        await one.clock.advance(1)
        await link.call("lines", {"count": 1})
        await one.received.until(lambda: len(link.log) >= 53)
        assert "lines were left out here" in link.log[50].text
        assert (link.log[51].text, link.log[51].level) == ("line 0", "stderr")
        assert len(link.log[52].text) <= 4097
        assert len(one.received.notices()) == 1
        assert "more than 50 log lines a second" in one.received.notices()[0]


async def test_secrets_do_not_stand_in_errors(tmp_path: Path) -> None:
    """Whatever the server writes into them."""
    async with kept(
        misbehaving(tmp_path, env={"KEY": "open/sesame"}, secrets=frozenset({"open/sesame"})),
        limits=QUICK,
    ) as one:
        with pytest.raises(McpError) as caught:
            await one["x"].call("fail")
        assert (caught.value.message, caught.value.data) == (f"bad key {DOTS}", {"key": DOTS})
        assert "sesame" not in repr(caught.value) + str(caught.value)
    entry = Entry(
        id="x", command=(str(tmp_path / "sesame"), "--key=sesame"), secrets=frozenset({"sesame"})
    )
    async with kept(entry) as one:
        assert "could not be started" in one["x"].words
        assert "sesame" not in one["x"].words


# -- ends


async def test_a_server_that_will_not_go_is_made_to(tmp_path: Path) -> None:
    """Stopping returns when the process has gone."""
    async with kept(
        misbehaving(tmp_path, start="stubborn"), misbehaving(tmp_path, "y"), limits=QUICK
    ) as one:
        await one.hub.stop("x")
        assert not alive(pids(tmp_path)[0])
        assert (one["x"].state, one["x"].words) == ("off", "It was stopped.")
        await one.hub.start("x")
        await one.received.state("x", "up", 2)
        before = pids(tmp_path)[-1]
        await asyncio.gather(one.hub.restart("x"), one.hub.restart("x"), one.hub.restart("x"))
        await one.received.until(lambda: one["x"].state == "up")
        assert not alive(before)
        assert [alive(pid) for pid in pids(tmp_path)].count(True) == 1
    assert not [pid for pid in pids(tmp_path) if alive(pid)]


EARLIER: set[int] = set()


@pytest.fixture(autouse=True)
def others() -> None:
    """Processes that were there before the test are none of its own."""
    EARLIER.clear()
    if sys.platform == "linux":
        EARLIER.update(started())


@pytest.mark.parametrize("start", ["well", "mute", "deaf", "stubborn"])
@pytest.mark.parametrize("steps", [1, 2, 5, 20, 100])
async def test_closing_in_the_middle_of_opening_leaves_no_process(
    start: str, steps: int, tmp_path: Path
) -> None:
    """However far it has come."""
    entries = [misbehaving(tmp_path, id, start) for id in "xy"]
    async with kept(*entries, opened=False, limits=QUICK) as one:
        opening = asyncio.ensure_future(one.hub.open(None))
        await turns(steps)
        await one.hub.aclose()
        assert not [pid for id in "xy" for pid in pids(tmp_path, id) if alive(pid)]
        await opening
        assert [link.state for link in one.hub.servers.values()] == ["off", "off"]
        with pytest.raises(RuntimeError, match="closed"):
            await one.hub.start("x")
    assert not children()


@pytest.mark.parametrize("start", ["well", "mute", "deaf", "stubborn"])
@pytest.mark.parametrize("steps", [1, 5, 50])
async def test_an_opening_that_is_cancelled_leaves_no_process(
    start: str, steps: int, tmp_path: Path
) -> None:
    """Nobody has to close what was never opened."""
    async with kept(misbehaving(tmp_path, start=start), opened=False, limits=QUICK) as one:
        opening = asyncio.ensure_future(one.hub.open(None))
        await turns(steps)
        opening.cancel()
        await asyncio.wait({opening})
        assert opening.cancelled()
        assert not children()


async def test_a_closing_that_is_cancelled_is_done_all_the_same(tmp_path: Path) -> None:
    """And whoever cancelled it is told so, when it is done."""
    async with kept(misbehaving(tmp_path, start="stubborn"), limits=QUICK) as one:
        closing = asyncio.ensure_future(one.hub.aclose())
        for _ in range(3):
            await turns(3)
            closing.cancel()
        await asyncio.wait({closing})
        assert closing.cancelled()
        assert not children()


def test_a_loop_that_ends_in_the_middle_leaves_no_process(tmp_path: Path) -> None:
    """All tasks are cancelled then, also those that close."""

    async def main() -> None:
        async with kept(
            misbehaving(tmp_path, start="stubborn"), misbehaving(tmp_path, "y"), limits=QUICK
        ) as one:
            asyncio.get_running_loop().call_later(0.01, _cancel_all)
            await one.hub.aclose()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert not [pid for pid in [*pids(tmp_path), *pids(tmp_path, "y")] if alive(pid)]


def _cancel_all() -> None:
    for task in asyncio.all_tasks():
        task.cancel()


def children() -> list[int]:
    """The processes that this one has started since the test began, and that are still there."""
    return [pid for pid in started() if pid not in EARLIER]


def started() -> list[int]:
    """All that this process has started; other tests may keep some for the rest of the run."""
    while True:
        try:
            listed = [
                (task / "children").read_text(encoding="ascii")
                for task in Path("/proc/self/task").iterdir()
            ]
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread ended meanwhile, and its children went over to another
        return [pid for each in listed for pid in map(int, each.split()) if alive(pid)]
