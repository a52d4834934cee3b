"""The scopes of an answer: narrow ones that a person would name, none of which lets others in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.types import Tool, ToolAnnotations
from interlock_apps.fleet.answer_scopes import scopes_of
from interlock_apps.fleet.policy import Policy
from interlock_apps.fleet.rule_text import rule_toml
from interlock_apps.fleet.rulebook import read_policy

READ = Tool(
    name="read_file",
    input_schema={"type": "object", "properties": {"path": {}, "encoding": {}}},
    annotations=ToolAnnotations(read_only_hint=True),
)
SEND = Tool(name="send", input_schema={"type": "object", "properties": {"to": {}, "url": {}}})
OPEN = Tool(name="anything", input_schema={})


def words(tool: Tool, arguments: dict[str, Any], trusted: bool = False) -> list[str]:
    return [scope.words for scope in scopes_of("files", tool, arguments, trusted, ["/srv"])]


def test_scopes_are_what_a_person_would_say() -> None:
    assert words(READ, {"path": "/srv/docs/a.md"}, trusted=True) == [
        "read_file with these values",
        "read_file with path under /srv/docs",
        "All reads of files with path under /srv/docs",
        "read_file with path under /srv",
        "All reads of files with path under /srv",
        "Every call of read_file",
        "All read-only tools of files",
    ]
    # The hints of a server that is not trusted give no scope.
    assert words(READ, {"path": "/etc/passwd"}) == [
        "read_file with these values",
        "read_file with path under /etc",
        "Every call of read_file",
    ]
    assert words(SEND, {"to": ["ada@example.com", "kim@example.com"]})[1:] == [
        "send with to ending in @example.com",
        "Every call of send",
    ]
    assert words(SEND, {"url": "https://docs.example.com/a?b=1"})[1:] == [
        "send with url on https://docs.example.com",
        "Every call of send",
    ]


@pytest.mark.parametrize(
    "value",
    [
        "/passwd",  # the folder would be all of the disk
        "C:\\boot.ini",
        "relative/path.md",
        "/srv/../etc/passwd",
        "https://user@example.com/",
        "https://example.com@evil.example/",
        "not an address",
        "",
        7,
        None,
        ["/a/b", "kim@example.com"],
    ],
)
def test_what_suggests_no_scope(value: Any) -> None:
    assert [one for one in words(SEND, {"url": value}) if " under " in one or " on " in one] == []


HOSTILE = {
    "/srv/docs/a.md": [
        "/srv/docs/../secret",
        "/srv/docs2/a.md",
        "/etc/passwd",
        "/srv/docs/a.md/../../../etc/passwd",
        "work/docs/a.md",
    ],
    "ada@example.com": [
        "eve@evil.example,ada@example.com",
        "eve@evil.example ada@example.com",
        "<eve@evil.example>ada@example.com",
        "eve@example.com.evil.example",
        "eve@evil-example.com",
        "eve@evil.example\n@example.com",
        "@example.com",
    ],
    "https://example.com/a": [
        "https://example.com.evil.example/a",
        "https://example.com@evil.example/a",
        "https://evil.example/https://example.com/a",
        "http://example.com/a",
        "https://example.com:8443/a",
        "https://exampleXcom/a",
        "https://example.com\\@evil.example",
    ],
}


@pytest.mark.parametrize("seen", HOSTILE)
def test_a_scope_lets_no_other_target_in(seen: str) -> None:
    """However a value imitates the one that was seen."""
    found = scopes_of("files", SEND, {"to": seen}, False, ["/srv/docs"])
    narrow = [scope for scope in found if scope.rule.arguments]
    assert len(narrow) >= 2
    for scope in narrow:
        policy = Policy([scope.rule])
        for value in HOSTILE[seen]:
            for given_value in (value, [seen, value], {"a": value}, [[value]]):
                verdict = policy.judge("files", SEND, {"to": given_value}, False)
                assert verdict.decision == "ask", (scope.words, given_value)
        assert policy.judge("files", SEND, {}, False).decision == "ask"
        assert policy.judge("other", SEND, {"to": seen}, True).decision == "ask"


IMITATIONS = [value for values in HOSTILE.values() for value in values]
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(max_size=12),
        st.sampled_from([*HOSTILE, *IMITATIONS, "[a]*", "~/x/y", "file:///a/b"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(st.text(min_size=0, max_size=6), VALUES, max_size=4)


@given(ARGUMENTS, ARGUMENTS, st.sampled_from([READ, SEND, OPEN]), st.booleans())
def test_each_scope_covers_its_call_and_its_text_is_its_rule(
    arguments: dict[str, Any], others: dict[str, Any], tool: Tool, trusted: bool
) -> None:
    """Whatever the arguments: the rule that is shown is the rule that holds, it allows the call
    that was asked about, and "these values" allows no call with another value.
    """
    for scope in scopes_of("fi*les", tool, arguments, trusted, ["/srv"]):
        (read,) = read_policy(rule_toml(scope.rule)).rules
        assert read == scope.rule
        policy = Policy([read], trusted_read_only="ask")
        assert policy.judge("fi*les", tool, arguments, trusted).decision == "allow"
        assert policy.judge("fiXles", tool, arguments, trusted).decision == "ask"
        if scope.words.endswith("these values"):
            allowed = policy.judge("fi*les", tool, others, trusted).decision == "allow"
            known = [repr(value) for value in arguments.values()]
            assert not allowed or all(repr(value) in known for value in others.values())
