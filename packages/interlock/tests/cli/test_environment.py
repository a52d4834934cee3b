"""A server that is started gets a few harmless variables and those that were named; a file of the
person's own gets all.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.programs import STRANGER


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A server that tells its variable SECRET, which the person has."""
    monkeypatch.setenv("SECRET", "known")
    path = tmp_path / "stranger.py"
    path.write_text(STRANGER, encoding="utf-8")
    return path


OPTIONS: list[tuple[list[str], str | None]] = [
    ([], None),
    (["--env", "SECRET"], "known"),
    (["--env", "SECRET=other"], "other"),
    (["--env", "SECRET="], ""),
    (["--env", "OTHER=x"], None),
    (["--inherit-env"], "known"),
    (["--inherit-env", "--env", "SECRET=other"], "other"),
]


@pytest.mark.parametrize("options, got", OPTIONS, ids=[" ".join(words) for words, _ in OPTIONS])
@pytest.mark.parametrize("by", ["command", "configuration"])
def test_a_program_of_others(
    interlock: Command, stranger: Path, home: Path, options: list[str], got: str | None, by: str
) -> None:
    """By a command, and by a configuration: nothing that was not named."""
    command = [sys.executable, str(stranger)]
    if by == "command":
        result = interlock("call", "arguments", *options, "--", *command)
    else:
        entry = {"command": command[0], "args": command[1:], "sandbox": False}
        (home / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": entry}}))
        result = interlock("call", "arguments", *options, "--server", "s", "--trust")
    assert json.loads(result.stdout)[2] == got, result.stderr


def test_a_file_of_ones_own(interlock: Command, stranger: Path, everyday: Path) -> None:
    """Named as a file it has what `python FILE` and `interlock run FILE` have."""
    assert json.loads(interlock("call", stranger, "arguments").stdout)[2] == "known"
    assert interlock("call", everyday, "variable", "name=SECRET").stdout == "known\n"
    told = interlock("call", everyday, "variable", "name=SECRET", "--env", "SECRET=other")
    assert told.stdout == "other\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a file is a program by its mode on Unix only")
def test_a_program_named_as_a_file(interlock: Command, stranger: Path) -> None:
    """An executable is a program, wherever it lies."""
    program = stranger.with_name("program")
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{stranger}'\n", encoding="utf-8")
    os.chmod(program, 0o755)
    assert json.loads(interlock("call", program, "arguments").stdout)[2] is None


def test_a_server_that_dies_for_want_of_a_variable(
    interlock: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing is named, with the option that gives it; only where the person has it."""
    monkeypatch.setenv("SHOP_API_KEY", "known")
    monkeypatch.delenv("SHOP_OTHER", raising=False)
    for name in ("SHOP_API_KEY", "SHOP_OTHER"):
        command = [sys.executable, "-c", f"import os; os.environ['{name}']"]
        result = interlock("list", "--", *command)
        assert result.exit_code == 4
        assert ("--env SHOP_API_KEY" in result.stderr) is (name == "SHOP_API_KEY")
        assert "--env SHOP_OTHER" not in result.stderr


@pytest.mark.parametrize(
    "words, why",
    [
        (["--env", "=x", "--", "x"], "NAME or NAME=VALUE"),
        (["--env", "NOT_SET_ANYWHERE", "--", "x"], "there is no such variable here"),
        (["http://127.0.0.1:9/mcp", "--env", "A=b"], "for servers that are started"),
        (["tcp://127.0.0.1:9", "--inherit-env"], "for servers that are started"),
    ],
)
def test_wrong_usage(interlock: Command, words: list[str], why: str) -> None:
    """Code 2, and nothing is started."""
    result = interlock("list", *words)
    assert result.exit_code == 2
    assert why in result.stderr
