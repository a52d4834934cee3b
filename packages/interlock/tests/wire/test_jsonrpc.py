"""JSON-RPC envelopes: what is taken apart, what is refused with which code and id, and what is put
together.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from interlock import types as t
from interlock.wire import jsonrpc
from interlock.wire.jsonrpc import Malformed, open_batch, open_envelope

NOT_JSON: dict[str, tuple[bytes, Any]] = {
    "nothing": (b"", None),
    "blanks": (b"  \t ", None),
    "half an object": (b'{"jsonrpc":"2.0","id":1,"method":"ping"', 1),
    "half an object that ends in its id": (b'{"jsonrpc":"2.0","method":"ping","id":1', None),
    "half a string": (b'{"jsonrpc":"2.0","id":"1', None),
    "two messages": (
        b'{"jsonrpc":"2.0","method":"a"}{"jsonrpc":"2.0","method":"b","id":2}',
        None,
    ),
    "words": (b"Server listening on stdio", None),
    "a byte order mark": (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', None),
    "another encoding": ('{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"), None),
    "bad UTF-8 in the method": (b'{"jsonrpc":"2.0","id":1,"method":"pin\xff"}', 1),
    "half a UTF-8 sequence in the id": (
        b'{"jsonrpc":"2.0","id":"\xe2\x82","method":"ping"}',
        None,
    ),
    "a lone surrogate in the id": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', None),
    "NaN": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', 1),
    "NaN before the id": (b'{"jsonrpc":"2.0","params":{"x":NaN,"id":5},"id":"a"}', "a"),
    "Infinity": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":-Infinity}}', 1),
    "single quotes": (b"{'jsonrpc':'2.0','id':1,'method':'ping'}", None),
    "a trailing comma": (b'{"jsonrpc":"2.0","id":1,"method":"ping",}', 1),
    "a control character": (b'{"jsonrpc":"2.0","id":1,"method":"pi\x01ng"}', 1),
    "an id of five thousand digits": (
        b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % (b"1" * 5000),
        None,
    ),
    "an id beyond all numbers": (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', None),
    "deep nesting": (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%b%b}'
        % (b"[" * 200_000, b"]" * 200_000),
        1,
    ),
    "deep nesting that never ends": (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 200_000,
        1,
    ),
}

WRONG_SHAPE: dict[str, tuple[bytes, Any]] = {
    "null": (b"null", None),
    "a number": (b"12", None),
    "a string": (b'"ping"', None),
    "an empty object": (b"{}", None),
    "no version": (b'{"id":1,"method":"ping"}', 1),
    "another version": (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 1),
    "a number as version": (b'{"jsonrpc":2.0,"id":"a","method":"ping"}', "a"),
    "a float as id": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None),
    "a whole float as id": (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', None),
    "a bool as id": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None),
    "an object as id": (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', None),
    "a list as id": (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', None),
    "a number as method": (b'{"jsonrpc":"2.0","id":7,"method":5}', 7),
    "null as method": (b'{"jsonrpc":"2.0","id":"x","method":null}', "x"),
    "a string as error": (b'{"jsonrpc":"2.0","id":3,"error":"no"}', 3),
    "an error without code": (b'{"jsonrpc":"2.0","id":3,"error":{"message":"no"}}', 3),
    "an error with a string as code": (
        b'{"jsonrpc":"2.0","id":3,"error":{"code":"E1","message":"no"}}',
        3,
    ),
    "an error with a fraction as code": (
        b'{"jsonrpc":"2.0","id":3,"error":{"code":1.5,"message":"no"}}',
        3,
    ),
    "an error with a number as message": (
        b'{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":5}}',
        3,
    ),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None),
}


@pytest.mark.parametrize("frame, id", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_no_json_is_a_parse_error_with_the_id_that_can_be_found(
    frame: bytes, id: Any
) -> None:
    """-32700, with the id where it can be found beyond doubt (`RPC-09`, `RPC-12`, `ERR-01`)."""
    with pytest.raises(Malformed) as caught:
        open_envelope(frame)
    assert caught.value.code == t.PARSE_ERROR
    assert caught.value.id == id
    assert type(caught.value.id) is type(id)


@pytest.mark.parametrize(
    "frame, words",
    [
        (b'{"id":1,"x":NaN}', "NaN and Infinity are no JSON"),
        (b'{"id":1,"x":[-Infinity]}', "NaN and Infinity are no JSON"),
        (b'{"id":1,"x":%b' % (b"[" * 200_000), "nested too deeply"),
        (b'{"id":1,"x":"\xff"}', "not UTF-8"),
        (b'{"id":1,"x":tru}', "invalid character"),
    ],
)
def test_a_parse_error_says_what_is_wrong(frame: bytes, words: str) -> None:
    """The words are those that the caller of a tool sees when an answer cannot be read."""
    with pytest.raises(Malformed, match=words):
        open_envelope(frame)


def test_escaped_halves_of_surrogate_pairs_are_read_as_replacement_characters() -> None:
    """JavaScript writes them for text that was cut inside an emoji; whole pairs stay as they
    are.
    """
    frame = rb'{"jsonrpc":"2.0","id":1,"result":{"a":"\ud83d\ude00 \ud83d \udc00 \\ud800"}}'
    envelope = open_envelope(frame)
    assert envelope.id == 1
    assert json.loads(bytes(envelope.result)) == {"a": "\U0001f600 \ufffd \ufffd \\ud800"}
    assert [json.loads(m) for m in open_batch(rb'["\ud800", 1]')] == ["\ufffd", 1]


@pytest.mark.parametrize("frame, id", WRONG_SHAPE.values(), ids=WRONG_SHAPE)
def test_json_of_another_shape_is_an_invalid_request_with_its_id(frame: bytes, id: Any) -> None:
    """-32600, with the id where there is a usable one (`RPC-01`, `RPC-02`, `RPC-07`, `RPC-09`,
    `ERR-01`).
    """
    with pytest.raises(Malformed) as caught:
        open_envelope(frame)
    assert caught.value.code == t.INVALID_REQUEST
    assert caught.value.id == id
    assert type(caught.value.id) is type(id)


def test_a_malformed_answer_is_told_from_a_malformed_request() -> None:
    """What carries a result or an error and no method was meant as an answer, and an answer is
    never answered.
    """
    answers = [
        b'{"jsonrpc":"2.0","id":3,"error":"no"}',
        b'{"id":3,"result":{}}',
        b'{"jsonrpc":"1.0","id":3,"result":1}',
    ]
    requests = [
        b'{"jsonrpc":"2.0","id":3,"method":5,"result":{}}',
        b'{"id":3,"method":"ping"}',
        b'{"jsonrpc":"1.0","id":3}',
        b"5",
    ]
    for frames, expected in ((answers, True), (requests, False)):
        for frame in frames:
            with pytest.raises(Malformed) as caught:
                open_envelope(frame)
            assert caught.value.is_answer is expected, frame


def test_the_words_for_bad_bytes_do_not_repeat_them() -> None:
    """An error message is one short sentence, whatever was sent, and however much of it
    (`RPC-10`).
    """
    long = b'{"jsonrpc":"%b","id":1}' % (b"2" * 1_000_000)
    for frame in (*(frame for frame, _ in (*NOT_JSON.values(), *WRONG_SHAPE.values())), long):
        with pytest.raises(Malformed) as caught:
            open_envelope(frame)
        assert len(str(caught.value)) <= 203
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "id",
    [
        0,
        1,
        -1,
        2**53,
        2**63 - 1,
        2**63,
        2**64,
        -(2**70),
        10**4000,
        "",
        "1",
        "a b",
        'quote"back\\slash',
        "\n",
        "né",
        "𝄞",
        "\u2028",
    ],
)
def test_an_id_comes_back_as_it_came(id: int | str) -> None:
    """Number stays number and string stays string, however large or strange (`RPC-02`,
    `RPC-05`).
    """
    frame = b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % jsonrpc.encode_id(id)
    envelope = open_envelope(frame)
    assert envelope.id == id
    assert type(envelope.id) is type(id)
    for answer in (
        jsonrpc.response(id, b"{}"),
        jsonrpc.failure(id, -1, "no"),
        jsonrpc.stamped_response(id, b'"a":1', b"{}"),
    ):
        assert open_envelope(answer).id == id
        assert b"\n" not in answer


def test_the_last_of_doubled_members_counts_and_a_null_id_is_seen() -> None:
    """Duplicate keys are no error in JSON; a null id is kept apart from none at all (`RPC-02`,
    `RPC-09`).
    """
    assert open_envelope(b'{"jsonrpc":"2.0","id":1,"method":"a","id":2,"method":"b"}').id == 2
    assert open_envelope(b'{"jsonrpc":"2.0","id":null,"method":"a"}').id is None
    assert open_envelope(b'{"jsonrpc":"2.0","method":"a"}').id is UNSET


def test_unknown_members_and_blanks_do_no_harm() -> None:
    """What a newer peer adds beside the known members is passed over (`RPC-23`)."""
    envelope = open_envelope(
        b' \t{ "extra":[1,{"a":2}], "method":"ping",\r "jsonrpc":"2.0", "id":"x" }\r'
    )
    assert (envelope.method, envelope.id, bytes(envelope.params)) == ("ping", "x", b"{}")


def test_an_error_of_null_is_no_error() -> None:
    """Some peers send both members, one of them null; there is no doubt what they mean
    (`RPC-06`).
    """
    assert not open_envelope(b'{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}').error


@pytest.mark.parametrize(
    "frame, is_answer",
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}', True),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","error":{"code":1,"message":""}}', False),
    ],
)
def test_a_message_is_of_one_kind(frame: bytes, is_answer: bool) -> None:
    """A method, a result or an error, and not two of them (`RPC-06`)."""
    with pytest.raises(Malformed) as refused:
        open_envelope(frame)
    bad = refused.value
    assert (bad.code, bad.id, bad.is_answer) == (t.INVALID_REQUEST, 1, is_answer)


def test_members_that_are_null_do_not_make_it_two_kinds() -> None:
    """Some peers write every member that their envelope has."""
    every = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"result":null,"error":null}'
    assert open_envelope(every).method == "ping"
    failed = b'{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":""}}'
    assert open_envelope(failed).error


SPOILED = [
    b"\xff",
    b"\x80",
    b"\xc3",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\xf5\x80\x80\x80",
    b"\xe2\x82",
]


@pytest.mark.parametrize("bad", SPOILED, ids=bytes.hex)
def test_what_is_not_utf8_is_refused_wherever_it_stands(bad: bytes) -> None:
    """Also in members that nobody reads; what is UTF-8 is taken (`RPC-12`)."""
    whole = (
        '{"jsonrpc":"2.0","id":1,"method":"ping","é":"ü","params":{"x":["ß",{"a":"🎈"}]},"z":"é"}'
    )
    frame = whole.encode()
    assert open_envelope(frame).id == 1
    places = [n for n in range(len(frame)) if frame[n : n + 1] == b'"' and frame[n - 1] >= 0x80]
    assert len(places) >= 5
    for place in places:
        with pytest.raises(Malformed) as refused:
            open_envelope(frame[:place] + bad + frame[place:])
        assert refused.value.code == t.PARSE_ERROR


def test_params_stay_unread() -> None:
    """The envelope does not look into params: that is the second pass."""
    envelope = open_envelope(b'{"jsonrpc":"2.0","method":"m","params":{"deep": [1, 2]}}')
    assert bytes(envelope.params) == b'{"deep": [1, 2]}'


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def refusal(read: Callable[[bytes], object], frame: bytes) -> int | None:
    """The code that a frame is refused with, None where it is read."""
    try:
        read(frame)
    except Malformed as bad:
        return bad.code
    return None


@given(json_values)
def test_any_json_opens_or_is_refused(value: Any) -> None:
    """There is no JSON for which opening does anything but return or raise Malformed."""
    frame = json.dumps(value).encode()
    assert refusal(open_envelope, frame) in (t.INVALID_REQUEST, t.PARSE_ERROR)


@given(st.binary(max_size=60))
def test_any_bytes_open_or_are_refused(frame: bytes) -> None:
    """The same for bytes that need not be JSON, alone and inside a message."""
    for whole in (
        frame,
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":%b}' % frame,
        b"[" + frame + b"]",
    ):
        for read in (open_envelope, open_batch):
            assert refusal(read, whole) in (None, t.PARSE_ERROR, t.INVALID_REQUEST)


ids = st.integers(-(2**70), 2**70) | st.text()


@given(
    id=ids,
    method=st.text(),
    params=st.dictionaries(st.text(), json_values, max_size=3),
    code=st.integers(),
    data=json_values,
)
def test_what_is_put_together_comes_apart_the_same(
    id: int | str, method: str, params: dict[str, Any], code: int, data: Any
) -> None:
    """Each of the four kinds of message survives its own envelope, on one line (`RPC-01`, `RPC-06`,
    `STD-01`).
    """
    body = jsonrpc.encode_json(params)
    asked = open_envelope(jsonrpc.request(id, method, body))
    assert (asked.id, asked.method, bytes(asked.params)) == (id, method, body)
    told = open_envelope(jsonrpc.notification(method, body))
    assert (told.id, told.method, bytes(told.params)) == (UNSET, method, body)
    answered = open_envelope(jsonrpc.response(id, body))
    assert (answered.id, answered.method, bytes(answered.result), answered.error) == (
        id,
        UNSET,
        body,
        UNSET,
    )
    failed = open_envelope(jsonrpc.failure(id, code, method, data))
    assert failed.error == jsonrpc.ErrorBody(code, method, data)
    assert failed.result is UNSET
    for frame in (jsonrpc.request(id, method, body), jsonrpc.failure(id, code, method, data)):
        assert b"\n" not in frame
        assert json.loads(frame)["jsonrpc"] == "2.0"


def test_an_error_without_a_readable_id_has_no_id() -> None:
    """The member is left out, not null (`RPC-09`); detail stays out where there is none
    (`RPC-07`).
    """
    assert json.loads(jsonrpc.failure(None, -32700, "no")) == {
        "jsonrpc": "2.0",
        "error": {"code": -32700, "message": "no"},
    }
    assert json.loads(jsonrpc.failure(1, -1, "", {"a": 1})) == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -1, "message": "", "data": {"a": 1}},
    }


def test_an_error_always_has_a_message() -> None:
    """Both code and message are demanded, even where the message is empty (`RPC-07`)."""
    assert json.loads(jsonrpc.failure(1, -32603, ""))["error"] == {"code": -32603, "message": ""}


@pytest.mark.parametrize(
    "data",
    [object(), "\ud800", {"a": {1, object()}}, float, lambda: None],
    ids=["object", "surrogate", "set", "type", "function"],
)
def test_an_error_is_sent_even_where_its_detail_cannot_be(data: Any) -> None:
    """An author's McpError may carry anything; a caller must not wait for ever because of that."""
    error = json.loads(jsonrpc.failure(5, -32000, "it broke", data))
    assert error == {"jsonrpc": "2.0", "id": 5, "error": {"code": -32000, "message": "it broke"}}
    assert (
        json.loads(jsonrpc.failure(5, -32000, "half \ud800 of a sign", None))["error"]["code"]
        == -32000
    )


