"""Server-sent events: any cutting gives the same events, the standard's own algorithm agrees, and
nothing grows without bound.
"""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.wire.jsonrpc import Malformed
from interlock.wire.sse import COMMENT, Event, EventReader, event


def read(*chunks: bytes, limit: int = 1 << 20) -> list[Event]:
    reader = EventReader(limit)
    return [found for chunk in chunks for found in reader.feed(chunk)]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


class Naive:
    """The standard's algorithm, written down as it stands: character by character, line by line."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.data = ""
        self.type = ""
        self.id: str | None = None
        self.retry: int | None = None

    def run(self, stream: bytes) -> list[Event]:
        text = stream.decode("latin-1")  # one character for each byte
        if text.startswith("\xef\xbb\xbf"):
            text = text[3:]
        line = ""
        n = 0
        while n < len(text):
            if text[n] == "\r":
                n += text[n + 1 : n + 2] == "\n"
                self.line(line)
                line = ""
            elif text[n] == "\n":
                self.line(line)
                line = ""
            else:
                line += text[n]
            n += 1
        return self.events

    def line(self, line: str) -> None:
        if line == "":
            self.dispatch()
        elif line[0] == ":":
            return
        elif ":" in line:
            field = line[: line.index(":")]
            value = line[line.index(":") + 1 :]
            self.field(field, value[1:] if value[:1] == " " else value)
        else:
            self.field(line, "")

    def field(self, name: str, value: str) -> None:
        if name == "event":
            self.type = value
        elif name == "data":
            self.data += value + "\n"
        elif name == "id" and "\0" not in value:
            self.id = value
        elif name == "retry" and value != "" and all(c in "0123456789" for c in value):
            self.retry = int(value)

    def dispatch(self) -> None:
        if (
            self.data != "" or self.id is not None or self.retry is not None
        ):  # the difference: an id or a retry is enough
            data = self.data[:-1] if self.data.endswith("\n") else self.data
            found = Event(
                data.encode("latin-1"),
                self.utf8(self.id),
                self.utf8(self.type) or "message",
                self.retry,
            )
            self.events.append(found)
            self.id = self.retry = None
        self.data = self.type = ""

    @staticmethod
    def utf8(text: str | None) -> str | None:
        return None if text is None else text.encode("latin-1").decode("utf-8", "replace")


# What streams are made of, so that chance finds more than noise.
piece = st.sampled_from(
    [b"data", b"id", b"event", b"retry", b":", b": ", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"x",
        b"17", b"\0", b"\xef\xbb\xbf", b"\xc3\xbc", b"\xff",
     b"data: ", b"data: {}\n\n", b"id: 1\n", b"retry: 5\r\n", b":\n\n", b"event: e\n"]
)  # fmt: skip
streams = st.one_of(st.lists(piece, max_size=40).map(b"".join), st.binary(max_size=60))
places = st.lists(st.integers(0, 10**6), max_size=10)


@given(stream=streams, places=places)
@example(stream=b"data: a\r\n\r\ndata: b\r\r", places=[8, 9, 10, 11])
@example(stream=b"\xef\xbb\xbfdata: a\n\n", places=[1, 2, 3])
@example(stream=b"\xef\xbb", places=[1])
def test_any_cutting_gives_the_events_of_the_standard(stream: bytes, places: list[int]):
    """Where a read ends says nothing, and the events are those that the standard's algorithm finds
    (`HTM-13`, `HTL-20`).
    """
    expected = Naive().run(stream)
    assert read(stream) == expected
    assert read(*cut(stream, places)) == expected
    assert read(*(stream[n : n + 1] for n in range(len(stream)))) == expected


@given(stream=streams, places=places, limit=st.integers(1, 30))
def test_over_the_limit_there_is_one_error_however_the_bytes_are_cut(
    stream: bytes, places: list[int], limit: int
):
    """The same events before it, the same error, and nothing after it."""

    def until_broken(chunks: list[bytes]) -> tuple[list[Event], str | None]:
        reader = EventReader(limit)
        events = []
        try:
            for chunk in [*chunks, b""]:
                events += reader.feed(chunk)
        except Malformed as bad:
            with pytest.raises(Malformed):
                reader.feed(b"data: later\n\n")
            return events, str(bad)
        return events, None

    whole = until_broken([stream])
    assert until_broken(cut(stream, places)) == whole
    assert until_broken([stream[n : n + 1] for n in range(len(stream))]) == whole
    assert whole[1] in (None, f"an event of more than {limit} bytes")
    assert whole[0] == Naive().run(stream)[: len(whole[0])]


ids = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=8)


@given(
    data=st.lists(
        st.binary(max_size=12).map(lambda b: b.replace(b"\r", b"")), min_size=1, max_size=3
    ).map(b"\n".join),
    id=st.none() | ids,
    retry=st.none() | st.integers(0, 10**15),
    name=st.none() | ids.filter(bool),
)
def test_what_is_written_is_read(data: bytes, id: str | None, retry: int | None, name: str | None):
    """Data of any bytes but carriage returns, ids and names of any characters that a line can
    hold.
    """
    wire = event(data, id=id, retry=retry, name=name)
    assert read(wire) == [Event(data, id, name or "message", retry)]
    assert read(COMMENT, wire, COMMENT, wire) == [Event(data, id, name or "message", retry)] * 2


def test_the_bytes_of_an_event():
    """As any reader of the standard expects them."""
    assert event(b'{"a":1}') == b'data: {"a":1}\n\n'
    assert (
        event(b"", id="7", retry=500) == b"id: 7\nretry: 500\ndata: \n\n"
    )  # priming: `HTL-14`, `HTL-16`
    assert event(b"{}", id="s/1", name="endpoint") == b"event: endpoint\nid: s/1\ndata: {}\n\n"
    assert (
        event(b"one\ntwo\r\nthree\rfour\n")
        == b"data: one\ndata: two\ndata: three\ndata: four\ndata: \n\n"
    )
    assert COMMENT.startswith(b":")


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "a\0b"])
def test_what_no_line_can_hold_is_refused(bad: str):
    """An id from outside must not write fields of its own."""
    with pytest.raises(ValueError, match="one line without NUL"):
        event(b"{}", id=bad)
    with pytest.raises(ValueError, match="one line without NUL"):
        event(b"{}", name=bad)
    with pytest.raises(ValueError, match="-1 milliseconds"):
        event(b"{}", retry=-1)


@pytest.mark.parametrize(
    "stream, events",
    [
        (b"data: a\ndata: b\n\n", [Event(b"a\nb")]),
        (b"data:a\n\ndata:  b\n\n", [Event(b"a"), Event(b" b")]),
        (b"data\n\ndata\ndata\n\ndata:", [Event(b""), Event(b"\n")]),
        (b": ping\n\n:\n\ndata: a\n: between\n\n", [Event(b"a")]),
        (b"id: 1\n\ndata: a\n\n", [Event(b"", "1"), Event(b"a")]),
        (b"id: 1\ndata: \n\n", [Event(b"", "1")]),
        (b"id\n\n", [Event(b"", "")]),
        (b"retry: 1500\n\n", [Event(b"", retry=1500)]),
        (b"retry: 1.5\n\nretry: -5\n\nretry:\n\nretry: \xd9\xa3\n\nretry: 1_0\n\n", []),
        (b"retry: " + b"0" * 9000 + b"7\n\n", [Event(b"", retry=7)]),
        (b"retry: " + b"9" * 9000 + b"\n\n", [Event(b"", retry=10**15)]),
        (b"id: a\0b\ndata: x\n\n", [Event(b"x")]),
        (b"event: only\n\ndata: x\n\n", [Event(b"x")]),
        (b"event: e\nid: \xff\ndata: \xff\n\n", [Event(b"\xff", "\ufffd", "e")]),
        (b"Data: x\nDATA: y\nfoo: z\ndata: a\n\n", [Event(b"a")]),
        (b"data: never ended\n", []),
        (b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", [Event(b"a")]),
    ],
)  # fmt: skip
def test_the_corners_of_the_standard(stream: bytes, events: list[Event]):
    """Each by hand, so that reader and naive reading cannot be wrong together (`HTM-13`, `HTL-14`,
    `HTL-17`, `HTL-20`).
    """
    assert read(stream) == events
    if b"9" * 9000 not in stream and b"0" * 9000 not in stream:
        assert Naive().run(stream) == events


def test_an_event_of_the_limit_passes_and_one_more_byte_does_not():
    """In one line and in several; comments of any number, and events that ended, do not count."""
    assert read(b"data: 4567\n\n" * 3, limit=10) == [Event(b"4567")] * 3
    assert read(b"data:6\n:" + b"\n:" * 50 + b"\ndata\n\n", limit=10) == [Event(b"6\n")]
    for stream in (
        b"data: 45678",
        b"data:6\ndata:\n",
        b":2345678901",
        b"data: 4\ndata: 5\n\n",
        b"unknown: 90",
    ):
        with pytest.raises(Malformed, match="an event of more than 10 bytes"):
            read(stream, limit=10)


def test_events_before_one_that_is_too_long_are_given_first():
    """Though all came in the same bytes; the error is raised at the next, and again."""
    reader = EventReader(10)
    assert reader.feed(b"data: a\n\ndata: 45678901\n\ndata: c\n\n") == [Event(b"a")]
    for _ in range(2):
        with pytest.raises(Malformed):
            reader.feed(b"")


@pytest.mark.parametrize("size", [1, 7, 65536])
def test_a_large_event_costs_little_more_memory_than_its_bytes(size: int):
    """Whole in pieces of 64 KiB, or in crumbs."""
    total = 100_000 if size < 100 else 4 << 20
    reader = EventReader()
    piece = b"x" * size
    tracemalloc.start()
    try:
        reader.feed(b"id: 1\ndata: ")
        for _ in range(total // size):
            assert reader.feed(piece) == []
        held, _ = tracemalloc.get_traced_memory()
        (found,) = reader.feed(b"\n\n")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * total
    assert peak < 3 * total
    assert found == Event(b"x" * (total // size * size), "1")
