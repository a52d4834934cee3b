"""Tapes: what goes in comes out, differences are found and said, and blanks take what only the run
can know.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, Implementation, Server
from interlock.tape import Blanks, Line, Tape
from interlock.testing import Clock

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
frames = st.binary(max_size=60) | values.map(lambda value: json.dumps(value).encode())
lines = st.builds(
    Line,
    st.sampled_from(["client", "server"]),
    frames,
    st.floats(0, 1e6).map(lambda at: round(at, 6)),
)


@given(st.lists(lines, max_size=8), st.dictionaries(st.text(), values, max_size=2))
def test_what_is_saved_is_loaded(recorded: list[Line], about: dict):
    """Whatever went over the wire, JSON or not: the bytes come back as they were."""
    tape = Tape(recorded, about=about)
    again = Tape.from_bytes(tape.to_bytes(times=True))
    assert again.about == about
    assert [(line.sender, line.message, line.at) for line in again] == [
        (line.sender, line.message, line.at) for line in recorded
    ]
    assert [line.frame for line in again if line.message is None] == [
        line.frame for line in recorded if line.message is None
    ]


@given(st.lists(lines, max_size=8))
def test_a_tape_is_like_itself(recorded: list[Line]):
    """No differences to itself, and one for each message that is missing or too many."""
    tape = Tape(recorded)
    assert tape.differences(Tape(recorded)) == []
    assert len(tape.differences(Tape())) == len(recorded)
    assert len(Tape().differences(tape)) == len(recorded)


def tape(*messages: tuple[str, object]) -> Tape:
    """A tape of messages."""
    return Tape(
        [
            Line("client" if sender == "client" else "server", json.dumps(message).encode())
            for sender, message in messages
        ]
    )


DIFFERENT = [
    ({"a": 1}, {"a": 2}, "/a: expected 1, got 2"),
    ({"a": 1}, {}, "/a: expected 1, got nothing"),
    ({}, {"a": None}, "/a: expected nothing, got null"),
    ({"a": 1}, {"a": True}, "/a: expected 1, got true"),
    ({"a": "1"}, {"a": 1}, '/a: expected "1", got 1'),
    ({"a": [1, 2]}, {"a": [1]}, "/a/1: expected 2, got nothing"),
    ({"a": {"b": [{"c": "x"}]}}, {"a": {"b": [{"c": "y"}]}}, '/a/b/0/c: expected "x", got "y"'),
    ({"a": []}, {"a": {}}, "/a: expected [], got {}"),
    ({"a": "${x}", "b": "${x}"}, {"a": 1, "b": 2}, '/b: expected "${x}" (with x = 1), got 2'),
    ({"a": "-${x}-"}, {"a": "x"}, '/a: expected "-${x}-", got "x"'),
    ({"a": "-${x}-"}, {"a": 7}, '/a: expected "-${x}-", got 7'),
    ({"a": "${x}"}, {}, '/a: expected "${x}", got nothing'),
]


@pytest.mark.parametrize("expected, actual, words", DIFFERENT)
def test_differences_are_named(expected: object, actual: object, words: str):
    """Each by its path, with what was expected and what came."""
    assert list(Blanks().differences(expected, actual)) == [words]
    (found,) = tape(("server", expected)).differences(tape(("server", actual)))
    assert found == f"message 1 of the server, {words}"


SAME = [
    ({"a": 1.0, "b": [None, "x"]}, {"b": [None, "x"], "a": 1}),
    ("${x}", {"any": ["thing"]}),
    (["${x}", "${x}"], [[1], [1]]),
    (["${_}", "${_}"], [1, 2]),
    ("(reference ${id}).", "(reference 1f)."),
    (["${a}-${b}", "${b}"], ["1-2", "2"]),
    ("${a}${a}", "xyxy"),
    ("a.b*${x}", "a.b*c\nd"),
    ("${not a blank}", "${not a blank}"),
]


@pytest.mark.parametrize("expected, actual", SAME)
def test_what_counts_as_the_same(expected: object, actual: object):
    """Order of members, number types, and what blanks take."""
    assert list(Blanks().differences(expected, actual)) == []


def test_blanks_are_filled():
    """What was taken once is put where the blank is sent, as a value or within text; what was not
    cannot be sent.
    """
    blanks = Blanks()
    assert (
        list(blanks.differences({"id": "${id}", "text": "n ${n}"}, {"id": [7], "text": "n 3"}))
        == []
    )
    assert blanks.fill({"id": "${id}", "again": ["${n}", "${n} and ${id}"], "x": 1}) == {
        "id": [7],
        "again": ["3", "3 and [7]"],
        "x": 1,
    }
    with pytest.raises(ValueError, match="before anything has filled it"):
        blanks.fill("${other}")


def test_whose_message_it_is():
    """The order of the speakers counts, ids only where they are asked for."""
    ours = tape(("client", {"id": 1, "method": "a"}), ("server", {"id": 1, "result": {}}))
    turned = Tape(ours.lines[::-1])
    assert [d.split(":")[0] for d in ours.differences(turned)] == ["message 1", "message 2"]
    renumbered = tape(("client", {"id": "x", "method": "a"}), ("server", {"id": "x", "result": {}}))
    assert len(ours.differences(renumbered)) == 2
    assert ours.differences(renumbered, ids=False) == []
    assert (
        ours.differences(
            tape(("client", {"method": "a"}), ("server", {"id": 1, "result": {}})), ids=False
        )
        != []
    )


def test_notices_have_a_time_of_their_own():
    """A change is told before or after the answers beside it, but notices keep their order, and so
    do answers.
    """
    answer = ("server", {"id": 1, "result": {}})
    other = ("server", {"id": 2, "result": {}})
    notice = ("server", {"method": "notifications/tools/list_changed"})
    update = ("server", {"method": "notifications/resources/updated", "params": {"uri": "x://y"}})
    question = ("client", {"id": 3, "method": "ping"})
    expected = tape(answer, notice, other, update, question)
    assert expected.differences(tape(notice, update, answer, other, question)) == []
    assert expected.differences(tape(other, notice, answer, update, question)) != []
    assert expected.differences(tape(answer, update, other, notice, question)) != []
    assert expected.differences(tape(answer, notice, other, question, update)) != []


def test_bytes_that_are_no_json():
    """They are compared as bytes."""
    broken = Tape([Line("client", b"{half")])
    assert broken.differences(Tape([Line("client", b"{half")])) == []
    assert "b'{half'" in broken.differences(Tape([Line("client", b"{whole")]))[0]


def test_what_is_volatile_gets_blanks():
    """States and ids of elicitations get a blank each, the same for the same, and error references
    one that takes anything.
    """
    recorded = tape(
        ("server", {"result": {"requestState": "s1", "text": "It failed (reference 0a1b2c3d)."}}),
        ("client", {"params": {"requestState": "s1"}}),
        ("server", {"result": {"requestState": "s2"}, "params": {"elicitationId": "e1"}}),
    )
    assert recorded.blanked().messages() == [
        {"result": {"requestState": "${requestState-1}", "text": "It failed (reference ${_})."}},
        {"params": {"requestState": "${requestState-1}"}},
        {
            "result": {"requestState": "${requestState-2}"},
            "params": {"elicitationId": "${elicitationId-1}"},
        },
    ]
    assert recorded.blanked().differences(recorded) == []
    assert recorded.blanked(["text"]).messages()[0]["result"]["text"] == "${text-1}"


@pytest.mark.parametrize(
    "text, words",
    [
        (b"nonsense", "line 1"),
        (b'{"client":{}}\n{"sever":{}}', "line 2: a line of a tape has"),
        (b"[]", "line 1"),
        (b'{"at":"now","client":{}}', "line 1"),
    ],
)
def test_what_is_no_tape(text: bytes, words: str):
    """A line that is none of a tape is named by its number."""
    with pytest.raises(ValueError, match=words):
        Tape.from_bytes(text)


def test_remarks_do_not_count():
    """Nor do empty lines."""
    loaded = Tape.from_bytes(
        b'{"about":{"title":"x"}}\n\n{"remark":"the handshake"}\n{"client":{"a":1}}\n'
    )
    assert (loaded.about, loaded.messages()) == ({"title": "x"}, [{"a": 1}])


async def test_recording_and_comparing(tmp_path):
    """What goes by is taken down with its time; `check` compares with what was saved, or saves."""
    server = Server("s")
    clock = Clock()
    path = tmp_path / "hello.jsonl"
    for greeting in ("hello", "hello", "goodbye"):
        recorded = Tape(now=clock)
        clock.advance(2.5)
        async with Client(
            server.transport(tap=recorded.record),
            revision="2025-11-25",
            info=Implementation(name=greeting, version="1"),
        ) as client:
            await client.ping()
        assert recorded.methods() == ["initialize", "notifications/initialized", "ping"]
        assert recorded.messages("server")[1] == {"jsonrpc": "2.0", "id": 2, "result": {}}
        assert {line.at for line in recorded} == {2.5}
        assert str(recorded).startswith('--> {"jsonrpc":"2.0","id":1,"method":"initialize"')
        if not path.exists():
            with pytest.raises(AssertionError, match="--interlock-update"):
                recorded.check(path)
            recorded.check(path, update=True)
        elif greeting == "hello":
            recorded.check(path)
        else:
            with pytest.raises(
                AssertionError, match=r"clientInfo/name: expected \"hello\", got \"goodbye\""
            ):
                recorded.check(path)


def test_a_line_ends_with_a_line_feed_and_nothing_else():
    """A carriage return is white space within JSON, and may stand in a frame."""
    tape = Tape()
    tape.lines.append(Line("client", b'{"a":\r1}', 0.0))
    assert [line.frame for line in Tape.from_bytes(tape.to_bytes()).lines] == [b'{"a":\r1}']
