"""Configuration texts are edited so that an entry comes and goes and nothing else changes: tables
of hard cases, and any text at all.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interlock.configs.json_editor import JsonEditor
from interlock.configs.jsonc import plain_value
from interlock.configs.text_edits import Uneditable
from interlock.configs.toml_editor import TomlEditor
from interlock.configs.yaml_editor import YamlEditor
from tests.configs.texts import is_kept, json_texts, toml_texts, without_comments, words, yaml_texts

ENTRY = {
    "command": "/usr/bin/interlock",
    "args": ["run", "/home/me/my server.py"],
    "env": {"KEY": 'a "b" \\ c'},
}
SMALL: dict[str, Any] = {"command": "x"}

entries = st.builds(
    lambda command, args, env: {"command": command, "args": args, "env": env},
    words,
    st.lists(words, max_size=3),
    st.dictionaries(words, words, max_size=2),
)
names = st.sampled_from(["weather", "my server", "a.b", "ü", 'q"q', "true", "-", "weather-2"])

STRICT = JsonEditor("mcpServers", comments=False)
LENIENT = JsonEditor("mcpServers", comments=True)
TOML = TomlEditor("mcp_servers")
YAML = YamlEditor("extensions")


# -- JSON ------------------------------------------------------------------------------------------

JSON_CASES = {
    "nothing": ("", '{\n  "mcpServers": {\n    "w": {\n      "command": "x"\n    }\n  }\n}\n'),
    "an empty object": (
        "{}",
        '{\n  "mcpServers": {\n    "w": {\n      "command": "x"\n    }\n  }\n}',
    ),
    "four spaces": (
        '{\n    "a": 1\n}\n',
        '{\n    "a": 1,\n    "mcpServers": {\n        "w": {\n            "command": "x"\n        '
        "}\n    }\n}\n",
    ),
    "tabs and CRLF": (
        '{\r\n\t"mcpServers": {\r\n\t\t"b": {}\r\n\t}\r\n}',
        '{\r\n\t"mcpServers": {\r\n\t\t"b": {},\r\n\t\t"w": {\r\n\t\t\t"command": '
        '"x"\r\n\t\t}\r\n\t}\r\n}',
    ),
    "one line": (
        '{"mcpServers": {"b": {}}}\n',
        '{"mcpServers": {"b": {}, "w": {"command": "x"}}}\n',
    ),
    "an empty section": (
        '{\n  "mcpServers": {},\n  "z": 0\n}\n',
        '{\n  "mcpServers": {\n    "w": {\n      "command": "x"\n    }\n  },\n  "z": 0\n}\n',
    ),
    "there already, and different": (
        '{\n  "mcpServers": {\n    "w": {"command": "old"}, "b": 1\n  }\n}\n',
        '{\n  "mcpServers": {\n    "w": {\n      "command": "x"\n    }, "b": 1\n  }\n}\n',
    ),
}
JSONC_CASES = {
    "a remark behind the last": (
        '{\n  "mcpServers": {\n    "b": {} // mine\n    // the end\n  }\n}\n',
        '{\n  "mcpServers": {\n    "b": {}, // mine\n    "w": {\n      "command": "x"\n    }\n    '
        "// the end\n  }\n}\n",
    ),
    "a comma at the end": (
        '{\n  "mcpServers": {\n    "b": {}, /* , */\n  },\n}\n',
        '{\n  "mcpServers": {\n    "b": {}, /* , */\n    "w": {\n      "command": "x"\n    },\n  '
        "},\n}\n",
    ),
    "only remarks": (
        "// settings\n",
        '// settings\n{\n  "mcpServers": {\n    "w": {\n      "command": "x"\n    }\n  }\n}\n',
    ),
    "a section of remarks": (
        '{\n  "mcpServers": { // none\n    // yet\n  }\n}\n',
        '{\n  "mcpServers": { // none\n    "w": {\n      "command": "x"\n    }\n    // yet\n  '
        "}\n}\n",
    ),
    "the same words in a remark and a string": (
        '{\n  // "mcpServers": {}\n  "a": "\\"mcpServers\\": { // }"\n}\n',
        '{\n  // "mcpServers": {}\n  "a": "\\"mcpServers\\": { // }",\n'
        '  "mcpServers": {\n    "w": {\n      "command": "x"\n    }\n  }\n}\n',
    ),
}


@pytest.mark.parametrize(
    "before, after", [*JSON_CASES.values(), *JSONC_CASES.values()], ids=[*JSON_CASES, *JSONC_CASES]
)
def test_json_entry_goes_in_in_the_manner_of_the_file(before: str, after: str) -> None:
    """Indentation, line ends, remarks and commas are taken from what is there; a second time
    changes nothing.
    """
    assert LENIENT.add(before, "w", SMALL) == after
    assert LENIENT.add(after, "w", SMALL) == after


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1', '{"a" 1}', "[]", "1", "nul", '{"mcpServers": []}', '{"mcpServers": null}',
        '{"a": 1} x', '{"a": "\n"}', "{'a': 1}",
        '{"mcpServers": {}, "mcpServers": {}}', '{"mcpServers": {"w": 1, "w": 2}}', '{"a": 01}',
        '{"a": NaN}', "/* open", '{"\\x": 1}',
        "{" * 300,
        '{"a": [1 2]}', '{,}', '{"a":1,,}',
    ],
)  # fmt: skip
def test_json_that_is_not_certain_is_refused(text: str) -> None:
    """What no reader agrees on is not touched."""
    with pytest.raises(Uneditable):
        LENIENT.add(text, "w", SMALL)


@pytest.mark.parametrize("text", ['{"a": 1,}', "{} // x", "[1,]", '/**/{"a": [1,]}'])
def test_comments_are_refused_where_the_client_knows_none(text: str) -> None:
    """A file that its own client could not read is not ours to repair."""
    with pytest.raises(Uneditable):
        STRICT.add(text, "w", SMALL)


@given(json_texts(comments=False), names, entries)
def test_any_json_keeps_every_character(
    made: tuple[Any, str], name: str, entry: dict[str, Any]
) -> None:
    """The entry is there, everything else means and is what it was, and taking it out leaves no
    trace.
    """
    data, before = made
    assert plain_value(before) == data
    after = STRICT.add(before, name, entry)
    assert is_kept(before, after)
    assert json.loads(after) == {**data, "mcpServers": {**data.get("mcpServers", {}), name: entry}}
    assert STRICT.add(after, name, entry) == after
    left = STRICT.remove(after, name)
    if data.get("mcpServers"):
        assert left == before
    else:
        assert json.loads(left) == {**data, "mcpServers": {}}


@given(json_texts(comments=True), names, entries)
def test_any_json_with_comments_keeps_every_character(
    made: tuple[Any, str], name: str, entry: dict[str, Any]
) -> None:
    """The same with comments anywhere and commas at the ends."""
    data, before = made
    assert plain_value(before) == data
    after = LENIENT.add(before, name, entry)
    assert is_kept(before, after)
    assert json.loads(without_comments(after)) == {
        **data,
        "mcpServers": {**data.get("mcpServers", {}), name: entry},
    }
    left = LENIENT.remove(after, name)
    assert json.loads(without_comments(left)) == {**data, "mcpServers": data.get("mcpServers", {})}
    assert LENIENT.remove(left, name) == left


@given(st.text(st.sampled_from('{}[]":,/* \n\\abn1e-'), max_size=30))
def test_the_json_reader_agrees_with_the_library(text: str) -> None:
    """Without comments it accepts what Python's json accepts, and nothing else."""
    try:
        wanted = json.loads(text)
    except ValueError:
        wanted = ...
    try:
        found = STRICT.add(text, "w", SMALL)
    except Uneditable:
        assert not isinstance(wanted, dict) or "mcpServers" in wanted or '"a"' in text
        return
    assert not text.strip() or isinstance(wanted, dict)
    assert json.loads(found)["mcpServers"] == {"w": SMALL}


