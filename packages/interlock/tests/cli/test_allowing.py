"""Before a project's configuration starts programs or sends secrets, the person is asked: as by the
host, and in one record with it.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.user_folder import trust_record_path
from interlock.configs import TrustRecord, approval_of, load_config
from interlock_apps.commands.approvals import open_approvals
from tests.cli.conftest import Command
from tests.cli.programs import STRANGER
from tests.cli.terminal import at_terminal

SECRET = "sk-live-1234567890"


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Path:
    """A project that somebody else wrote: its server leaves a mark when it is started."""
    (home / "stranger.py").write_text(
        f"open({str(tmp_path / 'started')!r}, 'a').write('x')\n{STRANGER}", encoding="utf-8"
    )
    _write(home, command=sys.executable, args=["stranger.py"], env={"API_TOKEN": "${API_TOKEN}"})
    return home


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret of the person's, which a project may name."""
    monkeypatch.setenv("API_TOKEN", SECRET)


def _write(folder: Path, **entry: Any) -> Path:
    """A configuration of a project. What it starts leaves a mark outside of its folder, so it runs
    without a sandbox.
    """
    path = folder / ".mcp.json"
    entry = {**entry, "sandbox": False} if "command" in entry else entry
    path.write_text(json.dumps({"mcpServers": {"docs": entry}}), encoding="utf-8")
    return path


def _starts(tmp_path: Path) -> int:
    started = tmp_path / "started"
    return len(started.read_text()) if started.exists() else 0


@pytest.mark.parametrize("by", [[], ["--config", ".mcp.json"]], ids=["found", "named"])
def test_nothing_is_started_unasked(
    interlock: Command, project: Path, tmp_path: Path, by: list[str]
) -> None:
    """Where nobody can be asked: code 2, all that a person has to know, and no secret
    (`SEC-17`).
    """
    result = interlock("list", *by, "--server", "docs")
    assert result.exit_code == 2
    assert _starts(tmp_path) == 0
    assert f"command: {sys.executable} stranger.py" in result.stderr
    assert "API_TOKEN=" in result.stderr
    assert SECRET not in result.stderr
    assert "You have not allowed Interlock to start the server docs yet." in result.stderr
    assert "--trust" in result.stderr
    assert "Usage:" not in result.stderr


def test_the_folder_of_a_command_is_shown(interlock: Command, project: Path) -> None:
    """A harmless name may be another program in another folder."""
    (project / "sub").mkdir()
    _write(project, command="server", cwd="sub")
    stderr = interlock("ping", "--server", "docs").stderr
    assert f"! {project / 'sub'}: The command runs in this folder." in stderr


def test_a_yes_at_the_terminal_holds(interlock: Command, project: Path, tmp_path: Path) -> None:
    """Asked once; a changed command is asked about anew; the host has the same answer."""
    command = ["ping", "--server", "docs"]
    shown, code = at_terminal(command, [("Start it? [y/N]", "n\n")])
    assert (code, _starts(tmp_path)) == (2, 0), shown
    assert "Nothing was started." in shown
    shown, code = at_terminal(command, [("Start it? [y/N]", "y\n")])
    assert (code, _starts(tmp_path)) == (0, 1), shown
    assert interlock(*command).exit_code == 0
    assert _starts(tmp_path) == 2

    path = project / ".mcp.json"
    (entry,) = load_config(path).entries
    host = open_approvals(project / "interlock.lock", here=path, places={})
    assert host.approved_command("docs", approval_of(entry))

    _write(project, command=sys.executable, args=["stranger.py", "--all"], env={})
    assert interlock(*command).exit_code == 2
    assert _starts(tmp_path) == 2


def test_what_the_host_was_allowed_needs_no_question(
    interlock: Command, project: Path, tmp_path: Path
) -> None:
    """Also where the server is from the second of several configurations."""
    path = project / ".mcp.json"
    (entry,) = load_config(path).entries
    host = open_approvals(
        project / "interlock.lock", here=tmp_path / "another.json", places={"docs": path}
    )
    host.approve_command("docs", approval_of(entry))
    assert interlock("ping", "--server", "docs").exit_code == 0
    assert _starts(tmp_path) == 1


