"""Header values: whatever a header cannot hold goes in base64, whatever comes back is the same
text, and nothing else is let through.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.http import BadHeaderValue, argument_value, decode_value, encode_value

# The examples of the specification (2026-07-28, "Streamable HTTP", "Value Encoding"), and the
# corners around them.
ENCODED = [
    ("us-west1", "us-west1"),
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ("", ""),
    ("two words", "two words"),
    ("~!", "~!"),
    (" ", "=?base64?IA==?="),
    ("a\t", "=?base64?YQk=?="),
    ("a\tb", "=?base64?YQli?="),
    ("\x7f", "=?base64?fw==?="),
    ("a\x00b", "=?base64?YQBi?="),
    ("a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="),
    ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
    ("=?base64?half", "=?base64?half"),
    ("half?=", "half?="),
    ("=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
]


@pytest.mark.parametrize("text, value", ENCODED)
def test_text_as_a_header_says_it(text: str, value: str):
    """As it is where that is safe, in base64 where it is not (`HDR-09`, `XMH-14`, `XMH-15`,
    `XMH-16`).
    """
    assert encode_value(text) == value
    assert decode_value(value) == text


@given(
    st.text(st.characters(codec="utf-8"))
    | st.text(" \t=?base64YQ", max_size=20)
    | st.text("aä= ?").map(lambda text: f"=?base64?{text}?=")
)
def test_every_text_travels(text: str):
    """Its header is printable ASCII without space at its ends, and says the text again, also with
    space around it (`HDR-08`, `HDR-10`).
    """
    value = encode_value(text)
    assert value == "" or (value.isascii() and value.isprintable() and value == value.strip())
    assert decode_value(value) == decode_value(f" \t{value}\t ") == text


@given(
    st.text(st.characters(codec="latin-1"))
    | st.binary().map(lambda b: f"=?base64?{b.decode('latin-1')}?=")
)
def test_any_value_is_read_or_refused_in_words(value: str):
    """Nothing but BadHeaderValue, whatever a peer sends (`XMH-19`)."""
    try:
        text = decode_value(value)
    except BadHeaderValue as bad:
        assert str(bad) in (
            "has characters that a header cannot have",
            "is not valid base64 of UTF-8",
        )
    else:
        inner = value.strip(" \t").removeprefix("=?base64?").removesuffix("?=")
        assert text == value.strip(" \t") or base64.b64encode(text.encode()).decode().rstrip(
            "="
        ) == inner.rstrip("=")


@pytest.mark.parametrize(
    "value, words",
    [
        ("zürich", "characters that a header cannot have"),
        ("a\x00b", "characters that a header cannot have"),
        ("a\nb", "characters that a header cannot have"),
        ("a\n", "characters that a header cannot have"),
        ("=?base64?a?=", "not valid base64 of UTF-8"),
        ("=?base64?YQ=?=", "not valid base64 of UTF-8"),
        ("=?base64?YQ?=", "not valid base64 of UTF-8"),
        ("=?base64?Y Q==?=", "not valid base64 of UTF-8"),
        ("=?base64?YQ==\n?=", "not valid base64 of UTF-8"),
        ("=?base64?_-8=?=", "not valid base64 of UTF-8"),
        ("=?base64?/w==?=", "not valid base64 of UTF-8"),
        ("=?base64?7aCA?=", "not valid base64 of UTF-8"),
        ("=?base64?zürich?=", "not valid base64 of UTF-8"),
    ],
)  # fmt: skip
def test_values_that_say_nothing(value: str, words: str):
    """Characters that no header has, padding that is wrong, the other alphabet, bytes that are no
    UTF-8 (`XMH-19`, `CFQ-07`).
    """
    with pytest.raises(BadHeaderValue, match=words):
        decode_value(value)


@pytest.mark.parametrize(
    "argument, value",
    [
        ("us-west1", "us-west1"),
        ("", ""),
        ("Grüße", "=?base64?R3LDvMOfZQ==?="),
        ("true", "true"),
        (True, "true"),
        (False, "false"),
        (42, "42"),
        (-7, "-7"),
        (0, "0"),
        (2**53 - 1, "9007199254740991"),
        (42.0, "42"),
        (-0.0, "0"),
        (None, None),
        (4.5, None),
        (float("inf"), None),
        ({"a": 1}, None),
        (["a"], None),
    ],
)
def test_arguments_as_headers(argument: Any, value: str | None):
    """Strings as they are, numbers in decimal, booleans in lower case, no header for null
    (`XMH-12`, `XMH-13`, `XMH-14`).
    """
    assert argument_value(argument) == value


def test_half_a_surrogate_pair_is_refused_in_words():
    """UTF-8 cannot say it; JSON can."""
    for say in (encode_value, argument_value):
        with pytest.raises(BadHeaderValue, match="half a surrogate pair"):
            say("\ud800")
