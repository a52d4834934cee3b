"""Child processes that the probe breaks:

they are started again with `initialize` first, and slow ones are not.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlock import types as t
from interlock.protocol.opening import Opened
from interlock.transport.stdio import Stdio
from interlock.wire.revisions import NEWEST, R1, R4
from tests.transport.ends import open_descriptors
from tests.transport.programs import (
    BROKEN_BY_THE_PROBE,
    DISCOVERED,
    call,
    hello,
    old_server,
    starts,
)
from tests.transport.test_stdio import alive, ended

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="watches processes through /proc, which only Linux has"
)


@contextlib.asynccontextmanager
async def opened(command: list[str], **more: Any) -> AsyncIterator[tuple[Stdio, Opened]]:
    """A child that has been opened, and that is gone at the end of the block."""
    transport = Stdio(command, patience=0.2)
    try:
        async with asyncio.timeout(60):
            yield transport, await transport.open(hello(**more))
    finally:
        await transport.aclose()


def until_started_twice(folder: Path) -> None:
    """Wait for the second start of the old server."""
    while len(starts(folder)) < 2:
        time.sleep(0.01)


async def number(transport: Stdio) -> int:
    """Which start of the server it is that answers."""
    result: Any = await transport(call())
    return int(result.text)


@pytest.mark.parametrize("program", BROKEN_BY_THE_PROBE.values(), ids=BROKEN_BY_THE_PROBE)
async def test_a_server_that_the_probe_breaks_is_opened_in_a_new_process(
    program: dict[str, str], tmp_path: Path
) -> None:
    """Nothing of the first process is left, and the end of it is not told as the end of the server
    (`ERA-07`).
    """
    before = open_descriptors()
    lost: list[Exception] = []
    async with opened(old_server(tmp_path, **program), lost=lost.append) as (transport, found):
        assert (found.revision, found.probe_failed) == (R1, True)
        assert await number(transport) == 2
        first, second = starts(tmp_path)
        assert transport.pid == second
        await ended(first)
        assert alive(second)
        assert not lost
    assert not alive(second)
    assert len(starts(tmp_path)) == 2
    assert open_descriptors() <= before + 2


@pytest.mark.parametrize("program", BROKEN_BY_THE_PROBE.values(), ids=BROKEN_BY_THE_PROBE)
async def test_a_server_that_is_known_to_be_an_older_one_is_started_once(
    program: dict[str, str], tmp_path: Path
) -> None:
    """The probe is spared (`ERA-13`)."""
    async with opened(old_server(tmp_path, **program), known=R4) as (transport, found):
        assert (found.revision, found.probe_failed) == (R1, False)
        assert await number(transport) == 1


SLOW: dict[str, tuple[dict[str, str], str]] = {
    "of the handshake era": ({}, R1),
    "of the stateless era": ({"probe": DISCOVERED, "initialize": "fail()"}, NEWEST),
    "of both": ({"probe": DISCOVERED}, NEWEST),
}


@pytest.mark.parametrize("program, revision", SLOW.values(), ids=SLOW)
async def test_a_server_that_is_slow_to_start_is_started_once(
    program: dict[str, str], revision: str, tmp_path: Path
) -> None:
    """As long as it has not read the probe its silence says nothing (`ERA-07`)."""
    command = old_server(tmp_path, before="time.sleep(3.5)", **program)
    async with opened(command) as (transport, found):
        assert (found.revision, await number(transport)) == (revision, 1)
    assert len(starts(tmp_path)) == 1


async def test_a_server_that_is_silent_but_not_dead_may_still_be_the_first_to_answer(
    tmp_path: Path,
) -> None:
    """What reads for it, as a container's client does, reads before the server is there.

    The second process is ended.
    """
    command = old_server(
        tmp_path,
        probe="pass",
        before="if number == 2:\n    swallow()",
        initialize="while len(starts()) < 2:\n    time.sleep(0.01)\ngreet()",
    )
    async with opened(command, probe_seconds=0.2) as (transport, found):
        assert (found.revision, found.probe_failed) == (R1, True)
        assert await number(transport) == 1
        first, second = starts(tmp_path)
        assert transport.pid == first
        await ended(second)


async def test_a_second_process_that_dies_does_not_end_the_first(tmp_path: Path) -> None:
    """It may be that there can only be one of it."""
    command = old_server(
        tmp_path,
        before="if number == 2:\n    sys.exit('already running')",
        probe="pass",
        initialize=(
            "while len(starts()) < 2 or os.path.exists(f'/proc/{starts()[1]}/exe'):\n"
            "    time.sleep(0.01)\n"
            "greet()"
        ),
    )
    async with opened(command, probe_seconds=0.2) as (transport, _):
        assert await number(transport) == 1


async def test_the_answer_to_the_probe_counts_though_it_comes_late(tmp_path: Path) -> None:
    """`initialize` was sent meanwhile; who answers the probe is of the stateless era (`ERA-05`)."""
    late = f"sys.stdin.readline()\n{DISCOVERED}"
    async with opened(old_server(tmp_path, probe=late), probe_seconds=0.2) as (transport, found):
        assert (found.revision, await number(transport)) == (NEWEST, 1)


async def test_a_server_of_both_eras_that_answers_the_probe_late_is_used_as_it_agreed(
    tmp_path: Path,
) -> None:
    """It has got `initialize` meanwhile, and answers that too (`ERA-07`)."""
    late = f"after = json.loads(sys.stdin.readline())\n{DISCOVERED}\nmessage = after\ngreet()"
    async with opened(old_server(tmp_path, probe=late), probe_seconds=0.2) as (transport, found):
        assert (found.revision, found.probe_failed) == (R1, False)
        assert await number(transport) == 1


async def test_a_server_that_ends_before_it_reads_anything_is_started_once(tmp_path: Path) -> None:
    """The probe is not why, so nothing would be different the next time (`ERR-21`)."""
    with pytest.raises(t.Unreachable, match="no config file") as caught:
        async with opened(old_server(tmp_path, before="sys.exit('no config file')")):
            raise AssertionError("it was opened")
    assert caught.value.exit_code == 1
    assert len(starts(tmp_path)) == 1


async def test_a_server_that_ends_whatever_it_is_told_is_started_twice_and_no_more(
    tmp_path: Path,
) -> None:
    """The error is that of the process that was greeted properly (`ERR-21`)."""
    program = {"probe": "sys.exit('what?')", "initialize": "sys.exit('no licence')"}
    with pytest.raises(t.Unreachable, match="no licence"):
        async with opened(old_server(tmp_path, **program)):
            raise AssertionError("it was opened")
    assert len(starts(tmp_path)) == 2


async def test_a_server_remembered_as_an_older_one_that_dies_of_initialize_is_probed(
    tmp_path: Path,
) -> None:
    """It was replaced by a newer one meanwhile (`ERA-14`)."""
    command = old_server(tmp_path, probe=DISCOVERED, initialize="sys.exit('initialize?')")
    async with opened(command, known=R1) as (transport, found):
        assert (found.revision, await number(transport)) == (NEWEST, 2)


async def test_giving_up_between_two_processes_leaves_neither(tmp_path: Path) -> None:
    """However early it is given up (`STD-07`)."""
    command = old_server(tmp_path, probe="swallow()", initialize="swallow()")
    transport = Stdio(command, patience=0.05)
    opening = asyncio.ensure_future(transport.open(hello(probe_seconds=0.05)))
    async with asyncio.timeout(60):
        await asyncio.to_thread(until_started_twice, tmp_path)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    await transport.aclose()
    assert not any(alive(pid) for pid in starts(tmp_path))
