"""`--sandbox` of the commands that start a server, and servers of a project's file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Program
from tests.sandbox.cells import need

READER = '''
from pathlib import Path
from interlock import Server

server = Server("reader")


@server.tool
def read(path: str) -> str:
    """Read a file."""
    try:
        return Path(path).read_text()
    except OSError as bad:
        return type(bad).__name__
'''


@pytest.fixture
def project(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a server, beside a secret."""
    need("bubblewrap")
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "reader.py").write_text(READER)
    (folder / "note").write_text("a note")
    monkeypatch.chdir(folder)
    return folder


def test_a_command_is_confined_on_request(
    interlock: Command, project: Path, tmp_path: Path
) -> None:
    """The whole command line of a server, and a file."""
    secret = f"path={tmp_path / 'secret'}"
    served = ["--", sys.executable, "-m", "interlock", "run", "reader.py"]
    assert interlock("call", "read", secret, *served).stdout == "secret\n"
    assert interlock("call", "--sandbox", "read", secret, *served).stdout == "FileNotFoundError\n"
    assert interlock("call", "--sandbox", "reader.py", "read", "path=note").stdout == "a note\n"
    allowed = ["--sandbox-allow", f"read={tmp_path / 'secret'}"]
    assert interlock("call", *allowed, "reader.py", "read", secret).stdout == "secret\n"


def test_run_confines_the_server_itself(
    program_run: Program, interlock: Command, project: Path, tmp_path: Path
) -> None:
    """`interlock run --sandbox` serves from within; over HTTP it is refused."""
    served = ["--", sys.executable, "-m", "interlock", "run", "--sandbox", "reader.py"]
    assert interlock("call", "read", "path=note", *served).stdout == "a note\n"
    secret = f"path={tmp_path / 'secret'}"
    assert interlock("call", "read", secret, *served).stdout == "FileNotFoundError\n"
    refused = interlock("run", "--sandbox", "reader.py", "--http", ":0")
    assert (refused.exit_code, "--sandbox is for --transport stdio" in refused.stderr) == (2, True)


def test_a_server_of_a_project_is_confined(
    interlock: Command, project: Path, tmp_path: Path
) -> None:
    """By default; an entry or an option switches it off, and the question before the start says
    what holds.
    """
    entry = {"command": sys.executable, "args": ["-m", "interlock", "run", "reader.py"]}
    written = project / ".mcp.json"
    written.write_text(json.dumps({"mcpServers": {"s": entry}}))
    call = ["call", "--config", ".mcp.json", "read", f"path={tmp_path / 'secret'}"]
    question = interlock(*call).stderr
    assert "it runs in a sandbox (network: public addresses)" in question
    assert interlock(*call, "--trust").stdout == "FileNotFoundError\n"
    assert interlock(*call, "--trust", "--no-sandbox").stdout == "secret\n"
    whole = interlock(*call, "--trust", "--inherit-env")
    assert "passes named variables only" in whole.stderr
    written.write_text(json.dumps({"mcpServers": {"s": {**entry, "sandbox": False}}}))
    assert "so it would run unconfined" in interlock(*call).stderr
    assert interlock(*call, "--trust").stdout == "secret\n"


@pytest.mark.parametrize(
    "words, said",
    [
        (["--sandbox", "--inherit-env"], "named variables only"),
        (["--sandbox-allow", "colour=red"], "--sandbox-allow takes read="),
        (["--sandbox-allow", "memory=lots"], "memory must be a size"),
        (["--sandbox-allow", "cpu=much"], "takes a whole number"),
        (["--no-sandbox", "--sandbox-allow", "read=/"], "leave out --no-sandbox"),
    ],
)
def test_options_that_are_refused(interlock: Command, words: list[str], said: str) -> None:
    """With words, and nothing is started."""
    result = interlock("ping", *words, "--", "true")
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
