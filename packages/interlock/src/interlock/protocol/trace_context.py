"""W3C Trace Context and Baggage in the `_meta` of a request: values of another form are ignored
(`OTL-02`)."""

from __future__ import annotations

import re

from .. import types as t
from ..exchange import TraceContext

_MOST_BAGGAGE = 8192  # bytes that every receiver has to take (W3C Baggage, "Limits")
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?P<more>-.*)?"
)
_STATE_KEY = r"(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
_STATE_VALUE = r"[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
_STATE_MEMBER = re.compile(rf"[ \t]*(?:{_STATE_KEY}={_STATE_VALUE})?[ \t]*")
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_BAGGAGE_VALUE = r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*"
_PROPERTY = rf"[ \t]*;[ \t]*{_TOKEN}(?:[ \t]*=[ \t]*{_BAGGAGE_VALUE})?"
_BAGGAGE_MEMBER = re.compile(rf"[ \t]*{_TOKEN}[ \t]*=[ \t]*{_BAGGAGE_VALUE}(?:{_PROPERTY})*[ \t]*")


def is_traceparent(value: str) -> bool:
    """Whether a value is a `traceparent`; later versions than 00 may have more at their end."""
    found = _TRACEPARENT.fullmatch(value)
    return found is not None and (found["more"] is None or not value.startswith("00"))


def is_tracestate(value: str) -> bool:
    """Whether a value is a `tracestate`: at most 32 members with distinct keys."""
    members = value.split(",")
    keys = [member.strip(" \t").partition("=")[0] for member in members if member.strip(" \t")]
    return (
        len(keys) <= 32
        and len(set(keys)) == len(keys)
        and all(_STATE_MEMBER.fullmatch(member) for member in members)
    )


def is_baggage(value: str) -> bool:
    """Whether a value is a `baggage` of at most 8,192 bytes."""
    return len(value) <= _MOST_BAGGAGE and all(
        _BAGGAGE_MEMBER.fullmatch(member) for member in value.split(",")
    )


def checked(meta: t.RequestMeta) -> TraceContext | None:
    """The trace context of a request, None where nothing of it can be used.

    A state without a valid parent belongs to no trace, so that it is dropped too.
    """
    parent = meta.traceparent
    state = meta.tracestate
    baggage = meta.baggage
    if parent is not None and not is_traceparent(parent):
        parent = None
    if parent is None or (state is not None and not is_tracestate(state)):
        state = None
    if baggage is not None and not is_baggage(baggage):
        baggage = None
    if parent is None and baggage is None:
        return None
    return TraceContext(parent, state, baggage)
