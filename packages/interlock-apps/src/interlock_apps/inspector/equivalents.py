"""Equivalent commands: a request of the page as a line for a shell (pure)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from .targets import AUTO

_LISTS = frozenset(
    {"tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover"}
)


def equivalent_command(
    target: Sequence[str], method: str, params: Mapping[str, Any], revision: str = AUTO
) -> str:
    """Return the command that sends a request; "" if no command does.

    Args:
        target: The words that name the target. Those after `--` are put at the end.
        method: The method.
        params: The params.
        revision: The revision that the connection asked for.
    """
    if not target:
        return ""
    found = _command(method, params)
    if found is None:
        return ""
    command, *arguments = found
    if revision != AUTO:
        arguments += ["--revision", revision]
    # `-- COMMAND` must be at the end, and so can `--config FILE --server NAME`.
    is_first = not target[0].startswith("--")
    words = [*target, *arguments] if is_first else [*arguments, *target]
    return shlex.join(["interlock", command, *words])


def _command(method: str, params: Mapping[str, Any]) -> list[str] | None:
    """The command and its arguments; None if there is none."""
    name = str(params.get("name", ""))
    if method == "tools/call" and name:
        given = params.get("arguments") or {}
        return ["call", name, *(["--json", _json(given)] if given else [])]
    if method == "resources/read" and "uri" in params:
        return ["read", str(params["uri"])]
    if method == "prompts/get" and name:
        given = params.get("arguments") or {}
        if not isinstance(given, Mapping):
            return None
        return ["prompt", name, *(f"{key}={value}" for key, value in given.items())]
    if method in _LISTS:
        return ["list"]
    return ["ping"] if method == "ping" else None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
