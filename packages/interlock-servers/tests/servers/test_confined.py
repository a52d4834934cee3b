"""Every reference server works in a sandbox."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest

from interlock import Client, Stdio
from interlock.sandbox import Sandbox, mechanism_states
from interlock_servers.commands import servers_here
from tests.servers.roads import serving

CALLS: dict[str, tuple[list[str], str, dict[str, Any], str]] = {
    "calendar": ([], "list_events", {}, ""),
    "database": (["shop.db", "--write=shop"], "list_tables", {}, "things"),
    "everything": ([], "echo", {"text": "hello"}, "hello"),
    "filesystem": (["."], "read_file", {"path": "note.txt"}, "a note"),
    "fetch": ([], "fetch", {"url": "http://127.0.0.1:8080/"}, "127.0.0.1"),
    "git": (["."], "git_status", {"repository": "."}, "note.txt"),
    "mail": ([], "create_draft", {}, ""),
    "memory": ([], "read_graph", {}, "empty"),
    "thinking": ([], "", {}, ""),
    "time": ([], "get_current_time", {"timezone": "UTC"}, "UTC"),
    "travel": ([], "", {}, ""),
    "weather": ([], "", {}, ""),
}
"""For each server its arguments, a tool, its arguments, and words of the answer."""


def test_every_server_is_shown() -> None:
    """A new server needs a row."""
    assert CALLS.keys() >= servers_here().keys()


def prepare(name: str, folder: Path) -> None:
    """Make the files that a server is asked about."""
    (folder / "note.txt").write_text("a note")
    if name == "git":
        subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    if name == "database":
        made = sqlite3.connect(folder / "shop.db")
        made.execute("create table things (name text)")
        made.close()


@pytest.mark.matrix(pairs=False, seconds=1.5)
@pytest.mark.parametrize("mechanism", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("name", CALLS)
async def test_a_server_works_in_a_sandbox(
    name: str, mechanism: Literal["bubblewrap", "landlock"], tmp_path: Path
) -> None:
    """It starts, lists its tools, and uses the files of its working folder."""
    for state in mechanism_states():
        if state.name == mechanism and state.problem:
            # The kernel of this machine decides; nothing that could be installed helps.
            pytest.skip(f"NOT SHOWN HERE: {mechanism}: {state.problem}")
    arguments, tool, given, words = CALLS[name]
    prepare(name, tmp_path)
    arguments = [str(tmp_path) if each == "." else each for each in arguments]
    given = {key: str(tmp_path) if value == "." else value for key, value in given.items()}
    if "path" in given:
        given["path"] = os.path.join(tmp_path, given["path"])
    stdio = Stdio([*serving(name), *arguments], cwd=tmp_path, sandbox=Sandbox(mechanism=mechanism))
    async with Client(stdio) as client:
        assert await client.list_tools()
        if words:
            result = await client.call_tool(tool, given)
            assert words in result.text
