"""JSON-RPC 2.0 envelopes: opens messages without reading their params, and builds messages around
encoded parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ..types.base import NOTHING, RequestId
from ..types.errors import INVALID_REQUEST, PARSE_ERROR
from . import salvage

Frame = bytes
_LONGEST = 200
_NOT_FINITE = (b"NaN", b"Infinity")
_MOST_IN_BATCH = 10_000
_SMALL = 64 * 1024  # bytes that are copied faster than they are shared
_asks = re.compile(
    rb'\{"jsonrpc":"2\.0",(?:"id":(?:-?[0-9]+|"(?:[^"\\]|\\.)*"),)?"method":'
).match  # a request or a notification


class ErrorBody(Struct, frozen=True):
    """The `error` of a JSON-RPC response."""

    code: int
    message: str = ""
    data: Any = None


class Envelope(Struct, frozen=True):
    """One message with unread params and result. The fields that are set determine the kind of the
    message.
    """

    jsonrpc: Literal["2.0"]
    method: str | UnsetType = UNSET
    id: RequestId | UnsetType | None = UNSET
    params: Raw = NOTHING
    result: Raw | UnsetType = UNSET
    error: ErrorBody | UnsetType | None = UNSET  # some peers send a null error beside a result


def request_reader(params: Mapping[str, type[Any]]) -> Callable[[Frame], Any]:
    """Return a decoder that reads a request in one pass. The type of its params is the one of its
    method in `params`.

    The decoded value has `id`, `params` and, as the tag of its type, the method. The decoder raises
    one of READ_ERRORS for anything else; `open_envelope` then says what it is.
    """
    kinds: list[Any] = []
    for method, kind in params.items():
        fields: list[Any] = [("jsonrpc", Literal["2.0"]), ("id", RequestId)]
        needs_none = not any(f.required for f in msgspec.structs.fields(kind))
        fields.append(
            ("params", kind, msgspec.field(default_factory=kind))
            if needs_none
            else ("params", kind)
        )
        named = {"method": method}
        kinds.append(
            msgspec.defstruct(
                "Request",
                fields,
                tag_field="method",
                tag=method,
                frozen=True,
                kw_only=True,
                namespace=named,
                forbid_unknown_fields=True,  # detects a `result` beside a method
            )
        )
    return msgspec.json.Decoder(reduce(or_, kinds)).decode


class _Trace(Struct, frozen=True):
    """The parts of a message that can still be read if it is not a valid envelope."""

    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Member(Struct, gc=False):
    """The minimal type of a message in a batch."""

    jsonrpc: Literal["2.0"]


class Malformed(Exception):
    """Bytes that are not JSON, or JSON of the wrong shape. Reading raises no other exception.

    `code` is the JSON-RPC error code of the response. `id` is the message's id, if it could be
    read. `is_answer` says that the message looks like a response, which must never be answered.
    """

    def __init__(
        self, code: int, message: str, id: RequestId | None = None, *, is_answer: bool = False
    ) -> None:
        super().__init__(
            message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
        )  # the message may contain a part of the input
        self.code = code
        self.id = id
        self.is_answer = is_answer


_at_byte = re.compile(r"\(byte ([0-9]+)\)$").search
_envelope = msgspec.json.Decoder(Envelope).decode
_trace = msgspec.json.Decoder(_Trace).decode
_batch = msgspec.json.Decoder(list[Raw]).decode
_json = msgspec.json.Decoder().decode
_skip = msgspec.json.Decoder(Raw).decode
_counted = msgspec.json.Decoder(list[_Member]).decode
encode_json = msgspec.json.Encoder().encode

READ_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Every exception of msgspec for unreadable bytes (deep nesting is a RecursionError)."""


def open_envelope(frame: Frame) -> Envelope:
    """Read one message as an envelope.

    Escaped surrogates without a partner are read as U+FFFD, except in an id, which must be returned
    unchanged.

    Raises:
        Malformed: The message is not JSON-RPC. The error has the id if it could be found.
    """
    check_utf8(frame)
    try:
        envelope = _envelope(frame)
        if envelope.error or (envelope.result is not UNSET and envelope.method is not UNSET):
            _check_kind(frame, envelope)
        return envelope
    except msgspec.ValidationError as bad:
        raise _explained(frame, str(bad)) from None
    except READ_ERRORS as bad:
        repaired = salvage.without_lone_surrogates(frame)
        if repaired is None:
            raise _unreadable(frame, bad) from None
    envelope = open_envelope(repaired)
    if isinstance(envelope.id, str) and salvage.trace(frame).id is None:
        raise Malformed(PARSE_ERROR, "Parse error: the id holds half a surrogate pair")
    return envelope


def _check_kind(frame: Frame, envelope: Envelope) -> None:
    """Check that a message is of one kind: a request, a result or an error (`RPC-06`).

    Members that are null are ignored: some peers write every member of their envelope.
    """
    has_result = envelope.result is not UNSET and bytes(envelope.result) != b"null"
    if envelope.method is not UNSET and (has_result or envelope.error):
        raise _explained(frame, "a method beside a result or an error")
    if has_result and envelope.error:
        raise _explained(frame, "both a result and an error")


def check_utf8(frame: Frame) -> None:
    """Check that a whole frame is UTF-8 (`RPC-12`).

    Decoding does not check the fields that it skips.

    Raises:
        Malformed: The frame is not UTF-8.
    """
    if frame.isascii():
        return
    try:
        str(frame, "utf-8")
    except UnicodeDecodeError as bad:
        raise _unreadable(frame, bad) from None


