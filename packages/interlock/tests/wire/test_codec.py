"""Types to bytes and back where it gets rough: unknown content, strange JSON, deep nesting, and
what an older revision never said.
"""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from interlock import types as t
from interlock.wire.codec import compile_cut, decode, encode
from interlock.wire.jsonrpc import Malformed
from interlock.wire.revisions import METHODS, NEWEST, REVISIONS
from tests.history.samples import full

R1, R2, R3, R4, R5 = REVISIONS
KINDS = sorted(
    {kind for row in METHODS.values() for kind in (row.params, row.result) if kind},
    key=lambda kind: kind.__name__,
)

UNREADABLE = {
    "half a message": b'{"content":[',
    "bad UTF-8": b'{"content":[{"type":"text","text":"\xff"}]}',
    "a lone surrogate": b'{"content":[{"type":"text","text":"\\udc00"}]}',
    "a lone surrogate in an unknown block": b'{"content":[{"type":"video","text":"\\udc00"}]}',
    "NaN": b'{"content":[],"structuredContent":NaN}',
    "a number beyond all numbers": b'{"content":[],"structuredContent":1e400}',
    "a whole number of five thousand digits": b'{"content":[],"structuredContent":%b}'
    % (b"7" * 5000),
    "deep nesting": b'{"content":[],"structuredContent":%b%b}' % (b"[" * 100_000, b"]" * 100_000),
    "deep nesting in an unknown block": b'{"content":[{"type":"video","a":%b%b}]}'
    % (b"[" * 100_000, b"]" * 100_000),
    "no content": b"{}",
    "null as content": b'{"content":null}',
    "a block without a kind": b'{"content":[{}]}',
    "a block whose kind is a number": b'{"content":[{"type":5}]}',
    "a known block without its data": b'{"content":[{"type":"image","data":"AA=="}]}',
    "a block of another place": b'{"content":[{"type":"tool_use","id":"1","name":"x","input":{}}]}',
    "a block of a kind whose name never ends": (
        b'{"content":[{"type":"text"}],"messages":[{"type":"%b"}]}'
    )
    % (b"x" * 1_000_000),
    "a scope whose name never ends": b'{"content":[],"resultType":%b}' % (b"[" * 500 + b"]" * 500),
    "a list": b"[]",
    "null": b"null",
}


@pytest.mark.parametrize("raw", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_invalid_params(raw: bytes) -> None:
    """One exception with one code for all of it, in words that do not repeat what was sent
    (`ERR-01`).
    """
    with pytest.raises(Malformed) as caught:
        decode(raw, t.CallToolResult)
    assert caught.value.code == t.INVALID_PARAMS
    assert len(str(caught.value)) <= 203


def test_the_words_say_where() -> None:
    """Whoever reads the error finds the place."""
    with pytest.raises(Malformed, match=r"\$\.content\[1\]\.text"):
        decode(
            b'{"content":[{"type":"text","text":"a"},{"type":"text","text":5}]}', t.CallToolResult
        )


@pytest.mark.parametrize(
    "number",
    [
        2**53 - 1,
        2**53 + 1,
        2**63,
        2**64,
        -(2**63) - 1,
        10**300,
        0.1,
        5e-324,
        1.7976931348623157e308,
        -0.0,
    ],
    ids=str,
)
def test_numbers_pass_unchanged(number: float) -> None:
    """However large a whole number is, and to the last bit of a fraction."""
    result = decode(
        b'{"content":[],"structuredContent":%b}' % json.dumps(number).encode(), t.CallToolResult
    )
    assert result.structured_content == number
    assert type(result.structured_content) is type(number)
    assert json.loads(encode(result))["structuredContent"] == number


def test_the_last_of_doubled_members_counts() -> None:
    """Duplicate keys are no error; what stands last is what is read, at every depth."""
    raw = (
        b'{"content":[],"structuredContent":{"a":1,"a":{"b":1,"b":2}},"content":[{"type":"text",'
        b'"text":"x","text":"y"}]}'
    )
    result = decode(raw, t.CallToolResult)
    assert result.text == "y"
    assert result.structured_content == {"a": {"b": 2}}


def test_null_counts_as_absent_only_where_it_may() -> None:
    """An optional member may be null; structured content that is null is a value (`TOL-07`)."""
    read = decode(
        b'{"content":[],"isError":null,"_meta":null,"resultType":null,"structuredContent":null}',
        t.CallToolResult,
    )
    assert read == t.CallToolResult(content=[], structured_content=None)
    assert decode(b'{"content":[]}', t.CallToolResult).structured_content is UNSET
    assert json.loads(encode(read)) == {"content": [], "structuredContent": None}


VIDEO = {"type": "video", "url": "x:y", "frames": [1, {"type": "keyframe"}]}
HOLDERS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "a tool's result": (
        t.CallToolResult,
        {"content": [{"type": "text", "text": "a"}, VIDEO, VIDEO]},
    ),
    "a prompt's message": (t.GetPromptResult, {"messages": [{"role": "user", "content": VIDEO}]}),
    "a model's answer": (
        t.CreateMessageResult,
        {"role": "assistant", "model": "m", "content": VIDEO},
    ),
    "a model's answer of several": (
        t.CreateMessageResult,
        {"role": "assistant", "model": "m", "content": [VIDEO]},
    ),
    "a message to a model": (
        t.CreateMessageRequestParams,
        {"maxTokens": 1, "messages": [{"role": "user", "content": [VIDEO]}]},
    ),
    "a tool's result shown to a model": (
        t.CreateMessageRequestParams,
        {
            "maxTokens": 1,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "toolUseId": "1",
                            "content": [{"type": "text", "text": ""}, VIDEO],
                        }
                    ],
                }
            ],
        },
    ),
}


