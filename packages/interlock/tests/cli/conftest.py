"""How a test uses the command: in its own process where it can, as a program where it must, always
far from the person's own files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interlock.cli.program import program
from tests.cli.programs import EVERYDAY, QUESTIONS, listening

Command = Callable[..., Result]
Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for whatever looks for one, and the working folder."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in (
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
        "CODEX_HOME",
        "APPDATA",
        "LOCALAPPDATA",
        "INTERLOCK_VAULT",
        "INTERLOCK_VAULT_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def interlock(home: Path) -> Command:
    """The command, run in this process; gives click's result with stdout, stderr and exit code."""

    def run(*words: str | Path, stdin: str = "") -> Result:
        return CliRunner().invoke(
            program, [str(word) for word in words], input=stdin, catch_exceptions=False
        )

    return run


@pytest.fixture
def program_run(home: Path) -> Program:
    """The command as a program."""

    def run(*words: str | Path, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "interlock", *map(str, words)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, **env},
        )

    return run


@pytest.fixture
def everyday(tmp_path: Path) -> Path:
    """A server with a little of everything."""
    return _written(tmp_path / "everyday.py", EVERYDAY)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """A server whose tools ask."""
    return _written(tmp_path / "questions.py", QUESTIONS)


@pytest.fixture(scope="session")
def everyday_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running server of everyday.py, for tests that need not start one each."""
    with listening(tmp_path_factory.mktemp("everyday") / "everyday.py", EVERYDAY) as address:
        yield address


@pytest.fixture(scope="session")
def questions_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running server of questions.py, likewise."""
    with listening(tmp_path_factory.mktemp("questions") / "questions.py", QUESTIONS) as address:
        yield address


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
