"""`interlock install` of commands and arguments, and its check that the server starts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.install.command import _command_name
from tests.cli.conftest import Command
from tests.cli.programs import STRANGER

NEEDS = """
import os
from interlock import Server

server = Server("needs", "3")
KEY = os.environ["SHOP_API_KEY"]
"""
ARGUED = """
import sys
from interlock import Server

server = Server("argued")

@server.tool
def told() -> list[str]:
    return sys.argv[1:]
"""


@pytest.fixture
def needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A server that cannot start without a variable, which the person has."""
    monkeypatch.setenv("SHOP_API_KEY", "s3cret")
    return _written(tmp_path / "needs.py", NEEDS)


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _cursor(home: Path) -> dict[str, Any]:
    path = home / ".cursor" / "mcp.json"
    found: dict[str, Any] = json.loads(path.read_text())["mcpServers"] if path.exists() else {}
    return found


def test_a_server_that_does_not_start_is_not_installed(
    interlock: Command, home: Path, needs: Path
) -> None:
    """Code 4, why, which variable it lacks, and what to do; the file is not even made."""
    result = interlock("install", needs, "--client", "cursor")
    assert result.exit_code == 4
    assert "The server does not start, so nothing was changed." in result.stderr
    assert "KeyError: 'SHOP_API_KEY'" in result.stderr
    assert "--env SHOP_API_KEY" in result.stderr
    assert "--no-check" in result.stderr
    assert "s3cret" not in result.output
    assert not (home / ".cursor").exists()


@pytest.mark.parametrize(
    "options, env",
    [
        (["--env", "SHOP_API_KEY"], {"SHOP_API_KEY": "s3cret"}),
        (["--env", "SHOP_API_KEY=other"], {"SHOP_API_KEY": "other"}),
        (["--no-check"], None),
    ],
    ids=["mine", "given", "unchecked"],
)
def test_with_what_it_needs_it_is(
    interlock: Command, home: Path, needs: Path, options: list[str], env: dict[str, str] | None
) -> None:
    """Who answered is said; what it was started with is in its entry."""
    result = interlock("install", needs, "--client", "cursor", *options)
    assert result.exit_code == 0, result.stderr
    assert ("needs 3 answers" in result.stderr) is (env is not None)
    assert _cursor(home)["needs"].get("env") == env


@pytest.mark.parametrize("option", ["--dry-run", "--remove"])
def test_nothing_is_started_for_a_look_or_to_take_out(
    interlock: Command, home: Path, tmp_path: Path, option: str
) -> None:
    """Neither needs to know whether it works."""
    mark = tmp_path / "started"
    server = _written(tmp_path / "marked.py", f"open({str(mark)!r}, 'w')\n")
    assert interlock("install", server, "--client", "cursor", option).exit_code == 0
    assert not mark.exists()


def test_arguments_of_a_file(interlock: Command, home: Path, tmp_path: Path) -> None:
    """What stands after two dashes is what the server finds, started by its client."""
    server = _written(tmp_path / "argued.py", ARGUED)
    words = ("install", server, "--client", "cursor", "--", "--units", "metric system")
    assert interlock(*words).exit_code == 0
    entry = _cursor(home)["argued"]
    assert entry["args"] == ["run", str(server), "--", "--units", "metric system"]
    told = interlock("call", "told", "--", entry["command"], *entry["args"])
    assert json.loads(told.stdout) == ["--units", "metric system"]
    assert interlock("install", server, "--client", "cursor", "--remove").exit_code == 0
    assert "argued" not in _cursor(home)


def test_a_command(interlock: Command, home: Path, tmp_path: Path) -> None:
    """Any program, found on the PATH and written with its whole path; it is ours to change and take
    out.
    """
    server = _written(tmp_path / "stranger.py", STRANGER)
    words = ["--client", "cursor", "--", sys.executable, str(server), "--flag"]
    result = interlock("install", *words)
    assert result.exit_code == 0, result.stderr
    assert "stranger 0 answers, and speaks 2024-11-05." in result.stderr
    assert _cursor(home)["stranger"] == {
        "command": sys.executable,
        "args": [str(server), "--flag"],
    }
    assert "nothing to do" in interlock("install", *words).stdout
    assert interlock("install", "--env", "A=b", *words).exit_code == 0
    assert _cursor(home)["stranger"]["env"] == {"A": "b"}
    assert interlock("install", "--remove", *words).exit_code == 0
    assert "stranger" not in _cursor(home)


@pytest.mark.skipif(sys.platform == "win32", reason="a file is a program by its mode on Unix only")
def test_a_program_is_written_with_its_whole_path(
    interlock: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that was not started from a shell has another PATH."""
    server = _written(tmp_path / "stranger.py", STRANGER)
    program = _written(tmp_path / "uvx", f"#!/bin/sh\nexec '{sys.executable}' '{server}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert interlock("install", "--client", "cursor", "--", "uvx", "mcp-server-git").exit_code == 0
    assert _cursor(home)["mcp-server-git"] == {
        "command": str(program),
        "args": ["mcp-server-git"],
    }


def test_what_works_only_in_this_folder_is_not_installed(
    interlock: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client has a working folder of its own."""
    _written(tmp_path / "stranger.py", STRANGER)
    monkeypatch.chdir(tmp_path)
    result = interlock("install", "--client", "cursor", "--", sys.executable, "stranger.py")
    assert result.exit_code == 4
    assert _cursor(home) == {}


COMMAND_NAMES = {
    "uvx mcp-server-git": "mcp-server-git",
    "uvx mcp-server-git==1.2": "mcp-server-git",
    "/usr/bin/uvx tool[extra]@latest --flag": "tool",
    "npx -y @modelcontextprotocol/server-memory": "server-memory",
    "npx @scope/name@1.2": "name",
    "uv run /code/notes/server.py": "notes",
    "python /code/weather.py": "weather",
    "my-server --flag": "my-server",
    "python -m": "python",
}


@pytest.mark.parametrize("command", COMMAND_NAMES)
def test_what_a_command_is_called(command: str) -> None:
    """By the package that it runs, or the script, or the program."""
    assert _command_name(command.split()) == COMMAND_NAMES[command]


@pytest.mark.parametrize(
    "words, why",
    [
        (["--client", "zed", "--", "no-such-program-anywhere"], "There is no program"),
        (["--client", "zed"], "-- COMMAND"),
        (["uvx mcp-server-git", "--client", "zed"], "after --: -- uvx mcp-server-git"),
        (
            ["https://x.example/mcp", "--client", "zed", "--", "--a"],
            "Arguments after -- are for a server",
        ),
        (["x.py", "--client", "zed", "--env", "=b"], "--env takes NAME or NAME=VALUE"),
    ],
)
def test_wrong_usage(interlock: Command, home: Path, words: list[str], why: str) -> None:
    """Code 2, and what to write instead."""
    result = interlock("install", *words)
    assert result.exit_code == 2
    assert why in " ".join(result.stderr.split())
