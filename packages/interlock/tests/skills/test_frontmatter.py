"""The reader of frontmatter: against PyYAML where both agree by the specification, and what it
refuses.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interlock import SkillError
from interlock.skills import read_frontmatter
from interlock.skills.frontmatter import same

READ = {
    "plain": ("name: refunds", {"name": "refunds"}),
    "a comment": (
        "# before\nname: refunds # behind\n  # between\nx: a#b",
        {"name": "refunds", "x": "a#b"},
    ),
    "numbers": (
        "a: 1\nb: -2.5\nc: 1e3\nd: 0x1F\ne: 0o17\nf: 007",
        {"a": 1, "b": -2.5, "c": 1000.0, "d": 31, "e": 15, "f": 7},
    ),
    "words": (
        "a: true\nb: False\nc: null\nd: ~\ne:",
        {"a": True, "b": False, "c": None, "d": None, "e": None},
    ),
    "words of YAML 1.1 are strings": (
        "a: yes\nb: off\nc: 2026-07-28\nd: 1:30",
        {"a": "yes", "b": "off", "c": "2026-07-28", "d": "1:30"},
    ),
    "quotes": (
        'a: \'it\'\'s\'\nb: "tab\\t\\u00e9 \\x41 \\"q\\""\nc: ""',
        {"a": "it's", "b": 'tab\té A "q"', "c": ""},
    ),
    "quotes over lines": ('a: "one\n  two\n\n  three \\\n  four"', {"a": "one two\nthree four"}),
    "plain over lines": ("a: one\n  two\n\n  three", {"a": "one two\nthree"}),
    "literal": ("a: |\n  one\n   two\n\n  three\nb: x", {"a": "one\n two\n\nthree\n", "b": "x"}),
    "literal, stripped": (
        "a: |-\n  one\nb: |+\n  two\n\nc: x",
        {"a": "one", "b": "two\n\n", "c": "x"},
    ),
    "folded": (
        "a: >\n  one\n  two\n\n  three\n   four\n  five",
        {"a": ("one two\nthree\n four\nfive\n")},
    ),
    "an indicated block": ("a: |2\n    one\n  two", {"a": "  one\ntwo\n"}),
    "nested": ("a:\n  b:\n    c: 1\n  d: 2", {"a": {"b": {"c": 1}, "d": 2}}),
    "sequences": (
        "a:\n- 1\n- two\nb:\n  - x: 1\n    y: 2\n  - - 3\n    - 4\n  -\n    z: 5",
        {"a": [1, "two"], "b": [{"x": 1, "y": 2}, [3, 4], {"z": 5}]},
    ),
    "flow": (
        "a: [1, 'two', {b: c, \"d\": [e]}, ]\nf: {}",
        {"a": [1, "two", {"b": "c", "d": ["e"]}], "f": {}},
    ),
    "flow over lines": (
        "a: [it's,\n  b]\nc: {d: e,\n  f: g}",
        {"a": ["it's", "b"], "c": {"d": "e", "f": "g"}},
    ),
    "quoted keys": ("\"a b\": 1\n'c': 2", {"a b": 1, "c": 2}),
    "a URL": ("a: https://example.com/x#y", {"a": "https://example.com/x#y"}),
    "CRLF": ("a: 1\r\nb: |\r\n  x\r\n", {"a": 1, "b": "x\n"}),
}

REFUSED = {
    "an anchor": ("a: &x 1", "anchors"),
    "an alias": ("a: *x", "aliases"),
    "a tag": ("a: !!python/object x", "tags"),
    "a merge key": ("<<: {a: 1}", "merge keys"),
    "a complex key": ("? a\n: b", "complex keys"),
    "a double key": ("a: 1\na: 2", "'a' stands twice"),
    "a double key in braces": ("a: {b: 1, b: 2}", "'b' stands twice"),
    "a tab": ("a:\n\tb: 1", "a tab"),
    "a second document": ("a: 1\n--- b", "one document"),
    "a directive": ("%YAML 1.1\na: 1", "directives"),
    "a colon in a plain value": ("a: b: c", "must stand in quotes"),
    "infinity": ("a: .inf", "no number that JSON has"),
    "a quote without an end": ('a: "b', "does not end"),
    "brackets without an end": ("a: [b", "does not end"),
    "text behind a quote": ('a: "b" c', "stands after"),
    "a lone surrogate": ('a: "\\ud800"', "no character"),
    "an escape that is none": ('a: "\\q"', "no escape"),
    "uneven keys": ("a: 1\n  b: 2", "must stand in quotes"),
    "a list": ("- a", "must be a mapping"),
    "nothing": ("", "must be a mapping"),
    "too deep": ("a: " + "[" * 40 + "]" * 40, "nested too deeply"),
    "too deep by indentation": (
        "\n".join("  " * n + "a:" for n in range(40)),
        "nested too deeply",
    ),
    "a reserved character": ("a: @b", "quotes"),
}


@pytest.mark.parametrize("text, value", READ.values(), ids=READ)
def test_what_is_read(text: str, value: dict[str, Any]):
    """The core schema of YAML 1.2, as JSON (SKL-20)."""
    assert same(read_frontmatter(f"---\n{text}\n---\nbody"), value)


@pytest.mark.parametrize("text, words", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(text: str, words: str):
    """What is no JSON, or is read in two ways, with the line and the reason."""
    with pytest.raises(SkillError, match=words):
        read_frontmatter(f"---\n{text}\n---\n")


@pytest.mark.parametrize(
    "text, words",
    [
        ("# Refunds", "must begin"),
        ("", "must begin"),
        ("\n---\na: 1\n---\n", "must begin"),
        ("---\na: 1\n", "does not end"),
        (f"---\na: {'x' * 70_000}\n---\n", "longer than"),
    ],
)
def test_where_frontmatter_stands(text: str, words: str):
    """At the very beginning, between two lines of three hyphens (SKL-07)."""
    with pytest.raises(SkillError, match=words):
        read_frontmatter(text)


WORDS = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f\x85\xa0")
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(
    st.dictionaries(WORDS, VALUES, min_size=1, max_size=5),
    st.sampled_from([None, False, True]),
    st.sampled_from([20, 80, 10_000]),
)
def test_what_a_yaml_package_writes_is_read(value: dict[str, Any], flow: bool | None, width: int):
    """Any JSON that PyYAML writes, in block and flow style, folded or not."""
    text = yaml.safe_dump(value, default_flow_style=flow, width=width, allow_unicode=True)
    if "? " in text or "&id" in text or ": *id" in text:
        return  # keys of over 128 characters, and lists that stand twice: refused, as above
    assert same(read_frontmatter(f"---\n{text}---\n"), value)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str):
    """Nothing but SkillError leaves the reader."""
    try:
        found = read_frontmatter(f"---\n{text}\n---\n")
    except SkillError:
        return
    assert isinstance(found, dict)


def test_equal_values():
    """JSON has one kind of number, and true is not 1 (SKL-45)."""
    assert same({"a": [1, 2.0]}, {"a": [1.0, 2]})
    assert not same({"a": True}, {"a": 1})
    assert not same({"a": None}, {})
    assert not same([1], [1, 2])
    assert not same({"a": "1"}, {"a": 1})
