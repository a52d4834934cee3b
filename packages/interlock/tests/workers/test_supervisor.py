"""Several workers on one socket: they are replaced where they die, end in good order, and never
outlive the process that started them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sqlite3
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, InterlockError
from interlock.wire.revisions import R4, R5
from tests.workers.clusters import PATIENCE, Program, alive, marks, noted, until
from tests.workers.loads import PAUSE, Load, check, more

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
            # In a thread, so that the client's loop sees that its connection was closed.
            await asyncio.to_thread(
                until,
                lambda victim=victim: len(program.children) == 3 and victim not in program.children,
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


def _in_another_worker(program: Program, victim: int) -> bool:
    """Whether another process than this one serves a new connection."""
    with urllib.request.urlopen(f"http://127.0.0.1:{program.port}/pid", timeout=5) as answer:
        return int(answer.read()) != victim


def _who_noted(program: Program, what: str) -> int:
    """Return the process that has noted this."""
    (pid,) = [mark.split()[0] for mark in marks(program.folder) if mark.endswith(f" {what}")]
    return int(pid)


async def test_a_worker_that_is_stopped_is_replaced(start: Start):
    """SIGSTOP: within 5 s another worker runs, and the caller that waits for the stopped one gets
    an error."""
    program = start(workers=2).ready()
    noted(program.folder, "entered", 2)
    async with asyncio.timeout(60), Client(program.url, revision=R5) as client:
        call = asyncio.ensure_future(client.call_tool("hang", {"name": "h"}))
        await asyncio.to_thread(noted, program.folder, "h hangs")
        victim = _who_noted(program, "h hangs")
        # its heartbeats have begun: one that has just started is not watched yet
        os.kill(victim, signal.SIGSTOP)
        with pytest.raises(InterlockError):
            await call
        await asyncio.to_thread(
            until, lambda: len(program.children) == 2 and victim not in program.children
        )
    assert f"worker {victim} has not run for" in program.errors
    assert await asyncio.to_thread(_in_another_worker, program, victim)
    assert program.end() == 0


async def test_a_blocked_event_loop_is_reported_and_its_worker_kept(start: Start):
    """The log says where it blocks; once it goes on, the call is answered by the same process."""
    program = start(workers=2).ready()
    async with asyncio.timeout(60), Client(program.url, revision=R5) as client:
        call = asyncio.ensure_future(client.call_tool("block", {"name": "b"}))
        await asyncio.to_thread(
            until, lambda: "the event loop has been blocked for" in program.errors
        )
        await asyncio.to_thread(until, lambda: "in block" in program.errors)
        before = program.children
        (program.folder / "b").write_text("")
        assert (await call).value() in before
    assert program.errors.count("the event loop has been blocked") == 1
    assert "is killed" not in program.errors
    assert program.end() == 0


async def test_a_blocked_worker_is_replaced_after_the_limit(start: Start):
    """Its process runs, and its event loop does not: it is killed, and its caller gets an error."""
    program = start(workers=2, worker_limits={"blocked_seconds": 2.0}).ready()
    async with asyncio.timeout(60), Client(program.url, revision=R5) as client:
        with pytest.raises(InterlockError):
            await client.call_tool("block", {"name": "never"})
    victim = _who_noted(program, "never blocks")
    until(lambda: len(program.children) == 2 and victim not in program.children)
    assert f"worker {victim} has an event loop that has been blocked for 2 s" in program.errors
    assert program.end() == 0


async def _requests(
    port: int, failures: list[str], served: set[int], stop: asyncio.Event, *, pause: float = PAUSE
) -> None:
    """Send requests over kept connections until told to stop, and note what went wrong.

    A connection that the server has announced to close is not used again, and never closes under a
    request: the pauses are short.
    """
    reader: asyncio.StreamReader | None = None
    while not stop.is_set():
        try:
            if reader is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /pid HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            body = await reader.readexactly(length)
        except (OSError, EOFError) as bad:
            failures.append(repr(bad))
            reader = None
            continue
        if b" 200 " in head.split(b"\r\n")[0]:
            served.add(int(body))
        else:
            failures.append(head.decode())
        if b"connection: close" in head.lower():
            writer.close()
            reader = None
        await asyncio.sleep(pause)
    if reader is not None:
        writer.close()


async def _restart_under_load(program: Program, times: int, *, pause: float = PAUSE) -> None:
    """Replace all workers so many times, under requests over kept connections and calls of clients
    of both eras: nothing is refused, and nothing is lost.
    """
    failures: list[str] = []
    served: set[int] = set()
    stop = asyncio.Event()
    loads = [Load(program.url, revision, pause=pause) for revision in (R4, R4, R5, R5)]
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(_requests(program.port, failures, served, stop, pause=pause))
        calling = [group.create_task(load.run()) for load in loads]
        for _ in range(times):
            await more(loads)
            before = set(program.children)
            program.process.send_signal(signal.SIGHUP)
            await asyncio.to_thread(
                until,
                lambda before=before: (
                    len(program.children) == 2 and not before & set(program.children)
                ),
            )
        await more(loads)
        stop.set()
        for load in loads:
            load.stop = True
        await asyncio.gather(*calling)
    assert failures == []
    assert [load.failed for load in loads] == [[], [], [], []]
    assert len(served) > times
    assert program.errors == ""


async def test_a_rolling_restart_refuses_nothing(start: Start):
    """SIGHUP: all workers are replaced, the new one serves before the old one ends, and no request
    fails."""
    program = start(workers=2, grace=10.0).ready()
    noted(program.folder, "entered", 2)
    async with asyncio.timeout(120):
        await _restart_under_load(program, 2)
    assert program.end() == 0
    noted(program.folder, "left", 6)


@pytest.mark.endurance(seconds=120)
async def test_twenty_rolling_restarts_refuse_nothing(start: Start):
    """As above, twenty times, under requests without a pause."""
    program = start(workers=2, grace=10.0).ready()
    noted(program.folder, "entered", 2)
    await _restart_under_load(program, 20, pause=0)
    assert program.end() == 0
    noted(program.folder, "left", 42)


async def test_a_running_call_survives_a_rolling_restart(start: Start):
    """Its worker ends only after the call, while the other one is replaced too."""
    program = start(workers=2, grace=20.0).ready()
    noted(program.folder, "entered", 2)
    before = set(program.children)
    async with asyncio.timeout(60), Client(program.url, revision=R5) as client:
        call = asyncio.ensure_future(client.call_tool("steps", {"name": "s", "to": 1}))
        await client.call_tool("pid")
        program.process.send_signal(signal.SIGHUP)
        await asyncio.to_thread(noted, program.folder, "entered", 3)
        assert not call.done()
        (program.folder / "s.1").write_text("")
        assert (await call).text == "s done"
        await asyncio.to_thread(
            until, lambda: len(program.children) == 2 and not before & set(program.children)
        )
    assert program.end() == 0


def test_a_restart_stops_where_the_new_worker_cannot_start(start: Start, tmp_path: Path):
    """The old workers stay, all of them."""
    program = start(workers=2).ready()
    noted(tmp_path, "entered", 2)
    before = program.children
    (tmp_path / "trip").write_text("")
    program.process.send_signal(signal.SIGHUP)
    until(lambda: "no more are replaced" in program.errors)
    assert program.children == before
    (tmp_path / "trip").unlink()
    program.process.send_signal(signal.SIGHUP)
    until(lambda: len(program.children) == 2 and not set(before) & set(program.children))
    assert program.end() == 0


async def test_a_worker_is_recycled_after_its_requests(start: Start):
    """Without a failed request; each worker has another number of requests before it goes."""
    program = start(workers=2, worker_limits={"requests": 200, "jitter": 0.5}).ready()
    noted(program.folder, "entered", 2)
    before = set(program.children)
    failures: list[str] = []
    served: set[int] = set()
    stop = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(_requests(program.port, failures, served, stop))
        await asyncio.to_thread(
            until, lambda: len(served - before) >= 2 and not before & set(program.children)
        )
        stop.set()
    assert failures == []
    assert program.end() == 0


async def test_new_connections_are_refused_while_the_workers_drain(start: Start):
    """The parent closes its listening socket too: otherwise the system would let clients in whom
    nobody serves."""
    program = start(workers=2, grace=20.0).ready()
    noted(program.folder, "entered", 2)
    async with asyncio.timeout(60), Client(program.url, revision=R5) as client:
        call = asyncio.ensure_future(client.call_tool("steps", {"name": "s", "to": 1}))
        await client.call_tool("pid")
        program.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(until, lambda: not _accepts(program.port))
        assert not call.done()
        (program.folder / "s.1").write_text("")
        assert (await call).text == "s done"
        assert await asyncio.to_thread(program.process.wait, PATIENCE) == 0


def test_a_worker_that_ends_in_good_order_says_so_in_the_store(start: Start, tmp_path: Path):
    """Its heartbeat is withdrawn, so that nobody waits for it; one that is killed cannot do so."""
    file = tmp_path / "store.db"
    program = start(workers=2, store=f"sqlite://{file}").ready()
    noted(tmp_path, "entered", 2)

    def beating() -> int:
        with contextlib.closing(sqlite3.connect(file)) as store:
            return int(store.execute("SELECT count(*) FROM workers").fetchone()[0])

    until(lambda: beating() == 2)
    os.kill(program.children[0], signal.SIGKILL)
    until(lambda: beating() == 3)  # the successor of the killed one too
    assert program.end() == 0
    assert beating() == 1
