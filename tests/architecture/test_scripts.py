"""The scripts behind `make check-all-pythons` and `make test-busy` find interpreters and test
files, and report what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import busy, pythons


def program(place: Path, words: str, status: int = 0) -> Path:
    """A program that prints a text and exits."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\necho '{words}'\nexit {status}\n")
    place.chmod(0o755)
    return place


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty PATH, except the shell's builtins, and without pyenv."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'a'}{os.pathsep}{tmp_path / 'b'}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    return tmp_path


def test_an_interpreter_is_found_on_the_path_or_in_pyenv(machine: Path) -> None:
    """One for each version: failing shims and programs that are not a released CPython are skipped,
    and the newest version in pyenv is used."""
    program(machine / "a/python3.12", "pyenv: python3.12: command not found", 127)
    on_path = program(machine / "b/python3.12", "3 12 cpython final")
    program(machine / "home/.pyenv/versions/3.12.9/bin/python3.12", "3 12 cpython final")
    program(machine / "home/.pyenv/versions/3.13.9/bin/python3.13", "3 13 cpython final")
    newest = program(machine / "home/.pyenv/versions/3.13.10/bin/python3.13", "3 13 cpython final")
    program(machine / "b/python3.14", "3 14 cpython alpha")
    program(machine / "home/.pyenv/versions/pypy3.11/bin/python3.11", "3 11 pypy final")
    assert pythons.interpreters(pythons.SUPPORTED) == {(3, 12): on_path, (3, 13): newest}


def test_a_missing_interpreter_is_named_and_is_no_failure(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If no interpreter is found, the script tests nothing and says so."""
    monkeypatch.setattr(sys, "argv", ["pythons.py"])
    assert pythons.main() == 0
    said = capsys.readouterr().out
    own = sys.version_info[:2]
    for version in pythons.SUPPORTED:
        if version != own:
            assert f"Python 3.{version[1]}: NOT FOUND" in said
    assert "Not tested, because no interpreter was found" in said


@pytest.mark.parametrize(
    "source, found",
    [
        ("asyncio.timeout(3)", True),
        ("await wait_for(x, 1)", True),
        ("time.sleep(1)", True),
        ("Client(timeout=1)", True),
        ("Limits(idle_seconds=1)", True),
        ("assert timer", False),
        ("'timeout'", False),
    ],
)
def test_files_that_touch_the_clock(source: str, found: bool) -> None:
    """They are recognized by the names of functions, attributes and options."""
    assert busy.touches_clock(source) == found


@pytest.mark.skipif(sys.platform != "linux", reason="reads the children of a process in /proc")
def test_busy_loops_end_with_the_command() -> None:
    """They run beside the command and stop after it, and its exit status is returned."""
    script = (
        "import os, sys; "
        "print(open(f'/proc/{os.getppid()}/task/{os.getppid()}/children').read()); sys.exit(7)"
    )
    ran = subprocess.run(
        [
            sys.executable,
            busy.__file__,
            "--loops",
            "2",
            "--command",
            "--",
            sys.executable,
            "-c",
            script,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 7
    children = ran.stdout.split()
    assert len(children) == 3
    assert not any(Path(f"/proc/{child}").exists() for child in children)
