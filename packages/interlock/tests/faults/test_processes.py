"""Real processes that die, hang, babble and flood: every call ends with an answer or an error, and
nothing is left running."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, ClientSettings, TimedOut, Unreachable
from tests.faults.programs import CLIENT, HONEST, MISBEHAVING

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="looks at /proc, which only Linux has"
)
PATIENCE = 30.0


@pytest.fixture
def honest(tmp_path: Path) -> list[str]:
    """The command of a server that does what it should."""
    (tmp_path / "honest.py").write_text(HONEST)
    return [sys.executable, str(tmp_path / "honest.py")]


@pytest.fixture
def misbehaving(tmp_path: Path) -> list[str]:
    """The command of a server that does what its next argument says."""
    (tmp_path / "misbehaving.py").write_text(MISBEHAVING)
    return [sys.executable, str(tmp_path / "misbehaving.py")]


@pytest.fixture(autouse=True)
def nothing_left() -> Any:
    """After each test there are as many open descriptors, threads and children as before."""
    before = state()
    yield
    for thread in threading.enumerate():
        if (
            "waitpid" in thread.name
        ):  # asyncio's own, for the programs that a test starts by itself: it ends a little later
            thread.join(PATIENCE)
    assert state() == before


def state() -> tuple[int, int, list[str]]:
    """How much this process holds."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    alive = [
        child
        for child in children
        if Path(f"/proc/{child}/cmdline").exists() and b"interlock-keep" not in cmdline(child)
    ]
    return len(os.listdir("/proc/self/fd")), threading.active_count(), alive


