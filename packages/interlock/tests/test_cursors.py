"""Pagination cursors: what was made is read again, and everything else is an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.cursors import MOST_CHARACTERS, InvalidCursor, decode_cursor, encode_cursor

ONE = b"1" * 16
OTHER = b"2" * 16
KEYS = st.sampled_from([(), (ONE,), (OTHER, ONE)])


@given(st.integers(-(2**60), 2**60) | st.text(max_size=20), st.text(max_size=9), KEYS)
def test_what_was_made_is_read_again(place: int | str, purpose: str, keys: tuple[bytes, ...]):
    """Of any place, for any list, with any keys; and it is the same text each time."""
    cursor = encode_cursor(place, purpose, keys)
    assert cursor == encode_cursor(place, purpose, keys)
    read = decode_cursor(cursor, int | str, purpose, keys)  # type: ignore[arg-type]  # it is a type
    assert read == place


@given(st.integers(0, 2**60), KEYS, st.data())
def test_what_was_altered_is_an_error(place: int, keys: tuple[bytes, ...], data: st.DataObject):
    """One character that is another, or one that is gone."""
    cursor = encode_cursor(place, "tools", keys)
    at = data.draw(
        st.integers(0, len(cursor) - 2)
    )  # the last one holds bits that count for nothing
    other = data.draw(st.sampled_from("Aa0-_é.").filter(lambda letter: letter != cursor[at]))
    for changed in (cursor[:at] + other + cursor[at + 1 :], cursor[:at]):
        with pytest.raises(InvalidCursor):
            decode_cursor(changed, int, "tools", keys)


@given(st.text())
def test_what_is_made_up_is_an_error(cursor: str):
    """Whatever it is."""
    with pytest.raises(InvalidCursor):
        decode_cursor(cursor, int, "tools")


@pytest.mark.parametrize(
    "cursor, keys",
    [
        (encode_cursor(1, "prompts"), ()),
        (encode_cursor("1", "tools"), ()),
        (encode_cursor(1, "tools", [ONE]), ()),
        (encode_cursor(1, "tools", [ONE]), (OTHER,)),
        (encode_cursor(1, "tools"), (ONE,)),
        (encode_cursor("x" * MOST_CHARACTERS, "tools"), ()),
    ],
)
def test_a_cursor_of_something_else_is_an_error(cursor: str, keys: tuple[bytes, ...]):
    """Of another list, of another type, with another key or none, or too long."""
    with pytest.raises(InvalidCursor):
        decode_cursor(cursor, int, "tools", keys)


def test_keys_change_without_a_gap():
    """A new key in front makes the cursors, and the old one still opens its own."""
    assert decode_cursor(encode_cursor(1, "tools", [ONE]), int, "tools", [OTHER, ONE]) == 1
