"""A policy file that is edited: one rule changes, and every other line stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_apps.fleet.policy import Rule
from interlock_apps.fleet.policy_file import (
    PolicyChanged,
    PolicyFile,
    difference,
    with_moved_rule,
    with_rule,
    with_setting,
    without_rule,
)
from interlock_apps.fleet.rulebook import BadPolicy, read_policy

TEXT = '''\
# The rules of our team. Ask Kim before you change them.
default = "ask"  # nothing runs by itself

# Searching is harmless.
[[rules]]
decision = "allow"  # see above
server = "travel"
tool = "search_*"

[[review]]  # results of pages
server = "web"

# Our documents, but not the drafts:
# they are not ready.
[[rules]]
decision = "deny"
arguments = { path = { in = [
  "[[rules]]",
  "# no comment",
] } }
reason = """
[[rules]]
is no table here."""
'''
NEW = Rule(decision="allow", server="mail", arguments={"to": "*@example.com"})
NEW_TEXT = """
[[rules]]
decision = "allow"
server = "mail"
arguments = { to = "*@example.com" }
"""


def test_a_rule_is_added_at_the_end() -> None:
    after = with_rule(TEXT, NEW)
    assert after == TEXT + NEW_TEXT
    assert read_policy(after).rules == (*read_policy(TEXT).rules, NEW)
    assert difference(TEXT, after)[1:] == [
        " [[rules]]",
        ' is no table here."""',
        *(f"+{line}" for line in NEW_TEXT.splitlines()),
    ]


def test_a_rule_is_replaced_in_its_place_with_its_comments() -> None:
    after = with_rule(TEXT, NEW, at=0)
    assert after == TEXT.replace(
        """\
[[rules]]
decision = "allow"  # see above
server = "travel"
tool = "search_*"
""",
        NEW_TEXT.removeprefix("\n"),
    )


def test_a_rule_is_removed_with_the_comments_above_it() -> None:
    after = without_rule(TEXT, 0)
    assert "Searching" not in after
    assert after.startswith("# The rules of our team.")
    assert "# Our documents" in after
    assert read_policy(after).rules == read_policy(TEXT).rules[1:]
    assert without_rule(TEXT, 0, table="review") == TEXT.replace(
        '[[review]]  # results of pages\nserver = "web"\n\n', ""
    )


def test_a_rule_is_moved_with_its_comments() -> None:
    after = with_moved_rule(TEXT, 1, 0)
    first, second = read_policy(TEXT).rules
    assert read_policy(after).rules == (second, first)
    assert after.index("# Our documents") < after.index("# Searching")
    assert "they are not ready.\n[[rules]]" in after


def test_a_setting_keeps_its_comment() -> None:
    assert with_setting(TEXT, "default", "deny") == TEXT.replace(
        'default = "ask"  #', 'default = "deny"  #'
    )
    after = with_setting(TEXT, "trusted_read_only", "ask")
    assert read_policy(after).trusted_read_only == "ask"
    assert all(line in after for line in TEXT.splitlines())


def test_a_file_begins_with_a_comment_and_the_first_rule() -> None:
    after = with_rule("", NEW)
    assert after.startswith("# ")
    assert read_policy(after).rules == (NEW,)
    assert read_policy(with_setting("", "default", "allow")).default == "allow"


def test_json_is_edited_as_json() -> None:
    text = json.dumps({"default": "ask", "rules": [{"decision": "deny", "tool": "rm"}]})
    after = with_rule(text, NEW)
    assert [rule.tool for rule in read_policy(after).rules] == ["rm", "*"]
    assert read_policy(with_moved_rule(after, 0, 1)).rules[0] == NEW
    assert read_policy(without_rule(after, 0)).rules == (NEW,)
    assert read_policy(with_setting(after, "default", "deny")).default == "deny"


@pytest.mark.parametrize(
    "text, words",
    [
        ('rules = [{ decision = "deny" }]\n', "write them so"),
        ("[[rules]]\n", "decision is missing"),
        (TEXT, "there is no rule 8"),
    ],
)
def test_what_cannot_be_edited_stays(text: str, words: str) -> None:
    with pytest.raises(BadPolicy, match=words):
        without_rule(text, 7 if text is TEXT else 0)


LINES = st.sampled_from(["", "# a comment", "# [[rules]]", "  # indented", "#"])
BLOCKS = st.builds(
    lambda before, table, name, after: "\n".join(
        [*before, f"[[{table}]]", 'decision = "allow"', f'tool = "{name}"', *after, ""]
    ),
    st.lists(LINES, max_size=3),
    st.sampled_from(["rules", "review"]),
    st.sampled_from("abcdef"),
    st.lists(LINES, max_size=2),
)


@given(st.lists(BLOCKS, max_size=5), st.data())
def test_whatever_the_file_says_only_the_wanted_rule_changes(
    blocks: list[str], data: st.DataObject
) -> None:
    """All other rules stay, in their order, and so does every line of them and their comments."""
    text = "# top\n\n" + "\n".join(blocks)
    rules = list(read_policy(text).rules)
    what = data.draw(st.sampled_from(["add", "replace", "remove", "move"] if rules else ["add"]))
    at = data.draw(st.integers(0, max(0, len(rules) - 1)))
    if what == "add":
        after = with_rule(text, NEW)
        wanted = [*rules, NEW]
        assert after.startswith(text.rstrip("\n"))
    elif what == "replace":
        after = with_rule(text, NEW, at=at)
        wanted = [*rules[:at], NEW, *rules[at + 1 :]]
        assert after.count("#") == text.count("#")
    elif what == "remove":
        after = without_rule(text, at)
        wanted = [*rules[:at], *rules[at + 1 :]]
    else:
        to = data.draw(st.integers(0, len(rules) - 1))
        after = with_moved_rule(text, at, to)
        wanted = list(rules)
        wanted.insert(to, wanted.pop(at))
        assert sorted(filter(None, after.splitlines())) == sorted(filter(None, text.splitlines()))
    assert list(read_policy(after).rules) == wanted
    assert read_policy(after).review == read_policy(text).review


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    file = PolicyFile(tmp_path / "folder" / "policy.toml")
    assert file.read() == ""
    assert file.policy().rules == ()
    file.write("", with_rule("", NEW))
    before = file.read()
    file.path.write_text(f"{before}# by hand\n")
    with pytest.raises(PolicyChanged):
        file.write(before, with_rule(before, NEW))
    assert file.read().endswith("# by hand\n")
    with pytest.raises(BadPolicy):
        file.write(file.read(), "rules = 7")


def test_the_line_ends_of_a_file_stay(tmp_path: Path) -> None:
    """As editors of Windows write it: with a byte order mark, and two characters for a line end."""
    path = tmp_path / "policy.toml"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode("utf-8-sig"))
    file = PolicyFile(path)
    before = file.read()
    assert before == TEXT
    file.write(before, with_rule(before, NEW, at=0))
    written = path.read_bytes()
    assert written.count(b"\r\n") == written.count(b"\n")
    assert file.policy().rules[0] == NEW
    json_file = "\ufeff" + json.dumps({"rules": []})
    assert read_policy(with_setting(json_file, "default", "deny")).default == "deny"
