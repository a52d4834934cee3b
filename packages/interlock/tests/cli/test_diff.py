"""`interlock diff`: compares servers, revisions, snapshots and tapes by what breaks callers."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from pathlib import Path

import pytest

from interlock import Client, Server
from interlock.tape import Recorder
from interlock.testing import check_catalogue, read_catalogue, take_catalogue
from tests.cli.conftest import Command

BREAKING = "tool add: the argument b is required now"


def make_server(*, changed: bool = False) -> Server:
    """A calculator, before and after a release."""
    server = Server("sums", "1")
    if changed:

        @server.tool
        def add(a: int, b: int) -> int:
            """Add two whole numbers, one of which had a default until now."""
            return a + b

        @server.tool
        def halve(a: int) -> float:
            return a / 2

    else:

        @server.tool(name="add")
        def add_one(a: int, b: int = 1) -> int:
            """Add two whole numbers, one of which has a default."""
            return a + b

    @server.prompt
    def explain(sum: str, tone: str = "plain") -> str:
        return f"{sum} {tone}"

    @server.resource("sums://last")
    def last() -> str:
        return "2"

    @server.resource("sums://{day}/list")
    def listed(day: str) -> str:
        return day

    return server


def save_snapshot(path: Path, server: Server) -> Path:
    asyncio.run(check_catalogue(server, path, update=True))
    return path


def save_tape(path: Path, *servers: Server) -> Path:
    """Record clients that list everything, one after the other."""

    async def record() -> None:
        with Recorder(path) as recorder:
            for server in servers:
                async with Client(server, record=recorder) as client:
                    await take_catalogue(client)

    asyncio.run(record())
    return path


def test_what_breaks_callers_is_told_from_what_does_not(interlock: Command, tmp_path: Path) -> None:
    """A snapshot has digests in place of long texts; the other side is compared in this form."""
    before = save_snapshot(tmp_path / "before.json", make_server())
    after = save_tape(tmp_path / "after.tape", make_server(changed=True))
    found = interlock("diff", before, after)
    assert found.exit_code == 3
    assert found.stdout == (
        f"Breaks callers:\n  {BREAKING}\n"
        "Breaks nobody:\n  tool halve: it is new\n  tool add: its description changed\n"
    )


def test_differences_for_programs(interlock: Command, tmp_path: Path) -> None:
    tapes = (
        save_tape(tmp_path / "before.tape", make_server()),
        save_tape(tmp_path / "after.tape", make_server(changed=True)),
    )
    found = interlock("diff", *tapes, "--json")
    assert found.exit_code == 3
    changes = json.loads(found.stdout)["changes"]
    assert {
        "kind": "tool",
        "name": "add",
        "breaks": True,
        "words": "the argument b is required now",
    } in changes
    assert json.loads(interlock("diff", *tapes[::-1], "--json").stdout)["changes"][0] == {
        "kind": "tool",
        "name": "halve",
        "breaks": True,
        "words": "it is gone",
    }


def test_compatible_changes_can_be_allowed(interlock: Command, tmp_path: Path) -> None:
    """The reverse release only removes a tool that nobody had before."""
    old = save_snapshot(tmp_path / "old.json", make_server())
    server = make_server()

    @server.tool
    def double(a: int) -> int:
        return 2 * a

    new = save_tape(tmp_path / "new.tape", server)
    assert interlock("diff", old, new).exit_code == 3
    allowed = interlock("diff", old, new, "--breaking")
    assert (allowed.exit_code, allowed.stdout) == (0, "Breaks nobody:\n  tool double: it is new\n")


def test_the_last_list_of_a_recording_counts(interlock: Command, tmp_path: Path) -> None:
    tape = save_tape(tmp_path / "both.tape", make_server(), make_server(changed=True))
    after = save_tape(tmp_path / "after.tape", make_server(changed=True))
    same = interlock("diff", tape, after)
    assert (same.exit_code, same.stdout) == (0, "No differences.\n")


def test_all_pages_of_a_recorded_list_count(tmp_path: Path) -> None:
    server = Server("long", "1")
    server.page_size = 2
    for number in range(5):
        server.tool(name=f"tool{number}")(lambda: "done")
    found = read_catalogue(save_tape(tmp_path / "long.tape", server))
    assert list(found["tools"]) == [f"tool{number}" for number in range(5)]


def test_one_server_under_two_revisions(interlock: Command, everyday_address: str) -> None:
    """The history table translates; what callers rely on is the same."""
    found = interlock(
        "diff", everyday_address, "--revision", "2025-11-25", "--revision", "2026-07-28"
    )
    assert (found.exit_code, found.stdout) == (0, "No differences.\n")


def test_a_list_for_programs_and_a_command_in_quotes(
    interlock: Command, everyday: Path, everyday_address: str, tmp_path: Path
) -> None:
    saved = tmp_path / "list.json"
    saved.write_text(interlock("list", everyday_address, "--json").stdout, encoding="utf-8")
    command = shlex.join([sys.executable, "-m", "interlock", "run", str(everyday)])
    found = interlock("diff", saved, command)
    assert (found.exit_code, found.stdout) == (0, "No differences.\n")
    named = interlock("diff", saved, "--", *shlex.split(command))
    assert (named.exit_code, named.stdout) == (0, "No differences.\n")


@pytest.mark.parametrize(
    "words, error",
    [
        (["a.json"], "Name two things to compare"),
        (["a.json", "b.json", "c.json"], "Name two things to compare"),
        (["none.json", "none.json"], "none.json cannot be read"),
        (["bad.json", "bad.json"], "bad.json is not a catalogue"),
        (["bare.json", "bare.json"], "the tool x has no inputSchema"),
        (["text.tape", "text.tape"], "text.tape is not a tape"),
        (["empty.tape", "empty.tape"], "empty.tape has no list of tools"),
        (["a.py", "--revision", "2020-01-01"] * 2, "Unknown revision 2020-01-01"),
        (["a.py", *["--revision", "2026-07-28"] * 3], "at most twice"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(
    interlock: Command, home: Path, words: list[str], error: str
) -> None:
    (home / "a.py").write_text("from interlock import Server\n", encoding="utf-8")
    (home / "bad.json").write_text('{"tools": 1}', encoding="utf-8")
    (home / "bare.json").write_text('{"tools": {"x": {}}}', encoding="utf-8")
    (home / "text.tape").write_text("hello\n", encoding="utf-8")
    Recorder(home / "empty.tape").close()
    refused = interlock("diff", *words)
    assert refused.exit_code == 2
    assert error in refused.stderr
