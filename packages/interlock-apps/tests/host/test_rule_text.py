"""Rules as text: TOML that reads back as the same rule, and sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_apps.fleet.policy import Rule
from interlock_apps.fleet.rule_text import in_words, rule_toml
from interlock_apps.fleet.rulebook import read_policy

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = TEXTS.filter(lambda text: text != "" and text.count("*") < 16)
VALUES = st.one_of(TEXTS, st.booleans(), st.integers(-(2**40), 2**40))
PATTERNS = st.one_of(
    TEXTS,
    st.builds(lambda value: {"is": value}, VALUES),
    st.builds(lambda values: {"in": values}, st.lists(VALUES, min_size=1, max_size=3)),
    st.builds(lambda least, most: {"least": least, "most": most}, st.integers(), st.integers()),
    st.builds(lambda given: {"given": given}, st.booleans()),
    st.just({"under": ["/srv/docs", "~/notes"]}),
    st.just({"matches": r"[^@\s]+@example\.com"}),
)
RULES = st.builds(
    Rule,
    decision=st.sampled_from(["allow", "ask", "deny"]),
    server=NAMES,
    tool=NAMES,
    arguments=st.dictionaries(st.sampled_from(["path", "a.b", r"dot\.ted", "*"]), PATTERNS),
    read_only=st.sampled_from([None, True, False]),
    destructive=st.sampled_from([None, True, False]),
    reason=TEXTS,
)


@given(RULES, st.sampled_from(["rules", "review"]))
def test_a_rule_reads_back_from_its_text(rule: Rule, table: str) -> None:
    policy = read_policy(rule_toml(rule, table))
    assert (policy.rules if table == "rules" else policy.review) == (rule,)


@given(RULES)
def test_nothing_in_the_text_is_invisible(rule: Rule) -> None:
    assert all(sign.isprintable() for line in rule_toml(rule).split("\n") for sign in line)


@pytest.mark.parametrize(
    "rule, words",
    [
        (Rule(decision="allow"), "Allow every tool of every server."),
        (
            Rule(
                decision="allow", server="files", tool="read", arguments={"path": {"under": "/d"}}
            ),
            "Allow read of files if path is under /d.",
        ),
        (
            Rule(decision="deny", tool="rm_[*]", reason="no"),
            "Deny rm_* of every server.",
        ),
        (
            Rule(decision="ask", server="m", read_only=False, open_world=True),
            "Ask about every not read-only and open-world tool of m.",
        ),
        (
            Rule(
                decision="allow",
                arguments={"to": "*@example.com", "n": {"least": 1, "most": 3}},
                digest="0f",
            ),
            'Allow every tool of every server if to matches "*@example.com" and n is at least 1 '
            "and is at most 3 until the tool changes.",
        ),
        (
            Rule(
                decision="deny", arguments={"*": {"in": ["a", 1]}, "b": {"given": False}}, tool="x"
            ),
            'Deny x of every server if every argument is one of "a", 1 and b is not given.',
        ),
    ],
)
def test_a_rule_is_a_sentence(rule: Rule, words: str) -> None:
    assert in_words(rule) == words
