"""Real processes under floods: spoiled frames by the thousand, peers that do not read, and peers
that leave in the middle of a line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Unreachable
from tests.faults.programs import HONEST
from tests.protocol.frames import answer, initialize, request, stamped
from tests.protocol.mutations import Mutator

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="looks at /proc, which only Linux has"
)
PATIENCE = 60.0
MB = 1024 * 1024

# Answers the probe and then calls by the book, but says all the lines of a file before each answer.
FLOODING = """
import json, sys
flood = open(sys.argv[1], "rb").read()
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"content": [{"type": "text", "text": "still here"}]}
    if message["method"] == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    else:
        sys.stdout.buffer.write(flood)
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", "id": message["id"],
        "result": result}).encode() + b"\\n")
    sys.stdout.flush()
"""


class Wire:
    """An honest server as a child process, and the raw ends of its pipes."""

    def __init__(self, folder: Path) -> None:
        (folder / "honest.py").write_text(HONEST, encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, str(folder / "honest.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin = self.process.stdin
        self.stdout = self.process.stdout

    def say(self, *frames: bytes) -> None:
        self.stdin.write(b"".join(frame + b"\n" for frame in frames))
        self.stdin.flush()

    def until(self, id: Any) -> dict[str, Any]:
        """Read up to the answer with an id."""
        for line in self.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == id and "method" not in message:
                return message
        raise AssertionError("the server has closed")

    def resident(self) -> int:
        """Bytes of memory that the server has in use."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )

    def close(self) -> int:
        """Hang up; the exit code."""
        self.stdin.close()
        self.stdout.close()
        return self.process.wait(PATIENCE)


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    """An honest server, held by hand; it is gone after the test."""
    wire = Wire(tmp_path)
    yield wire
    if wire.process.poll() is None:
        wire.process.kill()
    wire.process.wait(PATIENCE)
    for stream in (wire.stdin, wire.stdout):
        with contextlib.suppress(BrokenPipeError):
            stream.close()


def harmless(frame: bytes) -> bytes:
    """A spoiled frame as one line that opens no session and calls nothing, so that only the reading
    of it is tried."""
    line = frame.replace(b"\n", b"")
    return b"" if b"initialize" in line or b'"tools/call"' in line else line


