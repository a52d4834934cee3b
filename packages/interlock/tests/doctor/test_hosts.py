"""Hosts: their configurations are read as they read them, and their logs are found and quoted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from interlock.configs import PRODUCTS, Machine
from interlock.doctor import ExamineOptions, examine_host, installed_hosts
from interlock.doctor.gather.host_logs import LOG_PLACES, errors_in, log_facts
from tests.doctor.faulty import PYTHON, SOUND, command_of

LOGS = {
    ("claude-desktop", "darwin"): (
        "Library/Logs/Claude/mcp-server-notes.log",
        "2026-01-01T12:00:00.000Z [notes] [info] Initializing server...",
        "2026-01-01T12:00:01.000Z [notes] [error] spawn uvx ENOENT",
    ),
    ("claude-desktop", "linux"): (
        ".config/Claude/logs/mcp-server-notes.log",
        "2026-01-01T12:00:00.000Z [notes] [info] Initializing server...",
        "2026-01-01T12:00:01.000Z [notes] [error] Server disconnected.",
    ),
    ("claude-desktop", "win32"): (
        "AppData/Roaming/Claude/logs/mcp-server-notes.log",
        "",
        "2026-01-01T12:00:01.000Z [notes] [error] spawn npx ENOENT",
    ),
    ("claude-code", "linux"): (
        ".cache/claude-cli-nodejs/-home-ada/mcp-logs-notes/2026-01-01T12-00-00.jsonl",
        '{"debug":"Starting connection with timeout of 9 ms","timestamp":"2026-01-01T12:00:00Z"}',
        '{"error":"Connection failed: spawn uvx ENOENT","timestamp":"2026-01-01T12:00:01Z"}',
    ),
    ("claude-code", "darwin"): (
        "Library/Caches/claude-cli-nodejs/-Users-ada/mcp-logs-notes/2026-01-01T12-00-00.jsonl",
        "",
        '{"error":"Server stderr: KeyError: \'A_KEY\'","timestamp":"2026-01-01T12:00:01Z"}',
    ),
    ("cursor", "linux"): (
        ".config/Cursor/logs/20260101T120000/window1/exthost/anysphere.cursor-mcp/"
        "MCP user-notes.log",
        "2026-01-01 12:00:00.000 [info] Starting new stdio process with command: uvx notes",
        "2026-01-01 12:00:01.000 [error] Client error for command spawn uvx ENOENT",
    ),
    ("vscode", "linux"): (
        ".config/Code/logs/20260101T120000/window1/mcpServer.mcp.config.usrlocal.notes.log",
        "2026-01-01 12:00:00.000 [info] Starting server notes",
        "2026-01-01 12:00:01.000 [error] Connection state: Error spawn uvx ENOENT",
    ),
    ("windsurf", "darwin"): (
        "Library/Application Support/Windsurf/logs/20260101T120000/window1/exthost/"
        "codeium.windsurf/Windsurf.log",
        "",
        "2026-01-01 12:00:01.000 [error] failed to start MCP server notes: exit status 1",
    ),
    ("codex", "linux"): (
        ".codex/log/codex-tui.log",
        "",
        "2026-01-01T12:00:01Z ERROR codex_core: MCP client for `notes` failed to start",
    ),
    ("goose", "linux"): (
        ".local/state/goose/logs/cli/2026-01-01/20260101_120000-notes.log",
        "",
        '{"level":"ERROR","fields":{"message":"Failed to start extension notes"}}',
    ),
    ("opencode", "linux"): (
        ".local/share/opencode/log/2026-01-01T120000.log",
        "",
        "ERROR 2026-01-01T12:00:01 +2ms service=mcp key=notes error=spawn ENOENT local mcp failed",
    ),
    ("zed", "linux"): (
        ".local/share/zed/logs/Zed.log",
        "",
        "2026-01-01T12:00:01Z ERROR [context_server] notes context server failed to start",
    ),
}
"""For products and platforms: the log of the server `notes`, a line when it starts, an error."""


def written(path: Path, *lines: str) -> None:
    """Write a log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines if line), encoding="utf-8")


def machine_of(home: Path, platform: str) -> Machine:
    """A machine with only this home."""
    return Machine(platform, home, {"HOME": str(home), "PATH": os.environ["PATH"]})


@pytest.mark.parametrize("product, platform", LOGS)
def test_the_last_error_of_a_log_is_found(product: str, platform: str, tmp_path: Path) -> None:
    """In the file that the product writes on that platform; errors of other servers are not."""
    name, start, error = LOGS[product, platform]
    path = tmp_path / name
    written(path, "2026-01-01 11:00:00 [error] other is gone: ENOENT other", start, error)
    facts = log_facts(product, machine_of(tmp_path, platform), "notes")
    assert facts.file == str(path)
    message = json.loads(error)["error"] if error.startswith('{"error"') else error
    assert facts.errors[-1].endswith(message)
    if start or LOG_PLACES[product].is_shared:
        assert len(facts.errors) == 1


