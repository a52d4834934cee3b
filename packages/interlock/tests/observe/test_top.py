"""`interlock top`: what two readings say, and the view of a running server."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock import Client
from interlock.cli.admin.top import ToolRow, lines, read
from interlock.cli.program import program
from interlock.observe.meters import BOUNDARIES
from tests.cli.terminal import at_terminal
from tests.workers.clusters import Program, noted


def row(method: str, name: str, error: str, **counts: int) -> dict[str, Any]:
    """A row of the admin socket; the counts are by the number of their bucket."""
    found = [0] * (len(BOUNDARIES) + 1)
    for number, count in counts.items():
        found[int(number[1:])] = count
    return {"method": method, "name": name, "error": error, "counts": found}


def test_what_happened_between_two_readings() -> None:
    """The sums of all processes; the busiest first."""
    before = read(
        [{"ended": 5}, row("tools/call", "buy", "", _0=4), row("tools/list", "", "", _3=1)],
        time=10.0,
    )
    now = read(
        [
            {"ended": 5},
            row("tools/call", "buy", "", _0=4, _1=2),
            row("tools/call", "buy", "tool_error", _6=1),
            row("tools/list", "", "", _3=1),
            {"ended": 7},
            row("tools/call", "buy", "", _1=7),
        ],
        time=12.0,
    )
    assert lines(before, now) == [
        ToolRow("tools/call buy", 5.0, BOUNDARIES[1], BOUNDARIES[6], 1),
        ToolRow("tools/list", 0.0, BOUNDARIES[3], BOUNDARIES[3], 0),
    ]


def test_a_worker_that_was_replaced_takes_its_counts_along() -> None:
    before = read([row("tools/call", "buy", "", _0=100)], time=1.0)
    now = read([row("tools/call", "buy", "", _0=3)], time=2.0)
    assert lines(before, now)[0].per_second == 0.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    """Two workers with admin sockets."""
    made = Program(tmp_path, admin=str(tmp_path / "admin"), workers=2)
    yield made.ready()
    made.close()


def shown(*words: str) -> str:
    """Run `interlock top`, and return what it prints."""
    done = CliRunner().invoke(program, ["top", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


async def test_a_running_server(server: Program, tmp_path: Path) -> None:
    """Its tools with their durations once they are watched, its calls and its workers."""
    folder = str(tmp_path / "admin")
    async with asyncio.timeout(120), Client(server.url) as client:
        call = asyncio.ensure_future(client.call_tool("hang", {"name": "long"}))
        await asyncio.to_thread(noted, tmp_path, "long hangs")
        await asyncio.to_thread(shown, folder, "--interval", "0.1", "--once")  # begins to watch
        for _ in range(20):
            await client.call_tool("pid")
        text = await asyncio.to_thread(shown, folder, "--interval", "0.1", "--json")
        found = json.loads(text)
        assert "tools/call pid" in [line["what"] for line in found["tools"]]
        assert [each["name"] for each in found["calls"]] == ["hang"]
        assert {each["pid"] for each in found["workers"]} == set(server.children)
        sock = next(Path(folder).iterdir())
        plain = await asyncio.to_thread(shown, str(sock), "--interval", "0.1", "--once")
        assert plain.startswith("2 processes, 1 running, ")
        assert "tools/call hang" in plain
        screen, code = await asyncio.to_thread(
            at_terminal, ["top", folder, "--interval", "0.2"], [("q quits", "q")]
        )
        assert code == 0
        assert "2 processes" in screen
        id = found["calls"][0]["id"]
        answers = [("q quits", "e"), ("ID to end", f"{id}\n"), ("0 running", "q")]
        await asyncio.to_thread(at_terminal, ["top", folder, "--interval", "0.2"], answers)
        with pytest.raises(Exception, match="operator of the server has ended"):
            await call


def test_keys_that_are_typed_early_are_kept(server: Program, tmp_path: Path) -> None:
    """Whatever the command does when they are typed."""
    answers = [("ID to end", "\n"), ("2 processes", "q")]
    _, code = at_terminal(["top", str(tmp_path / "admin")], answers, ahead="e")
    assert code == 0


@pytest.mark.parametrize(
    "target, words",
    [
        ("nowhere", "no folder of admin sockets"),
        (str(os.getpid()), "was started without --admin"),
        ("999999999", "cannot be found"),
    ],
)
def test_a_target_that_is_none(target: str, words: str) -> None:
    done = CliRunner().invoke(program, ["top", target])
    assert done.exit_code != 0
    assert words in done.output
