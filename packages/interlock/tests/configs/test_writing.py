"""What is written is read again as the same entries, and everything else in the text stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.configs import Entry, Input, Uneditable, read_config, wanted_inputs, write_config
from tests.configs.test_formats import CASES, ENV, FOLDER

INPUTS = {"trips-token": "asked-for-1", "region": "us"}


@pytest.mark.parametrize("product", CASES)
def test_every_format_is_written_as_one(product: str) -> None:
    """Entries of any product are the same when they were written and read again."""
    text = CASES[product][0]
    entries = read_config(text, format=product, env=ENV, inputs=INPUTS, folder=FOLDER).entries
    written = write_config(entries, inputs=wanted_inputs(text))
    assert wanted_inputs(written) == wanted_inputs(text)
    again = read_config(written, env=ENV, inputs=INPUTS, folder=FOLDER)
    assert again.problems == ()
    assert again.entries == entries
    assert write_config(again.entries, written) == written


# -- any entry -------------------------------------------------------------------------------------

SIGNS = st.characters(min_codepoint=1, max_codepoint=0x10FFFF, exclude_categories=["Cs"])
TEXTS = st.one_of(
    st.text(SIGNS, max_size=20),
    st.lists(
        st.sampled_from(
            [
                "$",
                "{",
                "}",
                "${",
                "a",
                ":-",
                "TOKEN",
                "${TOKEN}",
                "${NONE:-d}",
                "${input:t}",
                "\\",
                '"',
                "env:",
            ]
        ),
        max_size=6,
    ).map("".join),
)
NAMES = st.from_regex(r"[A-Z][A-Z_0-9]{0,8}", fullmatch=True)
SECONDS = st.none() | st.integers(1000, 10**7)
WORDS = st.lists(st.text(SIGNS, max_size=10), max_size=3)
IDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20).filter(
    lambda id: id.casefold() != "interlock"
)
MORE = {
    "trusted": st.booleans(),
    "disabled": st.booleans(),
    "tools": WORDS,
    "without": WORDS,
    "roots": st.lists(TEXTS, max_size=2),
}
LOCAL = st.fixed_dictionaries(
    {"command": TEXTS},
    optional={
        "args": st.lists(TEXTS, max_size=4),
        "env": st.dictionaries(NAMES, TEXTS, max_size=3),
        "cwd": TEXTS,
        **MORE,
    },
)
HEADERS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
REMOTE = st.fixed_dictionaries(
    {
        "url": st.sampled_from(
            [
                "https://h/${TOKEN}",
                "http://${NONE:-h}:80/",
                "tcp://h:1",
                "unix:///a/${DOLLAR:-$}{b}",
            ]
        )
    },
    optional={
        "headers": st.dictionaries(NAMES, HEADERS | st.just("Bearer ${TOKEN}"), max_size=2),
        "type": st.sampled_from(["http", "sse"]),
        **MORE,
    },
)


@given(st.dictionaries(IDS, LOCAL | REMOTE, max_size=4), SECONDS, SECONDS)
def test_round_trip(
    servers: dict[str, dict[str, Any]], timeout: int | None, start: int | None
) -> None:
    """Whatever was read is read again as it was, with every sign, and writing it twice changes
    nothing.
    """
    for server in servers.values():
        server |= {"timeout": timeout, "startTimeout": start}
    env = {"TOKEN": "tok-8d1f77"}
    inputs = {"t": "asked-for-1"}
    config = read_config(json.dumps({"mcpServers": servers}), env=env, inputs=inputs, folder=FOLDER)
    written = write_config(config.entries)
    again = read_config(written, env=env, inputs=inputs, folder=FOLDER)
    assert again.problems == ()
    assert again.entries == config.entries
    assert write_config(again.entries, written) == written


@given(
    st.dictionaries(
        IDS,
        st.fixed_dictionaries(
            {"command": TEXTS.filter(str.strip)}, optional={"args": st.lists(TEXTS, max_size=4)}
        ),
        max_size=3,
    )
)
def test_round_trip_of_what_has_no_variables(servers: dict[str, dict[str, Any]]) -> None:
    """Texts of a product without variables mean the same when they are written in a format that has
    them.
    """
    config = read_config(json.dumps({"context_servers": servers}), env={})
    assert {entry.id: list(entry.command) for entry in config.entries} == {
        id: [server["command"], *server.get("args", [])] for id, server in servers.items()
    }
    again = read_config(write_config(config.entries), env={})
    assert again.entries == config.entries


def test_entries_made_by_hand() -> None:
    """What was never read is written as it is, dollar signs too."""
    entry = Entry(
        id="x",
        command=("run", "${NOT_MINE}", "$5"),
        env={"API_KEY": "typed"},
        secrets=frozenset({"typed"}),
        timeout=2.5,
        start_seconds=1,
    )
    again = read_config(write_config([entry]), env={"NOT_MINE": "value"})
    assert [(one.command, one.env, one.timeout, one.start_seconds) for one in again.entries] == [
        (entry.command, entry.env, 2.5, 1.0)
    ]
    assert json.loads(write_config([Entry(id="u", url="HTTPS://h/", legacy_sse=True)])) == {
        "mcpServers": {"u": {"type": "sse", "url": "HTTPS://h/"}}
    }
    assert json.loads(write_config([Entry(id="u", url="unix:///s", tools=())])) == {
        "mcpServers": {"u": {"url": "unix:///s", "tools": []}}
    }


BEFORE = """{
    "theme": "däñk",
    "mcpServers": {
        "kept": {"command": "a", "args": ["${WHO}"], "strange": [1, 2]},
        "replaced": {"command": "b", "serverUrl": "http://old/", "alwaysLoad": true,
            "oauth": {"clientId": "x"}},
        "dropped": {"command": "c"}
    },
    "inputs": [{"id": "t", "type": "promptString"}]
}
"""


def test_the_rest_stays() -> None:
    """Other servers, other keys of the same server, other parts of the text, order and indentation
    stay as they are.
    """
    after = write_config(
        [Entry(id="replaced", url="https://new/"), Entry(id="new", command=("d",))],
        BEFORE,
        drop=["dropped", "not there"],
    )
    assert json.loads(after) == {
        "theme": "däñk",
        "mcpServers": {
            "kept": {"command": "a", "args": ["${WHO}"], "strange": [1, 2]},
            "replaced": {
                "type": "http",
                "url": "https://new/",
                "alwaysLoad": True,
                "oauth": {"clientId": "x"},
            },
            "new": {"type": "stdio", "command": "d"},
        },
        "inputs": [{"id": "t", "type": "promptString"}],
    }
    assert list(json.loads(after)["mcpServers"]) == ["kept", "replaced", "new"]
    assert '\n    "theme": "däñk"' in after
    assert write_config([], after) == after


def test_comments_stay() -> None:
    """A comment, a trailing comma and a name that is there twice stay, byte for byte."""
    before = """{
  // mine
  "a": 1, "a": 2,
  "mcpServers": {
    "kept": {"command": "k"}, // first
  },
  "inputs": [
    {"id": "t"} // asked before
  ],
}
"""
    after = write_config(
        [Entry(id="new", command=("d",))], before, inputs=[Input(id="p", description="Which?")]
    )
    assert after == before.replace(
        "// first\n",
        '// first\n    "new": {\n      "type": "stdio",\n      "command": "d"\n    },\n',
    ).replace(
        '{"id": "t"} // asked before\n',
        '{"id": "t"},\n    {\n      "type": "promptString",\n      "id": "p",\n'
        '      "description": "Which?"\n    } // asked before\n',
    )


def test_inputs_are_described_once() -> None:
    """A description that is there stays; one that is not is put behind it."""
    inputs = [
        Input(id="t", description="other"),
        Input(id="r", type="pickString", options=("a", "b"), default="a"),
        Input(id="p", password=True),
    ]
    assert json.loads(write_config([], BEFORE, inputs=inputs))["inputs"] == [
        {"id": "t", "type": "promptString"},
        {"type": "pickString", "id": "r", "description": "", "default": "a", "options": ["a", "b"]},
        {"type": "promptString", "id": "p", "description": "", "password": True},
    ]


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("", '{\n  "mcpServers": {}\n}\n'),
        ("\ufeff{}\r\n", '{\r\n  "mcpServers": {}\r\n}\r\n'),
        (" \n", '{\n  "mcpServers": {}\n}\n'),
    ],
)
def test_empty_texts(text: str, wanted: str) -> None:
    """A text with nothing in it becomes a configuration; ends of lines stay what they were."""
    assert write_config([], text) == wanted


@pytest.mark.parametrize(
    "text, words",
    [
        ('{"mcpServers": {} mine\n}', "line 1, column 19: a comma or } is missing"),
        ("[]", "it must be a JSON object"),
        ('{"mcpServers": []}', "mcpServers must be an object"),
        ('{"mcpServers": {"a": 1, "a": 2}}', "a is in it 2 times"),
        ("[" * 100_000, "more than 100 levels"),
        ('{"a": ' + "9" * 5000 + "}", "a number has too many digits"),
        (" " * (1 << 20) + "{}", "it is larger than 1 MiB"),
    ],
)
def test_texts_that_are_not_touched(text: str, words: str) -> None:
    """Where something would be lost nothing is written, and it is said why."""
    with pytest.raises(Uneditable) as refused:
        write_config([Entry(id="a", command=("b",))], text)
    assert words in str(refused.value)
