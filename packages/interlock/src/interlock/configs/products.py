"""The table of products: where each one stores its configuration file, and the form of its entries.

A product is a program that starts MCP servers or connects to them, such as Claude Desktop. Its row
defines which file it reads, in which format, and how `interlock install` writes an entry.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct

from .editors import Editor, editor_for
from .formats import CODEX, GEMINI, GOOSE, MCP_SERVERS, OPENCODE, VSCODE, ZED, Format
from .text_edits import Uneditable

RawEntry = dict[str, Any]
"""One server in the form of a product."""

LocalEntry = Callable[[str, list[str], dict[str, str], str], RawEntry]
"""Makes the entry of a program from command, arguments, variables and name."""

RemoteEntry = Callable[[str, dict[str, str], str], RawEntry]
"""Makes the entry of a URL from URL, headers and name."""


class Machine(NamedTuple):
    """What the path of a configuration file depends on.

    Attributes:
        platform: The value of `sys.platform`.
        home: The home folder of the user.
        env: The environment variables.
    """

    platform: str
    home: Path
    env: Mapping[str, str]

    @property
    def settings(self) -> Path:
        """The folder for program settings."""
        if self.platform == "win32":
            return Path(self.env.get("APPDATA") or self.home / "AppData" / "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.xdg

    @property
    def xdg(self) -> Path:
        """The XDG configuration folder, which some programs use on a Mac too."""
        return Path(self.env.get("XDG_CONFIG_HOME") or self.home / ".config")


def this_machine() -> Machine:
    """Return the machine that this program runs on."""
    return Machine(sys.platform, Path.home(), os.environ)


class Product(Struct, frozen=True, kw_only=True):
    """One product.

    Attributes:
        title: Its name for people.
        path: Returns its file on a machine.
        format: How its file is read.
        comments: Whether its JSON may have comments.
        local: Makes the entry of a program.
        remote: Makes the entry of a URL; None if its file cannot hold one.
    """

    title: str
    path: Callable[[Machine], Path]
    format: Format
    local: LocalEntry
    remote: RemoteEntry | None = None
    comments: bool = True

    @property
    def editor(self) -> Editor:
        """The editor for its file."""
        section = self.format.sections[0][-1]
        return editor_for(self.format.syntax, section, comments=self.comments)

    def remote_entry(self, url: str, headers: dict[str, str], name: str) -> RawEntry:
        """Return the entry of a URL.

        Args:
            url: The URL of the server.
            headers: The headers of each request.
            name: The name of the server.

        Raises:
            Uneditable: The product's file cannot contain such an entry.
        """
        if self.remote is None:
            raise Uneditable(f"{self.title} takes servers at a URL only in its own settings")
        return self.remote(url, headers, name)


def _command(command: str, args: list[str], env: dict[str, str], name: str) -> RawEntry:
    return {"command": command, "args": args, **({"env": env} if env else {})}


def _typed_command(command: str, args: list[str], env: dict[str, str], name: str) -> RawEntry:
    return {"type": "stdio", **_command(command, args, env, name)}


def _zed_command(command: str, args: list[str], env: dict[str, str], name: str) -> RawEntry:
    return {"source": "custom", "command": command, "args": args, "env": env}


def _opencode_command(command: str, args: list[str], env: dict[str, str], name: str) -> RawEntry:
    started = {"type": "local", "command": [command, *args], "enabled": True}
    return {**started, **({"environment": env} if env else {})}


def _goose_entry(name: str, kind: str) -> RawEntry:
    description = f"{name}, an MCP server"
    return {"enabled": True, "type": kind, "name": name, "description": description}


def _goose_command(command: str, args: list[str], env: dict[str, str], name: str) -> RawEntry:
    started = {"cmd": command, "args": args, "envs": env, "timeout": 300}
    return {**_goose_entry(name, "stdio"), **started}


def _goose_url(url: str, headers: dict[str, str], name: str) -> RawEntry:
    reached = {"uri": url, "headers": headers, "timeout": 300}
    return {**_goose_entry(name, "streamable_http"), **reached}


def _url(key: str, *, headers_key: str = "headers", kind: str = "") -> RemoteEntry:
    """Return a maker of entries that have the URL under `key`."""

    def entry(url: str, headers: dict[str, str], name: str) -> RawEntry:
        typed = {"type": kind} if kind else {}
        return {**typed, key: url, **({headers_key: headers} if headers else {})}

    return entry


def _zed_path(machine: Machine) -> Path:
    on_windows = machine.platform == "win32"
    folder = machine.settings / "Zed" if on_windows else machine.xdg / "zed"
    return folder / "settings.json"


def _goose_path(machine: Machine) -> Path:
    on_windows = machine.platform == "win32"
    folder = machine.settings / "Block/goose/config" if on_windows else machine.xdg / "goose"
    return folder / "config.yaml"


def _codex_path(machine: Machine) -> Path:
    return Path(machine.env.get("CODEX_HOME") or machine.home / ".codex") / "config.toml"


PRODUCTS: Final[Mapping[str, Product]] = {
    "claude-desktop": Product(
        title="Claude Desktop",
        path=lambda machine: machine.settings / "Claude" / "claude_desktop_config.json",
        format=MCP_SERVERS,
        local=_command,
        comments=False,
    ),
    "claude-code": Product(
        title="Claude Code",
        path=lambda machine: machine.home / ".claude.json",
        format=MCP_SERVERS,
        local=_typed_command,
        remote=_url("url", kind="http"),
        comments=False,
    ),
    "cursor": Product(
        title="Cursor",
        path=lambda machine: machine.home / ".cursor" / "mcp.json",
        format=MCP_SERVERS,
        local=_command,
        remote=_url("url"),
    ),
    "vscode": Product(
        title="VS Code",
        path=lambda machine: machine.settings / "Code" / "User" / "mcp.json",
        format=VSCODE,
        local=_typed_command,
        remote=_url("url", kind="http"),
    ),
    "codex": Product(
        title="Codex",
        path=_codex_path,
        format=CODEX,
        local=_command,
        remote=_url("url", headers_key="http_headers"),
    ),
    "gemini": Product(
        title="Gemini CLI",
        path=lambda machine: machine.home / ".gemini" / "settings.json",
        format=GEMINI,
        local=_command,
        remote=_url("httpUrl"),
    ),
    "goose": Product(
        title="Goose",
        path=_goose_path,
        format=GOOSE,
        local=_goose_command,
        remote=_goose_url,
    ),
    "opencode": Product(
        title="opencode",
        path=lambda machine: machine.xdg / "opencode" / "opencode.json",
        format=OPENCODE,
        local=_opencode_command,
        remote=_url("url", kind="remote"),
    ),
    "windsurf": Product(
        title="Windsurf",
        path=lambda machine: machine.home / ".codeium" / "windsurf" / "mcp_config.json",
        format=MCP_SERVERS,
        local=_command,
        remote=_url("serverUrl"),
    ),
    "zed": Product(
        title="Zed",
        path=_zed_path,
        format=ZED,
        local=_zed_command,
        remote=_url("url"),
    ),
}
"""Every product by the name that `interlock install --client` takes."""

FORMATS: Final[Mapping[str, Format]] = {
    "mcpServers": MCP_SERVERS,
    **{name: product.format for name, product in PRODUCTS.items()},
}
"""The format of each product, and `mcpServers`, the one that most products share."""

PROJECT_FILES: Final = (".mcp.json", "mcp.json", ".vscode/mcp.json", ".cursor/mcp.json")
"""The usual paths of configurations in a project, relative to its folder, in the order of
precedence.
"""

PROJECT_FOLDERS: Final = frozenset(
    {".vscode", ".cursor", ".gemini", ".codex", ".zed", ".claude", ".windsurf", ".github"}
)
"""Folders of products within a project. A configuration in one belongs to the folder around it."""
