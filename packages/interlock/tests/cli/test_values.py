"""What `key=value` words mean, by the schema of the tool they are for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from interlock.cli.client.values import string_arguments, tool_arguments

SCHEMA = {
    "type": "object",
    "properties": {
        "s": {"type": "string"},
        "i": {"type": "integer"},
        "b": {"type": "boolean"},
        "si": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "sn": {"type": ["string", "null"]},
        "list": {"type": "array", "items": {"type": "string"}},
        "ints": {"type": "array", "items": {"type": "integer"}},
        "some": {"anyOf": [{"type": "array"}, {"type": "null"}]},
        "choice": {"enum": ["1", "2"]},
        "mixed": {"enum": ["a", 1]},
        "ref": {"$ref": "#/$defs/Name"},
        "o": {"type": "object"},
        "any": {},
    },
    "$defs": {"Name": {"$ref": "#/$defs/Plain"}, "Plain": {"type": "string"}},
}

WORDS: list[tuple[list[str], dict[str, Any]]] = [
    (["s=5"], {"s": "5"}),
    (["s=true"], {"s": "true"}),
    (['s="quoted"'], {"s": '"quoted"'}),
    (["s="], {"s": ""}),
    (["s=a=b"], {"s": "a=b"}),
    (["s:=5"], {"s": 5}),
    (["i=5"], {"i": 5}),
    (["i=-5"], {"i": -5}),
    (["i=five"], {"i": "five"}),
    (["b=true"], {"b": True}),
    (["si=5"], {"si": 5}),
    (["si=five"], {"si": "five"}),
    (['si="5"'], {"si": "5"}),
    (["sn=null"], {"sn": "null"}),
    (["sn:=null"], {"sn": None}),
    (["list=a"], {"list": ["a"]}),
    (["list=1", "list=true"], {"list": ["1", "true"]}),
    (['list=["a", "b"]'], {"list": ["a", "b"]}),
    (["ints=1", "ints=2"], {"ints": [1, 2]}),
    (["some=a"], {"some": ["a"]}),
    (["choice=1"], {"choice": "1"}),
    (["mixed=1"], {"mixed": 1}),
    (["ref=1"], {"ref": "1"}),
    (['o={"a": 1}'], {"o": {"a": 1}}),
    (["any=1"], {"any": 1}),
    (["any=one"], {"any": "one"}),
    (["unknown=[1]"], {"unknown": [1]}),
    (["a:b=1"], {"a:b": 1}),
    ([], {}),
]


@pytest.mark.parametrize(
    "words, expected", WORDS, ids=lambda given: " ".join(given) if isinstance(given, list) else ""
)
def test_words(words: list[str], expected: dict[str, Any]) -> None:
    """A string where the schema has one, else JSON where it reads as JSON, else a string."""
    assert tool_arguments(words, None, SCHEMA) == expected


def test_words_go_over_the_whole() -> None:
    """The object is the ground; a word changes one of its members."""
    assert tool_arguments(["i=2"], '{"i": 1, "s": "x"}', SCHEMA) == {"i": 2, "s": "x"}


def test_files(tmp_path: Path) -> None:
    """`@` takes a text from a file, for a value or for the whole; a `@` that is meant is written as
    JSON.
    """
    (tmp_path / "text").write_text("5\n", encoding="utf-8")
    (tmp_path / "whole").write_text('{"i": 1}', encoding="utf-8")
    assert tool_arguments(
        [f"s=@{tmp_path}/text", f"i=@{tmp_path}/text", 'any:="@x"'], f"@{tmp_path}/whole", SCHEMA
    ) == {
        "s": "5\n",
        "i": 5,
        "any": "@x",
    }
    assert string_arguments([f"a=@{tmp_path}/text", "b=1"]) == {"a": "5\n", "b": "1"}


def test_stdin() -> None:
    """`@-` is what comes in."""
    with CliRunner().isolation(input="from stdin"):
        assert tool_arguments(["s=@-"], None, SCHEMA) == {"s": "from stdin"}


@pytest.mark.parametrize(
    "words, whole, expected",
    [
        (["s"], None, "'s' is not an argument"),
        (["=x"], None, "'=x' is not an argument"),
        (["i:=x"], None, "i:= is not JSON"),
        (["i=1", "i=2"], None, "i is given 2 times"),
        (["s=@/nowhere/at/all"], None, "/nowhere/at/all cannot be read"),
        ([], "{", "not JSON"),
        ([], "[1]", "must be a JSON object"),
    ],
)
def test_what_is_no_argument(words: list[str], whole: str | None, expected: str) -> None:
    """Wrong usage says which word, and why."""
    with pytest.raises(click.UsageError, match=expected.replace("[", r"\[")):
        tool_arguments(words, whole, SCHEMA)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    """Bytes have no place in an argument."""
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(click.UsageError, match="cannot be read as text"):
        string_arguments([f"a=@{tmp_path}/x"])


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(json_values)
def test_any_value_can_be_given(value: Any) -> None:
    """By `:=`, whatever the schema says; by `=` too where it says nothing."""
    text = json.dumps(value)
    for key in ("s", "i", "any", "ref"):
        assert tool_arguments([f"{key}:={text}"], None, SCHEMA) == {key: value}
    assert tool_arguments([f"any={text}"], None, SCHEMA) == {"any": value}


@given(st.text().filter(lambda text: not text.startswith("@")))
def test_any_string_can_be_given(text: str) -> None:
    """Where the schema has a string, what is typed is what arrives."""
    assert tool_arguments([f"s={text}"], None, SCHEMA) == {"s": text}
    assert string_arguments([f"s={text}"]) == {"s": text}


@given(
    st.dictionaries(
        st.sampled_from(
            ["type", "anyOf", "allOf", "oneOf", "$ref", "enum", "const", "items", "properties"]
        ),
        json_values,
    )
)
def test_any_schema_is_borne(node: dict[str, Any]) -> None:
    """A server may list nonsense; the words are still read."""
    arguments = tool_arguments(
        ["x=1"],
        None,
        {"properties": {"x": node}, **({"$ref": node["$ref"]} if "$ref" in node else {})},
    )
    assert arguments["x"] in (1, "1", [1], ["1"])
