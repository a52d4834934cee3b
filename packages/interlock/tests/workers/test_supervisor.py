"""Several workers on one socket: they are replaced where they die, end in good order, and never
outlive the process that started them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Client
from interlock.wire.revisions import R4, R5
from tests.workers.clusters import PATIENCE, Program, alive, marks, noted, until
from tests.workers.loads import Load, check, more

Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts programs that are gone at the end of the test."""
    made: list[Program] = []

    def begin(**options: Any) -> Program:
        made.append(Program(tmp_path, **options))
        return made[-1]

    yield begin
    for program in made:
        program.close()


async def test_a_worker_that_is_killed_is_replaced(start: Start):
    """The others go on, sessions are kept (in the file that the workers share unless told
    otherwise), and soon there are as many again."""
    program = start(workers=3).ready()
    before = until(lambda: len(program.children) == 3 and program.children)
    async with asyncio.timeout(60), Client(program.url, revision=R4) as client:
        for _ in range(2):
            victim = int((await client.call_tool("pid")).value())
            os.kill(victim, signal.SIGKILL)
            until(
                lambda victim=victim: len(program.children) == 3 and victim not in program.children
            )
            assert int((await client.call_tool("pid")).value()) != victim
    assert len(set(program.children) - set(before)) == 2
    assert "another one takes its place" in program.errors
    assert program.end() == 0


@pytest.mark.slow
async def test_the_loss_of_one_of_several_on_a_socket(start: Start):
    """kill -9 under load: each client loses the one call that ran there at the most, and is told
    so; sessions are as they were."""
    program = start(workers=3).ready()
    noted(program.folder, "entered", 3)
    loads = [Load(program.url, revision) for revision in (R4, R4, R5, R5)]
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        running = [group.create_task(load.run()) for load in loads]
        await more(loads)
        sessions = [load.session for load in loads]
        for _ in range(2):
            victim = program.children[0]
            os.kill(victim, signal.SIGKILL)
            await more(loads)
            await asyncio.to_thread(
                until,
                lambda victim=victim: len(program.children) == 3 and victim not in program.children,
            )
        assert [load.session for load in loads] == sessions
        assert len(set(sessions)) == 3  # two of their own, and none in the stateless era
        for load in loads:
            load.stop = True
        await asyncio.gather(*running)
    check(loads, deaths=2)
    assert program.end() == 0


@pytest.mark.parametrize("how", ["terminate", "interrupt", "ctrl-c"])
def test_all_end_in_good_order_when_the_parent_is_told_to(start: Start, how: str):
    """Exit code 0, the lifespan of each is left, nobody remains and nothing is complained of; a
    terminal tells all of them at once."""
    program = start(workers=2).ready()
    noted(program.folder, "entered", 2)
    children = program.children
    if how == "ctrl-c":
        os.killpg(program.process.pid, signal.SIGINT)
    else:
        program.process.send_signal(signal.SIGTERM if how == "terminate" else signal.SIGINT)
    assert program.process.wait(PATIENCE) == 0
    assert not any(alive(pid) for pid in children)
    assert program.errors == ""
    noted(program.folder, "left", 2)


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_calls_that_run_may_finish_when_the_parent_is_told_to_end(
    start: Start, tmp_path: Path
):
    """A call within the grace is answered as if nothing were."""
    program = start(workers=2, grace=10.0).ready()
    async with asyncio.timeout(PATIENCE), Client(program.url, revision=R4) as client:
        calls = [
            asyncio.ensure_future(client.call_tool("steps", {"name": f"s{n}", "to": 2}))
            for n in range(4)
        ]
        for n in range(4):
            (tmp_path / f"s{n}.1").write_text("")
        await client.call_tool("pid")
        for call in calls:
            assert not call.done()
        program.process.send_signal(signal.SIGTERM)
        for n in range(4):
            (tmp_path / f"s{n}.2").write_text("")
        assert [(await call).text for call in calls] == [f"s{n} done" for n in range(4)]
        assert await asyncio.to_thread(program.process.wait, PATIENCE) == 0


def test_workers_do_not_outlive_a_parent_that_is_killed(start: Start):
    """kill -9 of the parent: its workers end too, in good order."""
    program = start(workers=2).ready()
    noted(program.folder, "entered", 2)
    children = program.children
    program.process.kill()
    program.process.wait(PATIENCE)
    until(lambda: not any(alive(pid) for pid in children))
    assert not _accepts(program.port)
    noted(program.folder, "left", 2)


def test_where_no_worker_can_start_the_parent_ends_with_the_error(start: Start, tmp_path: Path):
    """Each tries once; the exit code is not 0, and the words are those of what went wrong."""
    (tmp_path / "trip").write_text("")
    program = start(workers=3)
    assert program.process.wait(PATIENCE) == 1
    assert program.errors.rstrip().endswith("RuntimeError: RuntimeError: tripped over a wire")
    assert len(marks(tmp_path)) == 3


def test_a_worker_that_cannot_start_is_tried_again_now_and_then(start: Start, tmp_path: Path):
    """At once, then after half a second, a second, ...; once it can start, it does, and the other
    one goes on all the while."""
    program = start(workers=2).ready()
    noted(tmp_path, "entered", 2)
    first, second = program.children
    (tmp_path / "trip").write_text("")
    os.kill(first, signal.SIGKILL)
    noted(tmp_path, "stumbled", 3)
    until(lambda: "another one takes its place in 2 s" in program.errors)
    assert program.errors.count("could not start: RuntimeError: tripped over a wire") == 3
    assert second in program.children
    (tmp_path / "trip").unlink()
    noted(tmp_path, "entered", 3)
    assert len(program.children) == 2
    assert program.end() == 0


@pytest.mark.parametrize("count", [1, 2])
def test_a_store_that_is_not_there(start: Start, count: int):
    """One line that says what and where; the exit code is not 0."""
    program = start(workers=count, store="redis://127.0.0.1:1")
    assert program.process.wait(PATIENCE) == 1
    line = program.errors.rstrip().splitlines()[-1]
    assert "StoreError: the Redis server at 127.0.0.1:1 cannot be used" in line
