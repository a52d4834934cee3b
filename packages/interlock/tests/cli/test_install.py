"""`interlock install`: an entry in a client's file, the rest of the file as it was, and back
again.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlock.configs import PRODUCTS, ConfigFile, Machine, Uneditable, config_file
from tests.cli.conftest import Command

PATHS = {
    # client: on Linux, on a Mac, on Windows
    "claude-desktop": (
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        "AppData/Roaming/Claude/claude_desktop_config.json",
    ),
    "claude-code": (".claude.json",) * 3,
    "cursor": (".cursor/mcp.json",) * 3,
    "vscode": (".config/Code/User/mcp.json", "Library/Application Support/Code/User/mcp.json",
        "AppData/Roaming/Code/User/mcp.json"),
    "codex": (".codex/config.toml",) * 3,
    "gemini": (".gemini/settings.json",) * 3,
    "goose": (".config/goose/config.yaml", ".config/goose/config.yaml",
        "AppData/Roaming/Block/goose/config/config.yaml"),
    "opencode": (".config/opencode/opencode.json",) * 3,
    "windsurf": (".codeium/windsurf/mcp_config.json",) * 3,
    "zed": (".config/zed/settings.json", ".config/zed/settings.json",
        "AppData/Roaming/Zed/settings.json"),
}  # fmt: skip
KEYS = {
    "vscode": "servers",
    "codex": "mcp_servers",
    "goose": "extensions",
    "zed": "context_servers",
    "opencode": "mcp",
}

BEFORE = {
    ".json": '{\n\t"theme": "dark",\n\t"KEY": {"notes": {"command": "n"}}\n}\n',
    ".toml": '# mine\nmodel = "o5"\n\n[KEY.notes]\ncommand = "n"\n\n[tools]\nweb = true\n',
    ".yaml": "# mine\nGOOSE_MODEL: x\nKEY:\n  notes:\n    type: builtin\n\nlast: 1\n",
}


def reading(path: Path) -> Callable[[str], Any]:
    """A reader of a configuration's format that is not ours."""
    return {".json": json.loads, ".toml": tomllib.loads, ".yaml": yaml.safe_load}[path.suffix]


def read(path: Path) -> Any:
    """What a configuration says."""
    return reading(path)(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("key, paths", PATHS.items(), ids=PATHS)
def test_where_each_client_keeps_its_file(key: str, paths: tuple[str, str, str]) -> None:
    """On three kinds of machine, and where a variable says otherwise."""
    home = Path("home")
    for platform, path in zip(("linux", "darwin", "win32"), paths, strict=True):
        assert PRODUCTS[key].path(Machine(platform, home, {})) == home / path
    elsewhere = PRODUCTS[key].path(
        Machine("linux", home, {"XDG_CONFIG_HOME": "/xdg", "CODEX_HOME": "/codex"})
    )
    moved = {".config": Path("/xdg"), ".codex": Path("/codex")}
    first, *rest = Path(paths[0]).parts
    assert elsewhere == moved.get(first, home / first).joinpath(*rest)


@pytest.mark.parametrize("key", PRODUCTS)
@pytest.mark.parametrize("there", [False, True], ids=["no file", "a file"])
def test_in_and_out_again(
    interlock: Command, home: Path, everyday: Path, key: str, there: bool
) -> None:
    """The entry starts the server; a second time changes nothing; taking it out leaves every byte
    as it was.
    """
    path = home / PATHS[key][0]
    section = KEYS.get(key, "mcpServers")
    before = BEFORE[path.suffix].replace("KEY", section).encode()
    if there:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(before)
        path.chmod(0o640)
    words = ("install", "--no-check", everyday, "--client", key, "--env", "KEY=a b")

    result = interlock(*words)
    assert result.exit_code == 0, result.output
    data = read(path)
    entry = data[section].pop("everyday")
    assert data == (reading(path)(before.decode()) if there else {section: {}})
    command = entry.get("command") or entry["cmd"]
    command = command if isinstance(command, list) else [command, *entry["args"]]
    variables = entry.get("env") or entry.get("envs") or entry["environment"]
    assert variables == {"KEY": "a b"}
    assert f"it will run: {' '.join(command)}" in result.stdout
    talked = subprocess.run(
        command,
        input='{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert json.loads(talked.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert stat.S_IMODE(path.stat().st_mode) == (0o640 if there else 0o600)
    assert [p.read_bytes() for p in backups(path)] == ([before] if there else [])

    after = path.read_bytes()
    again = interlock(*words)
    assert "nothing to do" in again.stdout
    assert path.read_bytes() == after
    assert len(backups(path)) == there

    result = interlock("install", everyday, "--client", key, "--remove")
    assert result.exit_code == 0, result.output
    if there:
        assert path.read_bytes() == before
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    else:
        assert not path.exists()
    assert "nothing to do" in interlock("install", everyday, "--client", key, "--remove").stdout


def backups(path: Path) -> list[Path]:
    """The copies beside a file, the oldest first."""
    return sorted(path.parent.glob(f"{path.name}.interlock-*.bak"))


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": { }}',
        "{}",
        '{"a":1}',
        '{\n  "mcpServers": {\n\n  }\n}',
        "",
        " \n",
        '\ufeff{"a": 1}\r\n',
    ],
)
def test_taking_out_leaves_what_was_there(
    interlock: Command, home: Path, everyday: Path, text: str
) -> None:
    """Also where the entry was the first: an empty section, no section, an empty file, a byte order
    mark.
    """
    path = home / ".claude.json"
    path.write_bytes(text.encode())
    assert interlock("install", "--no-check", everyday, "--client", "claude-code").exit_code == 0
    assert json.loads(path.read_text(encoding="utf-8-sig"))["mcpServers"].keys() == {"everyday"}
    assert interlock("install", everyday, "--client", "claude-code", "--remove").exit_code == 0
    assert path.read_bytes() == text.encode()


