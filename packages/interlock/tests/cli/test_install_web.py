"""`interlock install URL`: entries of servers on the web, as each client has them, in and out
again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.configs import PRODUCTS
from tests.cli.conftest import Command
from tests.cli.test_install import BEFORE, KEYS, PATHS, backups, read, reading

URL = "https://shop.example/mcp"
HEADERS = {"Authorization": "Bearer $TOKEN"}
ENTRIES: dict[str, dict[str, Any]] = {
    "claude-code": {"type": "http", "url": URL, "headers": HEADERS},
    "cursor": {"url": URL, "headers": HEADERS},
    "vscode": {"type": "http", "url": URL, "headers": HEADERS},
    "codex": {"url": URL, "http_headers": HEADERS},
    "gemini": {"httpUrl": URL, "headers": HEADERS},
    "opencode": {"type": "remote", "url": URL, "headers": HEADERS},
    "windsurf": {"serverUrl": URL, "headers": HEADERS},
    "zed": {"url": URL, "headers": HEADERS},
    "goose": {
        "enabled": True, "type": "streamable_http", "name": "shop",
        "description": "shop, an MCP server",
        "uri": URL, "headers": HEADERS, "timeout": 300,
    },
}  # fmt: skip


@pytest.mark.parametrize("key", ENTRIES)
def test_in_and_out_again(interlock: Command, home: Path, key: str) -> None:
    """The entry as the client has it, headers as they were typed; a second time changes nothing;
    taking it out leaves every byte.
    """
    path = home / PATHS[key][0]
    section = KEYS.get(key, "mcpServers")
    before = BEFORE[path.suffix].replace("KEY", section).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(before)
    words = ("install", URL, "--client", key, "--header", "Authorization: Bearer $TOKEN")
    result = interlock(*words)
    assert result.exit_code == 0, result.output
    assert f"it will connect to: {URL}" in result.stdout
    data = read(path)
    assert data[section].pop("shop") == ENTRIES[key]
    assert data == reading(path)(before.decode())
    assert "nothing to do" in interlock(*words).stdout
    assert len(backups(path)) == 1
    assert interlock("install", URL, "--client", key, "--remove").exit_code == 0
    assert path.read_bytes() == before


def test_every_client_is_here() -> None:
    """But for the one whose file has no such entries."""
    assert {
        key for key, product in PRODUCTS.items() if product.remote is not None
    } == ENTRIES.keys()


def test_a_client_without_such_entries(interlock: Command, home: Path) -> None:
    """Is left alone, with the reason; the others get theirs."""
    result = interlock("install", URL, "--client", "claude-desktop", "--client", "cursor")
    assert result.exit_code == 1
    assert "takes servers at a URL only in its own settings" in result.stderr
    assert not (home / PATHS["claude-desktop"][0]).exists()
    assert read(home / PATHS["cursor"][0]) == {"mcpServers": {"shop": {"url": URL}}}


def test_a_server_of_somebody_else_is_left_alone(interlock: Command, home: Path) -> None:
    """One with another URL, unless --force says so."""
    path = home / ".claude.json"
    theirs = '{"mcpServers": {"shop": {"type": "http", "url": "https://other.example/mcp"}}}'
    path.write_text(theirs)
    for words in ([], ["--remove"]):
        result = interlock("install", URL, "--client", "claude-code", *words)
        assert result.exit_code == 1
        assert "Interlock did not write the server" in result.stderr
        assert path.read_text() == theirs
    assert interlock("install", URL, "--client", "claude-code", "--force").exit_code == 0
    assert json.loads(path.read_text())["mcpServers"]["shop"]["url"] == URL


@pytest.mark.parametrize("key", ["claude-code", "codex", "gemini", "opencode", "windsurf", "zed"])
def test_the_command_can_use_what_was_installed(interlock: Command, home: Path, key: str) -> None:
    """It knows the words of each client for a URL: nobody listens at this one, and that is what it
    says.
    """
    assert (
        interlock("install", "http://127.0.0.1:1/mcp", "--client", key, "--name", "near").exit_code
        == 0
    )
    result = interlock("ping", "--config", home / PATHS[key][0], "--server", "near")
    assert result.exit_code == 4
    assert "Nothing listens on http://127.0.0.1:1" in result.stderr


@pytest.mark.parametrize(
    "words, expected",
    [
        (["http:///mcp"], "is no address of a server"),
        (["unix:///tmp/s"], "is no address of a server"),
        ([URL, "--env", "A=b"], "--env is for servers that are started"),
        ([URL, "--header", "x"], "Write a header as NAME: VALUE"),
        (["server.py", "--header", "X: 1"], "--header is for URLs"),
    ],
)
def test_wrong_usage(interlock: Command, home: Path, words: list[str], expected: str) -> None:
    """Code 2, and nothing is written."""
    result = interlock("install", *words, "--client", "cursor")
    assert result.exit_code == 2, result.output
    assert expected in result.stderr
    assert list(home.iterdir()) == []
