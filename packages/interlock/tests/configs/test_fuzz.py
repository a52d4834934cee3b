"""Whatever stands in a text, reading it gives a configuration and problems, and never raises or
takes long.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.configs import FORMATS, Config, read_config, wanted_inputs, write_config
from tests.configs.test_formats import CASES, ENV

SYNTAXES = ["", "x.json", "x.toml", "x.yaml"]


INPUTS = {"region": "eu", "trips-token": "x"}


def check(config: Config) -> None:
    """What holds of everything that was read."""
    assert len({entry.id for entry in config.entries}) == len(config.entries)
    for entry in config.entries:
        assert bool(entry.command) != bool(entry.url)
        assert entry.shown.isprintable()
        assert len(entry.digest) == 64
        assert json.dumps(entry.target).encode()
    for problem in config.problems:
        assert problem.words
        assert str(problem).isprintable()
    again = read_config(write_config(config.entries), env=ENV, inputs=INPUTS, folder=Path("/f"))
    assert [entry.target for entry in again.entries] == [entry.target for entry in config.entries]


@given(st.text(max_size=200), st.sampled_from(SYNTAXES))
@example("{", "")
@example("\ufeff\ufeff{}", "")
@example("\x00", "x.yaml")
@example("?", "x.yaml")
@example("[x]\nx = 1e400", "x.toml")
def test_any_text(text: str, name: str) -> None:
    """Any signs at all."""
    check(read_config(text, env=ENV, source=name, folder=Path("/f")))
    assert isinstance(wanted_inputs(text, source=name), tuple)


PARTS = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "'",
    "\\",
    "//",
    "/*",
    "*/",
    "\n",
    "  ",
    "null",
    "1e999",
    "-",
    "$",
    "${",
    "}",
    "${TRIPS_TOKEN}",
    "&a",
    "*a",
    "<<:",
    "!!int",
    "#",
    "=",
    "\x00",
    "\ud800",
    "\u202e",
    "type: sse",
]


@given(
    st.sampled_from(sorted(CASES)),
    st.lists(
        st.tuples(
            st.floats(0, 1), st.integers(0, 12), st.sampled_from(PARTS) | st.text(max_size=5)
        ),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
def test_mutated_documents(product: str, edits: list[tuple[float, int, str]], named: bool) -> None:
    """Real documents with a few places overwritten, put in or taken out."""
    text = CASES[product][0]
    for place, length, part in edits:
        at = int(place * len(text))
        text = text[:at] + part + text[at + length :]
    check(
        read_config(
            text, format=product if named else None, env=ENV, inputs=INPUTS, folder=Path("/f")
        )
    )


KEYS = sorted(
    {"command", "args", "env", "envFile", "cwd", "url", "httpUrl", "headers", "type", "disabled",
        "enabled", "tools", "without", "roots"}
    | {"timeout", "trusted", "trust", "includeTools", "env_vars", "env_keys", "envs", "cmd", "uri",
        "http_headers", "env_http_headers"}
    | {"bearer_token_env_var", "startup_timeout_sec", "available_tools", "source", "sandboxEnabled",
        "oauth", "headersHelper", "path"}
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["x", "http://h/", "stdio", "sse", "${A:-b}", "TRIPS_TOKEN"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4) | st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)
ENTRIES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6) | VALUES


@given(st.sampled_from(sorted(FORMATS)), st.dictionaries(st.text(max_size=6), ENTRIES, max_size=3))
def test_any_values(product: str, servers: dict[str, Any]) -> None:
    """Every key of every product with values of every kind."""
    format = FORMATS[product]
    if format.syntax == "toml":
        text = f"mcp_servers = {_toml(servers)}"
    else:
        text = json.dumps({format.sections[0][0]: servers})
    config = read_config(text, format=product, env=ENV, folder=Path("/f"))
    check(config)
    refused = any(
        not problem.id for problem in config.problems
    )  # the whole, as with a number that JSON has not
    asked = {
        id for id, server in servers.items() if server is not None or format.syntax != "toml"
    }  # which has no null
    assert (
        refused
        or {entry.id for entry in config.entries} | {problem.id for problem in config.problems}
        >= asked
    )


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(
                f"{json.dumps(key)} = {_toml(inner)}"
                for key, inner in value.items()
                if inner is not None
            )
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(_toml(inner) for inner in value if inner is not None) + "]"
    return json.dumps(value).lower() if isinstance(value, float) else json.dumps(value)


def large_texts(size: int) -> list[tuple[str, int]]:
    """Texts of about this many characters that would be slow to read in a careless way, each with
    the number of its entries."""
    return [
        ('{"mcpServers": {"a": {"command": "' + "${" * (size // 2) + '"}}}', 1),
        ('{"mcpServers": {"a": {"command": "' + "${A:-" * (size // 5) + '}"}}}', 0),
        ('{"mcpServers": {"a": {"url": "' + "${A:-}" * (size // 6) + '"}}}', 0),
        ('{"mcpServers": {"a": {"url": "' + "http://" * (size // 7) + '"}}}', 1),
        ('{"' + '\\"' * (size // 2), 0),
        ("/*" * (size // 2), 0),
        ('"' * size, 0),
        ("{" + "," * size, 0),
        ("{" * size, 0),
        ("[" * size, 0),
        ("[a]\n" * (size // 4), 0),
        ("a:\n" * (size // 3), 0),
        ("- " * (size // 2), 0),
        ("extensions:\n" + "  a: {b: [" + "x, " * (size // 12) + "]}\n", 0),
        (
            '{"mcpServers": {'
            + ",".join(f'"{n}":{{"command":"x"}}' for n in range(size // 30))
            + "}}",
            1000,
        ),
        ('{"mcpServers": {' + ",".join('"a":0' for _ in range(size // 7)) + "}}", 0),
    ]


@pytest.mark.parametrize("number", range(len(large_texts(60))))
@pytest.mark.parametrize(
    "size", [200_000, pytest.param(1_000_000, marks=pytest.mark.endurance(seconds=2))]
)
def test_large_texts(size: int, number: int) -> None:
    """They come to an end, with what can be used of them. What takes the square of the time for
    five times the text hangs at the smaller size too; the larger one is near the bound."""
    text, entries = large_texts(size)[number]
    config = read_config(text, env=ENV)
    assert len(config.entries) == entries
    assert bool(config.problems) == (entries != 1)
    assert wanted_inputs(text) == ()
