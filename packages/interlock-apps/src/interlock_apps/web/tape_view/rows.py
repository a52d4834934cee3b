"""The rows of a tape as JSON values for a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from interlock.redaction import url_without_secrets
from interlock.tape import HttpHead, IndexedTape, Line, StderrText, TapeError, TapeRow
from interlock.types import JSONObject

from .call_tree import CallTree

MOST_SUMMARY = 200
"""Characters of the text beside a row."""


class ShownTape(Protocol):
    """A tape that a page shows."""

    @property
    def name(self) -> str:
        """Its unique name."""

    @property
    def file(self) -> IndexedTape:
        """Its lines."""

    @property
    def tree(self) -> CallTree:
        """What belongs to which call."""

    @property
    def connections(self) -> Mapping[str, str]:
        """The names that are shown for the connections of the tape."""

    @property
    def rows(self) -> list[TapeRow]:
        """The rows that are indexed so far."""


def has_failed(tape: ShownTape, row: TapeRow) -> bool:
    """Whether a row, or the response to it, is an error."""
    if row.failed:
        return True
    return row.kind == "request" and row.partner >= 0 and tape.rows[row.partner].failed


def row_state(tape: ShownTape, row: TapeRow) -> JSONObject:
    """A row as JSON values. Members that say nothing are left out."""
    shown: JSONObject = {
        "number": row.number,
        "kind": row.kind,
        "sender": row.sender,
        "connection": tape.connections.get(row.connection, row.connection),
        "at": row.at,
        "method": row.method,
        "name": row.name,
        "id": row.id,
        "size": row.length,
        "duration": tape.file.duration(row),
        "failed": has_failed(tape, row),
        "partner": row.partner if row.partner >= 0 else None,
        "parent": parent if (parent := tape.tree.parent(row.number)) >= 0 else None,
        "summary": _summary(tape, row),
    }
    return {
        name: value
        for name, value in shown.items()
        if value is not None and value is not False and value != ""
    }


def _summary(tape: ShownTape, row: TapeRow) -> str:
    """A few words about a row that has no name: a line of stderr, a head of HTTP, a log message."""
    if row.name or row.kind in ("response", "batch"):
        return ""
    try:
        line = tape.file.read(row)
    except TapeError as bad:
        return str(bad)[:MOST_SUMMARY]
    match line:
        case StderrText():
            words = line.text.rstrip("\n")
        case HttpHead():
            words = url_without_secrets(line.request) if line.request else f"{line.status}"
        case Line() if row.kind == "bytes":
            words = line.frame[: 4 * MOST_SUMMARY].decode("utf-8", "backslashreplace")
        case Line():
            words = _words_of(line.message)
        case _:
            words = ""
    return words[:MOST_SUMMARY]


def _words_of(message: Any) -> str:
    """What a notification, question or error says in words."""
    if not isinstance(message, dict):
        return ""
    error = message.get("error")
    if isinstance(error, dict):
        return f"{error.get('code', '')} {error.get('message', '')}".strip()
    params = message.get("params")
    if not isinstance(params, dict):
        return ""
    for member in ("message", "data", "reason", "level"):
        value = params.get(member)
        if isinstance(value, str):
            return value
        if value is not None:
            return msgspec.json.encode(value).decode()
    progress = params.get("progress")
    if progress is not None:
        total = params.get("total")
        return f"{progress}" if total is None else f"{progress} of {total}"
    return ""
