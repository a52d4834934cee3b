"""Policies as files: what is read, what is refused and in which words, and that what is written is
read again as the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_apps.fleet.policy import Policy, Rule
from interlock_apps.fleet.rulebook import (
    BadPolicy,
    load_policy,
    read_policy,
    read_rules,
    write_rules,
)

TOML = """
default = "deny"
trusted_read_only = "ask"

[[rules]]
decision = "allow"
server = "files"
tool = "read_*"
arguments.path = { under = "/home/kim/notes" }

[[rules]]
decision = "ask"
destructive = true
reason = "It cannot be undone."

[[review]]
server = "mail"
"""
JSON = """{
  "default": "deny", "trustedReadOnly": "ask",
  "rules": [
    {"decision": "allow", "server": "files", "tool": "read_*",
        "arguments": {"path": {"under": "/home/kim/notes"}}},
    {"decision": "ask", "destructive": true, "reason": "It cannot be undone."}
  ],
  "review": [{"server": "mail"}]
}"""


@pytest.mark.parametrize("text", [TOML, JSON, "\ufeff" + JSON])
def test_both_ways_of_writing_are_read_alike(text: str) -> None:
    """HST-01: the person rules in TOML or JSON."""
    policy = read_policy(text)
    assert (policy.default, policy.trusted_read_only) == ("deny", "ask")
    assert policy.rules == (
        Rule(
            decision="allow",
            server="files",
            tool="read_*",
            arguments={"path": {"under": "/home/kim/notes"}},
        ),
        Rule(decision="ask", destructive=True, reason="It cannot be undone."),
    )
    assert policy.review == (Rule(decision="ask", server="mail"),)


BAD = [
    ('default = "yes"', "default is 'yes': write one of allow, ask, deny"),
    ('defaults = "ask"', "'defaults' is unknown: did you mean default?"),
    ("[[rules]]\n", "p:1: rules[1]: decision is missing: write one of allow, ask, deny"),
    (
        "\n[[rules]]\ndecision = 'allow'\n[[rules]]\ndecision = 'alow'",
        "p:4: rules[2]: decision is 'alow': write one of",
    ),
    (
        "[[rules]]\ndecision='deny'\nservers='x'",
        "p:1: rules[1]: 'servers' is unknown: did you mean server?",
    ),
    ("[[rules]]\ndecision='deny'\nserver=5", "server is 5: write a text"),
    ("[[rules]]\ndecision='deny'\ntool=''", 'tool is empty: write a name, or "*" for all'),
    ("[[rules]]\ndecision='deny'\nread_only='yes'", "read_only is 'yes': write true or false"),
    (
        "[[rules]]\ndecision='deny'\nread_only=true\nreadOnly=true",
        "'readOnly' appears twice, in two spellings",
    ),
    ("[[rules]]\ndecision='deny'\narguments='x'", "arguments is 'x': write {path"),
    (
        "[[rules]]\ndecision='deny'\narguments.a={like='x'}",
        "'like' is not a key of a pattern: write one of is, in,",
    ),
    (
        "[[rules]]\ndecision='deny'\narguments.a={is=2026-01-01}",
        "arguments.a holds a value that JSON does not have",
    ),
    (
        "[[rules]]\ndecision='deny'\narguments.a={most=inf}",
        "arguments.a holds a value that JSON does not have",
    ),
    ("[[rules]]\ndecision='deny'\narguments.a={under='notes'}", "`under` wants a whole path"),
    ("[[rules]]\ndecision='deny'\narguments.a={matches='('}", "regular expression '('"),
    ("[[rules]]\ndecision='deny'\nsession='one'", "'session' is unknown"),
    ("[[rules]]\ndecision='deny'\ndigest='one'", "'digest' is unknown"),
    ("[rules]\ndecision='deny'", "rules is a list of rules: in TOML write [[rules]] above each"),
    ("[[rules]]\n[[review]]\n[[review]]\nmode='x'", "rules[1]"),
    ("[[review]]\n[[review]]\nmode='x'", "p:2: review[2]: 'mode'"),
    ("rules = \n", "p:1: this is not TOML"),
    ('{"rules": [}', "p:1: this is not JSON"),
    ('{\n"rules": [\n{"decision" "deny"}\n]}', "p:3: this is not JSON"),
    ('{"default": "deny", "default": "allow"}', "default appears twice in one object"),
    (
        '{"rules": [{"decision": "deny", "tool": "a", "tool": "b"}]}',
        "tool appears twice in one object",
    ),
    ('{"rules": {}}', "rules is a list of rules"),
    ('{"rules": [5]}', "rules is a list of rules"),
    ('{"default": NaN}', "default is nan"),
    ("{" + '"a":{' * 100_000, "p"),
]


@pytest.mark.parametrize("text, words", BAD)
def test_what_cannot_be_used_says_where_and_what_to_write(text: str, words: str) -> None:
    """HST-01: nothing in a policy is ignored, for whoever wrote it counts on it."""
    with pytest.raises(BadPolicy) as refused:
        read_policy(text, "p")
    assert words in str(refused.value)
    assert str(refused.value).startswith("p:")


def test_files(tmp_path: Path) -> None:
    """HST-01: a policy is loaded from a file, or it is said why not."""
    path = tmp_path / "policy.toml"
    with pytest.raises(BadPolicy, match="cannot be read"):
        load_policy(path)
    path.write_text(TOML, encoding="utf-8")
    assert load_policy(path).default == "deny"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadPolicy, match="UTF-8"):
        load_policy(path)
    path.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(BadPolicy, match="larger"):
        load_policy(path)


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
PLAIN = st.one_of(
    NAMES,
    st.integers(-(2**50), 2**50),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
)
PATTERNS: st.SearchStrategy[Any] = st.one_of(
    NAMES.filter(lambda text: text.count("*") < 16),
    st.integers(-(2**50), 2**50),
    st.booleans(),
    st.fixed_dictionaries({"in": st.lists(PLAIN, max_size=3)}),
    st.fixed_dictionaries({"is": PLAIN, "given": st.booleans()}),
    st.fixed_dictionaries({"least": st.integers(-9, 9), "matches": st.sampled_from(["a+", "x|y"])}),
    st.fixed_dictionaries({"under": st.sampled_from(["/", "~/x", "C:\\a", ["/a", "/b c"]])}),
)
HINT = st.none() | st.booleans()
RULES = st.builds(
    Rule,
    decision=st.sampled_from(["allow", "ask", "deny"]),
    server=NAMES,
    tool=NAMES,
    reason=st.text(st.characters(codec="utf-8"), max_size=12),
    arguments=st.dictionaries(
        st.sampled_from(["a", "a.b", "a\\.b", "*", "é"]), PATTERNS, max_size=2
    ),
    read_only=HINT,
    destructive=HINT,
    idempotent=HINT,
    open_world=HINT,
)
CHOICE = st.sampled_from(["allow", "ask", "deny"])


@given(st.lists(RULES, max_size=4), st.lists(RULES, max_size=2), CHOICE, CHOICE)
def test_what_is_written_is_read_again(
    rules: list[Rule], review: list[Rule], default: Any, reads: Any
) -> None:
    """HST-01: no policy is lost or changed on its way through a file."""
    tables = {
        name: json.loads(write_rules(some))["rules"]
        for name, some in (("rules", rules), ("review", review))
    }
    again = read_policy(json.dumps({"default": default, "trustedReadOnly": reads, **tables}))
    wanted = Policy(rules, review=review)
    assert (again.rules, again.review) == (wanted.rules, wanted.review)
    assert (again.default, again.trusted_read_only) == (default, reads)


@given(st.lists(RULES, max_size=4))
def test_remembered_rules_are_read_again_but_for_those_of_conversations(rules: list[Rule]) -> None:
    """HST-01: what was remembered for a conversation is not in the file of what holds always."""
    passing = Rule(decision="allow", session="one")
    assert read_rules(write_rules([passing, *rules])) == rules


def test_remembered_rules_keep_the_digest() -> None:
    """HST-03: after a restart the answer still holds only for the tool as it was."""
    rule = Rule(decision="allow", tool="x", digest="sha256:0")
    assert read_rules(write_rules([rule])) == [rule]
    with pytest.raises(BadPolicy, match="'default' is unknown"):
        read_rules('{"default": "allow"}')
