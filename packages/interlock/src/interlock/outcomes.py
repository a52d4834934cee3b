"""Outcomes of calls as bytes: results and errors that are recorded, and returned again to a
retry.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from . import types as t
from .exchange import AnyResult, RawResult
from .idempotency import EndedAction, in_doubt
from .protocol.pass_through import passed_result
from .wire.codec import decode, encode
from .wire.revisions import METHODS


class _Outcome(Struct, omit_defaults=True):
    """A result for a revision, a question, or an error: (code, message, data)."""

    result: Raw = t.NOTHING
    meta: Raw = t.NOTHING
    asks: Raw = t.NOTHING
    error: tuple[int, str, Any] | None = None


_write = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder(_Outcome).decode


def record_result(result: AnyResult, method: str, revision: str) -> bytes:
    """Encode a result; empty bytes for a result that cannot be returned again."""
    if isinstance(result, t.InputRequiredResult):
        return _write(_Outcome(asks=Raw(encode(result, revision))))
    if isinstance(result, t.Result):
        passed = passed_result(method, Raw(encode(result, revision)), revision)
        if passed is None:
            return b""
        result = passed
    return _write(_Outcome(result=Raw(result.body), meta=result.meta))


def record_error(bad: BaseException) -> bytes:
    """Encode an exception as the error that the peer gets."""
    if isinstance(bad, t.McpError):
        try:
            return _write(_Outcome(error=(bad.code, bad.message, bad.data)))
        except TypeError:
            return _write(_Outcome(error=(bad.code, bad.message, None)))
    return _write(_Outcome(error=(t.INTERNAL_ERROR, "Internal error", None)))


def outcome_of(ended: EndedAction, method: str) -> AnyResult:
    """Decode the result of a call that has ended. Raises McpError if the call ended with an
    error.
    """
    if ended.outcome is None:
        raise in_doubt("The call has ended, and its result is no longer kept.")
    outcome = _read(ended.outcome)
    if outcome.error is not None:
        raise t.McpError(*outcome.error)
    if outcome.asks is not t.NOTHING:
        asks: t.InputRequiredResult = decode(outcome.asks, t.InputRequiredResult)
        return asks
    row = METHODS.get(method)
    kind = row.result if row is not None and row.result is not None else t.Result
    return RawResult(bytes(outcome.result), outcome.meta, kind)