def _unreadable(frame: Frame, bad: Exception) -> Malformed:
    """Return the error for a message that is not JSON, with the id if it can be found anyway."""
    found = salvage.trace(frame)
    words = f"Parse error: the message is not valid JSON: {_what_is_wrong(frame, bad)}"
    return Malformed(PARSE_ERROR, words, found.id, is_answer=found.is_answer)


def _what_is_wrong(frame: Frame, bad: Exception) -> str:
    if isinstance(bad, RecursionError):
        return "it is nested too deeply"
    if isinstance(bad, UnicodeDecodeError):
        return "it is not UTF-8"
    where = _at_byte(str(bad))
    if where is not None and frame[int(where[1]) :][:8].lstrip(b"-").startswith(_NOT_FINITE):
        return f"NaN and Infinity are no JSON (byte {where[1]})"
    return str(bad).removeprefix("JSON is malformed: ")


def _explained(frame: Frame, why: str) -> Malformed:
    """Return the error for JSON of the wrong shape, with the id if it is usable."""
    try:
        # This check creates no objects: a few MB of small values would take a hundred times as much
        # memory, and seconds.
        _skip(frame)
    except READ_ERRORS as bad:
        return _unreadable(frame, bad)
    try:
        trace = _trace(frame)
    except READ_ERRORS:
        trace = _Trace()  # not an object
    try:
        id = None if trace.id is UNSET or bytes(trace.id)[:1] in b"[{tfn" else _json(trace.id)
    except READ_ERRORS as bad:
        return _unreadable(frame, bad)
    id = id if isinstance(id, int | str) else None
    is_answer = trace.method is UNSET and not (trace.result is UNSET and trace.error is UNSET)
    return Malformed(INVALID_REQUEST, f"Invalid request: {why}", id, is_answer=is_answer)


def is_batch(frame: Frame) -> bool:
    """Whether a frame is a JSON array (2025-03-26, "Batching")."""
    return frame[:1] == b"[" or frame.lstrip()[:1] == b"["


def open_batch(frame: Frame) -> list[Frame]:
    """Return the messages of a batch. Raises Malformed for an empty batch, and for more than 10,000
    messages.
    """
    if frame.count(b",") >= _MOST_IN_BATCH and _is_long(frame):
        raise Malformed(
            INVALID_REQUEST,
            f"Invalid request: a batch has at most {_MOST_IN_BATCH} messages, and they are "
            "messages",
        )
    try:
        messages = [bytes(message) for message in _batch(frame)]
    except READ_ERRORS as bad:
        repaired = salvage.without_lone_surrogates(frame)
        if repaired is not None:
            return open_batch(repaired)
        what = _what_is_wrong(frame, bad)
        raise Malformed(PARSE_ERROR, f"Parse error: the batch is not valid JSON: {what}") from None
    if not messages:
        raise Malformed(INVALID_REQUEST, "Invalid request: an empty batch")
    return messages


def _is_long(frame: Frame) -> bool:
    """Whether a frame is a batch of too many messages, or has an element that is not a message.
    This check is much cheaper than splitting the batch.
    """
    try:
        return len(_counted(frame)) > _MOST_IN_BATCH
    except msgspec.ValidationError:
        return is_batch(frame)
    except READ_ERRORS:
        return False  # splitting it raises the error


def request(id: RequestId, method: str, params: bytes) -> Frame:
    """Return a request; `params` is encoded already."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (
        encode_id(id),
        encode_json(method),
        params,
    )


def notification(method: str, params: bytes) -> Frame:
    """Return a notification; `params` is encoded already, and omitted if it is empty."""
    if params == b"{}":
        return b'{"jsonrpc":"2.0","method":%b}' % encode_json(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode_json(method), params)


def response(id: RequestId, result: bytes) -> Frame:
    """Return a successful response; `result` is encoded already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode_id(id), result)


def stamped_response(id: RequestId, stamp: bytes, result: bytes) -> Frame:
    """Return a successful response. `stamp` (encoded members without braces) is inserted at the
    beginning of its result.
    """
    if result == b"{}":
        return b'{"jsonrpc":"2.0","id":%b,"result":{%b}}' % (encode_id(id), stamp)
    if len(result) < _SMALL:
        return b'{"jsonrpc":"2.0","id":%b,"result":{%b,%b}' % (encode_id(id), stamp, result[1:])
    head = b'{"jsonrpc":"2.0","id":%b,"result":{%b,' % (encode_id(id), stamp)
    return b"".join((head, memoryview(result)[1:], b"}"))


def failure(id: RequestId | None, code: int, message: str, data: Any = None) -> Frame:
    """Return an error response. It has no id only if the id of the request could not be read
    (`RPC-09`).
    """
    body = (
        {"code": code, "message": message}
        if data is None
        else {"code": code, "message": message, "data": data}
    )
    try:
        error = encode_json(body)
    except Exception:  # the error must be sent, even if its data cannot be encoded
        error = encode_json({"code": code, "message": message.encode("utf-8", "replace").decode()})
    if id is None:
        return b'{"jsonrpc":"2.0","error":%b}' % error
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode_id(id), error)


def is_answer(frame: Frame) -> bool:
    """Whether a frame that this module has built is a response. The frame is not decoded."""
    return _asks(frame) is None


def encode_id(id: RequestId) -> bytes:
    """Return an id as JSON of the same type (`RPC-05`)."""
    return b"%d" % id if type(id) is int else encode_json(id)