def test_taking_out_keeps_what_came_later(interlock: Command, home: Path, everyday: Path) -> None:
    """A copy is no longer the truth once something else has changed: then only the entry goes."""
    path = home / ".claude.json"
    path.write_text('{"a": 1}')
    interlock("install", "--no-check", everyday, "--client", "claude-code")
    path.write_text(path.read_text().replace('"a": 1', '"a": 2'))
    interlock("install", everyday, "--client", "claude-code", "--remove")
    assert json.loads(path.read_text()) == {"a": 2, "mcpServers": {}}


def test_a_new_version_takes_the_place_of_the_old(
    interlock: Command, home: Path, everyday: Path
) -> None:
    """An entry of ours is replaced where it stands, and taking it out goes back to before the
    first.
    """
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{\n  "mcpServers": {\n    "z": {"command": "z"}\n  }\n}\n')
    before = path.read_bytes()
    interlock("install", "--no-check", everyday, "--client", "cursor")
    interlock("install", "--no-check", everyday, "--client", "cursor", "--env", "A=b")
    assert json.loads(path.read_text())["mcpServers"]["everyday"]["env"] == {"A": "b"}
    assert list(json.loads(path.read_text())["mcpServers"]) == ["z", "everyday"]
    interlock("install", everyday, "--client", "cursor", "--remove")
    assert path.read_bytes() == before


def test_a_server_of_somebody_else_is_left_alone(
    interlock: Command, home: Path, everyday: Path
) -> None:
    """Unless --force says so; another --name is the better way."""
    path = home / ".claude.json"
    theirs = '{"mcpServers": {"everyday": {"command": "theirs"}}}'
    path.write_text(theirs)
    for words in ([], ["--remove"]):
        result = interlock("install", "--no-check", everyday, "--client", "claude-code", *words)
        assert result.exit_code == 1
        assert "Interlock did not write the server" in result.stderr
        assert path.read_text() == theirs
        assert backups(path) == []
    assert (
        interlock(
            "install", "--no-check", everyday, "--client", "claude-code", "--name", "mine"
        ).exit_code
        == 0
    )
    assert (
        interlock("install", "--no-check", everyday, "--client", "claude-code", "--force").exit_code
        == 0
    )
    assert json.loads(path.read_text())["mcpServers"]["everyday"]["type"] == "stdio"


@pytest.mark.parametrize("text", ['{"mcpServers": ', '{"a": 1} // remark', "[]", b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_left_alone(
    interlock: Command, home: Path, everyday: Path, text: str | bytes
) -> None:
    """Code 1, the reason, and not a byte or a file more."""
    path = home / ".claude.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    result = interlock(
        "install", "--no-check", everyday, "--client", "claude-code", "--client", "cursor"
    )
    assert result.exit_code == 1
    assert "was not changed" in result.stderr
    assert path.read_bytes() == (text if isinstance(text, bytes) else text.encode())
    assert backups(path) == []
    assert (home / ".cursor" / "mcp.json").exists(), "the other client got its entry"


def test_a_dry_run_shows_and_does_not_touch(interlock: Command, home: Path, everyday: Path) -> None:
    """The difference as `diff -u` has it, which `patch` would apply."""
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text("a = 1")
    result = interlock("install", everyday, "--client", "codex", "--dry-run")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"--- {path}\n+++ {path}\n@@ ")
    assert "\n+[mcp_servers.everyday]\n" in result.stdout
    assert "-a = 1\n\\ No newline at end of file\n+a = 1\n" in result.stdout
    assert path.read_text() == "a = 1"
    assert list(path.parent.iterdir()) == [path]
    assert not (home / ".claude.json").exists()
    assert (
        "--- /dev/null"
        in interlock("install", everyday, "--client", "claude-code", "--dry-run").stdout
    )
    assert not (home / ".claude.json").exists()