# -- TOML ------------------------------------------------------------------------------------------

TOML_CASES = {
    "nothing": ("", '[mcp_servers.w]\ncommand = "x"\n'),
    "at the end": ("a = 1\n", 'a = 1\n\n[mcp_servers.w]\ncommand = "x"\n'),
    "an end without a line's end": ("a = 1", 'a = 1\n\n[mcp_servers.w]\ncommand = "x"'),
    "behind the other servers": (
        "[mcp_servers.b]\ncommand = 'b'\n[mcp_servers.b.env]\nK = 'v'\n\n# tools\n[tools]\nx = 1\n",
        "[mcp_servers.b]\ncommand = 'b'\n[mcp_servers.b.env]\nK = 'v'\n\n[mcp_servers.w]\ncommand "
        '= "x"\n\n# tools\n[tools]\nx = 1\n',
    ),
    "there already, and different": (
        "[mcp_servers.w]\ncommand = 'old'\n\n[mcp_servers.w.env]\nA = 'b'\n\n[z]\n",
        '[mcp_servers.w]\ncommand = "x"\n\n[z]\n',
    ),
    "CRLF": ("a = 1\r\n", 'a = 1\r\n\r\n[mcp_servers.w]\r\ncommand = "x"\r\n'),
}


@pytest.mark.parametrize("before, after", TOML_CASES.values(), ids=TOML_CASES)
def test_toml_entry_becomes_a_table(before: str, after: str) -> None:
    """Behind the other servers or at the end; a second time changes nothing."""
    assert TOML.add(before, "w", SMALL) == after
    assert TOML.add(after, "w", SMALL) == after