def test_a_lock_of_the_project_allows_nothing(
    interlock: Command, project: Path, tmp_path: Path
) -> None:
    """It came with the project, and so it may say what the project wants (`SEC-17`)."""
    path = project / ".mcp.json"
    (entry,) = load_config(path).entries
    pins = {"interlock": "pins", "version": 1, "servers": {"docs": {"command": approval_of(entry)}}}
    (project / "interlock.lock").write_text(json.dumps(pins), encoding="utf-8")
    assert interlock("ping", "--server", "docs").exit_code == 2
    assert _starts(tmp_path) == 0


def test_trust_is_for_one_time(interlock: Command, project: Path, tmp_path: Path) -> None:
    """For scripts: it asks nothing and keeps nothing."""
    assert interlock("ping", "--server", "docs", "--trust").exit_code == 0
    assert _starts(tmp_path) == 1
    assert interlock("ping", "--server", "docs").exit_code == 2
    misplaced = interlock("ping", "--trust", project / "stranger.py")
    assert misplaced.exit_code == 2
    assert "--trust is for --config and --server." in misplaced.stderr


@pytest.mark.parametrize("own", [".cursor/mcp.json", ".claude.json"])
def test_the_configuration_of_an_own_client_needs_no_question(
    interlock: Command, project: Path, tmp_path: Path, own: str
) -> None:
    """Its client starts the server anyway, and no project has written it."""
    path = project / own
    path.parent.mkdir(exist_ok=True)
    path.write_text((project / ".mcp.json").read_text())
    result = interlock("ping", "--config", path, "--server", "docs")
    assert (result.exit_code, _starts(tmp_path)) == (0, 1), result.stderr


def test_no_secret_is_sent_unasked(interlock: Command, home: Path) -> None:
    """A header that a project fills with a variable of the person's, to a machine on plain http."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        port = listening.getsockname()[1]
        _write(home, url=f"http://127.0.0.1:{port}/mcp", headers={"X-L": "${API_TOKEN}"})
        result = interlock("list", "--server", "docs")
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert result.exit_code == 2
    assert f"address: http://127.0.0.1:{port}/mcp" in result.stderr
    assert "variables: API_TOKEN" in result.stderr
    assert SECRET not in result.stderr


@pytest.mark.parametrize(
    "url, headers, warned",
    [
        ("http://evil.example/mcp", {"X-L": "${API_TOKEN}"}, "X-L"),
        ("http://evil.example/mcp", {"Authorization": "Bearer abcdefgh"}, "Authorization"),
        ("http://evil.example/${API_TOKEN}", {}, "URL"),
        ("http://evil.example/mcp", {"X-Team": "blue"}, ""),
        ("https://evil.example/mcp", {"X-L": "${API_TOKEN}"}, ""),
        ("http://127.0.0.1:9/mcp", {"X-L": "${API_TOKEN}"}, ""),
    ],
)
def test_secrets_over_plain_http_are_called_out(
    interlock: Command, home: Path, url: str, headers: dict[str, str], warned: str
) -> None:
    """By the names of the headers; not for this machine, and not where nothing is secret."""
    _write(home, url=url, headers=headers)
    stderr = interlock("list", "--server", "docs").stderr
    assert ("over plain http" in stderr) is bool(warned)
    assert f"! {warned}: Secrets are sent over plain http" in stderr or not warned
    assert SECRET not in stderr


def test_the_record_is_the_persons_alone(project: Path) -> None:
    """A folder that nobody else may read, far from any project."""
    TrustRecord(trust_record_path()).allow(project / ".mcp.json", "docs", "x")
    assert trust_record_path().is_file()
    assert project / ".mcp.json" not in trust_record_path().parents
    if sys.platform != "win32":
        assert trust_record_path().parent.stat().st_mode & 0o077 == 0