def cmdline(pid: str | int) -> bytes:
    """What a process runs; nothing once it has gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


async def gone(pid: int) -> None:
    """Wait until a process that is no child of ours has ended."""
    fd = os.pidfd_open(pid)
    try:
        await asyncio.to_thread(select.select, [fd], [], [], PATIENCE)
        assert not cmdline(pid)
    finally:
        os.close(fd)


async def test_a_server_that_is_killed_in_mid_call(honest):
    """Every call that waits is told, with the exit code; the next one finds a new process
    (`STD-15`, `ERR-21`)."""
    under_way = asyncio.Event()
    async with Client(honest) as client:
        pid = (await client.call_tool("pid")).value()
        calls = [
            asyncio.create_task(
                client.call_tool("wait_for_ever", on_progress=lambda _: under_way.set())
            )
            for _ in range(20)
        ]
        await under_way.wait()
        os.kill(pid, signal.SIGKILL)
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(outcome, Unreachable)
            assert outcome.exit_code == -signal.SIGKILL
        assert (await client.call_tool("add", {"a": 1, "b": 2})).value() == 3
        again = (await client.call_tool("pid")).value()
        assert again != pid
    assert not cmdline(pid)
    assert not cmdline(again)


async def test_a_client_that_is_killed_in_mid_call(honest, tmp_path):
    """Its server, whose input ends with it, ends by itself (`STD-09`)."""
    (tmp_path / "client.py").write_text(CLIENT)
    client = await asyncio.create_subprocess_exec(
        sys.executable, str(tmp_path / "client.py"), honest[-1], stdout=asyncio.subprocess.PIPE
    )
    assert client.stdout is not None
    server = int(await client.stdout.readline())
    assert await client.stdout.readline() == b"under way\n"
    fd = os.pidfd_open(server)
    try:
        client.kill()
        await client.wait()
        ready, _, _ = await asyncio.to_thread(select.select, [fd], [], [], PATIENCE)
        assert ready, "the server outlives its client"
    finally:
        os.close(fd)
        client._transport.close()  # type: ignore[attr-defined]  # the stream's pipe, which asyncio closes late


async def test_a_server_that_never_answers(misbehaving):
    """The wait ends when it should, and so does the server (`LIF-18`, `STD-07`)."""
    async with Client([*misbehaving, "silent"]) as client:
        with pytest.raises(TimedOut, match=r"within 0\.2 seconds"):
            await client.call_tool("anything", timeout=0.2)


async def test_a_server_that_never_even_opens():
    """A program that is no server: the probe and `initialize` give up, and the program is ended."""
    client = Client(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        settings=ClientSettings(probe_timeout=0.2),
        timeout=0.5,
    )
    with pytest.raises(Unreachable):
        await client.open()


async def test_a_server_that_answers_twice(misbehaving):
    """The second answer finds nobody (`CAN-07`), and the calls after it get their own."""
    async with Client([*misbehaving, "twice"]) as client:
        for name in ("one", "two", "three"):
            assert (await client.call_tool(name)).text == name


async def test_a_server_that_babbles(misbehaving):
    """Lines that are no messages are passed over; those that are count."""
    async with Client([*misbehaving, "garbage"]) as client:
        assert (await client.call_tool("still here")).text == "still here"


@pytest.mark.parametrize("how, code, words", [("half", 3, ""), ("dies", 7, "I give up")])
async def test_a_server_that_ends_before_it_has_answered(misbehaving, how, code, words):
    """Also in the middle of a line; its exit code and last words are told."""
    async with Client([*misbehaving, how]) as client:
        with pytest.raises(Unreachable) as caught:
            await client.call_tool("anything")
    assert caught.value.exit_code == code
    assert words in caught.value.stderr


async def test_a_message_of_fifty_megabytes_either_way(honest):
    """Below the limit it is a message like any other."""
    size = 50_000_000
    async with Client(honest) as client:
        assert (await client.call_tool("length", {"text": "x" * size})).value() == size
        assert len((await client.call_tool("text", {"size": size})).text) == size


async def test_a_message_over_the_limit_of_the_server(honest):
    """It is refused in words, costs no memory, and the messages after it are sound."""
    process = await asyncio.create_subprocess_exec(
        *honest,
        "1000000",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**20,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"x" * 50_000_000 + b'"}}\n'
    )
    process.stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
    refused = await process.stdout.readline()
    answered = await process.stdout.readline()
    assert b"-32600" in refused
    assert b"1000000 bytes" in refused
    assert answered == b'{"jsonrpc":"2.0","id":2,"result":{}}\n'
    process.stdin.close()
    assert await process.wait() == 0


async def test_a_message_over_the_limit_of_the_client(misbehaving):
    """Whose answer it was is not known, so whoever waits is told that a message was lost."""
    from interlock import Stdio

    async with Client(Stdio([*misbehaving, "huge", "5000000"], limit=1_000_000)) as client:
        with pytest.raises(Unreachable, match="was lost"):
            await client.call_tool("anything")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("tool", ["add", "double"])
async def test_a_thousand_calls_at_once(honest, tool, revision):
    """Each gets its own answer, also those that run in threads."""
    async with Client(honest, revision=revision) as client:
        arguments = [{"a": n, "b": n} if tool == "add" else {"n": n} for n in range(1000)]
        results = await asyncio.gather(*(client.call_tool(tool, given) for given in arguments))
    assert [result.value() for result in results] == [2 * n for n in range(1000)]


async def test_a_client_that_goes_away_in_the_middle(honest):
    """It leaves with calls of both kinds under way; the server ends and so do they (`LIF-24`)."""
    under_way = asyncio.Semaphore(0)
    async with Client(honest) as client:
        pid = (await client.call_tool("pid")).value()
        calls = [
            asyncio.create_task(client.call_tool(tool, on_progress=lambda _: under_way.release()))
            for tool in ("wait_for_ever", "block_for_ever")
        ]
        for _ in calls:
            await under_way.acquire()
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(outcome, Unreachable)
    assert not cmdline(pid)


async def test_nothing_but_messages_on_the_wire(honest):
    """Neither `print` nor a program that a tool starts can break it (`STD-02`)."""
    async with Client(honest) as client:
        assert (await client.call_tool("noise")).text == "quiet"
        assert (await client.call_tool("add", {"a": 1, "b": 2})).value() == 3


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff\xfe\x00",
        b"{",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"ping"',
        b"null",
        b'{"jsonrpc":"1.0","id":1}',
        b"\x00" * 1000,
    ],
    ids=[
        "no text",
        "half an object",
        "a deep array",
        "half a message",
        "null",
        "another version",
        "nothing but zeros",
    ],
)
def test_garbage_on_the_way_in(honest, garbage):
    """It is answered with an error, and the messages after it are served."""
    sent = garbage + b'\n{"jsonrpc":"2.0","id":"after","method":"ping"}\n'
    done = subprocess.run(honest, input=sent, capture_output=True, timeout=PATIENCE, check=False)
    *errors, last = done.stdout.splitlines()
    assert last == b'{"jsonrpc":"2.0","id":"after","result":{}}'
    assert all(b'"error"' in line for line in errors)
    assert len(errors) == 1
    assert done.returncode == 0


def test_a_last_line_without_its_end(honest):
    """What came before the end of input is answered before the server goes."""
    done = subprocess.run(
        honest,
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


@pytest.mark.endurance(seconds=6)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_memory_stays_flat_over_a_hundred_thousand_calls(honest, revision):
    """What a call needs is given back: a tenth of the calls settles what is kept for good, the rest
    adds nothing to speak of."""
    async with Client(honest, revision=revision) as client:

        async def calls(count: int) -> None:
            for start in range(0, count, 100):
                await asyncio.gather(
                    *(client.call_tool("add", {"a": n, "b": 1}) for n in range(start, start + 100))
                )

        await calls(10_000)
        before = (await client.call_tool("memory")).value()
        held = (await client.call_tool("descriptors")).value()
        await calls(90_000)
        after = (await client.call_tool("memory")).value()
        assert (await client.call_tool("descriptors")).value() == held
        assert after - before < 4 * 1024 * 1024