def test_spoiled_frames_do_not_bring_a_server_down(wire: Wire) -> None:
    """Ten thousand of them on the pipe, in pieces that end anywhere: it answers what can be
    answered, and serves on (`RPC-09`)."""
    wire.say(initialize("hello", "2025-11-25"))
    wire.until("hello")
    flood = b"".join(harmless(frame) + b"\n" for frame in Mutator(21).frames(10_000))
    reader = subprocess.Popen(["true"])
    reader.wait()
    for start in range(0, len(flood), 30_011):
        wire.stdin.write(flood[start : start + 30_011])
        wire.stdin.flush()
        while select.select([wire.stdout], [], [], 0)[0] and os.read(wire.stdout.fileno(), MB):
            pass
    wire.say(stamped("after", "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}))
    os.set_blocking(wire.stdout.fileno(), True)
    seen = b""
    while b'"after"' not in seen[-100_000:]:
        more = os.read(wire.stdout.fileno(), MB)
        assert more, "the server has gone"
        seen += more
    assert wire.close() == 0


async def test_spoiled_frames_do_not_bring_a_client_down(tmp_path: Path) -> None:
    """Thousands of them before each answer; it reads the answer (`RPC-09`, `ERR-21`)."""
    flood = [
        frame.replace(b"\n", b"").replace(b'"id":', b'"id":7777')
        for frame in Mutator(22).frames(4_000)
    ]  # none of our ids
    (tmp_path / "flood").write_bytes(b"".join(frame + b"\n" for frame in flood))
    (tmp_path / "flooding.py").write_text(FLOODING, encoding="utf-8")
    async with Client(
        [sys.executable, str(tmp_path / "flooding.py"), str(tmp_path / "flood")]
    ) as client:
        for _ in range(3):
            assert (await client.call_tool("anything")).text == "still here"


def test_a_client_that_does_not_read_and_then_goes_leaves_no_server(wire: Wire) -> None:
    """The server waits for it to read, and notices its going all the same (`STD-09`)."""
    wire.say(
        *(
            stamped(n, "tools/call", {"name": "text", "arguments": {"size": 4 * MB}})
            for n in range(8)
        )
    )
    select.select([wire.stdout], [], [], PATIENCE)
    wire.say(
        *(
            stamped(n, "tools/call", {"name": "text", "arguments": {"size": MB}})
            for n in range(8, 30)
        )
    )
    assert wire.close() == 0


def test_a_client_that_does_not_read_gets_everything_when_it_does(wire: Wire) -> None:
    """Nothing is lost, whatever was queued meanwhile."""
    wire.say(
        *(stamped(n, "tools/call", {"name": "text", "arguments": {"size": MB}}) for n in range(40))
    )
    sizes = {}
    for _ in range(40):
        message = json.loads(wire.stdout.readline())
        sizes[message["id"]] = len(message["result"]["content"][0]["text"])
    assert sizes == dict.fromkeys(range(40), MB)
    assert wire.close() == 0


@pytest.mark.parametrize(
    "half",
    [b"{", b'{"jsonrpc":"2.0","id":1,"method":"tools/ca', b"x" * (5 * MB)],
    ids=["brace", "message", "bulk"],
)
def test_a_client_that_goes_in_the_middle_of_a_line_leaves_no_server(
    wire: Wire, half: bytes
) -> None:
    """Half a line is no message; it is refused to nobody (`STD-09`, `LIF-24`)."""
    wire.stdin.write(half)
    wire.stdin.flush()
    assert wire.close() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_server_in_mid_call(wire: Wire, number: int) -> None:
    """Subscriptions end in good order, calls are cancelled, and it goes without an error of its own
    (`STD-07`)."""
    wire.say(
        stamped("listen", "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    )
    assert (
        json.loads(wire.stdout.readline())["method"] == "notifications/subscriptions/acknowledged"
    )
    wire.say(request("x", "ping"), stamped("stuck", "tools/call", {"name": "wait_for_ever"}))
    wire.until("x")
    wire.process.send_signal(number)
    assert wire.until("listen")["result"]["resultType"] == "complete"
    wire.stdin.close()
    assert wire.process.wait(PATIENCE) == 0


def test_a_server_forgets_what_was_asked_of_it_and_given_up(wire: Wire) -> None:
    """Calls that are cancelled as soon as they are made, and subscriptions to nothing, twenty
    thousand of each: no memory is kept.

    (`CAN-05`, `SUB-01`)
    """
    wire.say(initialize("hello", "2025-11-25"))
    wire.until("hello")

    def trouble(start: int, number: int) -> None:
        for n in range(start, start + number, 100):
            for id in range(n, n + 100):
                wire.say(
                    request(id, "tools/call", {"name": "wait_for_ever"}),
                    (
                        b'{"jsonrpc":"2.0","method":"notifications/cancelled",'
                        b'"params":{"requestId":%d}}'
                    )
                    % id,
                    request(f"s{id}", "resources/subscribe", {"uri": f"x:{id}"}),
                )
            wire.say(request(f"p{n}", "ping"))
            wire.until(f"p{n}")

    trouble(0, 10_000)  # what the interpreter keeps for good settles
    before = wire.resident()
    trouble(10_000, 20_000)
    assert wire.resident() - before < 4 * MB
    assert wire.close() == 0


async def test_a_server_that_is_killed_while_it_asks(tmp_path: Path) -> None:
    """The person's dialogue is closed, and the call ends with an error (`CAN-05`, `ERR-21`)."""
    asking = """
import asyncio, os
from interlock import Context, Server
server = Server("asking")

@server.tool
async def ask(ctx: Context) -> str:
    return await ctx.elicit(f"{os.getpid()}", str)

server.run()
"""
    (tmp_path / "asking.py").write_text(asking, encoding="utf-8")
    closed = asyncio.Event()

    async def person(params: Any) -> Any:
        os.kill(int(params.message), signal.SIGKILL)
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()

    async with Client(
        [sys.executable, str(tmp_path / "asking.py")], revision="2025-11-25", elicit=person
    ) as client:
        with pytest.raises(Unreachable) as caught:
            await client.call_tool("ask")
        assert caught.value.exit_code == -signal.SIGKILL
    await closed.wait()


async def test_clients_that_come_and_go_leave_nothing(tmp_path: Path) -> None:
    """Neither descriptors nor processes, in good order and in bad."""
    (tmp_path / "honest.py").write_text(HONEST, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "honest.py")]

    async def come_and_go(n: int) -> None:
        async with Client(command) as client:
            pid = (await client.call_tool("pid")).value()
            if n % 3 == 1:
                os.kill(pid, signal.SIGKILL)
            if n % 3 == 2:
                call = asyncio.create_task(client.call_tool("wait_for_ever"))
                await asyncio.sleep(0)
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
        assert str(pid) not in os.listdir("/proc")

    await come_and_go(0)
    before = len(os.listdir("/proc/self/fd"))
    for n in range(6):
        await come_and_go(n)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_answers_of_a_peer_that_was_never_asked_do_nothing(wire: Wire) -> None:
    """A flood of responses is passed over in silence (`CAN-07`)."""
    wire.say(*(answer(n, {"roots": []}) for n in range(5_000)), request("after", "ping"))
    assert json.loads(wire.stdout.readline())["id"] == "after"
    assert wire.close() == 0