def test_a_stamp_goes_to_the_head_of_a_result() -> None:
    """An empty result gets no comma, another keeps its members (`RPC-19`)."""
    stamp = b'"resultType":"complete"'
    assert json.loads(jsonrpc.stamped_response("a", stamp, b"{}")) == {
        "jsonrpc": "2.0",
        "id": "a",
        "result": {"resultType": "complete"},
    }
    assert json.loads(jsonrpc.stamped_response(1, stamp, b'{"x":[1]}'))["result"] == {
        "resultType": "complete",
        "x": [1],
    }


def test_batches_are_told_from_messages() -> None:
    """A JSON array is a batch, whatever blanks stand before it (`RPC-13`)."""
    assert [jsonrpc.is_batch(f) for f in (b"[]", b" \t[1]", b"{}", b'"[1]"', b"", b"  ")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_a_batch_comes_apart_into_its_messages() -> None:
    """Each as the bytes that it was; an empty one is an invalid request, and one that is no JSON a
    parse error (`RPC-13`).
    """
    assert open_batch(b' [ {"a": 1} ,2,"x", [3] ] ') == [b'{"a": 1}', b"2", b'"x"', b"[3]"]
    for frame, code in (
        (b"[]", t.INVALID_REQUEST),
        (b"[1", t.PARSE_ERROR),
        (b"[1]]", t.PARSE_ERROR),
        (b"{}", t.PARSE_ERROR),
    ):
        with pytest.raises(Malformed) as caught:
            open_batch(frame)
        assert caught.value.code == code
