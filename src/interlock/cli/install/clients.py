"""The clients that servers can be put into: where each keeps its configuration, and how an entry looks there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from .jsonc import JsonConfig
from .toml import TomlConfig
from .yaml import YamlConfig

Entry = dict[str, Any]


class Config(Protocol):
    """The servers in one format of configuration. Texts in, texts out; each raises Uneditable for what it cannot edit safely."""

    def source(self, text: str, name: str) -> str | None:
        """An entry as it is written; None where there is none."""
        ...

    def add(self, text: str, name: str, entry: Entry) -> str:
        """The text with an entry put in, or in the place of the one of that name."""
        ...

    def drop(self, text: str, name: str) -> str:
        """The text without an entry; the same text where there is none."""
        ...


class Place(NamedTuple):
    """A machine as far as paths depend on it."""

    platform: str
    home: Path
    env: Mapping[str, str]

    @property
    def settings(self) -> Path:
        """Where programs keep their settings."""
        if self.platform == "win32":
            return Path(self.env.get("APPDATA") or self.home / "AppData" / "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.dotted

    @property
    def dotted(self) -> Path:
        """Where programs of the Unix manner keep them, on a Mac too."""
        return Path(self.env.get("XDG_CONFIG_HOME") or self.home / ".config")


def this_place() -> Place:
    """The machine that this runs on."""
    return Place(sys.platform, Path.home(), os.environ)


class Client(NamedTuple):
    """One client: its name for people, its file, the format of that, and how an entry is made of command, arguments and variables.

    `remote` makes one of a URL and headers; None where the client's file has no such entries.
    """

    title: str
    path: Callable[[Place], Path]
    config: Config
    entry: Callable[[str, list[str], dict[str, str], str], Entry]
    remote: Callable[[str, dict[str, str], str], Entry] | None = None


def _plain(command: str, args: list[str], env: dict[str, str], name: str) -> Entry:
    return {"command": command, "args": args, **({"env": env} if env else {})}


def _typed(command: str, args: list[str], env: dict[str, str], name: str) -> Entry:
    return {"type": "stdio", **_plain(command, args, env, name)}


def _zed(command: str, args: list[str], env: dict[str, str], name: str) -> Entry:
    return {"source": "custom", "command": command, "args": args, "env": env}


def _goose(command: str, args: list[str], env: dict[str, str], name: str) -> Entry:
    entry = {
        "enabled": True,
        "type": "stdio",
        "name": name,
        "description": f"{name}, an MCP server",
        "cmd": command,
        "args": args,
    }
    return {**entry, "envs": env, "timeout": 300}


def _at(
    key: str, headers_key: str = "headers", **more: str
) -> Callable[[str, dict[str, str], str], Entry]:
    """Entries that have the URL under `key`."""
    return lambda url, headers, name: {
        **more,
        key: url,
        **({headers_key: headers} if headers else {}),
    }


def _goose_at(url: str, headers: dict[str, str], name: str) -> Entry:
    entry = {
        "enabled": True,
        "type": "streamable_http",
        "name": name,
        "description": f"{name}, an MCP server",
        "uri": url,
    }
    return {**entry, "headers": headers, "timeout": 300}


def _zed_path(place: Place) -> Path:
    return (
        place.settings / "Zed" if place.platform == "win32" else place.dotted / "zed"
    ) / "settings.json"


def _goose_path(place: Place) -> Path:
    return (
        place.settings / "Block" / "goose" / "config"
        if place.platform == "win32"
        else place.dotted / "goose"
    ) / "config.yaml"


def _vscode_path(place: Place) -> Path:
    return place.settings / "Code" / "User" / "mcp.json"


def _windsurf_path(place: Place) -> Path:
    return place.home / ".codeium" / "windsurf" / "mcp_config.json"


def _codex_path(place: Place) -> Path:
    return Path(place.env.get("CODEX_HOME") or place.home / ".codex") / "config.toml"


_SERVERS, _SERVERS_WITH_COMMENTS = (
    JsonConfig("mcpServers", comments=False),
    JsonConfig("mcpServers", comments=True),
)

CLIENTS: Final[dict[str, Client]] = {
    "claude-desktop": Client(
        "Claude Desktop",
        lambda p: p.settings / "Claude" / "claude_desktop_config.json",
        _SERVERS,
        _plain,
    ),
    "claude-code": Client(
        "Claude Code", lambda p: p.home / ".claude.json", _SERVERS, _typed, _at("url", type="http")
    ),
    "cursor": Client(
        "Cursor",
        lambda p: p.home / ".cursor" / "mcp.json",
        _SERVERS_WITH_COMMENTS,
        _plain,
        _at("url"),
    ),
    "vscode": Client(
        "VS Code",
        _vscode_path,
        JsonConfig("servers", comments=True),
        _typed,
        _at("url", type="http"),
    ),
    "codex": Client(
        "Codex", _codex_path, TomlConfig("mcp_servers"), _plain, _at("url", "http_headers")
    ),
    "gemini": Client(
        "Gemini CLI",
        lambda p: p.home / ".gemini" / "settings.json",
        _SERVERS_WITH_COMMENTS,
        _plain,
        _at("httpUrl"),
    ),
    "goose": Client("Goose", _goose_path, YamlConfig("extensions"), _goose, _goose_at),
    "windsurf": Client(
        "Windsurf", _windsurf_path, _SERVERS_WITH_COMMENTS, _plain, _at("serverUrl")
    ),
    "zed": Client("Zed", _zed_path, JsonConfig("context_servers", comments=True), _zed, _at("url")),
}
