"""Calls and connections of a tape as a test suite in TOML, for `interlock test`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from interlock.tape import Line, Tape, TapeError, TapeRow, suite_text

from .recordings import Recording
from .targets import InspectorTarget

_MOST_ROUNDS = 20  # questions one after the other in one call


def call_suite(recording: Recording, row: TapeRow, target: InspectorTarget) -> str:
    """A suite that repeats one call, with the answers to its questions.

    Raises ValueError if the call has no response so far.
    """
    last = _last(recording, row)
    if last is None:
        raise ValueError("The request has no response so far.")
    return _suite({f"{row.method} {row.name}".strip(): _lines(recording, row, last)}, target)


def connection_suite(recording: Recording, name: str, target: InspectorTarget) -> str:
    """A suite that repeats what was sent over a connection of the inspector.

    Raises ValueError if nothing was sent.
    """
    tapes = [number for number, of in recording.connections.items() if of == name]
    conversations = {
        f"{name} {number}".strip(): recording.file.conversation(number) for number in tapes
    }
    conversations = {name: tape for name, tape in conversations.items() if len(tape)}
    if not conversations:
        raise ValueError("Nothing was sent over this connection.")
    return _suite(conversations, target)


def _suite(conversations: dict[str, Tape], target: InspectorTarget) -> str:
    words = target.words
    is_named = bool(words) and not words[0].startswith("--")
    run = f" {shlex.join(words)}" if words and not is_named else ""
    return suite_text(
        conversations,
        target=words[0] if is_named else "",
        remark=f"Saved from the inspector. Run it: interlock test FILE.toml{run}",
    )


def _last(recording: Recording, row: TapeRow) -> TapeRow | None:
    """The last response of a call: a call with questions is sent again with their answers."""
    rows = recording.rows
    last = None
    for _ in range(_MOST_ROUNDS):
        if row.partner < 0:
            return last
        last = rows[row.partner]
        if not _asks(recording, last):
            return last
        later = (
            one
            for one in rows[last.number + 1 : last.number + 1000]
            if one.kind == "request"
            and (one.connection, one.sender, one.method, one.name)
            == (row.connection, row.sender, row.method, row.name)
        )
        following = next(later, None)
        if following is None:
            return last
        row = following
    return last


def _asks(recording: Recording, row: TapeRow) -> bool:
    line = recording.file.read(row)
    message = line.message if isinstance(line, Line) else None
    result = message.get("result") if isinstance(message, dict) else None
    return isinstance(result, dict) and result.get("resultType") == "input_required"


def _lines(recording: Recording, first: TapeRow, last: TapeRow) -> Tape:
    """The messages of a call: its own, and those of its connection that belong to it."""
    rows = recording.rows[first.number : last.number + 1]
    return Tape(_read(recording, (row for row in rows if _belongs(recording, row, first))))


def _belongs(recording: Recording, row: TapeRow, call: TapeRow) -> bool:
    if row.connection != call.connection or not row.sender:
        return False
    if row.method == call.method and row.name == call.name:
        return True
    parent = recording.tree.parent(row.partner if row.sender == "client" else row.number)
    return parent >= call.number


def _read(recording: Recording, rows: Iterable[TapeRow]) -> list[Line]:
    found = []
    for row in rows:
        try:
            line = recording.file.read(row)
        except TapeError:
            continue
        if isinstance(line, Line):
            found.append(line)
    return found