@pytest.mark.parametrize(
    "text",
    [
        "a = ",
        "mcp_servers = { b = { command = 'b' } }",
        "mcp_servers = 1",
        "[[mcp_servers]]\na = 1",
        "[mcp_servers]\nw = { command = 'w' }",
    ],
)
def test_toml_that_is_not_certain_is_refused(text: str) -> None:
    """No TOML, or servers that are written so that no table can be added or replaced."""
    with pytest.raises(Uneditable):
        TOML.add(text, "w", SMALL)


@given(toml_texts(), names, entries)
def test_any_toml_keeps_every_character(before: str, name: str, entry: dict[str, Any]) -> None:
    """The entry is there, the rest is what it was, and taking it out leaves no trace."""
    data = tomllib.loads(before)
    after = TOML.add(before, name, entry)
    assert is_kept(before, after)
    assert tomllib.loads(after) == {
        **data,
        "mcp_servers": {**data.get("mcp_servers", {}), name: entry},
    }
    assert TOML.add(after, name, entry) == after
    assert TOML.remove(after, name) == before
    assert TOML.source(before, name) is None
    assert tomllib.loads(TOML.source(after, name) or "") == {"mcp_servers": {name: entry}}


@given(toml_texts())
def test_a_toml_entry_in_several_tables_goes_whole(text: str) -> None:
    """`notes` may have an env table elsewhere; both are gone, and nothing else."""
    data = tomllib.loads(text)
    wanted = {name: entry for name, entry in data.get("mcp_servers", {}).items() if name != "notes"}
    left = tomllib.loads(TOML.remove(text, "notes"))
    assert left.get("mcp_servers", {}) == wanted
    assert {k: v for k, v in left.items() if k != "mcp_servers"} == {
        k: v for k, v in data.items() if k != "mcp_servers"
    }


# -- YAML ------------------------------------------------------------------------------------------

YAML_CASES = {
    "nothing": ("", "extensions:\n  w:\n    command: x\n"),
    "at the end": ("a: 1\n", "a: 1\nextensions:\n  w:\n    command: x\n"),
    "an end without a line's end": ("a: 1", "a: 1\nextensions:\n  w:\n    command: x"),
    "behind the others": (
        "extensions:\n    b:\n        type: x\n\n# next\nz: 1\n",
        "extensions:\n    b:\n        type: x\n    w:\n      command: x\n\n# next\nz: 1\n",
    ),
    "an empty section": ("extensions: {}\nz: 1\n", "extensions:\n  w:\n    command: x\nz: 1\n"),
    "a section of nothing": (
        "extensions: # none\n\nz: 1\n",
        "extensions: # none\n  w:\n    command: x\n\nz: 1\n",
    ),
    "a key that is marked as one": (
        "? a\n: b\n",
        "? a\n: b\nextensions:\n  w:\n    command: x\n",
    ),
    "a directive": (
        "%YAML 1.2\n---\na: 1\n",
        "%YAML 1.2\n---\na: 1\nextensions:\n  w:\n    command: x\n",
    ),
    "there already, and different": (
        "extensions:\n  w:\n    cmd: old\n    args:\n    - a\n  # b\n  b:\n    x: 1\n",
        "extensions:\n  w:\n    command: x\n  # b\n  b:\n    x: 1\n",
    ),
}


