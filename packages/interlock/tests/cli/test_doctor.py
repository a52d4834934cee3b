"""`interlock doctor` and `interlock lint`: what they print, their exit codes, what they start."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cli.conftest import Command
from tests.doctor.faulty import SILENT, SOUND, command_of, offering, tool

CLEAN = '''
from interlock import Server, ToolAnnotations

server = Server("clean", "1")

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(first: int, second: int) -> int:
    """Add two numbers.

    Args:
        first: One number.
        second: The other number.
    """
    return first + second
'''


def written(path: Path, text: str) -> Path:
    """Write a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_clean_file(interlock: Command, tmp_path: Path) -> None:
    """One line for each part, and exit code 0."""
    result = interlock("doctor", written(tmp_path / "clean.py", CLEAN))
    assert result.exit_code == 0, result.output
    words = [line.split()[0] for line in result.stdout.splitlines()[1:] if line]
    parts = ["command", "start", "connection", "catalogue"]
    assert [word for word in words if word in parts] == parts
    assert "error" not in words


def test_a_fault_has_its_rule_and_what_to_do(interlock: Command, tmp_path: Path) -> None:
    """Exit code 1."""
    result = interlock("doctor", "--", *command_of(tmp_path, offering(tool(name="delete note"))))
    assert result.exit_code == 0, "warnings are no errors"
    assert "warning  tool-name  delete note" in result.stdout
    assert "Use 1 to 128 of A-Z" in result.stdout
    assert result.stdout.endswith(" warnings.\n")
    result = interlock("doctor", "--", sys.executable, tmp_path / "none.py")
    assert result.exit_code == 1
    assert "error    script-not-found" in result.stdout
    assert "not checked: the command cannot be started" in result.stdout
    assert result.stdout.endswith("1 error.\n")


def test_json(interlock: Command, tmp_path: Path) -> None:
    """The whole report, for programs."""
    result = interlock("doctor", "--json", "--", "no-such-program-anywhere")
    data = json.loads(result.stdout)
    assert (result.exit_code, data["errors"], data["warnings"]) == (1, 1, 0)
    (found,) = data["reports"][0]["parts"][0]["diagnostics"]
    assert found["rule"] == "command-not-found"
    assert found["advice"]


def test_strict(interlock: Command, tmp_path: Path) -> None:
    """Warnings count as errors, for both commands."""
    command = command_of(tmp_path, offering(tool(description=None)))
    for name in ("doctor", "lint"):
        assert interlock(name, "--", *command).exit_code == 0
        assert interlock(name, "--strict", "--", *command).exit_code == 1


def test_lint(interlock: Command, tmp_path: Path) -> None:
    """Only the rules about the catalogue; exit code 4 for a server that cannot be reached."""
    plan = {**offering(tool(inputSchema={})), "noise": ["Hello!"]}
    result = interlock("lint", "--json", "--", *command_of(tmp_path, plan))
    data = json.loads(result.stdout)
    assert (result.exit_code, data["errors"]) == (1, 1)
    (part,) = data["reports"][0]["parts"]
    assert part["part"] == "catalogue"
    assert [found["rule"] for found in part["diagnostics"]] == ["schema-not-object"]
    assert interlock("lint", "--", "no-such-program-anywhere").exit_code == 4


def test_lint_counts_tokens(interlock: Command, tmp_path: Path) -> None:
    command = command_of(tmp_path, SOUND)
    result = interlock("lint", "--max-tokens", "10", "--", *command)
    assert "warning  token-cost" in result.stdout


def test_a_host(interlock: Command, home: Path, tmp_path: Path) -> None:
    """Named, or found because its configuration exists; its servers are started."""
    command, *arguments = command_of(tmp_path, SOUND)
    servers = {
        "sound": {"command": command, "args": arguments},
        "gone": {"command": "gone-program"},
    }
    written(home / ".cursor" / "mcp.json", json.dumps({"mcpServers": servers}))
    for words in (["cursor"], []):
        result = interlock("doctor", *words)
        assert result.exit_code == 1, result.output
        assert result.stdout.startswith("Cursor\n")
        assert "sound 1 answers after" in result.stdout
        assert "command-not-found  gone-program" in result.stdout


def test_nothing_is_started_with_no_start(interlock: Command, home: Path, tmp_path: Path) -> None:
    """The configuration is checked, and nothing runs."""
    mark = tmp_path / "started"
    script = written(tmp_path / "marked.py", f"open({str(mark)!r}, 'w')\n")
    servers = {"marked": {"command": sys.executable, "args": [str(script)]}}
    written(home / ".cursor" / "mcp.json", json.dumps({"mcpServers": servers}))
    assert interlock("doctor", "cursor", "--no-start").exit_code == 0
    assert not mark.exists()


def test_a_server_of_a_project_needs_a_yes(interlock: Command, home: Path, tmp_path: Path) -> None:
    """Its file may come from anyone: without a terminal nothing is started; --trust starts it."""
    command, *arguments = command_of(tmp_path, SOUND)
    servers = {"sound": {"command": command, "args": arguments, "sandbox": False}}
    path = written(tmp_path / "project" / ".mcp.json", json.dumps({"mcpServers": servers}))
    refused = interlock("doctor", "--config", path, "--server", "sound")
    assert refused.exit_code == 2
    assert "You have not allowed Interlock to start the server sound yet." in refused.stderr
    allowed = interlock("doctor", "--config", path, "--server", "sound", "--trust")
    assert allowed.exit_code == 0, allowed.output
    assert interlock("doctor", "--config", path, "--no-start").exit_code == 0


def test_a_server_that_is_silent(interlock: Command, tmp_path: Path) -> None:
    """The time limit is an option."""
    script = written(tmp_path / "silent.py", SILENT)
    result = interlock("doctor", "--timeout", "1", "--", sys.executable, script)
    assert result.exit_code == 1
    assert "there was no answer within 1 s" in result.stdout


def test_wrong_usage(interlock: Command, home: Path) -> None:
    """Code 2, and what to write instead."""
    for words, why in (
        ([], "No configuration of a known product was found here."),
        (["cursor", "--", "python"], "Name one target"),
        (["cursor", "vscode"], "Got unexpected words: vscode"),
        (["nothing.py"], "There is no file nothing.py"),
        (["cursor", "--trust"], "--trust is for --config and --server."),
        (["https://x.example/mcp", "--env", "A=b"], "are for servers that are started"),
        (["--revision", "2020-01-01", "cursor"], "Unknown revision 2020-01-01"),
    ):
        result = interlock("doctor", *words)
        assert (result.exit_code, why in " ".join(result.stderr.split())) == (2, True), (
            result.stderr
        )
