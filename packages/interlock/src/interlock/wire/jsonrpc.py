"""JSON-RPC 2.0 envelopes: messages opened without reading their params, and put together around
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
_asks = re.compile(
    rb'\{"jsonrpc":"2\.0",(?:"id":(?:-?[0-9]+|"(?:[^"\\]|\\.)*"),)?"method":'
).match  # a request or a notification


class ErrorBody(Struct, frozen=True):
    """The `error` of a JSON-RPC response."""

    code: int
    message: str = ""
    data: Any = None


class Envelope(Struct, frozen=True):
    """One message, its params and result still unread; which fields are set says what kind of
    message it is.
    """

    jsonrpc: Literal["2.0"]
    method: str | UnsetType = UNSET
    id: RequestId | UnsetType | None = UNSET
    params: Raw = NOTHING
    result: Raw | UnsetType = UNSET
    error: ErrorBody | UnsetType | None = UNSET  # some peers send null beside a result


def request_reader(params: Mapping[str, type[Any]]) -> Callable[[Frame], Any]:
    """A decoder that reads a request in one pass, its params as the type that its method has in
    `params`.

    What it returns has `id`, `params` and, as the tag of its type, the method. It raises one of
    READ_ERRORS for all that is no such request; `open_envelope` says what it is then.
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
                forbid_unknown_fields=True,  # so that a `result` beside a method is found
            )
        )
    return msgspec.json.Decoder(reduce(or_, kinds)).decode


class _Trace(Struct, frozen=True):
    """What can still be learned from a message that is not an envelope."""

    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Member(Struct, gc=False):
    """The least that a message of a batch is."""

    jsonrpc: Literal["2.0"]


class Malformed(Exception):
    """Bytes that are no JSON, or JSON that is not the shape it should be; the only exception that
    reading raises.

    `code` is the JSON-RPC error to answer with and `id` the message's id where it could be read;
    `is_answer` says that it was meant as a response, which is never answered.
    """

    def __init__(
        self, code: int, message: str, id: RequestId | None = None, *, is_answer: bool = False
    ) -> None:
        super().__init__(
            message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
        )  # it may hold a piece of what was sent
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
"""All that msgspec raises for bytes that it cannot read (deep nesting is a RecursionError)."""


def open_envelope(frame: Frame) -> Envelope:
    """Take one message apart.

    Escaped surrogates without a partner are read as U+FFFD, but not in an id, which must come back
    as it was.

    Raises:
        Malformed: The message is no JSON-RPC; with the id, where it could be found.
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

    A member that is null does not count: some peers write every member of their envelope.
    """
    has_result = envelope.result is not UNSET and bytes(envelope.result) != b"null"
    if envelope.method is not UNSET and (has_result or envelope.error):
        raise _explained(frame, "a method beside a result or an error")
    if has_result and envelope.error:
        raise _explained(frame, "both a result and an error")


def check_utf8(frame: Frame) -> None:
    """Check that a frame is UTF-8 as a whole (`RPC-12`).

    Reading it does not look into fields that nobody wants.

    Raises:
        Malformed: It is not.
    """
    if frame.isascii():
        return
    try:
        str(frame, "utf-8")
    except UnicodeDecodeError as bad:
        raise _unreadable(frame, bad) from None


def _unreadable(frame: Frame, bad: Exception) -> Malformed:
    """A message that is no JSON: what is wrong with it, and its id where that can be found all the
    same.
    """
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
    """A message that is JSON of a wrong shape, with its id where there is a usable one."""
    try:
        # It builds nothing: a few MB of small values would be a hundred times that, and seconds.
        _skip(frame)
    except READ_ERRORS as bad:
        return _unreadable(frame, bad)
    try:
        trace = _trace(frame)
    except READ_ERRORS:
        trace = _Trace()  # no object
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
    """The messages of a batch. Raises Malformed; an empty batch is one, and one of more than 10,000
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
    """Whether a batch is one of too many messages, or of what is none; costs a fraction of what
    taking it apart would.
    """
    try:
        return len(_counted(frame)) > _MOST_IN_BATCH
    except msgspec.ValidationError:
        return is_batch(frame)
    except READ_ERRORS:
        return False  # taking it apart says what it is


def request(id: RequestId, method: str, params: bytes) -> Frame:
    """A request; `params` is encoded already."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (
        encode_id(id),
        encode_json(method),
        params,
    )


def notification(method: str, params: bytes) -> Frame:
    """A notification; `params` is encoded already, and left out where it is empty."""
    if params == b"{}":
        return b'{"jsonrpc":"2.0","method":%b}' % encode_json(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode_json(method), params)


def response(id: RequestId, result: bytes) -> Frame:
    """A successful response; `result` is encoded already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode_id(id), result)


def stamped_response(id: RequestId, stamp: bytes, result: bytes) -> Frame:
    """A successful response with `stamp` (members without braces, encoded already) put at the head
    of its result.
    """
    if result == b"{}":
        return b'{"jsonrpc":"2.0","id":%b,"result":{%b}}' % (encode_id(id), stamp)
    head = b'{"jsonrpc":"2.0","id":%b,"result":{%b,' % (encode_id(id), stamp)
    return b"".join((head, memoryview(result)[1:], b"}"))


def failure(id: RequestId | None, code: int, message: str, data: Any = None) -> Frame:
    """An error response; without an id only where the request's could not be read (`RPC-09`)."""
    body = (
        {"code": code, "message": message}
        if data is None
        else {"code": code, "message": message, "data": data}
    )
    try:
        error = encode_json(body)
    except Exception:  # an error must be told, even where its detail cannot be
        error = encode_json({"code": code, "message": message.encode("utf-8", "replace").decode()})
    if id is None:
        return b'{"jsonrpc":"2.0","error":%b}' % error
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode_id(id), error)


def is_answer(frame: Frame) -> bool:
    """Whether a frame that was put together here is a response; it is not read for that."""
    return _asks(frame) is None


def encode_id(id: RequestId) -> bytes:
    """An id as JSON, its type kept (`RPC-05`)."""
    return b"%d" % id if type(id) is int else encode_json(id)
