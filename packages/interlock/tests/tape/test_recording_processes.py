"""`interlock record`: bytes, signals and exit codes pass as if it were not there."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pytest

from interlock import Client
from interlock.server.request_log import is_request_line
from interlock.tape import (
    ConnectionEnd,
    StderrText,
    TapeFile,
    replay_recording,
    server_process,
)

SERVER = """
import sys
from interlock import Server
server = Server("recorded", "1")
@server.tool
def greet(name: str) -> str:
    print("greeting", file=sys.stderr, flush=True)
    return f"Hello {name}"
server.run()
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")


def recording(path: Path, *command: str) -> list[str]:
    return [sys.executable, "-m", "interlock", "record", "-o", str(path), "--", *command]


@contextlib.contextmanager
def started(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.tape"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    return file


async def test_a_recorded_server_replays(path: Path, script: Path) -> None:
    """The client sees no difference, and the tape drives the same server again."""
    stderr: list[str] = []
    async with Client(
        recording(path, sys.executable, str(script)), on_stderr=stderr.append
    ) as client:
        assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello Ada"
    assert [line for line in stderr if not is_request_line(line)] == ["greeting"]
    with TapeFile(path) as tape:
        assert tape.problems == []
        assert tape.verify() == []
        assert tape.headers[0].about["command"] == [sys.executable, str(script)]
        lines = [line for _, line in tape.lines()]
        text = "".join(line.text for line in lines if isinstance(line, StderrText))
        assert text.splitlines() == stderr
        assert [line.code for line in lines if isinstance(line, ConnectionEnd)] == [0]
        conversation = tape.conversation()
    async with server_process([sys.executable, str(script)]) as channel:
        assert await replay_recording(conversation, channel) == []


def pass_through(path: Path, count: int) -> None:
    """Send messages through a server that repeats its input."""
    sent = b"".join(
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"search","arguments":'
        b'{"query":"the %d-th of many","limit":10},"_meta":{"progressToken":%d}}}\n' % (n, n, n)
        for n in range(count)
    )
    with started(recording(path, "cat")) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def feed(stdin: IO[bytes] = process.stdin) -> None:
            stdin.write(sent)
            stdin.close()

        feeder = threading.Thread(target=feed)
        feeder.start()
        got = process.stdout.read()
        feeder.join()
        assert process.wait() == 0
    assert got == sent
    with TapeFile(path) as tape:
        assert tape.verify() == []
        for sender in ("client", "server"):
            ids = [row.id for row in tape.rows if row.sender == sender]
            assert ids == list(range(count))


def test_bytes_pass_in_order(path: Path) -> None:
    pass_through(path, 5_000)


@pytest.mark.endurance(seconds=60)
def test_a_million_messages_pass_in_order(path: Path) -> None:
    """And each of the two million is on the tape."""
    pass_through(path, 1_000_000)


def test_bytes_that_are_no_messages_pass(path: Path) -> None:
    """Empty lines, bytes that are not UTF-8, and a last line without its end."""
    sent = b'\n\n{"a":1}\r\n\xff\xfe\n   \n{"half'
    with started(recording(path, "cat")) as process:
        got, _ = process.communicate(sent)
        assert got == sent
    with TapeFile(path) as tape:
        frames = [line.frame for line in tape.conversation() if line.sender == "client"]
    assert frames == [b'{"a":1}', b"\xff\xfe", b"   ", b'{"half']


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_code_is_passed_on(path: Path, code: int) -> None:
    with started(recording(path, "sh", "-c", f"echo bye >&2; exit {code}")) as process:
        _, stderr = process.communicate()
        assert process.returncode == code
        assert stderr == b"bye\n"
    with TapeFile(path) as tape:
        end = tape.read(tape.rows[-1])
        assert isinstance(end, ConnectionEnd)
        assert end.code == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_are_passed_on(path: Path, number: signal.Signals) -> None:
    """The server gets the signal, and the recorder ends by the same one."""
    with started(recording(path, "sh", "-c", "echo ready; exec cat")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait() == -number


def test_a_handled_signal_gives_the_servers_own_code(path: Path) -> None:
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "print('ready', flush=True)\n"
        "signal.pause()"
    )
    with started(recording(path, sys.executable, "-c", program)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        assert process.wait() == 7


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is of Linux")
def test_the_server_ends_with_a_killed_recorder(path: Path) -> None:
    """Even one that does not read its stdin: its end of a named pipe is closed when it ends."""
    alive = path.with_name("alive")
    os.mkfifo(alive)
    program = f"import signal\nalive = open({str(alive)!r}, 'w')\nsignal.pause()"
    with (
        started(recording(path, sys.executable, "-c", program)) as process,
        open(alive) as pipe,
    ):
        process.kill()
        process.wait()
        assert pipe.read() == ""


def test_an_unknown_command_is_named(path: Path) -> None:
    with started(recording(path, "no-such-program")) as process:
        _, stderr = process.communicate()
        assert process.returncode == 4
        assert b"no-such-program: No such file" in stderr


def test_the_recording_is_started_once_more(path: Path) -> None:
    """A host that restarts its server appends to the tape; two at a time write two."""
    with started(recording(path, "cat")) as one:
        assert one.stdin is not None
        assert one.stdout is not None
        one.stdin.write(b"{}\n")
        one.stdin.flush()
        assert one.stdout.readline() == b"{}\n"
        with started(recording(path, "cat")) as other:
            _, stderr = other.communicate(b"{}\n")
            assert b"session-2.tape" in stderr
        one.communicate()
    with started(recording(path, "cat")) as again:
        again.communicate(b"{}\n")
    with TapeFile(path) as tape:
        assert len(tape.headers) == 2
        assert tape.verify() == []
