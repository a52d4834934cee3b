"""A bounded scanner for JSON-RPC messages that the strict decoder rejects: finds their id, kind
and lone surrogates.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from ..types.base import RequestId

_MOST_STEPS = 200_000  # brackets and members inspected in one message: about 0.2 seconds
_MEMBER = 10  # steps for one member
_MOST_REPAIRED = 4 * 1024 * 1024  # bytes in which lone surrogates are searched
_MOST_ESCAPES = 200_000  # relevant escapes in one message: about 0.1 seconds
_LONGEST_NAME = 4096  # bytes of a member's name or of an id; longer ones are not useful
_REPLACEMENT = rb"\ufffd"

_space = re.compile(rb"[ \t\r\n]*").match
_string = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL).match
_scalar = re.compile(rb'[^,:"\[\]{} \t\r\n]+').match
_integer = re.compile(rb"-?(?:0|[1-9][0-9]*)").fullmatch
_to_bracket = re.compile(
    rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+[\[\]{}]', re.DOTALL
).match
_surrogates = re.compile(  # begins with a backslash, so that the search skips all other text
    rb"\\(?:\\"  # otherwise the second of two backslashes would look like the start of an escape
    rb"|u[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2}))"
).sub


_half = re.compile("[\ud800-\udfff]")


class SalvagedMessage(Struct, frozen=True):
    """The parts of a message that can be read although it is not valid JSON; `id` is None if none
    was found.
    """

    id: RequestId | None = None
    is_answer: bool = False


def trace(frame: bytes) -> SalvagedMessage:
    """Find the id and the kind of a message by its top-level members, even if their values are
    malformed.

    The scan stops where the top level itself is malformed, for example at the end of a truncated
    message. It also stops after 200,000 steps (a bracket is one step, a member ten). Everything
    found before counts. The last one of repeated names counts.
    """
    found: dict[str, bytes] = {}
    at = _after_space(frame, 0)
    if frame[at : at + 1] != b"{":
        return SalvagedMessage()
    left = _MOST_STEPS
    while True:
        name = _string(frame, _after_space(frame, at + 1))
        left -= _MEMBER
        if name is None or left <= 0:
            break
        at = _after_space(frame, name.end())
        if frame[at : at + 1] != b":":
            break
        start = _after_space(frame, at + 1)
        end, left = _skip(frame, start, left)
        at = _after_space(frame, end)
        follows = frame[at : at + 1]
        if end > start and (follows or frame[start : start + 1] not in b"-0123456789"):
            short = min(end, start + _LONGEST_NAME + 1)
            found[_text(name.group()) or ""] = frame[start:short]
        if end == start or follows != b",":
            break
    answers = "method" not in found and ("result" in found or "error" in found)
    return SalvagedMessage(_id(found.get("id", b"")), answers)


def split(frame: bytes) -> list[bytes]:
    """Return the members of a batch that is not valid JSON, as far as they can be separated. The
    bounds of `trace` apply.
    """
    members: list[bytes] = []
    at = _after_space(frame, 0)
    if frame[at : at + 1] != b"[":
        return members
    left = _MOST_STEPS
    while True:
        start = _after_space(frame, at + 1)
        end, left = _skip(frame, start, left - _MEMBER)
        if end == start or left <= 0:
            return members
        members.append(frame[start:end])
        at = _after_space(frame, end)
        if frame[at : at + 1] != b",":
            return members


def without_lone_surrogates(frame: bytes) -> bytes | None:
    """Return the message with U+FFFD in place of each escaped lone surrogate; None if it has none.

    JSON allows lone surrogates (RFC 8259, 8.2), and JavaScript writes them for text that was cut
    inside an emoji, but UTF-8 cannot encode them. Messages over 4 MiB, and text after 200,000
    escapes, are not changed.
    """
    if len(frame) > _MOST_REPAIRED or (rb"\ud" not in frame and rb"\uD" not in frame):
        return None
    repaired = _surrogates(_replaced, frame, _MOST_ESCAPES)
    return None if repaired == frame else repaired


def without_surrogates(value: Any, enc_hook: Callable[[Any], Any] | None = None) -> Any:
    """Return a value as plain data whose strings can be encoded: U+FFFD replaces each lone
    surrogate.

    Args:
        value: A value that msgspec can encode, except for its strings.
        enc_hook: Converts other types to plain data, as for msgspec.

    Raises:
        TypeError, ValueError, RecursionError: The value cannot be encoded anyway.
    """
    return _clean(msgspec.to_builtins(value, enc_hook=enc_hook, str_keys=True))


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _half.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value


def _replaced(found: re.Match[bytes]) -> bytes:
    return _REPLACEMENT if found.group(1) else found.group()


def _after_space(frame: bytes, at: int) -> int:
    found = _space(frame, at)
    return at if found is None else found.end()


def _skip(frame: bytes, at: int, left: int) -> tuple[int, int]:
    """Return the end of the value that begins at `at`, and the remaining number of brackets; `at`
    itself if the value has no end.
    """
    first = frame[at : at + 1]
    if first not in (b"{", b"["):
        found = _string(frame, at) if first == b'"' else _scalar(frame, at)
        return (at if found is None else found.end()), left
    end = at
    depth = 0
    while left > 0:
        left -= 1
        bracket = _to_bracket(frame, end)
        if bracket is None:
            return len(frame), left  # truncated: it was the last value
        end = bracket.end()
        depth += 1 if frame[end - 1] in b"{[" else -1
        if depth == 0:
            return end, left
    return at, left


def _text(string: bytes) -> str | None:
    if len(string) > _LONGEST_NAME:
        return None
    import json  # late: only for frames that cannot be decoded

    try:
        text = json.loads(string)
        text.encode()
    except ValueError:  # an unknown escape, invalid UTF-8, or a lone surrogate
        return None
    return text if isinstance(text, str) else None


def _id(value: bytes) -> RequestId | None:
    if len(value) > _LONGEST_NAME:
        return None
    if _integer(value):
        return int(value)
    return _text(value) if value[:1] == b'"' else None
