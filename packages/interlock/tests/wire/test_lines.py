"""Newline framing: however bytes are cut, the same lines come out, and no more memory is held than
the limit allows.
"""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.lines import DEFAULT_LIMIT, LineSplitter


def lines_of(chunks: list[bytes], limit: int = DEFAULT_LIMIT) -> tuple[list[bytes], int]:
    splitter = LineSplitter(limit)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return lines + splitter.close(), splitter.dropped


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


line_bytes = st.binary(max_size=40).map(lambda line: line.replace(b"\n", b""))


@given(
    lines=st.lists(line_bytes, max_size=12),
    places=st.lists(st.integers(0, 10**6), max_size=12),
    ended=st.booleans(),
)
def test_any_cutting_of_any_lines_gives_the_same_lines(
    lines: list[bytes], places: list[int], ended: bool
) -> None:
    """Where a read ends says nothing: whole lines come out, in order, and empty ones do not
    (`STD-01`).
    """
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    assert lines_of(cut(data, places)) == ([line for line in lines if line and line != b"\r"], 0)


@given(
    lines=st.lists(line_bytes, max_size=12),
    places=st.lists(st.integers(0, 10**6), max_size=12),
    limit=st.integers(0, 45),
)
def test_lines_over_the_limit_are_dropped_and_counted_however_they_are_cut(
    lines: list[bytes], places: list[int], limit: int
) -> None:
    """A line is dropped if and only if it is longer than the limit, and what follows it is read as
    if it had not been there.
    """
    data = b"".join(line + b"\n" for line in lines)
    kept = [line for line in lines if line and line != b"\r" and len(line) <= limit]
    found, dropped = lines_of(cut(data, places), limit)
    assert [line for line in found if line != b"\r"] == kept
    blank_returns = sum(
        line == b"\r" for line in lines
    )  # may be counted where even a lone \r is over the limit
    over = sum(len(line) > limit for line in lines)
    assert over - blank_returns <= dropped <= over


def test_a_line_of_exactly_the_limit_passes_and_one_more_byte_does_not() -> None:
    """In one piece, in pieces, and with the newline on its own."""
    for chunks in (
        [b"12345\n"],
        [b"123", b"45\n"],
        [b"12345", b"\n"],
        [b"1", b"2", b"3", b"4", b"5", b"\n"],
    ):
        assert lines_of(chunks, limit=5) == ([b"12345"], 0)
        assert lines_of([b"0", *chunks], limit=5) == ([], 1)
        assert lines_of([*chunks[:-1], chunks[-1] + b"next\n"], limit=5) == ([b"12345", b"next"], 0)


def test_a_carriage_return_before_the_newline_does_no_harm() -> None:
    """Lines that end as Windows ends them are the same JSON, and a blank line among them is
    none.
    """
    assert [
        line.strip() for line in lines_of([b'{"a":1}\r\n\r\n{"b":2}\r', b"\n\r", b"\n"])[0]
    ] == [b'{"a":1}', b'{"b":2}']


def test_a_last_line_without_a_newline_counts() -> None:
    """A peer that closes right after its last message has said it."""
    assert lines_of([b"a\nb"]) == ([b"a", b"b"], 0)
    assert lines_of([b"a\n", b"toolong"], limit=3) == ([b"a"], 1)


def test_two_long_lines_are_counted_twice() -> None:
    """Also where the first ends in the chunk in which the second begins, and where both come in one
    chunk.
    """
    assert lines_of([b"123456", b"7\n123456\nok\n"], limit=3) == ([b"ok"], 2)
    assert lines_of([b"1234567\n123456\nok\n"], limit=3) == ([b"ok"], 2)
    assert lines_of([b"1234567\n1234567"], limit=3) == ([], 2)


def test_memory_stays_bounded_while_a_long_line_is_skipped() -> None:
    """A line a thousand times the limit costs no more than the limit."""
    limit = 64 * 1024
    chunk = b"x" * 64 * 1024
    splitter = LineSplitter(limit)
    tracemalloc.start()
    try:
        for _ in range(1000):
            splitter.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * limit
    assert splitter.feed(b"\nafter\n") == [b"after"]
    assert splitter.dropped == 1


@pytest.mark.parametrize("size", [1, 7, 300])
def test_a_line_that_comes_in_crumbs_costs_little_more_than_its_bytes(size: int) -> None:
    """A peer that writes byte by byte must not cost fifty times what it sends."""
    splitter = LineSplitter()
    crumbs = [bytes([65 + n % 26]) * size for n in range(26)]
    total = 100_000
    tracemalloc.start()
    try:
        for n in range(total // size):
            splitter.feed(crumbs[n % 26])
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * total
    (line,) = splitter.feed(b"\n")
    assert line == b"".join(crumbs[n % 26] for n in range(total // size))
