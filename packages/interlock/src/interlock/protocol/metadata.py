"""The `_meta` of a request: the protocol's own keys are taken out when it is received, the author's
keys stay.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import force_setattr

from .. import types as t
from ..exchange import Caller, TraceContext
from ..wire.codec import decode
from ..wire.jsonrpc import READ_ERRORS

NO_META: Final = t.RequestMeta()
PROTOCOL_KEYS: Final = frozenset(
    field.encode_name for field in msgspec.structs.fields(t.RequestMeta)
)
"""The keys of a request's `_meta` that belong to the conversation and not to its author."""


class _ProtocolKeysOnly(t.RequestMeta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What nearly every request sends: then nothing of it is left for the author."""


TRACE_KEYS: Final = frozenset({"traceparent", "tracestate", "baggage"})
"""Those of them that an author may set: they are reserved, but not the conversation's."""

# A client sends the same `_meta` again and again.
_known: dict[bytes, t.RequestMeta] = {}
_MOST_KNOWN = 256
_LONGEST_KNOWN = 1024  # bytes

_decode_usual = msgspec.json.Decoder(_ProtocolKeysOnly).decode
_encode = msgspec.json.Encoder().encode


def take_meta(params: Any) -> t.RequestMeta:
    """Read the protocol's keys of `params.meta`, and leave the other keys there.

    The params must be fresh from the decoder: they are changed in place.

    Returns:
        The protocol's keys.

    Raises:
        Malformed: One of them has a value of the wrong type, or `_meta` is not an object.
    """
    raw: Raw = params.meta
    if raw is t.NOTHING:
        return NO_META
    data = bytes(raw) if len(raw) <= _LONGEST_KNOWN else b""
    known = _known.get(data)
    if known is not None:
        force_setattr(params, "meta", t.NOTHING)
        return known
    try:
        meta: t.RequestMeta = _decode_usual(raw)
    except (msgspec.ValidationError, *READ_ERRORS):
        meta = decode(raw, t.RequestMeta)
        members = decode(raw, dict[str, Raw])
        own = {name: value for name, value in members.items() if name not in PROTOCOL_KEYS}
        force_setattr(params, "meta", Raw(_encode(own)) if own else t.NOTHING)
        return meta
    force_setattr(params, "meta", t.NOTHING)
    if data and meta.progress_token is None and meta.traceparent is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[data] = meta
    return meta


def trace_of(meta: t.RequestMeta) -> TraceContext | None:
    """The trace context of a request, None where it has none that is valid (`OTL-01`, `OTL-02`)."""
    if meta.traceparent is None and meta.baggage is None:
        return None
    from .trace_context import checked  # late: its patterns cost a start more than most requests

    return checked(meta)


def traced(caller: Caller, meta: t.RequestMeta) -> Caller:
    """A remembered caller with the trace context of this request."""
    trace = trace_of(meta)
    return caller if trace is None else msgspec.structs.replace(caller, trace=trace)
