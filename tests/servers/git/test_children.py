"""How the git server reads the processes that it starts: both ways, whichever the platform has."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from io import FileIO
from pathlib import Path

import pytest

from interlock.servers.git import processes
from interlock.servers.git.children import Pipe
from interlock.servers.git.processes import both, output_of, started

ENV = {"PATH": os.environ.get("PATH", "")}
MEMORY = 2**40


@pytest.fixture(params=[True, False], ids=["at once", "in the background"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes as this platform has them, and as asyncio has them."""
    if request.param and os.name != "posix":
        pytest.skip("this platform has the other way only")
    monkeypatch.setattr(processes, "_AT_ONCE", request.param)


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
    async with started(
        [sys.executable, "-c", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"],
        tmp_path,
        ENV,
        data,
        MEMORY,
    ) as child:
        assert await output_of(child, len(data) + 1) == data
        assert await child.wait() == 0


async def test_who_does_not_read_is_not_waited_for(tmp_path: Path) -> None:
    """A process that ends without its input, one that leaves in the middle of its output, and one that says nothing."""
    async with started(["true"], tmp_path, ENV, bytes(5_000_000), MEMORY) as child:
        assert await output_of(child, 1) == b""
        assert await child.wait() == 0
    async with started(["yes"], tmp_path, ENV, None, MEMORY) as child:
        assert await output_of(child, 7) == b"y\ny\ny\ny"
    for _ in range(20):  # descriptors are given to others soon: nobody may watch one that is closed
        async with started(["sleep", "600"], tmp_path, ENV, bytes(5_000_000), MEMORY) as child:
            waiting = asyncio.ensure_future(child.stderr.read(1))
            await asyncio.sleep(0)
            waiting.cancel()
        assert child.returncode is not None
        assert child.returncode < 0
    async with started(
        ["sh", "-c", "echo words >&2; exit 7"], tmp_path, ENV, None, MEMORY
    ) as child:
        assert await child.stderr.read(100) == b"words\n"
        assert await child.wait() == 7


async def test_who_still_reads_when_it_is_over_is_told(tmp_path: Path) -> None:
    """Nobody waits for what nobody will write, and no descriptor is watched once it is another's."""
    async with started(["sleep", "600"], tmp_path, ENV, None, MEMORY) as child:
        readers = [
            asyncio.ensure_future(child.stdout.read(1)),
            asyncio.ensure_future(child.stderr.read(1)),
        ]
        await asyncio.sleep(0)
    done, left = await asyncio.wait(readers, timeout=10)
    assert not left
    assert all(one.cancelled() or one.result() == b"" for one in done)


async def test_a_pipe_that_is_closed_is_not_watched() -> None:
    """Whoever waits for it waits no more, also where nothing else happens on the loop before it is closed."""
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
            async with started(["sleep", "600"], tmp_path, ENV, None, MEMORY) as child:
                await child.wait()
        finally:
            ended.set()

    async def bad() -> None:
        async with started(["false"], tmp_path, ENV, None, MEMORY) as child:
            raise ValueError(await child.wait())

    with pytest.raises(ValueError, match="1"):
        await both(long(), bad())
    assert ended.is_set()


async def test_what_cannot_be_started(tmp_path: Path) -> None:
    """Is said, and nothing stays open."""
    with pytest.raises(OSError, match="No such file"):
        async with started([str(tmp_path / "nothing")], tmp_path, ENV, None, MEMORY):
            pass
