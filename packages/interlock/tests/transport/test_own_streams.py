"""A server's own standard streams: whatever it or its programs write, only messages reach the
wire.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.frames import stamped

PRELUDE = """
import asyncio, json, os, subprocess, sys
from interlock import Server

print("before the server was there")
server = Server("loud")

"""
LOUD = (
    PRELUDE
    + """
print("while it was made")

@server.tool
async def shout() -> str:
    print("from print")
    print("flushed", flush=True)
    sys.stdout.write("from sys.stdout")
    sys.stdout.buffer.write(b"from its buffer\\xff")
    os.write(1, b"from the descriptor\\n")
    subprocess.run([sys.executable, "-S", "-c", "print('from a child')"])
    subprocess.run("echo from a shell", shell=True)
    print("\\ud800 from half a sign")
    return "quiet"

@server.tool
def in_a_thread() -> str:
    print("from a thread")
    return "quiet"

@server.tool
async def listen() -> str:
    return repr(sys.stdin.read()) + repr(os.read(0, 10)) + subprocess.run(["cat"],
        capture_output=True, text=True).stdout

@server.tool
async def states() -> str:
    return json.dumps([os.get_blocking(n) for n in (0, 1, 2)])

server.run()
print("after it had ended")
"""
)


def run(
    folder: Path, program: str, *frames: bytes, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run a server over some requests, up to the end of its input."""
    (folder / "loud.py").write_text(program, encoding="utf-8")
    said = b"".join(frame + b"\n" for frame in frames)
    command = [sys.executable, str(folder / "loud.py")]
    return subprocess.run(
        command, input=said, capture_output=True, timeout=60, check=False, **options
    )


def calls(*names: str) -> list[bytes]:
    return [stamped(n, "tools/call", {"name": name}) for n, name in enumerate(names)]


def test_nothing_that_a_server_writes_reaches_the_wire(tmp_path: Path) -> None:
    """Neither what it prints, in any way and from any thread, nor what the programs it starts
    print; all of it goes to stderr.

    What it prints before and after it serves is its own affair (`STD-02`, `STD-04`).
    """
    done = run(tmp_path, LOUD, *calls("shout", "in_a_thread"))
    before, *answers, after = done.stdout.splitlines()[1:]
    assert before == b"while it was made"
    assert after == b"after it had ended"
    assert sorted(json.loads(line)["id"] for line in answers) == [0, 1]
    assert all(json.loads(line)["result"]["content"][0]["text"] == "quiet" for line in answers)
    for words in (
        b"from print",
        b"flushed",
        b"from sys.stdout",
        b"its buffer",
        b"the descriptor",
        b"a child",
        b"a shell",
        b"a thread",
    ):
        assert words in done.stderr
    assert done.returncode == 0


def test_a_tool_that_reads_input_finds_none(tmp_path: Path) -> None:
    """Messages are not for it, nor for the programs it starts (`STD-03`)."""
    done = run(tmp_path, LOUD, *calls("listen"))
    assert json.loads(done.stdout.splitlines()[2])["result"]["content"][0]["text"] == "''b''"


def test_the_streams_of_others_stay_as_they_were(tmp_path: Path) -> None:
    """Descriptors are shared with whoever started the server: what it did to its own must not stay
    on theirs.
    """
    read, write = os.pipe()
    (tmp_path / "loud.py").write_text(LOUD, encoding="utf-8")
    try:
        process = subprocess.Popen(
            [sys.executable, str(tmp_path / "loud.py")],
            stdin=subprocess.PIPE,
            stdout=write,
            stderr=subprocess.DEVNULL,
            close_fds=True,
        )
        process.communicate(b"".join(frame + b"\n" for frame in calls("shout")), timeout=60)
        assert process.returncode == 0
        assert os.get_blocking(write)
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.parametrize("form", ["file", "nothing"])
def test_input_and_output_may_be_files(form: str, tmp_path: Path) -> None:
    """As when somebody tries a server by hand: answered line by line, to the end of the file."""
    frames = calls("shout") if form == "file" else []
    (tmp_path / "in").write_bytes(b"".join(frame + b"\n" for frame in frames))
    (tmp_path / "loud.py").write_text(LOUD, encoding="utf-8")
    with open(tmp_path / "in", "rb") as given, open(tmp_path / "out", "wb") as taken:
        command = [sys.executable, str(tmp_path / "loud.py")]
        code = subprocess.run(
            command, stdin=given, stdout=taken, stderr=subprocess.DEVNULL, timeout=60, check=False
        ).returncode
    assert code == 0
    lines = (tmp_path / "out").read_bytes().splitlines()
    assert [json.loads(line)["id"] for line in lines if line.startswith(b"{")] == [0] * len(frames)


LONG = "does not let itself be cancelled"  # which takes a server some seconds to find out
STUCK: dict[str, str] = {
    # what a tool does when the client has gone
    "waits": "await asyncio.Event().wait()",
    "waits in a thread of asyncio's": "await asyncio.to_thread(time.sleep, 3600)",
    LONG: """
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass""",
}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(body, id=name, marks=[pytest.mark.slow] * (name == LONG))
        for name, body in STUCK.items()
    ],
)
def test_a_server_ends_when_its_client_has_gone_whatever_its_tools_do(
    body: str, tmp_path: Path
) -> None:
    """Nobody is left who could end it otherwise (`STD-09`)."""
    program = PRELUDE + (
        f"import time\n\n@server.tool\nasync def stuck() -> str:\n    {body.strip()}\n\n"
        "server.run()\n"
    )
    done = run(tmp_path, program, *calls("stuck"))
    assert b'"result"' not in done.stdout


def test_a_server_whose_tool_blocks_a_thread_ends_too(tmp_path: Path) -> None:
    """(`STD-09`)"""
    program = (
        PRELUDE
        + "import time\n\n@server.tool\ndef stuck() -> str:\n    time.sleep(3600)\n\nserver.run()\n"
    )
    assert run(tmp_path, program, *calls("stuck")).returncode == 0
