"""Equivalent commands: a request of the page as a line for a shell (pure)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from interlock.cli.client.values import tool_arguments

from .targets import AUTO

_LISTS = frozenset(
    {"tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover"}
)


def equivalent_command(
    target: Sequence[str],
    method: str,
    params: Mapping[str, Any],
    revision: str = AUTO,
    *,
    schema: Mapping[str, Any] | None = None,
    as_task: bool = False,
) -> str:
    """Return the command that sends a request; "" if no command does.

    Args:
        target: The words that name the target. Those after `--` are put at the end.
        method: The method.
        params: The params.
        revision: The revision that the connection asked for.
        schema: The input schema of the called tool, by which the command reads its words; None:
            the arguments are given as JSON.
        as_task: Whether the call is started as a task.
    """
    if not target:
        return ""
    found = _command(method, params, schema)
    if found is None:
        return ""
    command, *arguments = found
    if as_task:
        arguments.append("--task")
    if revision != AUTO:
        arguments += ["--revision", revision]
    # `-- COMMAND` must be at the end, and so can `--config FILE --server NAME`.
    is_first = not target[0].startswith("--")
    words = [*target, *arguments] if is_first else [*arguments, *target]
    return shlex.join(["interlock", command, *words])


def _command(
    method: str, params: Mapping[str, Any], schema: Mapping[str, Any] | None
) -> list[str] | None:
    """The command and its arguments; None if there is none."""
    name = str(params.get("name", ""))
    if method == "tools/call" and name:
        given = params.get("arguments") or {}
        words = None if schema is None else _argument_words(given, schema)
        if words is None:
            words = ["--json", _json(given)] if given else []
        return ["call", name, *words]
    if method == "resources/read" and "uri" in params:
        return ["read", str(params["uri"])]
    if method == "prompts/get" and name:
        given = params.get("arguments") or {}
        if not isinstance(given, Mapping) or any(_is_file(value) for value in given.values()):
            return None
        return ["prompt", name, *(f"{key}={value}" for key, value in given.items())]
    if method in _LISTS:
        return ["list"]
    return ["ping"] if method == "ping" else None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _argument_words(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str] | None:
    """The arguments as `key=value` words; None if the command would read them differently."""
    words = []
    for key, value in arguments.items():
        if not key or key.startswith("-") or "=" in key or ":" in key:
            return None
        plain = f"{key}={value}"
        is_same = (
            isinstance(value, str)
            and not _is_file(value)
            and _read([plain], schema) == {key: value}
        )
        words.append(plain if is_same else f"{key}:={_json(value)}")
    return words if _read(words, schema) == arguments else None


def _is_file(value: Any) -> bool:
    """Whether a command would read a text from the file that it names."""
    return isinstance(value, str) and value.startswith("@")


def _read(words: Sequence[str], schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the command reads from these words; None if it refuses them."""
    try:
        return tool_arguments(words, None, schema)
    except click.UsageError:
        return None
