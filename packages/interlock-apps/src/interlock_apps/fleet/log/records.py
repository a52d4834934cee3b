"""An event as a row of the log: its JSON, its keys, and its searchable text."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from interlock.redaction import Redact, redacted

from ..events import AnyEvent, Event, LogEntry, Notice
from ..nesting import too_deep

MOST_TEXT = 256 * 1024  # characters of an entry's searchable text; the log keeps all of it

MOST_KEPT_LEVELS = 200
"""Levels of lists and objects in one entry.

The recursion limit depends on the Python version; this limit does not.
"""

_encoder = msgspec.json.Encoder(enc_hook=repr)
_decoder = msgspec.json.Decoder(LogEntry)
_kinds = frozenset(event.__struct_config__.tag for event in AnyEvent.__args__)


_SAY_NOTHING = frozenset({"type", "role", "data", "blob", "mimeType", "_meta", "kind"})
_FOREIGN = frozenset({"arguments", "structuredContent", "input"})


class _TooDeep(Exception):
    """An entry has more levels than the log keeps."""


class UnreadableEvent(Notice, frozen=True, kw_only=True, tag="notice"):
    """A placeholder for an entry that this version cannot read."""


class LogRow(Struct, frozen=True):
    """An entry as stored. `data` is the JSON of a LogEntry."""

    seq: int
    at: float
    session: str
    kind: str
    server: str
    data: bytes
    text: str


def encode(noted: LogEntry) -> bytes:
    """An entry as JSON. Invalid characters are replaced."""
    try:
        return _encoder.encode(noted)
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError):
        pass
    try:
        return _encoder.encode(_sayable(msgspec.to_builtins(noted, enc_hook=repr, str_keys=True)))
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError) as bad:
        return _encoder.encode(
            _instead(
                noted,
                f"An entry of the kind {kind_of(noted.event)!r} cannot be stored: "
                f"{type(bad).__name__}.",
            )
        )


def decode(data: bytes) -> LogEntry:
    """Decode an entry.

    Raises msgspec.DecodeError for invalid data, or an event type that this version does not know.
    """
    return _decoder.decode(data)


def row(data: bytes, redact: Redact | None) -> LogRow:
    """An entry as stored: without secrets, with its searchable text."""
    try:
        return _row(data, redact)
    except (RecursionError, _TooDeep):
        # The log stores a notice instead of failing.
        seq, at = data[:80].partition(b',"event"')[0].removeprefix(b'{"seq":').split(b',"at":')
        noted = LogEntry(
            seq=int(seq),
            at=float(at),
            event=Notice(
                level="warning", words="An entry cannot be stored: it is nested too deeply."
            ),
        )
        return _row(_encoder.encode(noted), redact)


def _row(data: bytes, redact: Redact | None) -> LogRow:
    value = msgspec.json.decode(data)
    if data.count(b"{") + data.count(b"[") > MOST_KEPT_LEVELS and too_deep(value, MOST_KEPT_LEVELS):
        raise _TooDeep
    if redact is not None and not _is_clean(data, redact):
        event = redacted(value["event"], redact)
        if event != value["event"]:
            value = {**value, "event": event}
            data = _encoder.encode(value)
            try:
                decode(data)
            except msgspec.DecodeError:
                # A secret matches a word of the log's format, such as the name of a kind. An entry
                # that cannot be read would be worse than none.
                noted = LogEntry(
                    seq=value["seq"],
                    at=value["at"],
                    event=Notice(
                        level="warning",
                        words="An entry has a secret in a place that must not have one.",
                    ),
                )
                data = _encoder.encode(noted)
                value = msgspec.json.decode(data)
    event = value["event"]
    asked = event.get("question")
    server = event.get("server") or (asked.get("server") if isinstance(asked, dict) else "") or ""
    return LogRow(
        value["seq"],
        value["at"],
        event.get("session", ""),
        event["type"],
        server,
        data,
        text_of(event),
    )


def kind_of(event: AnyEvent) -> str:
    """The kind of an event, as a search names it."""
    return kind_of_type(type(event))


def kind_of_type(event: type[Event]) -> str:
    """The kind of the events of a class."""
    return str(event.__struct_config__.tag)


def text_of(event: dict[str, Any]) -> str:
    """The words in an event."""
    parts: list[str] = []
    _add_words(event, parts, MOST_TEXT, foreign=False)
    return "\n".join(parts)


def _is_clean(data: bytes, redact: Redact) -> bool:
    """Whether nothing in an entry has to be redacted, found with one search instead of one for
    each of its strings.

    Without a backslash, JSON has each string as it is, between quotes, which are the boundary of a
    word as its ends are.
    """
    text = data.decode()
    return "\\" not in text and redact(text) == text


def _add_words(value: Any, parts: list[str], left: int, *, foreign: bool) -> int:
    """Append the words of a value, in at most `left` characters; return how many are left."""
    if isinstance(value, dict):
        for key, part in value.items():
            # In our own records these keys are in every record and say nothing; in foreign data
            # they may.
            if left <= 0:
                break
            if not foreign and key in _SAY_NOTHING:
                continue
            if isinstance(part, str):  # most members
                parts.append(part[:left])
                left -= len(part) + 1
            else:
                left = _add_words(part, parts, left, foreign=foreign or key in _FOREIGN)
    elif isinstance(value, list):
        for part in value:
            if left <= 0:
                break
            left = _add_words(part, parts, left, foreign=foreign)
    elif value is not None and value is not True and value is not False:
        words = value if isinstance(value, str) else str(value)
        parts.append(words[:left])
        left -= len(words) + 1
    return left


def _sayable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_sayable(key): _sayable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(part) for part in value]
    return value


def _instead(noted: LogEntry, words: str) -> LogEntry:
    words = words.encode("utf-8", "replace").decode()
    return LogEntry(seq=noted.seq, at=noted.at, event=Notice(level="warning", words=words))


def unreadable(data: bytes) -> LogEntry:
    """The placeholder for an entry that this version cannot read."""
    try:
        value = msgspec.json.decode(data)
        seq = int(value["seq"])
        at = float(value["at"])
        kind = str(value["event"]["type"])
        session = str(value["event"].get("session", ""))
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError):
        seq = 0
        at = 0.0
        kind = ""
        session = ""
    known = (
        "does not have the form that this version expects"
        if kind in _kinds
        else "is of a kind that this version does not support"
    )
    words = f"Entry {seq} ({kind[:60]!r}) {known}."
    return LogEntry(
        seq=seq, at=at, event=UnreadableEvent(session=session, level="warning", words=words)
    )


def show(data: bytes) -> LogEntry:
    """Decode an entry, or return a placeholder if it cannot be read."""
    try:
        return decode(data)
    except msgspec.DecodeError:
        return unreadable(data)