@pytest.mark.parametrize("before, after", YAML_CASES.values(), ids=YAML_CASES)
def test_yaml_entry_becomes_a_block(before: str, after: str) -> None:
    """Behind the other entries; a second time changes nothing."""
    assert YAML.add(before, "w", SMALL) == after
    assert YAML.add(after, "w", SMALL) == after


@pytest.mark.parametrize(
    "text",
    [
        "extensions: {a: {b: 1}}\n", "extensions:\n- a\n", "extensions:\n  - a\n", "- a\n",
        "extensions: &x\n  a: 1\n", "a: 1\n---\nb: 2\n",
        "extensions:\n\ta: 1\n", "{extensions: {}}\n", "just words\n",
        "extensions:\n  <<: *base\n  a: 1\n",
        "extensions: {}\nextensions: {}\n",
        "a: \"open\n", "extensions:\n    a: 1\n  b: 2\n", "extensions:\n  a: 1\n  a: 2\n",
        "extensions: nothing\n",
        "a: 1\n...\n", "extensions: {}\n  a: 1\n",
    ],
)  # fmt: skip
def test_yaml_that_is_not_certain_is_refused(text: str) -> None:
    """Flow style, anchors, tabs, several documents: left alone."""
    with pytest.raises(Uneditable):
        YAML.add(text, "w", SMALL)


@given(yaml_texts(), names, entries)
def test_any_yaml_keeps_every_line(before: str, name: str, entry: dict[str, Any]) -> None:
    """The entry is there, the rest means and is what it was, by the judgement of another reader."""
    data = yaml.safe_load(before) or {}
    after = YAML.add(before, name, entry)
    assert is_kept(re.sub(r"(?m)^extensions: (\{\}|~)", "extensions:", before), after)
    assert yaml.safe_load(after) == {
        **data,
        "extensions": {**(data.get("extensions") or {}), name: entry},
    }
    assert YAML.add(after, name, entry) == after
    left = YAML.remove(after, name)
    assert yaml.safe_load(left) == {**data, "extensions": data.get("extensions") or {}}
    if data.get("extensions"):
        assert left == before


lines = st.lists(
    st.builds(
        lambda indent, head, tail: " " * indent + head + tail,
        st.integers(0, 4),
        st.sampled_from(
            [
                "extensions:",
                "a:",
                "b:",
                "w:",
                "- ",
                "- a:",
                "'q':",
                '"q":',
                "# r",
                "",
                "---",
                "?",
                "[",
                "]",
                "}",
                '"',
                "&x",
                "<<:",
                "word",
            ]
        ),
        st.sampled_from(
            [
                "",
                "",
                " 1",
                " |",
                " >-",
                " |+",
                " {}",
                " {",
                " [1,",
                ' "x',
                " 'x'",
                " 'x",
                " ~",
                " &x",
                " *x",
                " !t",
                " # r",
                " w: v",
                "]",
                "}",
                " w",
            ]
        ),
    ),
    max_size=7,
).map("\n".join)


@given(st.one_of(lines, st.text(st.sampled_from("ab:-{}[]'\"|># \n"), max_size=40)))
def test_any_text_is_edited_rightly_or_refused(text: str) -> None:
    """Whatever is taken keeps its meaning by another reader's judgement, and every character; the
    rest is refused.
    """
    try:
        after = YAML.add(text, "w", SMALL)
    except Uneditable:
        return
    try:
        data = yaml.safe_load(text) or {}
    except yaml.YAMLError:
        return  # it was broken before, and every character of it is still there
    assert yaml.safe_load(after) == {
        **data,
        "extensions": {**(data.get("extensions") or {}), "w": SMALL},
    }
