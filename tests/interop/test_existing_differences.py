"""The improvements over the existing reference servers that the guide's page claims, tested on both
sides."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from interlock import Answers, Stdio
from interlock.sync import Client
from scripts import existing_servers
from tests.interop.existing import Sides, ours
from tests.servers.git.repos import git

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def sides(
    installed: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sides]:
    """All servers, one process for each server and side."""
    with ExitStack() as stack:
        yield Sides(stack, tmp_path_factory.mktemp("existing"), installed)


def refused(client: Client, tool: str, arguments: dict[str, Any]) -> bool:
    """Whether a call is answered with an error."""
    return bool(client.call_tool(tool, arguments).is_error)


def test_roots_replace_there_and_narrow_here(
    installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """A folder that is not allowed, but named by a client, can be read there and not here."""
    installed("servers-npm")
    allowed = tmp_path / "allowed"
    other = tmp_path / "other"
    for folder in (allowed, other):
        folder.mkdir()
    (other / "secret.txt").write_text("secret\n")
    read = {"path": str(other / "secret.txt")}
    with Client(
        existing_servers.started("filesystem", allowed), answers=Answers(roots=[other.as_uri()])
    ) as theirs:
        for _ in range(1_000):  # it requests the roots at any time
            if str(other) in theirs.call_tool("list_allowed_directories", {}).text:
                break
        assert theirs.call_tool("read_text_file", read).text == "secret\n"
    with Client(ours("filesystem", allowed), answers=Answers(roots=[other.as_uri()])) as mine:
        assert refused(mine, "read_file", read)


def test_files_that_are_not_what_they_seem(sides: Sides, tmp_path: Path) -> None:
    """A hard link to a file outside; a text that occurs twice; Windows line endings; Latin-1
    letters."""
    (tmp_path / "secret.txt").write_text("secret\n")
    for side, client in zip(("there", "here"), sides.both("filesystem"), strict=True):
        place = sides.place("filesystem", side)
        theirs = side == "there"
        os.link(tmp_path / "secret.txt", place / "hard.txt")
        assert refused(client, "read_file", {"path": str(place / "hard.txt")}) is not theirs
        for name, before, after in (
            ("twice.txt", b"x\ny\nx\n", b"2\ny\nx\n"),
            ("windows.txt", b"x\r\ny\r\n", b"2\ny\n"),
            ("latin.txt", b"caf\xe9\nx\n", b"caf\xef\xbf\xbd\n2\n"),
        ):
            (place / name).write_bytes(before)
            edit = {"oldText": "x", "newText": "2"} if theirs else {"old": "x", "new": "2"}
            gone = refused(client, "edit_file", {"path": str(place / name), "edits": [edit]})
            kept = before.replace(b"x", b"2") if name == "windows.txt" else before
            assert (place / name).read_bytes() == (after if theirs else kept)
            assert gone is (not theirs and name != "windows.txt")
        (place / "hard.txt").unlink()


def test_programs_of_a_repository(sides: Sides, tmp_path: Path) -> None:
    """Hooks, a filter and a diff driver run there, and not here; without a folder, any repository
    is served there."""
    for side, client in zip(("there", "here"), sides.both("git"), strict=True):
        place = sides.place("git", side)
        ran = tmp_path / side
        ran.mkdir()
        hook = place / ".git" / "hooks" / "pre-commit"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}/hook\n")
        hook.chmod(0o755)
        (place / ".gitattributes").write_text("*.txt filter=evil diff=evil\n")
        git(place, "config", "filter.evil.clean", f"touch {ran}/filter; cat")
        git(place, "config", "diff.evil.textconv", f"touch {ran}/driver; cat")
        there = {"repo_path": str(place)} if side == "there" else {}
        client.call_tool("git_diff_unstaged" if side == "there" else "git_diff", there)
        client.call_tool(
            "git_add", {**there, "files" if side == "there" else "paths": ["beds.txt"]}
        )
        client.call_tool("git_commit", {**there, "message": "Peas"})
        assert sorted(path.name for path in ran.iterdir()) == (
            ["driver", "filter", "hook"] if side == "there" else []
        )
    command = existing_servers.command("git", tmp_path)[:3]
    with Client(Stdio(command, env={"PATH": os.environ["PATH"]})) as theirs:
        assert not refused(theirs, "git_status", {"repo_path": str(sides.place("git", "here"))})


def test_memory(sides: Sides) -> None:
    """A duplicate name in a call is kept twice there; only here, words match in another order and
    without accents."""
    twice = [{"name": "Ada", "entityType": "person", "observations": ["lives in Zürich"]}] * 2
    for client, entities, hits in zip(sides.both("memory"), (2, 1), (0, 1), strict=True):
        client.call_tool("create_entities", {"entities": twice})
        found: Any = client.call_tool("read_graph", {}).structured_content
        assert len(found["entities"]) == entities
        found = client.call_tool("search_nodes", {"query": "zurich lives"}).structured_content
        assert len(found["entities"]) == hits


def test_time_and_thinking(sides: Sides) -> None:
    """Missing or lower-case zones, dates; a revision of a missing thought, and two problems in one
    history."""
    for client, no in zip(sides.both("time"), (True, False), strict=True):
        assert refused(client, "get_current_time", {}) is no
        assert refused(client, "get_current_time", {"timezone": "europe/madrid"}) is no
        call = {
            "time": "2024-03-29T18:00",
            "source_timezone": "UTC",
            "target_timezone": "Asia/Tokyo",
        }
        assert refused(client, "convert_time", call) is no
    for client, length in zip(sides.both("sequentialthinking"), (3, 1), strict=True):
        step = {"thought": "?", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False}
        client.call_tool("sequentialthinking", step)
        lost = {**step, "thoughtNumber": 2, "isRevision": True, "revisesThought": 99}
        assert refused(client, "sequentialthinking", lost) is (length == 1)
        said: Any = client.call_tool("sequentialthinking", step).structured_content
        assert said["thoughtHistoryLength"] == length


def test_databases(sides: Sides) -> None:
    """A query that starts with WITH; a success without a stored change; a file beside the database;
    an error as a normal result."""
    theirs, mine = sides.both("sqlite")
    asked = "WITH one AS (SELECT 1 AS n) SELECT n FROM one"
    assert "Only SELECT" in theirs.call_tool("read_query", {"query": asked}).text
    assert not refused(mine, "query", {"sql": asked})
    replace = "REPLACE INTO people VALUES (7, 'Zoë')"
    assert not refused(theirs, "write_query", {"query": replace})
    assert not refused(mine, "execute", {"statements": [{"sql": replace}]})
    for side, rows in (("there", 0), ("here", 1)):
        database = sqlite3.connect(sides.place("sqlite", side) / "existing.db")
        assert database.execute("SELECT count(*) FROM people WHERE id = 7").fetchone() == (rows,)
        database.close()
    for side, client, tool in (("there", theirs, "write_query"), ("here", mine, "execute")):
        copy = sides.place("sqlite", side) / "copy.db"
        sql = f"VACUUM INTO '{copy}'"
        assert refused(
            client, tool, {"query": sql} if side == "there" else {"statements": [{"sql": sql}]}
        ) is (side == "here")
        assert copy.exists() is (side == "there")
    assert not refused(theirs, "read_query", {"query": "SELECT nothing"})
    assert refused(mine, "query", {"sql": "SELECT nothing"})
