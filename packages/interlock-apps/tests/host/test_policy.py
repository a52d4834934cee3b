"""Verdicts as tables: rules and a call go in, what is to be done comes out."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.types import Tool, ToolAnnotations
from interlock_apps.fleet.policy import BadPattern, Policy, Rule, exactly, rule_for


def tool(name: str = "read", **says: Any) -> Tool:
    return Tool(
        name=name,
        input_schema={"type": "object"},
        annotations=ToolAnnotations(**says) if says else None,
    )


def decided(rules: list[Rule], arguments: dict[str, Any], **call: Any) -> str:
    policy = Policy(rules, trusted_read_only="ask")
    return policy.judge(
        call.get("server", "files"),
        call.get("tool", tool()),
        arguments,
        call.get("trusted", False),
        call.get("session", ""),
    ).decision


ALLOW = Rule(decision="allow")
ASK = Rule(decision="ask")
DENY = Rule(decision="deny")


@pytest.mark.parametrize(
    "rules, expected",
    [
        ([], "ask"),
        ([ALLOW], "allow"),
        ([ALLOW, ASK], "ask"),
        ([ALLOW, ASK, DENY], "deny"),
        ([DENY, ALLOW], "deny"),
        ([Rule(decision="allow", server="fil*")], "allow"),
        ([Rule(decision="allow", server="FILES")], "ask"),
        ([Rule(decision="allow", server="mail")], "ask"),
        ([Rule(decision="allow", tool="re?d")], "allow"),
        ([Rule(decision="allow", tool="write")], "ask"),
        ([Rule(decision="deny", tool="[r-s]*"), ALLOW], "deny"),
        ([Rule(decision="allow", server="mail"), Rule(decision="deny", server="mail")], "ask"),
    ],
)
def test_the_strictest_rule_decides(rules: list[Rule], expected: str) -> None:
    """HST-03, TOL-24: nothing is called that no rule allows; any rule that denies wins, then any
    that asks, whatever their order.
    """
    assert decided(rules, {}) == expected
    assert decided(rules[::-1], {}) == expected


PATTERNS: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    # patterns, arguments, what an `allow` of them gives (else "ask"), what a `deny` of them gives
    # (else "allow")
    ({"city": "Par*"}, {"city": "Paris"}, "allow", "deny"),
    ({"city": "Par*"}, {"city": "paris"}, "ask", "allow"),
    ({"city": "Par*"}, {"city": "in Paris"}, "ask", "allow"),
    ({"city": "Par*"}, {}, "ask", "allow"),
    ({"city": "Par*"}, {"city": None}, "ask", "allow"),
    ({"city": "Par*"}, {"city": ["Paris", "Parma"]}, "allow", "deny"),
    ({"city": "Par*"}, {"city": ["Paris", "Rome"]}, "ask", "deny"),
    ({"city": "Par*"}, {"city": []}, "ask", "allow"),
    ({"city": "Par*"}, {"city": {"a": "Paris", "b": "Rome"}}, "ask", "deny"),
    ({"city": "Par*"}, {"city": "Paris\nRome"}, "allow", "deny"),
    ({"city": "Par*", "days": 3}, {"city": "Paris", "days": 3}, "allow", "deny"),
    ({"city": "Par*", "days": 3}, {"city": "Paris", "days": 3.0}, "allow", "deny"),
    ({"city": "Par*", "days": 3}, {"city": "Paris", "days": 4}, "ask", "allow"),
    ({"city": "Par*", "days": 3}, {"city": "Paris"}, "ask", "allow"),
    ({"n": "5"}, {"n": 5}, "allow", "deny"),
    ({"n": "true"}, {"n": True}, "allow", "deny"),
    ({"n": 1}, {"n": True}, "ask", "allow"),
    ({"n": {"is": 1}}, {"n": True}, "ask", "allow"),
    ({"n": {"is": [1, 2]}}, {"n": [1, 2]}, "allow", "deny"),
    ({"n": {"is": {"a": 1}}}, {"n": {"a": 1, "b": 2}}, "ask", "allow"),
    ({"n": {"in": ["a", "b"]}}, {"n": "b"}, "allow", "deny"),
    ({"n": {"in": ["a", "b"]}}, {"n": "c"}, "ask", "allow"),
    ({"n": {"matches": "[ab]+"}}, {"n": "abba"}, "allow", "deny"),
    ({"n": {"matches": "[ab]+"}}, {"n": "abbac"}, "ask", "allow"),
    ({"n": {"matches": "[ab]+"}}, {"n": "abba\n"}, "ask", "allow"),
    ({"n": {"matches": "a|b.*"}}, {"n": "xa"}, "ask", "allow"),
    ({"n": {"finds": "rm +-rf"}}, {"n": "sudo rm  -rf /"}, "allow", "deny"),
    ({"n": {"finds": "rm +-rf"}}, {"n": "ls"}, "ask", "allow"),
    ({"n": {"finds": "\ufffd"}}, {"n": "\ud800"}, "allow", "deny"),
    ({"n": {"least": 1, "most": 5}}, {"n": 5}, "allow", "deny"),
    ({"n": {"least": 1, "most": 5}}, {"n": 6}, "ask", "allow"),
    ({"n": {"most": 5}}, {"n": "3"}, "ask", "ask"),
    ({"n": {"most": 5}}, {"n": True}, "ask", "ask"),
    ({"n": {"given": True}}, {"n": None}, "allow", "deny"),
    ({"n": {"given": True}}, {}, "ask", "allow"),
    ({"n": {"given": False}}, {}, "allow", "deny"),
    ({"n": {"given": False}}, {"n": 0}, "ask", "allow"),
    ({"edits.path": "a*"}, {"edits": {"path": "ab"}}, "allow", "deny"),
    ({"edits.path": "a*"}, {"edits": [{"path": "ab"}, {"path": "ac"}]}, "allow", "deny"),
    ({"edits.path": "a*"}, {"edits": [{"path": "ab"}, {"path": "b"}]}, "ask", "deny"),
    ({"edits.path": "a*"}, {"edits": [{"path": "ab"}, {}]}, "ask", "deny"),
    ({"edits.path": "a*"}, {"edits": [{"path": "ab"}, 5]}, "ask", "deny"),
    ({"edits.*.path": "a*"}, {"edits": [{"path": "ab"}]}, "allow", "deny"),
    ({"edits.0.path": "a*"}, {"edits": [{"path": "ab"}, {"path": "b"}]}, "allow", "deny"),
    ({"edits.7.path": "a*"}, {"edits": [{"path": "ab"}]}, "ask", "allow"),
    ({"*": "a*"}, {"x": "ab", "y": "ac"}, "allow", "deny"),
    ({"*": "a*"}, {"x": "ab", "y": "b"}, "ask", "deny"),
    ({"a.b": "x"}, {"a.b": "x"}, "allow", "deny"),
    ({"a.b": "x"}, {"a.b": "y", "a": {"b": "x"}}, "ask", "deny"),
    ({"a\\.b": "x"}, {"a.b": "x"}, "allow", "deny"),
    ({"a\\.b": "x"}, {"a": {"b": "x"}}, "ask", "allow"),
    ({"edits.path": "a*"}, {"edits": "no object"}, "ask", "allow"),
    ({"n": "*"}, {"n": 10**5000}, "ask", "ask"),
]


@pytest.mark.parametrize("patterns, arguments, allowed, denied", PATTERNS)
def test_patterns_of_arguments(
    patterns: dict[str, Any], arguments: dict[str, Any], allowed: str, denied: str
) -> None:
    """HST-03: what allows must fit all values, what denies any; what is missing fits neither; what
    cannot be told is asked.
    """
    assert decided([Rule(decision="allow", arguments=patterns)], arguments) == allowed
    assert decided([Rule(decision="deny", arguments=patterns), ALLOW], arguments) == denied
    assert decided([Rule(decision="ask", arguments=patterns), ALLOW], arguments) == {
        "deny": "ask"
    }.get(denied, denied)


FOLDERS: list[tuple[str, Any, str, str]] = [
    ("/home/a/notes", "/home/a/notes/x.md", "allow", "deny"),
    ("/home/a/notes/", "/home/a/notes", "allow", "deny"),
    ("/home/a/notes", "/home/a//notes/./x", "allow", "deny"),
    ("/home/a/notes", "//home/a/notes/x", "allow", "deny"),
    ("/home/a/notes", "/home/a/notes2/x", "ask", "allow"),
    ("/home/a/notes", "/home/a", "ask", "allow"),
    ("/home/a/notes", "/home/a/notes/../keys", "ask", "ask"),
    ("/home/a/notes", "/home/a/x/../notes/y", "ask", "ask"),
    ("/home/a/notes", "notes/x.md", "ask", "ask"),
    ("/home/a/notes", "../notes", "ask", "ask"),
    ("/home/a/notes", "~/notes/x", "ask", "ask"),
    ("/home/a/notes", "", "ask", "ask"),
    ("/home/a/notes", 7, "ask", "ask"),
    ("/home/a/notes", "/HOME/a/notes/x", "ask", "ask"),
    ("/home/a/notes", "/home/a/notes/x\0y", "ask", "ask"),
    ("/home/a/notes", "/home/a/notes/%2e%2e/x", "ask", "ask"),
    ("/home/a/notes", "/home/a/notes\\..\\..\\x", "ask", "ask"),
    ("/home/a/notes", "file:///home/a/notes/x%20y", "allow", "deny"),
    ("/home/a/notes", "file:///home/a/notes/%2e%2e/x", "ask", "ask"),
    ("/home/a/notes", "file:///home/a/notes/%252e%252e/x", "ask", "ask"),
    ("/home/a/notes", "file://host/home/a/notes/x", "ask", "ask"),
    ("/home/a/notes", "https://example.com/home/a/notes", "ask", "ask"),
    ("/home/caf\u00e9", "/home/cafe\u0301/x", "allow", "deny"),
    ("/", "/anything", "allow", "deny"),
    ("C:\\Users\\a", "C:\\Users\\a\\x", "allow", "deny"),
    ("C:\\Users\\a", "c:/users/A/x", "allow", "deny"),
    ("C:\\Users\\a", "file:///C:/Users/a/x", "allow", "deny"),
    ("C:\\Users\\a", "C:\\Users\\a.\\x", "allow", "deny"),
    ("C:\\Users\\a", "C:\\Users\\b", "ask", "allow"),
    ("C:\\Users\\a", "D:\\Users\\a", "ask", "allow"),
    ("C:\\Users\\longname", "C:\\Users\\LONGNA~1\\x", "ask", "ask"),
    ("C:\\Users\\a", "\\\\?\\C:\\Users\\a", "ask", "ask"),
    ("C:\\Users\\a", "/Users/a", "ask", "ask"),
    ("C:\\Users\\a", "C:\\Users\\a\\..\\b", "ask", "ask"),
]


@pytest.mark.parametrize("folder, path, allowed, denied", FOLDERS)
def test_folders(folder: str, path: Any, allowed: str, denied: str) -> None:
    """HST-01: a path counts as inside only where its name alone proves it; for a rule that denies,
    doubt means to ask.
    """
    assert (
        decided([Rule(decision="allow", arguments={"path": {"under": folder}})], {"path": path})
        == allowed
    )
    assert (
        decided(
            [Rule(decision="deny", arguments={"path": {"under": folder}}), ALLOW], {"path": path}
        )
        == denied
    )


def test_several_folders_and_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """HST-01: any of several folders will do, and ~ in a rule is the home of whoever runs
    the host.
    """
    monkeypatch.setenv("HOME", "/home/kim")
    rule = Rule(decision="allow", arguments={"path": {"under": ["~/notes", "/srv"]}})
    assert [
        decided([rule], {"path": path}) for path in ("/home/kim/notes/a", "/srv/b", "/home/kim/a")
    ] == ["allow", "allow", "ask"]


HINTED: list[tuple[dict[str, Any], dict[str, Any], bool, bool]] = [
    # the rule's hints, the tool's annotations, whether the rule fits where the server is trusted,
    # and where it is not
    ({"read_only": True}, {"read_only_hint": True}, True, False),
    ({"read_only": True}, {}, False, False),
    ({"read_only": False}, {"read_only_hint": True}, False, True),
    ({"destructive": True}, {}, True, True),
    ({"destructive": False}, {"destructive_hint": False}, True, False),
    ({"destructive": True}, {"destructive_hint": False}, False, True),
    ({"destructive": False}, {"read_only_hint": True}, True, False),
    ({"idempotent": True}, {"idempotent_hint": True}, True, False),
    ({"idempotent": False}, {}, True, True),
    ({"open_world": False}, {"open_world_hint": False}, True, False),
    ({"open_world": True}, {}, True, True),
]


@pytest.mark.parametrize("wants, says, trusted, untrusted", HINTED)
def test_hints_are_believed_of_trusted_servers_only(
    wants: dict[str, bool], says: dict[str, bool], trusted: bool, untrusted: bool
) -> None:
    """TOL-04: what an untrusted tool says of itself is as if it said nothing: not read-only,
    destructive, not idempotent, open.
    """
    rule = Rule(decision="allow", **wants)
    for believed, fits in ((True, trusted), (False, untrusted)):
        assert decided([rule], {}, tool=tool(**says), trusted=believed) == (
            "allow" if fits else "ask"
        )


def test_what_only_reads_needs_no_question_where_the_server_is_trusted() -> None:
    """TOL-04, TOL-24: the default for tools that only read, of trusted servers, and that it can be
    switched off.
    """
    reads = tool(read_only_hint=True)
    assert Policy().judge("s", reads, {}, True).decision == "allow"
    assert Policy().judge("s", reads, {}, False).decision == "ask"
    assert Policy().judge("s", tool(), {}, True).decision == "ask"
    assert Policy(trusted_read_only="ask").judge("s", reads, {}, True).decision == "ask"
    assert Policy([ASK]).judge("s", reads, {}, True).decision == "ask"
    assert Policy(default="deny").judge("s", tool(), {}, True).decision == "deny"


def test_a_remembered_answer_is_for_one_tool_as_it_was() -> None:
    """HST-01, HST-03: not for a tool of a like name, not for another server, and not once the tool
    has changed.
    """
    policy = Policy()
    policy.remember(rule_for("files", tool("re*d")), "always")
    changed = Tool(name="re*d", input_schema={"type": "object"}, description="Now it also sends.")
    assert policy.judge("files", tool("re*d"), {"any": 1}, False).decision == "allow"
    for server, other in (
        ("files", tool("read")),
        ("file", tool("re*d")),
        ("files", changed),
        ("files", tool("re*d", read_only_hint=True)),
    ):
        assert policy.judge(server, other, {}, False).decision == "ask"


@pytest.mark.parametrize("name", ["a*b", "a?b", "[a]", "[!a]", "]", "a[", "**", "a\\b", "[[]"])
def test_names_with_marks_of_globs(name: str) -> None:
    """TOL-24: a name that looks like a pattern is one name."""
    assert decided([Rule(decision="allow", tool=exactly(name))], {}, tool=tool(name)) == "allow"
    assert decided([Rule(decision="allow", tool=exactly(name))], {}, tool=tool("aab")) == "ask"


def test_a_remembered_answer_does_not_outweigh_a_written_rule() -> None:
    """HST-01: a written `ask` asks each time, and says that it is of no use to remember the
    answer.
    """
    policy = Policy([Rule(decision="ask", tool="send*", reason="Letters are read before they go.")])
    policy.remember(rule_for("mail", tool("send")), "always")
    verdict = policy.judge("mail", tool("send"), {}, False)
    assert (verdict.decision, verdict.may_remember) == ("ask", False)
    assert "Letters are read before they go." in verdict.why
    assert policy.judge("mail", tool("list"), {}, False).may_remember
    policy = Policy([Rule(decision="deny", arguments={"path": {"under": "/etc"}})])
    policy.remember(rule_for("files", tool()), "always")
    assert policy.judge("files", tool(), {"path": "passwd"}, False).decision == "ask"


def test_a_remembered_no() -> None:
    """TOL-24: a no may be remembered as well, and outweighs what is allowed."""
    policy = Policy([ALLOW])
    policy.remember(rule_for("mail", tool("send"), decision="deny"), "session")
    assert policy.judge("mail", tool("send"), {}, False).decision == "deny"
    assert policy.judge("mail", tool("list"), {}, False).decision == "allow"


def test_rules_of_a_conversation_end_with_it() -> None:
    """HST-01: remembered for a session means for that one only, and not after it."""
    policy = Policy()
    policy.remember(rule_for("mail", tool("send"), session="one"), "session")
    policy.remember(rule_for("mail", tool("list")), "session")
    assert policy.judge("mail", tool("send"), {}, False, "one").decision == "allow"
    assert policy.judge("mail", tool("send"), {}, False, "two").decision == "ask"
    assert policy.judge("mail", tool("send"), {}, False).decision == "ask"
    policy.end("one")
    assert policy.judge("mail", tool("send"), {}, False, "one").decision == "ask"
    assert policy.judge("mail", tool("list"), {}, False, "two").decision == "allow"
    assert policy.saved == ()


def test_remembering_and_forgetting() -> None:
    """HST-01: the person can see what was remembered, and take it back."""
    policy = Policy()
    always = rule_for("a", tool("x"))
    session = rule_for("b", tool("y"), session="one")
    policy.remember(always, "always")
    policy.remember(always, "always")
    policy.remember(session, "session")
    assert (policy.learned, policy.saved) == ((always, session), (always,))
    assert policy.forget(always)
    assert not policy.forget(always)
    assert policy.learned == (session,)
    policy.remember(session, "always")
    assert policy.saved == (rule_for("b", tool("y")),)


def test_results_held_for_review() -> None:
    """SAM-06, HST-02: which results the person sees first is a matter of rules of its own; in doubt
    they do.
    """
    policy = Policy(
        [ALLOW],
        review=[Rule(decision="ask", server="mail", arguments={"path": {"under": "/private"}})],
    )
    assert policy.judge("mail", tool(), {"path": "/private/x"}, False).review
    assert policy.judge("mail", tool(), {"path": "x"}, False).review
    assert not policy.judge("mail", tool(), {"path": "/public"}, False).review
    assert not policy.judge("files", tool(), {"path": "/private/x"}, False).review


@pytest.mark.parametrize(
    "patterns",
    [
        {"": "x"}, {".a": "x"}, {"a.": "x"}, {"a..b": "x"},
        {"a": None}, {"a": ["x"]}, {"a": {}}, {"a": {"like": "x"}}, {"a": {"in": "x"}},
            {"a": {"given": 1}},
        {"a": {"least": "1"}}, {"a": {"most": True}}, {"a": {"least": float("nan")}},
        {"a": {"under": "notes"}}, {"a": {"under": "/a/../b"}}, {"a": {"under": 5}},
            {"a": {"under": []}}, {"a": {"under": ["x"]}},
        {"a": {"matches": "("}}, {"a": {"matches": "a)|(b"}}, {"a": {"matches": "(?=a)b"}},
            {"a": {"finds": r"(a)\1"}}, {"a": {"finds": "(?<!a)b"}},
        {"a": {"matches": 5}}, {"a": {"finds": "a" * 501}}, {"a": {"matches": "(?:a{1000}){1000}"}},
        {"a": "*a" * 17}, {"a": "a" * 1001},
    ],
)  # fmt: skip
def test_patterns_that_cannot_be_used(patterns: dict[str, Any]) -> None:
    """HST-01: a pattern that would never do what it seems to, or for ever, is refused when it is
    written.
    """
    with pytest.raises(BadPattern):
        Rule(decision="deny", arguments=patterns)


def test_no_pattern_takes_for_ever() -> None:
    """JSC-08: patterns that are known to run away elsewhere are run in linear time, on texts as
    long as they may be.
    """
    rules = [
        Rule(decision="deny", arguments={"a": {"matches": r"(a+)+b"}}),
        Rule(decision="deny", arguments={"a": "*a" * 16 + "b"}),
    ]
    assert decided([*rules, ALLOW], {"a": "a" * 100_000}) == "allow"
    assert (
        decided([Rule(decision="deny", arguments={"a": "x"}), ALLOW], {"a": ["a"] * 20_000})
        == "ask"
    )