def test_a_link_stays_a_link(interlock: Command, home: Path, everyday: Path) -> None:
    """Who keeps his settings elsewhere and links to them keeps the link."""
    real = home / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("{}")
    (home / ".claude.json").symlink_to(real)
    assert interlock("install", "--no-check", everyday, "--client", "claude-code").exit_code == 0
    assert (home / ".claude.json").is_symlink()
    assert "everyday" in json.loads(real.read_text())["mcpServers"]
    assert len(backups(real)) == 1


def test_names_and_objects(interlock: Command, home: Path, everyday: Path) -> None:
    """The file's name is the server's, or the folder's where it tells nothing; an object goes
    along.
    """
    server = home / "travel" / "server.py"
    server.parent.mkdir()
    server.write_text("from interlock import Server\nmcp = Server('x')\n")
    config = home / "here.json"
    assert (
        interlock(
            "install", "--no-check", f"{server}:mcp", "--client", "cursor", "--config", config
        ).exit_code
        == 0
    )
    entry = json.loads(config.read_text())["mcpServers"]["travel"]
    assert entry["args"][-1] == f"{server}:mcp"
    assert "env" not in entry
    assert (
        interlock(
            "install", server, "--client", "cursor", "--client", "zed", "--config", config
        ).exit_code
        == 2
    )
    assert interlock("install", server, "--client", "cursor", "--env", "A").exit_code == 2


def test_the_client_can_use_what_was_installed(
    interlock: Command, home: Path, everyday: Path
) -> None:
    """The entry is one that the command itself can talk to."""
    interlock("install", everyday, "--client", "zed", "--env", "GIVEN=here")
    result = interlock(
        "call",
        "variable",
        "name=GIVEN",
        "--config",
        home / ".config/zed/settings.json",
        "--server",
        "everyday",
    )
    assert result.stdout == "here\n"


# -- one file, and others who write it -------------------------------------------------------------


def test_a_change_in_between_is_not_lost(tmp_path: Path) -> None:
    """Another program writes while we work: the change is made anew on what is there then."""
    path = tmp_path / "x"
    path.write_text("one")
    calls = []

    def change(text: str | None) -> str:
        calls.append(text)
        if len(calls) == 1:
            path.write_text("two")
        return f"{text}!"

    assert ConfigFile(path).make(change)[0]
    assert path.read_text() == "two!"
    assert calls == ["one", "two"]
    assert [p.read_text() for p in backups(path)] == ["two"]


def test_a_file_that_never_rests_is_given_up(tmp_path: Path) -> None:
    """Nothing is forced, and nothing is left behind."""
    path = tmp_path / "x"
    path.write_text("0")

    def change(text: str | None) -> str:
        path.write_text(f"{int(text or 0) + 1}")
        return "mine"

    with pytest.raises(Uneditable, match="keeps changing it"):
        ConfigFile(path).make(change)
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_failure_half_way_leaves_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when the new file is written: the old one is whole."""
    path = tmp_path / "x"
    path.write_text("old")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(config_file.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        ConfigFile(path).make(lambda text: "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".bak"] == ["x"]


def test_copies_never_overwrite_one_another(tmp_path: Path) -> None:
    """Several in one second have names of their own, and the newest comes first."""
    path = tmp_path / "a[b]*.json"
    path.write_text("0")
    file = ConfigFile(path)
    for n in range(1, 4):
        file.make(lambda text, n=n: str(n))
    assert file.backups() == ["2", "1", "0"]


def test_it_is_no_file(tmp_path: Path) -> None:
    """A folder where the file should be is an error in words."""
    with pytest.raises(Uneditable):
        ConfigFile(tmp_path).make(lambda text: "x")
    assert os.listdir(tmp_path) == []


def test_entries_survive_odd_paths(interlock: Command, home: Path) -> None:
    """Blanks, quotes and letters of any script in the path of a server."""
    server = home / "My \"odd\" 'folder' ü" / "s # x.py"
    server.parent.mkdir()
    server.write_text("from interlock import Server\nmcp = Server('odd')\n")
    for key in PRODUCTS:
        assert (
            interlock(
                "install", "--no-check", server, "--client", key, "--name", "odd name: #1"
            ).exit_code
            == 0
        )
        path = home / PATHS[key][0]
        entry = read(path)[KEYS.get(key, "mcpServers")]["odd name: #1"]
        assert (entry.get("args") or entry["command"])[-1] == str(server)
