"""Pass-through: the members of params and results that a forwarder did not change travel as the
bytes they came in.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from .. import types as t
from ..exchange import Exchange, RawResult, Received
from ..wire.codec import encode
from ..wire.jsonrpc import READ_ERRORS, encode_json
from ..wire.revisions import METHODS, Era, era
from .identity import SERVER_INFO

R = TypeVar("R", bound=t.Result)
_COMPLETE = b'"complete"'
_META = "_meta"
_RESULT_TYPE = "resultType"


class _Request(Struct):
    params: dict[str, Raw] = {}


_read_request = msgspec.json.Decoder(_Request).decode
_read_members = msgspec.json.Decoder(dict[str, Raw]).decode


def passes(x: Exchange) -> bool:
    """Whether an exchange came from a peer that speaks the revision in which it goes on."""
    return x.received is not None and x.received.caller.revision == x.caller.revision


def passed_params(x: Exchange) -> bytes | None:
    """Write the params of an exchange that passes, without `_meta`.

    What is as it was received, also what this revision does not know, is not encoded anew.

    Returns:
        A JSON object; None where the params have to be encoded as a whole.
    """
    received = x.received
    if received is None or received.frame is None or not passes(x):
        return None
    params = x.params
    if received.method != x.method or type(received.params) is not type(params):
        return None  # it became a request for something else on its way
    members = _read_request(received.frame).params
    members.pop(_META, None)
    if params is not received.params:
        _overlay(members, received, params, x.caller.revision)
    return _joined(members)


@lru_cache(maxsize=256)  # msgspec reads the annotations anew each time
def _fields_of(kind: Any) -> tuple[tuple[str, str], ...]:
    """Return the names of the fields of params and of their members, without `_meta`."""
    fields = msgspec.structs.fields(kind)
    return tuple((field.name, field.encode_name) for field in fields if field.name != "meta")


def _overlay(members: dict[str, Raw], received: Received, params: Any, revision: str) -> None:
    """Put the fields that were changed in the place of the members they came in."""
    before = received.params
    changed = [
        encoded
        for name, encoded in _fields_of(params.__class__)
        if getattr(params, name) is not getattr(before, name)
        and getattr(params, name) != getattr(before, name)
    ]
    if not changed:
        return
    fresh = _read_members(encode(replace(params, meta=t.NOTHING), revision))
    for name in changed:
        if name in fresh:
            members[name] = fresh[name]
        else:
            members.pop(name, None)


def passed_result(method: str, raw: Raw, revision: str) -> RawResult | None:
    """Let a result pass without reading it, once it is a JSON object that says it is complete.

    Args:
        method: The method of the request.
        raw: The result. It is valid JSON, as all of a message is.
        revision: The revision of both sides.

    Returns:
        None where it has to be read: it asks for input, is of another kind, or is no result at all.
    """
    try:
        members = _read_members(raw)
        result_type = members.pop(_RESULT_TYPE, None)
        meta = members.pop(_META, None)
        own = {} if meta is None else _read_members(meta)
    except (msgspec.ValidationError, *READ_ERRORS):
        return None
    if result_type is not None and bytes(result_type) != _COMPLETE:
        return None
    is_its_own = own.pop(SERVER_INFO, None) is None and result_type is None
    row = METHODS.get(method)
    kind = row.result if row is not None and row.result is not None else t.Result
    if is_its_own and era(revision) is Era.HANDSHAKE:
        return RawResult(bytes(raw), kind=kind)
    return RawResult(_joined(members), Raw(_joined(own)) if own else t.NOTHING, kind)


def without_protocol_keys(result: R) -> R:
    """A result that is forwarded, without what the server behind says of itself in `_meta`."""
    if result.meta is None or SERVER_INFO not in result.meta:
        return result
    own = {name: value for name, value in result.meta.items() if name != SERVER_INFO}
    return replace(result, meta=own or None)


def _joined(members: Mapping[str, Raw]) -> bytes:
    parts: list[bytes | Raw] = [b"{"]
    for name, value in members.items():
        parts += (encode_json(name), b":", value, b",")
    if members:
        parts.pop()
    parts.append(b"}")
    return b"".join(parts)
