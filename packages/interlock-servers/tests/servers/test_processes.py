"""Bounded child processes: polled pipes, asyncio's streams, and processes for threads."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from io import FileIO
from pathlib import Path

import pytest

from interlock_servers import processes
from interlock_servers.processes import Pipe, blocking, both, read_output, running

ENV = {"PATH": os.environ.get("PATH", "")}
MEMORY = 2**40


def is_alive(pid: int) -> bool:
    """Whether a process still runs a moment later: one that is killed may take that long to go."""
    for _ in range(500):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat")
            if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except (ProcessLookupError, FileNotFoundError):
            return False
        time.sleep(0.01)
    return True


@pytest.fixture(params=[True, False], ids=["at once", "in the background"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes as this platform has them, and as asyncio has them."""
    if request.param and os.name != "posix":
        pytest.skip("this platform has the other way only")
    monkeypatch.setattr(processes, "_PIPES_ARE_POLLED", request.param)


@pytest.fixture(autouse=True)
async def nothing_stays() -> AsyncIterator[None]:
    """What was opened is closed."""
    folder = Path("/proc/self/fd")
    before = len(os.listdir(folder)) if folder.exists() else 0
    yield
    if folder.exists():
        assert len(os.listdir(folder)) <= before + 2  # what the loop itself may have opened since


async def test_what_is_fed_comes_back(tmp_path: Path) -> None:
    """Much more than a pipe holds, both ways at the same time."""
    data = os.urandom(3_000_000)
    async with running(
        [sys.executable, "-c", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"],
        cwd=tmp_path,
        env=ENV,
        memory=MEMORY,
        feed=data,
    ) as child:
        assert await read_output(child, len(data) + 1) == data
        assert await child.wait() == 0


async def test_who_does_not_read_is_not_waited_for(tmp_path: Path) -> None:
    """A process that ends without its input, one that leaves in the middle of its output, and one
    that says nothing.
    """
    async with running(
        ["true"], cwd=tmp_path, env=ENV, memory=MEMORY, feed=bytes(5_000_000)
    ) as child:
        assert await read_output(child, 1) == b""
        assert await child.wait() == 0
    async with running(["yes"], cwd=tmp_path, env=ENV, memory=MEMORY) as child:
        assert await read_output(child, 7) == b"y\ny\ny\ny"
    for _ in range(20):  # descriptors are given to others soon: nobody may watch one that is closed
        async with running(
            ["sleep", "600"], cwd=tmp_path, env=ENV, memory=MEMORY, feed=bytes(5_000_000)
        ) as child:
            waiting = asyncio.ensure_future(child.stderr.read(1))
            await asyncio.sleep(0)
            waiting.cancel()
        assert child.returncode is not None
        assert child.returncode < 0
    async with running(
        ["sh", "-c", "echo words >&2; exit 7"], cwd=tmp_path, env=ENV, memory=MEMORY
    ) as child:
        assert await child.stderr.read(100) == b"words\n"
        assert await child.wait() == 7


async def test_a_process_whose_output_is_full_is_ended(tmp_path: Path) -> None:
    """Its pipe is paused then, and asyncio would wait for the end of that pipe."""
    for _ in range(3):
        async with running(["yes"], cwd=tmp_path, env=ENV, memory=MEMORY) as child:
            assert await read_output(child, 7) == b"y\ny\ny\ny"
            # A stream has no event for the moment at which its buffer is full. How much is in it
            # then depends on how much was there before the first read.
            while not getattr(child.stdout, "_paused", True):  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert child.returncode is not None
        assert child.returncode < 0


async def test_who_still_reads_when_it_is_over_is_told(tmp_path: Path) -> None:
    """Nobody waits for what nobody will write, and no descriptor is watched once it is
    another's.
    """
    async with running(["sleep", "600"], cwd=tmp_path, env=ENV, memory=MEMORY) as child:
        readers = [
            asyncio.ensure_future(child.stdout.read(1)),
            asyncio.ensure_future(child.stderr.read(1)),
        ]
        await asyncio.sleep(0)
    done, left = await asyncio.wait(readers, timeout=10)
    assert not left
    assert all(one.cancelled() or one.result() == b"" for one in done)


async def test_a_pipe_that_is_closed_is_not_watched() -> None:
    """Whoever waits for it waits no more, also where nothing else happens on the loop before it is
    closed.
    """
    given, taken = os.pipe()
    pipe = Pipe(FileIO(given))
    reading = asyncio.ensure_future(pipe.read(1))
    await asyncio.sleep(0)
    pipe.close()
    os.close(taken)
    assert (await asyncio.wait([reading], timeout=10))[1] == set()
    assert reading.cancelled()


async def test_one_that_fails_ends_the_other(tmp_path: Path) -> None:
    """Of two at the same time: neither stays, and what the first has to say is said."""
    ended = asyncio.Event()

    async def long() -> None:
        try:
            async with running(["sleep", "600"], cwd=tmp_path, env=ENV, memory=MEMORY) as child:
                await child.wait()
        finally:
            ended.set()

    async def bad() -> None:
        async with running(["false"], cwd=tmp_path, env=ENV, memory=MEMORY) as child:
            raise ValueError(await child.wait())

    with pytest.raises(ValueError, match="1"):
        await both(long(), bad())
    assert ended.is_set()


async def test_what_cannot_be_started(tmp_path: Path) -> None:
    """Is said, and nothing stays open."""
    with pytest.raises(OSError, match="No such file"):
        async with running([str(tmp_path / "nothing")], cwd=tmp_path, env=ENV, memory=MEMORY):
            pass


async def test_no_process_of_the_group_stays(tmp_path: Path) -> None:
    """What a program has started is killed with it, also where the program itself has ended."""
    script = "sleep 600 & echo $!; exec sleep 600"
    async with running(["sh", "-c", script], cwd=tmp_path, env=ENV) as child:
        started = int((await child.stdout.read(20)).split()[0])
    assert not await asyncio.to_thread(is_alive, started)


def test_a_thread_stops_waiting(tmp_path: Path) -> None:
    """A blocking read asks between two looks whether to go on; what was started is gone after the
    block.
    """
    with blocking(["sh", "-c", "echo $$; exec sleep 600"]) as child:
        assert (line := child.read(lambda: False)) is not None
        assert child.read(lambda: True) is None
    assert not is_alive(int(line))
    with blocking(["cat"], fed=True) as child:
        child.write(b"words")
        assert child.read(lambda: False) == b"words"
    with blocking(["sh", "-c", "exit 3"]) as child:
        assert child.read(lambda: False) == b""
        assert child.wait() == 3
