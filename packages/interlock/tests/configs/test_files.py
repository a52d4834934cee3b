"""Configurations of several files become one, and whatever is wrong with a file is told in
words.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from interlock.configs import (
    Config,
    Entry,
    Input,
    Problem,
    changes,
    load_config,
    merge,
    read_config,
    wanted_inputs,
)

VSCODE = """{
  "inputs": [
    {"type": "promptString", "id": "key", "description": "The key", "password": true},
    {"type": "pickString", "id": "region", "options": [{"label": "Europe", "value": "eu"}, "us"],
        "default": "eu"},
    {"type": "promptString", "id": "unused"},
    {"type": "command", "id": "told", "command": "some.command"},
    "nonsense", {"id": 5}
  ],
  "servers": {
    "a": {"command": "x", "args": ["${input:key}", "${input:region}"]},
    "b": {"command": "x", "env": {"K": "${input:key}", "L": "${input:told}",
        "M": "${input:nowhere}"}},
    "off": {"command": "x", "args": ["${input:unused}"], "disabled": true}
  }
}"""


def put(folder: Path, name: str, *ids: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(
            {"mcpServers": {id: {"command": id, "args": ["${workspaceFolder}"]} for id in ids}}
        )
    )
    return path


def test_files_are_merged(tmp_path: Path) -> None:
    """Servers come in the order of the files; each knows where it came from, and works in the
    folder that its file belongs to.
    """
    one = put(tmp_path, "one/.mcp.json", "a", "b")
    two = put(tmp_path, "two/.cursor/mcp.json", "c")
    config = load_config(one, two)
    assert config.problems == ()
    assert [(entry.id, entry.source, entry.command[1]) for entry in config.entries] == [
        ("a", str(one), str(tmp_path / "one")),
        ("b", str(one), str(tmp_path / "one")),
        ("c", str(two), str(tmp_path / "two")),
    ]
    assert {
        entry.command[1] for entry in load_config(one, two, folder=Path("/elsewhere")).entries
    } == {"/elsewhere"}


def test_a_name_in_two_files(tmp_path: Path) -> None:
    """It is refused, never guessed, and both files are named."""
    one = put(tmp_path, "1.json", "a", "b")
    two = put(tmp_path, "2.json", "b", "c")
    three = put(tmp_path, "3.json", "b")
    config = load_config(one, two, three)
    assert [entry.id for entry in config.entries] == ["a", "c"]
    assert config.problems == (
        Problem(
            where="b",
            words=f"left out: it is in {one}, {two}, {three}; rename or remove all but one",
            id="b",
        ),
    )


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """Each is told with what to do, and the others are read."""
    good = put(tmp_path, "good.json", "a")
    (tmp_path / "latin.json").write_bytes(b'{"mcpServers": {"\xe9": {}}}')
    (tmp_path / "large.json").write_bytes(b" " * (1 << 20) + b"{}")
    (tmp_path / "broken.json").write_text('{"mcpServers": {\n  "a" {}}}')
    (tmp_path / "file").touch()
    names = ["none.json", "", "latin.json", "large.json", "broken.json", "file/below.json", "a\0b"]
    config = load_config(*(tmp_path / name for name in names), good, env={})
    assert [entry.id for entry in config.entries] == ["a"]
    assert [problem.words for problem in config.problems] == [
        "this file does not exist; create it, or name another",
        "it is a folder; name the file in it",
        "it is not UTF-8; save it as UTF-8",
        "it is larger than 1 MiB, the limit for configurations",
        "it cannot be read: line 2, column 7: this is not JSON (a colon is missing)",
        "it cannot be read (Not a directory)",
        "it cannot be read (its name is invalid)",
    ]
    assert [problem.where for problem in config.problems] == [
        str(tmp_path / name) for name in names
    ]


def test_files_that_may_not_be_read(tmp_path: Path) -> None:
    """Permissions are told as such."""
    path = put(tmp_path, "x.json", "a")
    path.chmod(0)
    am_root = os.geteuid() == 0
    if am_root:  # who may read everything
        os.seteuid(65534)
    try:
        problems = load_config(path).problems
    finally:
        if am_root:
            os.seteuid(0)
    assert [problem.words for problem in problems] == [
        "you may not read it; change its permissions"
    ]


def test_a_file_with_a_mark_at_its_beginning(tmp_path: Path) -> None:
    """What editors of Windows put there is no part of the text."""
    (tmp_path / "x.toml").write_bytes(b"\xef\xbb\xbf[mcp_servers.a]\r\ncommand = 'x'\r\n")
    assert [entry.command for entry in load_config(tmp_path / "x.toml").entries] == [("x",)]


def test_files_of_variables(tmp_path: Path) -> None:
    """An envFile is read from the folder that is worked in; what stands in `env` comes after it."""
    (tmp_path / ".env").write_text(
        '# of the maps\n\nexport KEY=abc # said\n QUOTED = "a # b\\n\\"c\\""  # '
        "said\nSINGLE='$KEY \\n'\nEMPTY=\nOVER=file-value\nHASH=a#b\n"
    )
    (tmp_path / "x.json").write_text(
        '{"mcpServers": {"a": {"command": "x", "envFile": "${workspaceFolder}/.env", "env": '
        '{"OVER": "own"}}}}'
    )
    (entry,) = load_config(tmp_path / "x.json").entries
    assert entry.env == {
        "KEY": "abc",
        "QUOTED": 'a # b\n"c"',
        "SINGLE": "$KEY \\n",
        "EMPTY": "",
        "OVER": "own",
        "HASH": "a#b",
    }


@pytest.mark.parametrize(
    "content, words",
    [
        (None, "this file does not exist"),
        ("KEY=1\nnot a variable\n", "line 2: it must be NAME=value"),
        ("1KEY=x", "line 1: it must be NAME=value"),
    ],
)
def test_files_of_variables_that_are_wrong(tmp_path: Path, content: str | None, words: str) -> None:
    """The server is left out, and the file is named as it was written."""
    if content is not None:
        (tmp_path / "vars").write_text(content)
    (tmp_path / "x.json").write_text('{"mcpServers": {"a": {"command": "x", "envFile": "vars"}}}')
    (problem,) = load_config(tmp_path / "x.json").problems
    assert problem.words.startswith(f"left out: its envFile vars: {words}")


def test_wanted_inputs() -> None:
    """Only what is used is asked for, each once; what is described nowhere is asked for as a
    secret.
    """
    assert wanted_inputs(VSCODE) == (
        Input(id="key", description="The key", password=True),
        Input(id="region", type="pickString", options=("eu", "us"), default="eu"),
        Input(id="told", type="command"),
        Input(id="nowhere", description="nowhere", password=True),
    )
    assert wanted_inputs('{"servers": {}}') == wanted_inputs("{broken") == wanted_inputs("[]") == ()
    assert wanted_inputs('{"mcpServers": {"a": {"command": "${input:x}"}}}') == (
        Input(id="x", description="x", password=True),
    )
    assert (
        wanted_inputs("[mcp_servers.a]\ncommand = '${input:x}'", "codex") == ()
    )  # it has no such variables
    with pytest.raises(ValueError, match="unknown format"):
        wanted_inputs("{}", "none")


def test_inputs_are_asked_for(tmp_path: Path) -> None:
    """A person is asked once for each; without a person defaults count, and what has none is a
    problem of its server alone.
    """
    path = tmp_path / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text(VSCODE)
    asked: list[str] = []

    def ask(input: Input) -> str:
        asked.append(input.id)
        return "us" if input.options else f"answer to {input.id}"

    config = load_config(path, ask=ask)
    assert asked == ["key", "region", "told", "nowhere"]
    assert [(entry.id, entry.command, entry.env) for entry in config.entries] == [
        ("a", ("x", "answer to key", "us"), {}),
        ("b", ("x",), {"K": "answer to key", "L": "answer to told", "M": "answer to nowhere"}),
    ]
    alone = read_config(VSCODE, env={}, inputs={"key": "k"})
    assert [entry.command for entry in alone.entries] == [("x", "k", "eu")]
    assert [problem.id for problem in alone.problems] == ["b", "off"]


def test_a_person_who_does_not_answer(tmp_path: Path) -> None:
    """What asking raises goes through: the caller knows what it means."""
    (tmp_path / "x.json").write_text(VSCODE)

    def ask(_: Input) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_config(tmp_path / "x.json", ask=ask)


# -- what changes ----------------------------------------------------------------------------------


def config(*entries: Entry) -> Config:
    return Config(entries=entries)


A, B, C = (Entry(id=id, command=(id,)) for id in "abc")


@pytest.mark.parametrize(
    "old, new, added, removed, changed, reached_anew",
    [
        (config(), config(), "", "", "", ""),
        (config(A, B), config(B, A), "", "", "", ""),
        (config(A), config(A, B), "b", "", "", ""),
        (config(A, B), config(B), "", "a", "", ""),
        (config(A), config(Entry(id="a", command=("a",), source="elsewhere")), "", "", "", ""),
        (config(A), config(Entry(id="a", command=("a", "x"))), "", "", "a", "a"),
        (config(A), config(Entry(id="a", command=("a",), env={"K": "v"})), "", "", "a", "a"),
        (config(A), config(Entry(id="a", command=("a",), disabled=True)), "", "", "a", "a"),
        (config(A), config(Entry(id="a", command=("a",), tools=("x",))), "", "", "a", ""),
        (config(A), config(Entry(id="a", command=("a",), timeout=5.0, roots=("/x",), trusted=True)),
            "", "", "a", ""),
        (config(A, B), config(C, Entry(id="b", url="http://h/")), "c", "a", "b", "b"),
    ],
)  # fmt: skip
def test_changes(
    old: Config, new: Config, added: str, removed: str, changed: str, reached_anew: str
) -> None:
    """Servers are the same by their ids; one that is reached as before need not be started
    again.
    """
    found = changes(old, new)
    assert [
        "".join(entry.id for entry in entries)
        for entries in (found.added, found.removed, found.changed)
    ] == [added, removed, changed]
    assert found.reached_anew == frozenset(reached_anew)
    assert bool(found) == bool(added or removed or changed)
    assert all(entry in new.entries for entry in found.changed)


def test_nothing_merged_is_nothing() -> None:
    """No file, no servers."""
    assert merge() == load_config() == Config()
