"""One line of a tape in detail: its text, its HTTP headers, what is wrong with it, what belongs to
it, and the message as each revision would have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from interlock import REVISIONS
from interlock.tape import (
    HttpHead,
    Line,
    StderrText,
    TapeError,
    TapeRow,
    explain_message,
)
from interlock.types import JSONObject

from .rows import ShownTape, row_state

MOST_TEXT = 400_000
"""Characters of a message that a page gets."""
MOST_CHILDREN = 200

_PROTOCOL = "io.modelcontextprotocol/"
_NEAR = 2000  # rows in which the rest of a call or exchange is searched


def message_state(tape: ShownTape, row: TapeRow) -> JSONObject:
    """A line in detail, as JSON values. `text` is indented if it is JSON.

    Raises InterlockError, OSError if the tape cannot be read.
    """
    shown: JSONObject = {
        "row": row_state(tape, row),
        "recording": tape.name,
        "partner": _row_state(tape, row.partner),
        "parent": _row_state(tape, tape.tree.parent(row.number)),
        "retries": [row_state(tape, tape.rows[number]) for number in tape.tree.retries(row.number)],
        "children": [row_state(tape, child) for child in _children(tape, row)],
        "headers": [_head(head) for head in _heads(tape, row)],
    }
    try:
        line = tape.file.read(row)
    except TapeError as bad:
        raw = tape.file.raw(row).decode("utf-8", "backslashreplace")
        return {**shown, "raw": raw[:MOST_TEXT], "problems": [f"{bad}."]}
    if isinstance(line, StderrText):
        return {**shown, "raw": line.text}
    if isinstance(line, Line):
        return {**shown, **_message(tape, row, line)}
    raw = tape.file.raw(row).decode("utf-8", "backslashreplace")
    return {**shown, "raw": raw[:MOST_TEXT]}


def _message(tape: ShownTape, row: TapeRow, line: Line) -> JSONObject:
    raw = line.frame.decode("utf-8", "backslashreplace")
    revision = tape.file.revision(row) or REVISIONS[-1]
    details = explain_message(line.frame, sender=line.sender, revision=revision, method=row.method)
    return {
        "raw": raw[:MOST_TEXT],
        "text": _indented(line.frame)[:MOST_TEXT],
        "isCut": len(raw) > MOST_TEXT,
        "revision": revision,
        "problems": details.problems,
        "under": {
            each: _indented(text.encode())[:MOST_TEXT] for each, text in details.under.items()
        },
    }


def _row_state(tape: ShownTape, number: int) -> JSONObject | None:
    return row_state(tape, tape.rows[number]) if number >= 0 else None


def _children(tape: ShownTape, row: TapeRow) -> list[TapeRow]:
    """The rows that belong to a call: questions with their answers, notifications, log lines."""
    if row.kind != "request" or row.sender != "client":
        return []
    rows = tape.rows
    found = []
    for number in range(row.number + 1, _end(tape, row)):
        partner = rows[number].partner
        belongs = tape.tree.parent(number) == row.number
        if belongs or (partner >= 0 and tape.tree.parent(partner) == row.number):
            found.append(rows[number])
        if len(found) >= MOST_CHILDREN:
            break
    return found


def _end(tape: ShownTape, row: TapeRow) -> int:
    """Where to stop to look for what belongs to a call."""
    last = row.partner if row.partner >= 0 else len(tape.rows)
    return min(last, row.number + 10 * _NEAR)


def _heads(tape: ShownTape, row: TapeRow) -> Iterator[HttpHead]:
    """The heads of the HTTP exchange of a line."""
    if not row.exchange:
        return
    rows = tape.rows
    first = row.number
    if row.sender == "server":
        first = row.partner if row.partner >= 0 else row.number - _NEAR
    for number in range(max(0, first - 2), min(len(rows), row.number + _NEAR)):
        one = rows[number]
        same = one.exchange == row.exchange and one.connection == row.connection
        if one.kind == "http" and same:
            line = tape.file.read(one)
            if isinstance(line, HttpHead):
                yield line


def _head(head: HttpHead) -> JSONObject:
    first = {"request": head.request} if head.request else {"status": head.status}
    return {**first, "headers": [list(pair) for pair in head.headers]}


def _indented(frame: bytes) -> str:
    """A message as indented JSON with every digit of its numbers; "" if it is not JSON."""
    try:
        return msgspec.json.format(frame, indent=2).decode("utf-8", "backslashreplace")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def request_of(tape: ShownTape, row: TapeRow) -> dict[str, Any] | None:
    """The method and the params, as JSON text, of a request on a tape; None if it is not one."""
    try:
        line = tape.file.read(row)
    except TapeError:
        return None
    if not isinstance(line, Line) or row.kind != "request":
        return None
    message = line.message
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(params, dict | None):
        return None
    return {"method": row.method, "params": _own_params(line.frame)}


def _own_params(frame: bytes) -> str:
    """The params without the keys of `_meta` that every client sets itself, as indented JSON."""
    message = msgspec.json.decode(frame, type=dict[str, Raw])
    members = msgspec.json.decode(message.get("params", Raw(b"{}")), type=dict[str, Raw])
    if bytes(members.get("_meta", b"")).startswith(b"{"):
        meta = msgspec.json.decode(members.pop("_meta"), type=dict[str, Raw])
        own = {key: value for key, value in meta.items() if not key.startswith(_PROTOCOL)}
        own.pop("progressToken", None)
        if own:
            members["_meta"] = Raw(msgspec.json.encode(own))
    return _indented(msgspec.json.encode(members))
