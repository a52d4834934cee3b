"""The WWW-Authenticate header, as servers really write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.auth.oauth.challenges import Challenge, find, read_challenges, write_challenge

READ: list[tuple[str, list[tuple[str, dict[str, str]]]]] = [
    ("", []),
    ("Bearer", [("bearer", {})]),
    ("Bearer ", [("bearer", {})]),
    ('Bearer realm="x"', [("bearer", {"realm": "x"})]),
    ('bearer REALM="X"', [("bearer", {"realm": "X"})]),
    ("Bearer realm=x", [("bearer", {"realm": "x"})]),
    ('Bearer realm = "x" , scope="a b"', [("bearer", {"realm": "x", "scope": "a b"})]),
    ('Bearer resource_metadata="https://a/b?c=d,e", scope="a"',
        [("bearer", {"resource_metadata": "https://a/b?c=d,e", "scope": "a"})]),
    ("Bearer resource_metadata=https://a/b?c=d, scope=a",
        [("bearer", {"resource_metadata": "https://a/b?c=d", "scope": "a"})]),
    ('Bearer error="invalid_token" error_description="no comma"',
        [("bearer", {"error": "invalid_token", "error_description": "no comma"})]),
    ('Bearer a="say \\"hi\\" \\\\ now"', [("bearer", {"a": 'say "hi" \\ now'})]),
    ('Bearer a=""', [("bearer", {"a": ""})]),
    ("Bearer a=", [("bearer", {})]),
    ('Bearer a="1", a="2", A="3"', [("bearer", {"a": "1"})]),
    ('Bearer realm="x", DPoP algs="ES256 PS256"', [("bearer", {"realm": "x"}),
        ("dpop", {"algs": "ES256 PS256"})]),
    ("Bearer, DPoP", [("bearer", {}), ("dpop", {})]),
    ('Negotiate YII/+w==, Bearer scope="a"', [("negotiate", {}), ("bearer", {"scope": "a"})]),
    ("Negotiate YIIw", [("negotiate", {})]),
    ('Basic realm="a, Bearer scope=b", Bearer scope="c"',
        [("basic", {"realm": "a, Bearer scope=b"}), ("bearer", {"scope": "c"})]),
    (', ,Bearer realm="x",,', [("bearer", {"realm": "x"})]),
    ('Bearer realm="x",\r\n  scope="y"', [("bearer", {"realm": "x", "scope": "y"})]),
    ('Bearer realm="never ends', [("bearer", {"realm": ""})]),
    ('Bearer realm="x" ; scope="y"', [("bearer", {"realm": "x"})]),
    ("=", []),
    ('"Bearer"', []),
]  # fmt: skip


@pytest.mark.parametrize("header, challenges", READ)
def test_a_header_is_read_as_servers_write_it(
    header: str, challenges: list[tuple[str, dict[str, str]]]
):
    """`AU3-04`: several challenges in one header, quotes or none, and nothing behind what cannot be
    read.
    """
    assert [(c.scheme, dict(c.parameters)) for c in read_challenges(header)] == challenges


def test_the_scopes_of_a_challenge():
    """`AUS-02`: each once and in order.

    A challenge that says nothing of scopes is not one that wants none.
    """
    assert read_challenges('Bearer scope="b  a b"')[0].scopes == ("b", "a")
    assert read_challenges('Bearer scope=""')[0].scopes == ()
    assert read_challenges("Bearer")[0].scopes is None
    assert read_challenges('Bearer error="insufficient_scope"')[0].error == "insufficient_scope"
    assert read_challenges("Bearer")[0].error == ""


def test_the_challenge_that_is_preferred():
    """The order is the caller's, not the server's."""
    both = read_challenges("DPoP algs=ES256, Bearer realm=x, Bearer realm=y")
    assert find(both, "bearer", "dpop") == Challenge("bearer", {"realm": "x"})
    assert find(both, "dpop", "bearer") == Challenge("dpop", {"algs": "ES256"})
    assert find(both, "basic") is None


names = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12)
values = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)
challenges = st.tuples(
    st.sampled_from(["Bearer", "DPoP", "Basic"]),
    st.dictionaries(names, values, min_size=1, max_size=4),
)


@given(st.lists(challenges, min_size=1, max_size=4))
def test_what_is_written_is_read_again(written: list[tuple[str, dict[str, str]]]):
    """A round trip, several challenges in one header."""
    header = ", ".join(write_challenge(scheme, parameters) for scheme, parameters in written)
    assert [(c.scheme, dict(c.parameters)) for c in read_challenges(header)] == [
        (scheme.lower(), parameters) for scheme, parameters in written
    ]


@given(st.text(max_size=60))
def test_what_is_written_is_one_line_of_a_header(value: str):
    """No value breaks out of its quotes or of its line."""
    header = write_challenge("Bearer", {"error_description": value, "scope": "a"})
    assert header.isascii()
    assert header.isprintable()
    (back,) = read_challenges(header)
    assert set(back.parameters) == {"error_description", "scope"}


@given(st.one_of(st.text(max_size=200), st.text('abAB= ,"\\\t\r\n/+.', max_size=200)))
def test_no_header_is_an_error(header: str):
    """Whatever a server sends, reading it raises nothing and ends."""
    for challenge in read_challenges(header):
        assert challenge.scheme == challenge.scheme.lower() != ""


@pytest.mark.parametrize("piece", ["a ", "a=", 'a="', "a,", '\\"', "=", " ", 'a="\\'])
def test_a_huge_header_is_read_in_no_time(piece: str):
    """Only the first 16 KiB count, and reading them is not a matter of seconds, whatever they
    repeat.
    """
    assert len(read_challenges("Bearer " + piece * 500_000)) <= 16 * 1024