def test_each_product_with_a_log_is_tested() -> None:
    assert {product for product, _ in LOGS} == LOG_PLACES.keys()
    assert LOG_PLACES.keys() | {"gemini"} == PRODUCTS.keys()


def test_the_newest_file_counts(tmp_path: Path) -> None:
    """Editors make a folder of logs for each start."""
    logs = tmp_path / ".config" / "Code" / "logs"
    for number, day in enumerate(("20260101T120000", "20260102T120000")):
        path = logs / day / "window1" / "mcpServer.mcp.config.usrlocal.notes.log"
        written(path, f"[error] error of {day}")
        os.utime(path, (number, number))
    facts = log_facts("vscode", machine_of(tmp_path, "linux"), "notes")
    assert facts.errors == ("[error] error of 20260102T120000",)


@pytest.mark.parametrize(
    "lines, errors",
    [
        ([], []),
        (["[info] all is well", "[debug] TypeError: said a tool, handled"], []),
        (["[error] old", "[info] Starting server notes", "[info] ready"], []),
        (["ValueError: wrong", "at notes.py:3"], ["ValueError: wrong"]),
        (
            ["[error] 1", "[error] 2", "[error] 3", "[error] 4"],
            ["[error] 2", "[error] 3", "[error] 4"],
        ),
    ],
)
def test_which_lines_are_errors(lines: list[str], errors: list[str]) -> None:
    """The last three since the last start; a line of level info or debug is none."""
    assert errors_in(lines) == errors


def test_a_name_with_signs_of_patterns(tmp_path: Path) -> None:
    """The name of a server is not a glob."""
    folder = tmp_path / ".config" / "Claude" / "logs"
    written(folder / "mcp-server-notes.log", "[error] of another server")
    assert not log_facts("claude-desktop", machine_of(tmp_path, "linux"), "*").file
    written(folder / "mcp-server-[x].log", "[error] of its own")
    assert log_facts("claude-desktop", machine_of(tmp_path, "linux"), "[x]").errors


async def test_a_host_and_its_servers(tmp_path: Path) -> None:
    """Each server is started as its host starts it, and its report is part of that of the host."""
    command, *arguments = command_of(tmp_path, SOUND)
    key = "correct-horse-battery"
    servers = {
        "sound": {"command": command, "args": arguments, "env": {"A_TOKEN": key}},
        "broken": {"command": "no-such-program-anywhere", "args": []},
    }
    path = tmp_path / ".cursor" / "mcp.json"
    written(path, json.dumps({"mcpServers": servers}))
    log = LOGS["cursor", "linux"]
    written(tmp_path / log[0].replace("notes", "sound"), f"[error] 401: {key} is refused")
    options = ExamineOptions(slow_seconds=600, exit_seconds=60)
    report = await examine_host("cursor", options, machine=machine_of(tmp_path, "linux"))
    assert report.target == "Cursor"
    assert [server.target.partition(":")[0] for server in report.servers] == ["sound", "broken"]
    sound, broken = report.servers
    assert [found.rule for found in sound.diagnostics] == ["log-errors"]
    assert key not in sound.diagnostics[0].words
    assert [found.rule for found in broken.errors] == ["command-not-found"]
    assert report.errors == broken.errors


async def test_a_server_is_started_in_the_home_folder(tmp_path: Path) -> None:
    """The product does not run in the folder of a terminal; a folder of the entry counts."""
    command_of(tmp_path / "project", SOUND)
    servers = {
        "relative": {"command": PYTHON, "args": ["planned.py", "plan.json"]},
        "placed": {
            "command": PYTHON,
            "args": ["planned.py", "plan.json"],
            "cwd": str(tmp_path / "project"),
        },
    }
    written(tmp_path / "home" / ".cursor" / "mcp.json", json.dumps({"mcpServers": servers}))
    options = ExamineOptions(slow_seconds=600, exit_seconds=60)
    machine = machine_of(tmp_path / "home", "linux")
    relative, placed = (await examine_host("cursor", options, machine=machine)).servers
    assert [found.rule for found in relative.errors] == ["script-not-found"]
    assert [found.rule for found in relative.warnings] == ["relative-path"]
    assert not placed.diagnostics


async def test_an_unknown_product(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no product notepad; known are claude-desktop"):
        await examine_host("notepad")


def test_installed_hosts(tmp_path: Path) -> None:
    """Those whose configuration file exists, in the order of the table."""
    machine = machine_of(tmp_path, "linux")
    assert installed_hosts(machine) == ()
    written(tmp_path / ".gemini" / "settings.json", "{}")
    written(tmp_path / ".cursor" / "mcp.json", "{}")
    assert installed_hosts(machine) == ("cursor", "gemini")