@pytest.mark.parametrize("revision", REVISIONS[3:])
@pytest.mark.parametrize("kind, data", HOLDERS.values(), ids=HOLDERS)
def test_content_of_an_unknown_kind_is_kept_and_passed_on(
    kind: type[Any], data: dict[str, Any], revision: str
) -> None:
    """A newer peer's block does not make a message unreadable, and comes out as it went in
    (`RPC-23`).
    """
    value = decode(json.dumps(data).encode(), kind)
    assert b"interlock/unknown" not in encode(value, revision)
    assert json.loads(encode(value, revision)) == data


def test_an_unknown_block_stands_where_it_stood() -> None:
    """Type and order of the others are as ever."""
    result = decode(json.dumps(HOLDERS["a tool's result"][1]).encode(), t.CallToolResult)
    assert [type(block) for block in result.content] == [
        t.TextContent,
        t.UnknownContent,
        t.UnknownContent,
    ]
    assert result.content[1].block == VIDEO


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_unknown_members_are_passed_over_everywhere(kind: type[Any]) -> None:
    """What a later revision adds to any message does no harm (`RPC-23`)."""
    for turn in range(3):
        value = full(kind, NEWEST, turn)
        data = json.loads(encode(value))
        later = decode(json.dumps({"fromTheFuture": [1, {"x": None}], **data}).encode(), kind)
        assert json.loads(encode(later)) == data


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_newest_revision_loses_nothing(kind: type[Any]) -> None:
    """Read what was written, write it again: the same bytes."""
    for turn in range(6):
        written = encode(full(kind, NEWEST, turn))
        assert encode(decode(written, kind)) == written


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_written_for_a_revision_can_be_read_and_is_cut_once(
    kind: type[Any], revision: str
) -> None:
    """Decoding is blind to the revision; cutting what was cut changes nothing more."""
    for turn in range(6):
        written = encode(full(kind, revision, turn), revision)
        assert encode(decode(written, kind), revision) == written


def test_cutting_leaves_the_value_alone() -> None:
    """A result that goes to callers of several revisions is one value: each gets its own cut of
    it.
    """
    tool = t.Tool(
        name="a",
        title="A",
        input_schema={"type": "object"},
        icons=[t.Icon(src="x:y")],
        output_schema={"type": "array"},
    )
    listing = t.ListToolsResult(
        tools=[tool], ttl_ms=5, cache_scope="public", result_type="complete"
    )
    before = encode(listing)
    sizes = [len(encode(listing, revision)) for revision in REVISIONS]
    assert encode(listing) == before
    assert sizes == sorted(sizes)
    assert listing.tools[0] is tool


def test_questions_in_a_result_are_cut_too() -> None:
    """They lie in an object that may be absent. Task metadata is of 2025-11-25 only."""
    params = t.ElicitRequestParams(message="?", task=t.TaskMetadata(ttl=5))
    asking = t.InputRequiredResult(input_requests={"one": t.ElicitRequest(params)})
    assert b"task" not in encode(asking)
    assert b'"task":{"ttl":5}' in encode(params, R4)


def test_a_value_that_needs_no_cut_is_not_copied() -> None:
    """The everyday result, a text, costs nothing more under an older revision."""
    cut = compile_cut(t.CallToolResult, R1)
    assert cut is not None
    result = t.CallToolResult(content=[t.TextContent("x")])
    assert cut(result) is result


def test_halves_of_surrogate_pairs_are_written_as_replacement_characters():
    """Wherever they stand; what else there is stays as it was (as names of files that are not UTF-8
    have them).
    """
    result = t.CallToolResult(
        content=[t.TextContent("a\udce9 \U0001f600")],
        structured_content={"\ud800": ["x", {"b": "\udfff"}, 1, None, True]},
        meta={"m": "\ud83d"},
    )
    for revision in (NEWEST, R3):
        assert json.loads(encode(result, revision)) == {
            "content": [{"type": "text", "text": "a\ufffd \U0001f600"}],
            "structuredContent": {"\ufffd": ["x", {"b": "\ufffd"}, 1, None, True]},
            "_meta": {"m": "\ufffd"},
        }


UNWRITABLE = {
    "an object of no JSON": object(),
    "a key of no JSON": {(1, 2): 3},
    "a number of five thousand digits": 10**5000,
    "a circle": (circle := []) or circle.append(circle) or circle,
}


