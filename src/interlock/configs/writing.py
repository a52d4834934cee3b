"""Writes servers in the one format that is written: `mcpServers` in JSON, as Claude Code's `.mcp.json` takes it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any

from .documents import MOST_BYTES, Members
from .entries import Entry, Input
from .variables import written_plainly

# What of an entry is written here, and so replaced; any other key of a server that is there stays.
_OURS = (
    "type", "command", "args", "env", "envFile", "cwd", "url", "httpUrl", "serverUrl", "headers", "trusted", "trust", "disabled", "enabled",
    "tools", "includeTools", "without", "excludeTools", "disabledTools", "roots", "timeout", "startTimeout", "revision",
)  # fmt: skip


class Unwritable(ValueError):
    """A configuration cannot be written without losing something or telling a secret; the message says what."""


def write_config(
    entries: Iterable[Entry],
    text: str = "",
    *,
    drop: Collection[str] = (),
    inputs: Iterable[Input] = (),
) -> str:
    """A configuration in which some servers are put in, or in the place of those of their ids; all else in it stays.

    What came from a variable is written as that variable, `${NAME}`, and what a person answered as `${input:id}`, which this host
    asks for again; never their values. Times are in milliseconds, as Claude Code has them.

    Args:
        entries: The servers.
        text: The configuration as it is now: JSON without comments, or nothing.
        drop: The ids of servers to take out.
        inputs: What they want to be asked of a person (`wanted_inputs`); descriptions that are there stay.

    Raises:
        Unwritable: The text is no such JSON, or a secret would stand in it.
    """
    data = _parsed(text)
    servers = data.setdefault("mcpServers", {})
    if not isinstance(servers, dict):
        raise Unwritable("mcpServers in it is no object; nothing was changed")
    for id in drop:
        servers.pop(id, None)
    for entry in entries:
        there = servers.get(entry.id)
        kept = (
            {key: value for key, value in there.items() if key not in _OURS}
            if isinstance(there, dict)
            else {}
        )
        servers[entry.id] = {**_written(entry), **kept}
    _add_inputs(data, inputs)
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = re.search(r"\n([ \t]+)\S", text)
    return (
        json.dumps(
            data, indent=indent[1] if indent is not None else "  ", ensure_ascii=False
        ).replace("\n", newline)
        + newline
    )


def _add_inputs(data: dict[str, Any], inputs: Iterable[Input]) -> None:
    there = data.get("inputs")
    described = there if isinstance(there, list) else []
    known = {one.get("id") for one in described if isinstance(one, dict)}
    for input in inputs:
        if input.id not in known:
            one: dict[str, Any] = {
                "type": input.type,
                "id": input.id,
                "description": input.description,
                "default": input.default,
            }
            one |= {"options": list(input.options), "password": input.password}
            described.append(
                {key: value for key, value in one.items() if value not in (None, False, [])}
            )
    if described:
        data["inputs"] = described


def _parsed(text: str) -> dict[str, Any]:
    if not text.strip("\ufeff \t\r\n"):
        return {}
    if len(text) > MOST_BYTES:
        raise Unwritable(f"it is larger than {MOST_BYTES >> 20} MiB, which no configuration is")
    try:
        data = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_once)
    except json.JSONDecodeError as bad:
        raise Unwritable(
            f"line {bad.lineno}, column {bad.colno}: it is no JSON ({bad.msg}), or has comments, which would be lost"
        ) from None
    except RecursionError:
        raise Unwritable("it has too many levels") from None
    except Unwritable:
        raise
    except ValueError:
        raise Unwritable("a number in it cannot be read") from None
    if not isinstance(data, dict):
        raise Unwritable("it is no JSON object; nothing was changed")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = Members(pairs)
    if len(members) < len(pairs):
        raise Unwritable("a name in it stands there twice, and one would be lost; leave one")
    return members


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
    return written if entry.tools is None else {**written, "tools": list(entry.tools)}


def _text(entry: Entry, place: str, value: str) -> str:
    """A text as it was written; where it was not read from anywhere, as it is, unless that tells a secret."""
    origin = entry.origins.get(place)
    if origin is not None and origin.value == value:
        return origin.written
    moved = [origin.written for origin in entry.origins.values() if origin.value == value]
    if moved:
        return max(
            moved, key=lambda written: written != value
        )  # as a variable, where it is one anywhere
    for secret in entry.secrets:
        if secret in value and any(secret in origin.value for origin in entry.origins.values()):
            raise Unwritable(
                f"{place} of the server {entry.id} was changed and holds a secret of a variable; write ${{NAME}} for it"
            )
    return written_plainly(value)


def _milliseconds(seconds: float | None) -> float | int | None:
    if seconds is None:
        return None
    milliseconds = round(seconds * 1000, 6)
    return int(milliseconds) if milliseconds == int(milliseconds) else milliseconds
