"""What tools are called to a model: names that all providers accept, and of which no two are the
same.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock_apps.fleet.naming import tool_name

# What the strictest of the providers takes: a letter or `_` first, then letters, digits, `_` and
# `-`, at most 64 of them.
ACCEPTED = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)

# Texts that come near each other: few characters, much `_`, and what looks like a digest.
NEAR = st.text(alphabet="ab_-", min_size=0, max_size=6)
DIGESTS = st.builds(
    lambda head, digest: f"{head}_{digest}",
    NEAR,
    st.text(alphabet="0123456789abcdef", min_size=12, max_size=12),
)
LONG = st.builds(
    lambda text, times: text * times,
    st.text(alphabet="ab_é旅", min_size=1, max_size=3),
    st.integers(20, 60),
)
PARTS = st.one_of(NEAR, DIGESTS, LONG, st.text(max_size=80))
PAIRS = st.tuples(PARTS, PARTS)


@given(PAIRS)
@example(("", ""))
@example(("\ud800", "\udfff"))
@example(("1", "2"))
@example(("-", "-"))
def test_every_name_is_accepted(pair: tuple[str, str]) -> None:
    """`TOL-21`: only allowed characters, at most 64, whatever the server and the tool are
    called.
    """
    assert ACCEPTED.fullmatch(tool_name(*pair))


@given(st.lists(PAIRS, min_size=2, max_size=30))
@example([("a", "b__c"), ("a__b", "c")])
@example([("a_", "b"), ("a", "_b")])
@example([("a__", "b"), ("a_", "_b"), ("a", "__b")])
@example([("é", "b"), ("e\u0301", "b"), ("e", "b")])
@example([("a", "b" * 100), ("a", "b" * 101)])
@example([("a" * 100, "b"), ("a" * 101, "b")])
@example([("12", "3"), ("1", "23")])
@example([("1:a", "b"), ("1", ":ab")])
def test_different_pairs_have_different_names(pairs: list[tuple[str, str]]) -> None:
    """`TOL-21`: no server can have a tool that is called like another's."""
    distinct = set(pairs)
    assert len({tool_name(*pair) for pair in distinct}) == len(distinct)


@given(PAIRS, PAIRS)
def test_nobody_can_take_a_name_with_a_digest(
    pair: tuple[str, str], other: tuple[str, str]
) -> None:
    """`TOL-21`: a tool that is named as another one is called, digest and all, is called
    otherwise.
    """
    name = tool_name(*pair)
    server, _, tool = name.partition("__")
    if (server, tool) != pair:
        assert tool_name(server, tool) != name
    if other != pair:
        assert tool_name(*other) != name


@given(
    st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,19}", fullmatch=True),
    st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,41}", fullmatch=True),
)
def test_ordinary_names_are_left_as_they_are(server: str, tool: str) -> None:
    """What needs no change is `{id}__{tool}`."""
    if not re.search(r"_[0-9a-f]{12}\Z", tool):
        assert tool_name(server, tool) == f"{server}__{tool}"


# Written down, for a name that changes between versions is another tool to whoever kept a
# conversation or a rule.
FIXED = {
    ("weather", "get_forecast"): "weather__get_forecast",
    ("a", "b__c"): "a__b__c",
    ("a__b", "c"): "a_b__c_bf3c0c39c6e3",
    ("a", "_b"): "a___b",
    ("a_", "b"): "a__b_dcd870fd1835",
    ("旅行", "航班"): "x__x_541654f34626",
    ("my server", "do.it/now"): "my_server__do_it_now_9fb8899af8e8",
    ("a", "z" * 100): "a__zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz_2cf0682a8831",
}


@pytest.mark.parametrize("pair", FIXED)
def test_names_are_these(pair: tuple[str, str]) -> None:
    """`HST-06`: names depend on nothing but the pair, from version to version."""
    assert tool_name(*pair) == FIXED[pair]


def test_what_is_readable_stays() -> None:
    """A model has to guess from the name what the tool does: of a name that must be changed, the
    words stay.
    """
    assert re.fullmatch(r"my_server__do_it_now_[0-9a-f]{12}", tool_name("my server", "do.it/now"))
    assert re.fullmatch(r"cafe__menu_du_jour_[0-9a-f]{12}", tool_name("café", "menu du jour"))
    assert re.fullmatch(r"x__x_[0-9a-f]{12}", tool_name("旅行", "航班"))
    long = tool_name(
        "a-server-with-a-very-long-id-that-goes-on-and-on",
        "a_tool_with_a_very_long_name_that_goes_on_and_on_as_well",
    )
    assert len(long) == 64
    assert long.startswith("a-server-with-a-very__a_tool_with_a_very_long_name")