@pytest.mark.parametrize("value", UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_is_no_json_is_an_ordinary_exception(value: Any) -> None:
    """An author's result that cannot be written raises something that `except Exception` sees, and
    spoils nothing for the next.
    """
    with pytest.raises(Exception, match=r".") as caught:
        encode(t.CallToolResult(content=[], structured_content={"a": value}))
    assert isinstance(caught.value, TypeError | ValueError | RecursionError)
    assert encode(t.CallToolResult(content=[])) == b'{"content":[]}'


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    data=st.dictionaries(
        st.sampled_from(["content", "structuredContent", "isError", "_meta", "type", "messages"]),
        json_values,
    )
)
def test_any_json_is_a_result_or_malformed(data: dict[str, Any]) -> None:
    """There is no third way; what can be read can be written for every revision."""
    try:
        value = decode(json.dumps(data).encode(), t.CallToolResult)
    except Malformed:
        return
    for revision in REVISIONS:
        json.loads(encode(value, revision))


@given(value=json_values)
def test_any_structured_content_passes_unchanged(value: Any) -> None:
    """Any JSON value in the newest revision, an object or nothing before (`TOL-06`, `TOL-07`)."""
    result = t.CallToolResult(content=[], structured_content=value)
    assert json.loads(encode(result))["structuredContent"] == value
    before = json.loads(encode(result, R4))
    assert before == (
        {"content": [], "structuredContent": value} if isinstance(value, dict) else {"content": []}
    )


def test_params_kept_unread_pass_byte_for_byte() -> None:
    """Arguments are the author's: blanks, order, and numbers as they were written."""
    raw = b'{ "b":1.50, "a" : [1e2] }'
    params = decode(b'{"name":"x","arguments":%b}' % raw, t.CallToolRequestParams)
    assert bytes(params.arguments) == raw
    assert encode(params) == b'{"name":"x","arguments":%b}' % raw
    assert (
        encode(t.CallToolRequestParams(name="x", arguments=Raw(b"{}"), meta=t.NOTHING))
        == b'{"name":"x","arguments":{}}'
    )


@pytest.mark.parametrize(
    "sent, is_error",
    [
        (b"{}", False),
        (b'{"isError":false}', False),
        (b'{"isError":true}', True),
        (b'{"isError":null}', False),
    ],
)
def test_a_result_says_plainly_whether_it_is_an_error(sent: bytes, is_error: bool):
    """False where nothing is said, or null, as some peers write it; what is False is not sent."""
    result = decode(
        b'{"content":[],' + sent[1:] if len(sent) > 2 else b'{"content":[]}', t.CallToolResult
    )
    assert result.is_error is is_error
    assert t.CallToolResult(content=[]).is_error is False
    assert (b"isError" in encode(result)) is is_error


def _objects(kind: type[Any]) -> list[tuple[str, ...]]:
    """Where capabilities, and parts of them, are objects."""
    found: list[tuple[str, ...]] = []
    for f in msgspec.structs.fields(kind):
        kinds = get_args(f.type)
        if bool in kinds:
            continue
        found.append((f.encode_name,))
        for part in kinds:
            if isinstance(part, type) and issubclass(part, msgspec.Struct):
                found += [(f.encode_name, *rest) for rest in _objects(part)]
    return found


CAPABILITIES = [
    (t.InitializeRequestParams, "capabilities", t.ClientCapabilities),
    (t.InitializeResult, "capabilities", t.ServerCapabilities),
    (t.DiscoverResult, "capabilities", t.ServerCapabilities),
    (t.RequestMeta, "io.modelcontextprotocol/clientCapabilities", t.ClientCapabilities),
]


@pytest.mark.parametrize("kind, member, capabilities", CAPABILITIES)
@given(data=st.data())
def test_capabilities_that_are_true_count_as_objects(
    kind: type[Any], member: str, capabilities: type[Any], data: st.DataObject
) -> None:
    """Each that is an object; false leaves it out, anything else is refused (`LIF-15`)."""
    said: dict[str, Any] = {}
    meant: dict[str, Any] = {}
    places = data.draw(st.lists(st.sampled_from(_objects(capabilities)), min_size=1, unique=True))
    for place in sorted(places):
        value = data.draw(st.booleans())
        inner = said
        outer = meant
        for name in place[:-1]:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                break
            outer = outer.setdefault(name, {})
        else:
            inner[place[-1]] = value
            if value:
                outer[place[-1]] = {}
    info = {"name": "x", "version": "1"}
    whole = {
        **{"protocolVersion": "x", "clientInfo": info, "serverInfo": info},
        **{"supportedVersions": [], "ttlMs": 0, "cacheScope": "public"},
    }
    read = [
        decode(json.dumps({**whole, member: stated}).encode(), kind) for stated in (said, meant)
    ]
    assert read[0] == read[1]
    for wrong in (1, "yes", []):
        stated = {places[0][0]: wrong}
        with pytest.raises(Malformed):
            decode(json.dumps({**whole, member: stated}).encode(), kind)
