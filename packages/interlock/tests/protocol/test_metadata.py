"""The `_meta` of a request: the protocol's keys are taken out, and the author's stay as they
were.
"""

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
        "traceparent": st.just("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
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


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACES = {
    "all of it": ((PARENT, "a=1,b@c= x ,", "k=v;p;q=1, m = %20"),
        (PARENT, "a=1,b@c= x ,", "k=v;p;q=1, m = %20")),
    "a later version with more": ((f"cc{PARENT[2:]}-more", None, None),
        (f"cc{PARENT[2:]}-more", None, None)),
    "version 00 with more": ((f"{PARENT}-more", "a=1", None), None),
    "version ff": ((f"ff{PARENT[2:]}", None, None), None),
    "capitals": ((PARENT.upper(), None, None), None),
    "no trace id": ((f"00-{'0' * 32}-b7ad6b7169203331-01", None, None), None),
    "no span id": ((f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01", None, None), None),
    "a line break": ((f"{PARENT}\n", None, None), None),
    "a state without a parent": (("nonsense", "a=1", "k=v"), (None, None, "k=v")),
    "a state with one key twice": ((PARENT, "a=1,a=2", None), (PARENT, None, None)),
    "a state of 33 members": ((PARENT, ",".join(f"k{n}=v" for n in range(33)), None),
        (PARENT, None, None)),
    "a state with a capital key": ((PARENT, "A=1", None), (PARENT, None, None)),
    "baggage without a value": ((PARENT, None, "k"), (PARENT, None, None)),
    "baggage with a space in its value": ((PARENT, None, "k=a b"), (PARENT, None, None)),
    "baggage that is too long": ((None, None, f"k={'v' * 8191}"), None),
}  # fmt: skip


@pytest.mark.parametrize("sent, found", TRACES.values(), ids=TRACES)
def test_values_of_another_form_are_no_trace_context(
    sent: tuple[str | None, ...], found: tuple[str | None, ...] | None
) -> None:
    """W3C Trace Context and Baggage say what is valid; a state is dropped with its parent
    (`OTL-02`).
    """
    names = ("traceparent", "tracestate", "baggage")
    members = {name: value for name, value in zip(names, sent, strict=True) if value is not None}
    trace = trace_of(take_meta(received(members)))
    assert trace == (TraceContext(*found) if found is not None else None)


def test_the_trace_of_a_request_is_on_its_caller() -> None:
    """`traceparent`, `tracestate` and `baggage`, as they were sent (`OTL-01`)."""
    sent = {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "x=1",
        "baggage": "a=b",
    }
    meta = take_meta(received(sent))
    assert trace_of(meta) == TraceContext(
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x=1", "a=b"
    )
    remembered = Caller("2025-11-25")
    assert traced(remembered, meta) == Caller("2025-11-25", trace=trace_of(meta))
    assert traced(remembered, take_meta(received({"mine": 1}))) is remembered
