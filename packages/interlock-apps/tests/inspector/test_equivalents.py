"""Equivalent commands: the words are read back by the command as the same arguments."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.cli.client.values import tool_arguments
from interlock_apps.inspector.equivalents import equivalent_command

SCRIPT = ("weather.py",)
COMMAND = ("--", "node", "server.js")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "state": {"type": "string"},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["state", "count", "tags", "more"]) | st.text()


def of_call(
    target: tuple[str, ...], arguments: dict[str, Any], *revision: str, **options: Any
) -> str:
    """The command of a call."""
    params = {"name": "alerts", "arguments": arguments}
    return equivalent_command(target, "tools/call", params, *revision, schema=SCHEMA, **options)


@pytest.mark.parametrize(
    "target, arguments, command",
    [
        (SCRIPT, {}, "interlock call weather.py alerts"),
        (SCRIPT, {"state": "CA"}, "interlock call weather.py alerts state=CA"),
        (SCRIPT, {"state": "7"}, "interlock call weather.py alerts state=7"),
        (SCRIPT, {"count": 7}, "interlock call weather.py alerts count:=7"),
        (SCRIPT, {"state": "it's"}, "interlock call weather.py alerts 'state=it'\"'\"'s'"),
        (SCRIPT, {"state": "@/etc/passwd"}, "interlock call weather.py alerts "
         "'state:=\"@/etc/passwd\"'"),
        (SCRIPT, {"a=b": 1}, "interlock call weather.py alerts --json '{\"a=b\":1}'"),
        (COMMAND, {"state": "CA"}, "interlock call alerts state=CA -- node server.js"),
    ],
)  # fmt: skip
def test_the_command_of_a_call(
    target: tuple[str, ...], arguments: dict[str, Any], command: str
) -> None:
    assert of_call(target, arguments) == command


def test_the_revision_and_the_task_are_options_before_the_command() -> None:
    command = of_call(COMMAND, {}, "2025-11-25", as_task=True)
    assert command == ("interlock call alerts --task --revision 2025-11-25 -- node server.js")


@given(st.dictionaries(NAMES, JSON, max_size=4))
def test_the_words_are_read_back_as_the_arguments(arguments: dict[str, Any]) -> None:
    """Whatever the arguments are, no text is taken for the name of a file."""
    words = shlex.split(of_call(SCRIPT, arguments))
    assert words[:4] == ["interlock", "call", "weather.py", "alerts"]
    rest = words[4:]
    if rest[:1] == ["--json"]:
        assert tool_arguments([], rest[1], SCHEMA) == arguments
    else:
        assert tool_arguments(rest, None, SCHEMA) == arguments
