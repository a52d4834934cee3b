"""The server of a file starts while its command is loaded, and does nothing until it is asked."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from interlock.transport.spawn import SpawnedProcess, release, spawn, spawn_ahead
from tests.cli.conftest import Program

SERVER = """
import os
import sys
from pathlib import Path

from interlock import Server

with Path(__file__).with_name("loads").open("a") as loads:
    loads.write("loaded\\n")
server = Server("s")


@server.tool
async def command() -> str:
    return " ".join([*sys.orig_argv, os.environ.get("SOME_WORD", "")])
"""

# writes a word when it has read a byte from stdin, and another one at the end
WAITING = [
    sys.executable,
    "-c",
    "import os; print('go' if os.read(0, 1) else 'unused', flush=True); os.read(0, 1)",
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A server that counts how often its file is loaded."""
    path = tmp_path / "counted.py"
    path.write_text(SERVER, encoding="utf-8")
    return path


def loads(file: Path) -> int:
    """How often the file was loaded."""
    found = file.with_name("loads")
    return len(found.read_text().splitlines()) if found.exists() else 0


@pytest.mark.parametrize(
    "target, is_early", [("{path}", True), ("./../counted.py", True), ("{path}:server", False)]
)
def test_the_file_is_loaded_once(
    file: Path, program_run: Program, target: str, is_early: bool
) -> None:
    """With a head start or without, the server runs as its command says."""
    result = program_run("call", target.format(path=file), "command")
    assert result.returncode == 0, result.stderr
    assert (" --held " in result.stdout) is is_early
    assert loads(file) == 1


def test_a_wrong_line_loads_nothing(file: Path, program_run: Program) -> None:
    """Although the child has started by then."""
    assert program_run("list", file, "--unknown").returncode == 2
    assert loads(file) == 0


def test_a_held_server_loads_nothing_before_its_first_byte(
    file: Path, program_run: Program
) -> None:
    """At the end of stdin it ends without having loaded anything."""
    command = ("run", "--dev", "--no-reload", "--held", file)
    assert program_run(*command).returncode == 0
    assert loads(file) == 0
    assert program_run(*command, stdin="\n").returncode == 0
    assert loads(file) == 1


def test_named_variables_reach_the_server(file: Path, program_run: Program) -> None:
    """They make another environment, so there is no head start."""
    result = program_run("call", file, "command", "--env", "SOME_WORD=here")
    assert result.stdout.split()[-1] == "here", result.stderr
    assert loads(file) == 1


def end(spawned: SpawnedProcess) -> str:
    """Close the stdin of a process; return what it has written."""
    os.close(spawned.write_end)
    os.close(spawned.read_end)
    with spawned.process as process:
        written, _ = process.communicate(timeout=60)
    return written.decode().strip()


def test_spawn_returns_what_was_started_ahead() -> None:
    """Once, for the same command and environment, and released before."""
    env = {**os.environ, "A": "1"}
    spawn_ahead(["it"], env, WAITING)
    release(["another"], env)
    release(["it"], env)
    spawned = spawn(["it"], env, None)
    assert end(spawned) == "go"
    with pytest.raises(FileNotFoundError):
        spawn(["it"], env, None)


def test_another_environment_or_folder_starts_another_process(tmp_path: Path) -> None:
    """The first one is still there for who asks for it."""
    spawn_ahead(WAITING, os.environ, WAITING)
    others = [spawn(WAITING, {**os.environ, "A": "1"}, None), spawn(WAITING, os.environ, tmp_path)]
    first = spawn(WAITING, os.environ, None)
    assert len({each.process.pid for each in (first, *others)}) == 3
    assert [end(each) for each in (first, *others)] == ["unused"] * 3
