"""The `_meta` of a request: the protocol's keys are taken out, and the author's stay as they were."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from interlock import types as t
from interlock.exchange import Caller, TraceContext
from interlock.protocol.metadata import PROTOCOL_KEYS, take_meta, trace_of, traced
from interlock.wire.jsonrpc import Malformed
from interlock.wire.revisions import NEWEST

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
RELATED = "io.modelcontextprotocol/related-task"

own_keys = st.text(max_size=20).filter(lambda name: name not in PROTOCOL_KEYS)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
protocol_values = st.fixed_dictionaries(
    {},
    optional={
        VERSION: st.just(NEWEST),
        CAPABILITIES: st.just({"roots": {}}),
        "progressToken": st.integers(0, 9) | st.text(max_size=5),
        "traceparent": st.just("00-1-2-01"),
        "baggage": st.just("a=b"),
    },
)


def received(meta: Any) -> t.PingRequestParams:
    """Params fresh from the decoder."""
    return msgspec.json.decode(msgspec.json.encode({"_meta": meta}), type=t.PingRequestParams)


@given(protocol_values, st.dictionaries(own_keys, values, max_size=4))
def test_what_is_the_protocols_is_read_and_what_is_the_authors_stays(
    protocol: dict[str, Any], own: dict[str, Any]
) -> None:
    """No key is lost, none is in both places, and unknown ones survive (`MET-06`)."""
    params = received({**own, **protocol})
    meta = take_meta(params)
    assert msgspec.json.decode(params.meta) == own
    assert msgspec.to_builtins(meta) == {
        msgspec.structs.fields(t.RequestMeta)[n].encode_name: protocol[name]
        for n, name in enumerate(f.encode_name for f in msgspec.structs.fields(t.RequestMeta))
        if name in protocol
    }
    if not own:
        assert params.meta is t.NOTHING


def test_keys_of_the_protocols_prefix_that_a_request_does_not_have_are_the_authors() -> None:
    """An extension's key must reach whoever reads it, also through a gateway."""
    params = received({VERSION: NEWEST, RELATED: {"taskId": "t1"}})
    take_meta(params)
    assert msgspec.json.decode(params.meta) == {RELATED: {"taskId": "t1"}}


@pytest.mark.parametrize(
    "meta",
    [
        {"progressToken": 1.5},
        {VERSION: 3},
        {VERSION: 3, "mine": 1},
        {CAPABILITIES: []},
        [],
        "text",
        7,
    ],
)
def test_a_value_of_the_wrong_type_is_malformed(meta: Any) -> None:
    """Whatever else is beside it."""
    with pytest.raises(Malformed):
        take_meta(received(meta))


@pytest.mark.parametrize("raw", [b'{"\xff":1}', b'{"a":"\xff"}', b'{"progressToken":"\xff"}'])
def test_what_is_not_utf_8_is_malformed_or_stays_raw(raw: bytes) -> None:
    """Broken text never raises anything but Malformed (`RPC-12`)."""
    params = t.PingRequestParams(meta=Raw(raw))
    try:
        take_meta(params)
    except Malformed:
        return
    assert bytes(params.meta) == raw


def test_the_trace_of_a_request_is_on_its_caller() -> None:
    """`traceparent`, `tracestate` and `baggage`, as they were sent (`OTL-01`)."""
    sent = {"traceparent": "00-1-2-01", "tracestate": "x=1", "baggage": "a=b"}
    meta = take_meta(received(sent))
    assert trace_of(meta) == TraceContext("00-1-2-01", "x=1", "a=b")
    remembered = Caller("2025-11-25")
    assert traced(remembered, meta) == Caller("2025-11-25", trace=trace_of(meta))
    assert traced(remembered, take_meta(received({"mine": 1}))) is remembered
