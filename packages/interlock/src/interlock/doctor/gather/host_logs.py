"""Finds the log that a product keeps of a server, and the last errors in it."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ...configs import Machine
from ..facts import LogFacts

_TAIL = 256 * 1024  # bytes of a file that are read
_MOST_ERRORS = 3
_LONGEST_LINE = 300  # characters
_ERROR = re.compile(
    r"\[error\]|\bERROR\b|\bFATAL\b|\bpanic(?:ked)?\b|\bENOENT\b|\bEACCES\b|\bECONNREFUSED\b"
    r"|Traceback \(most recent|\b\w*(?:Error|Exception)\b\s*:"
    r"|[Ff]ailed to|[Cc]onnection (?:failed|closed)|exited (?:early|with|unexpectedly)|timed out"
)
_HARMLESS = re.compile(r"\[(?:info|debug|trace)\]|\b(?:INFO|DEBUG|TRACE)\b")
_STARTED = re.compile(
    r"[Ii]nitializing server"
    r"|[Ss]tarting (?:new )?(?:stdio |MCP |mcp )?(?:server|process|client|connection)"
    r"|Connection state: Starting|[Cc]reate(?:d|ing)? ?[Cc]lient"
)


class LogPlace(NamedTuple):
    """Where a product keeps a log.

    Attributes:
        patterns: Globs of its files, in which `{name}` is the name of the server.
        is_shared: Whether the file is about all servers, so that only lines with the name count.
    """

    patterns: Callable[[Machine], tuple[str, ...]]
    is_shared: bool = False


def _local(machine: Machine) -> Path:
    """The folder for programs' local data on Windows."""
    return Path(machine.env.get("LOCALAPPDATA") or machine.home / "AppData" / "Local")


def _claude_desktop(machine: Machine) -> tuple[str, ...]:
    folder = machine.settings / "Claude" / "logs"
    if machine.platform == "darwin":
        folder = machine.home / "Library" / "Logs" / "Claude"
    return (f"{folder}/mcp-server-{{name}}.log",)


def _claude_code(machine: Machine) -> tuple[str, ...]:
    folder = Path(machine.env.get("XDG_CACHE_HOME") or machine.home / ".cache")
    if machine.platform == "darwin":
        folder = machine.home / "Library" / "Caches"
    base = folder / "claude-cli-nodejs"
    if machine.platform == "win32":
        base = _local(machine) / "claude-cli-nodejs" / "Cache"
    return (f"{base}/*/mcp-logs-{{name}}/*",)


def _cursor(machine: Machine) -> tuple[str, ...]:
    window = machine.settings / "Cursor" / "logs" / "*" / "window*" / "exthost"
    return (f"{window}/anysphere.cursor-mcp/MCP*[ -]{{name}}.log",)


def _vscode(machine: Machine) -> tuple[str, ...]:
    logs = machine.settings / "Code" / "logs"
    return (f"{logs}/*/window*/mcpServer.*.{{name}}.log", f"{logs}/*/mcpServer.*.{{name}}.log")


def _windsurf(machine: Machine) -> tuple[str, ...]:
    window = machine.settings / "Windsurf" / "logs" / "*" / "window*" / "exthost"
    return (f"{window}/codeium.windsurf/Windsurf.log",)


def _codex(machine: Machine) -> tuple[str, ...]:
    folder = Path(machine.env.get("CODEX_HOME") or machine.home / ".codex")
    return (f"{folder}/log/codex-tui.log",)


def _goose(machine: Machine) -> tuple[str, ...]:
    folder = Path(machine.env.get("XDG_STATE_HOME") or machine.home / ".local" / "state")
    logs = folder / "goose" / "logs"
    if machine.platform == "win32":
        logs = machine.settings / "Block" / "goose" / "data" / "logs"
    return (f"{logs}/**/*.log",)


def _opencode(machine: Machine) -> tuple[str, ...]:
    folder = Path(machine.env.get("XDG_DATA_HOME") or machine.home / ".local" / "share")
    return (f"{folder}/opencode/log/*.log",)


def _zed(machine: Machine) -> tuple[str, ...]:
    folder = Path(machine.env.get("XDG_DATA_HOME") or machine.home / ".local" / "share") / "zed"
    if machine.platform == "darwin":
        return (f"{machine.home}/Library/Logs/Zed/Zed.log",)
    if machine.platform == "win32":
        folder = _local(machine) / "Zed"
    return (f"{folder}/logs/Zed.log",)


LOG_PLACES: Final[Mapping[str, LogPlace]] = {
    "claude-desktop": LogPlace(_claude_desktop),
    "claude-code": LogPlace(_claude_code),
    "cursor": LogPlace(_cursor),
    "vscode": LogPlace(_vscode),
    "codex": LogPlace(_codex, is_shared=True),
    "goose": LogPlace(_goose, is_shared=True),
    "opencode": LogPlace(_opencode, is_shared=True),
    "windsurf": LogPlace(_windsurf, is_shared=True),
    "zed": LogPlace(_zed, is_shared=True),
}
"""The logs of each product that keeps one. Gemini CLI writes none of its servers."""


def log_facts(product: str, machine: Machine, server: str) -> LogFacts:
    """Return the last errors about a server in the newest log of a product.

    Args:
        product: The name of the product.
        machine: The machine on which it is installed.
        server: The name of the server.
    """
    place = LOG_PLACES.get(product)
    if place is None:
        return LogFacts()
    newest = _newest(
        pattern.format(name=glob.escape(server)) for pattern in place.patterns(machine)
    )
    if newest is None:
        return LogFacts()
    lines = [_line(line) for line in _tail(newest).splitlines()]
    if place.is_shared:
        named = re.compile(rf"(?<![\w-]){re.escape(server)}(?![\w-])")
        lines = [line for line in lines if named.search(line)]
    return LogFacts(file=str(newest), errors=tuple(errors_in(lines)))


def errors_in(lines: list[str]) -> list[str]:
    """The last errors among the lines of a log, since the server was started last."""
    starts = [number for number, line in enumerate(lines) if _STARTED.search(line)]
    recent = lines[starts[-1] :] if starts else lines
    found = [line for line in recent if _ERROR.search(line) and not _HARMLESS.search(line)]
    return [line[:_LONGEST_LINE] for line in found[-_MOST_ERRORS:]]


def _newest(patterns: Iterator[str]) -> Path | None:
    """The file of the patterns that was changed last."""
    dated: list[tuple[float, str]] = []
    for pattern in patterns:
        for name in glob.glob(pattern, recursive=True):
            try:
                status = os.stat(name)
            except OSError:
                continue
            dated.append((status.st_mtime, name))
    files = [(when, name) for when, name in dated if os.path.isfile(name)]
    return Path(max(files)[1]) if files else None


def _tail(path: Path) -> str:
    """The end of a file, as text."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _TAIL, 0))
            return file.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        return ""


def _line(line: str) -> str:
    """A line of a log as text. Some logs are JSON lines, whose member names the level."""
    if not line.startswith("{"):
        return line.rstrip()
    try:
        data = json.loads(line)
    except ValueError:
        return line.rstrip()
    for level in ("error", "debug", "info"):
        if isinstance(data, dict) and isinstance(data.get(level), str):
            return f"{data.get('timestamp', '')} [{level}] {data[level]}".strip()
    return line.rstrip()
