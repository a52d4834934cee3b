"""Writes servers in one format: `mcpServers` in JSON, the format of Claude Code's `.mcp.json`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ..sandbox.entry_form import sandbox_entry
from ..sandbox.sandbox import Sandbox
from .documents import MOST_BYTES
from .entries import Entry, Input
from .json_editor import JsonEditor
from .jsonc import plain_value
from .text_edits import Uneditable
from .variables import written_plainly

_EDITOR = JsonEditor("mcpServers", comments=True)

# The keys that are written here, and so replaced. Any other key of an existing server stays.
_OURS = (
    "type", "command", "args", "env", "envFile", "cwd", "url", "httpUrl", "serverUrl", "headers",
    "trusted", "trust", "disabled", "enabled", "tools", "includeTools", "without", "excludeTools",
    "disabledTools", "roots", "timeout", "startTimeout", "revision", "sandbox",
)  # fmt: skip


def write_config(
    entries: Iterable[Entry],
    text: str = "",
    *,
    drop: Collection[str] = (),
    inputs: Iterable[Input] = (),
) -> str:
    """Write servers into a configuration. Everything else in it stays, byte for byte.

    A value from a variable is written as that variable, `${NAME}`, and an answer of the user as
    `${input:id}`, so that no secret is written. Times are in milliseconds.

    Args:
        entries: The servers. Each replaces the server with its id, or is added at the end.
        text: The present configuration, in JSON with or without comments; empty for none.
        drop: The ids of servers to remove.
        inputs: The inputs that the servers use (`wanted_inputs`). Existing descriptions stay.

    Returns:
        The new text.

    Raises:
        Uneditable: The text is not such JSON, or a secret would be written.
    """
    if len(text) > MOST_BYTES:
        raise Uneditable(f"it is larger than {MOST_BYTES >> 20} MiB, the limit for configurations")
    text = text.removeprefix("\ufeff")
    if not text.strip():
        text = "{}" + (text.strip(" \t") or "\n")
    data = plain_value(text)
    if not isinstance(data, dict):
        raise Uneditable("it must be a JSON object; nothing was changed")
    servers = data.get("mcpServers")
    if servers is None:
        servers = {}
        text = _EDITOR.put(text, "mcpServers", servers)
    elif not isinstance(servers, dict):
        raise Uneditable("mcpServers must be an object; nothing was changed")
    for id in drop:
        text = _EDITOR.remove(text, id)
    for entry in entries:
        there = servers.get(entry.id)
        old = there if isinstance(there, dict) else {}
        kept = {key: value for key, value in old.items() if key not in _OURS}
        text = _EDITOR.add(text, entry.id, {**_written(entry), **kept})
    return _with_inputs(text, data, inputs)


def _with_inputs(text: str, data: dict[str, Any], inputs: Iterable[Input]) -> str:
    there = data.get("inputs")
    described = there if isinstance(there, list) else []
    known = {one.get("id") for one in described if isinstance(one, dict)}
    if there is not None and not isinstance(there, list):
        text = _EDITOR.put(text, "inputs", [])
    for input in inputs:
        if input.id not in known:
            one: dict[str, Any] = {
                "type": input.type,
                "id": input.id,
                "description": input.description,
                "default": input.default,
                "options": list(input.options),
                "password": input.password,
            }
            written = {key: value for key, value in one.items() if value not in (None, False, [])}
            text = _EDITOR.append(text, "inputs", written)
    return text


def _written(entry: Entry) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if entry.command:
        command = [_text(entry, f"command.{n}", part) for n, part in enumerate(entry.command)]
        written = {"type": "stdio", "command": command[0], "args": command[1:]}
        written["env"] = {
            name: _text(entry, f"env.{name}", value) for name, value in entry.env.items()
        }
        written["cwd"] = _text(entry, "cwd", entry.cwd) if entry.cwd is not None else None
    else:
        if entry.url.lower().startswith("http"):
            written["type"] = "sse" if entry.legacy_sse else "http"
        written["url"] = _text(entry, "url", entry.url)
        written["headers"] = {
            name: _text(entry, f"headers.{name}", value) for name, value in entry.headers.items()
        }
    written |= {
        "trusted": entry.trusted,
        "disabled": entry.disabled,
        "without": list(entry.without),
    }
    written["roots"] = [_text(entry, f"roots.{n}", root) for n, root in enumerate(entry.roots)]
    written |= {
        "timeout": _milliseconds(entry.timeout),
        "startTimeout": _milliseconds(entry.start_seconds),
        "revision": entry.revision or None,
    }
    written = {key: value for key, value in written.items() if value not in (None, False, [], {})}
    if entry.sandbox is not None:
        written["sandbox"] = _written_sandbox(entry, entry.sandbox)
    return written if entry.tools is None else {**written, "tools": list(entry.tools)}


def _written_sandbox(entry: Entry, sandbox: Sandbox | bool) -> dict[str, Any] | bool:
    """Return the policy with the original texts of its paths."""
    written = sandbox_entry(sandbox)
    if isinstance(written, dict) and "filesystem" in written:
        written["filesystem"] = {
            key: [
                _text(entry, f"sandbox.filesystem.{key}.{number}", path)
                for number, path in enumerate(paths)
            ]
            for key, paths in written["filesystem"].items()
        }
    return written


def _text(entry: Entry, place: str, value: str) -> str:
    """Return the original text, or the value if it contains no secret."""
    origin = entry.origins.get(place)
    if origin is not None and origin.value == value:
        return origin.written
    moved = [origin.written for origin in entry.origins.values() if origin.value == value]
    if moved:
        return max(
            moved, key=lambda written: written != value
        )  # as a variable, if any origin has one
    for secret in entry.secrets:
        if secret in value and any(secret in origin.value for origin in entry.origins.values()):
            raise Uneditable(
                f"{place} of the server {entry.id} was changed and holds a secret of a variable; "
                f"write ${{NAME}} for it"
            )
    return written_plainly(value)


def _milliseconds(seconds: float | None) -> float | int | None:
    if seconds is None:
        return None
    milliseconds = round(seconds * 1000, 6)
    return int(milliseconds) if milliseconds == int(milliseconds) else milliseconds
