"""Tasks from the command line: starting, listing, showing, cancelling and awaiting them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.client.peers import TASK_SERVER


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """A server whose tasks survive it, in a file beside it."""
    path = tmp_path / "tasks.py"
    path.write_text(TASK_SERVER, encoding="utf-8")
    return path


def test_a_call_waits_through_its_task(interlock: Command, server: Path) -> None:
    done = interlock("call", server, "crunch")
    assert (done.exit_code, done.stdout) == (0, "42\n")


def test_a_task_is_started_and_awaited_by_another_command(interlock: Command, server: Path) -> None:
    started = interlock("call", server, "crunch", "--task")
    assert started.exit_code == 0
    assert started.stdout == "T0  working  2026-01-01T00:00:00Z\n"
    assert "interlock tasks TARGET wait T0" in started.stderr
    assert interlock("tasks", server, "list").stdout == started.stdout
    assert interlock("tasks", server).stdout == started.stdout
    assert interlock("tasks", server, "get", "T0").stdout == started.stdout
    waited = interlock("tasks", server, "wait", "T0")
    assert (waited.exit_code, waited.stdout) == (0, "42\n")
    again = interlock("tasks", server, "get", "T0")
    assert again.stdout == "T0  completed  2026-01-01T00:00:00Z  counted\n"


def test_a_task_is_cancelled(interlock: Command, server: Path) -> None:
    interlock("call", server, "crunch", "--task")
    cancelled = interlock("tasks", server, "cancel", "T0")
    assert cancelled.stdout == "T0  cancelled  2026-01-01T00:00:00Z\n"
    waited = interlock("tasks", server, "wait", "T0", "--json")
    assert waited.exit_code == 1
    assert json.loads(waited.stdout)["error"]["kind"] == "cancelled"


def test_tasks_for_programs(interlock: Command, server: Path) -> None:
    """The form of the newest revision, whatever the server speaks."""
    state = {
        "taskId": "T0",
        "status": "working",
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttlMs": None,
        "pollIntervalMs": 20,
    }
    assert json.loads(interlock("call", server, "crunch", "--task", "--json").stdout) == state
    assert json.loads(interlock("tasks", server, "--json").stdout) == {"tasks": [state]}
    assert json.loads(interlock("tasks", server, "get", "T0", "--json").stdout) == state
    result = json.loads(interlock("tasks", server, "wait", "T0", "--json").stdout)
    assert result["content"][0]["text"] == "42"


def test_a_call_that_becomes_no_task(interlock: Command, server: Path) -> None:
    """`--task` shows its result, because nothing is left to wait for."""
    done = interlock("call", server, "plain", "--task")
    assert (done.exit_code, done.stdout) == (0, "at once\n")


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["get", "T9"], 3, "Task not found"),
        (["wait"], 2, "Missing ID"),
        (["list", "T0"], 2, "unexpected words"),
        (["stop", "T0"], 2, "Unknown action 'stop'"),
    ],
)
def test_what_cannot_be_done(
    interlock: Command, server: Path, words: list[str], code: int, said: str
) -> None:
    done = interlock("tasks", server, *words)
    assert done.exit_code == code
    assert said in done.stderr


def test_a_server_without_tasks(interlock: Command, everyday: Path) -> None:
    done = interlock("tasks", everyday, "get", "T0")
    assert done.exit_code == 3
    assert "does not offer tasks" in done.stderr


def test_the_result_of_a_task_is_not_written_by_call(interlock: Command, server: Path) -> None:
    done = interlock("call", server, "crunch", "--task", "-o", "x")
    assert done.exit_code == 2
    assert "--output" in done.stderr


FLEET = """
import sys
from interlock import Docket, Server, Tasks

alone = Server("alone")
inline = Server("inline", extensions=[Tasks("sqlite:tasks.db")])
server = Server("fleet", extensions=[Tasks(*sys.argv[1:], runner=Docket())])
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A file with servers, one of which has workers."""
    path = tmp_path / "fleet.py"
    path.write_text(FLEET, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "words, exit_code, message",
    [
        ([":alone", "--", "sqlite:x.db"], 2, "has no tasks: it needs extensions=[Tasks(...)]"),
        ([":inline", "--", "sqlite:x.db"], 1, "Tasks(..., runner=Docket())"),
        ([":server", "--", "sqlite:x.db"], 1, "Docket('redis://...')"),
        ([":server", "--store", "mongodb://x", "--", "sqlite:x.db"], 1, "names no store"),
        ([":server", "--store", "memory:", "--", "sqlite:x.db"], 1, "sqlite: or redis:"),
        (
            [":server", "--store", "redis://127.0.0.1:1", "--", "sqlite:x.db"],
            1,
            "127.0.0.1:1",
        ),
    ],
)
def test_a_worker_that_cannot_run_says_why(
    interlock: Command, fleet: Path, words: list[str], exit_code: int, message: str
) -> None:
    ran = interlock("tasks", "run", f"{fleet}{words[0]}", *words[1:])
    assert (ran.exit_code, message in ran.stderr) == (exit_code, True), ran.stderr


def test_the_help_of_a_worker(interlock: Command) -> None:
    """`run` is a command of its own, and the help of `interlock tasks` names it."""
    assert "FILE[:OBJECT]" in interlock("tasks", "run", "--help").stdout
    assert "interlock tasks run FILE" in interlock("tasks", "--help").stdout


def test_the_file_of_a_worker_is_named(interlock: Command) -> None:
    ran = interlock("tasks", "run", "missing.py")
    assert (ran.exit_code, "There is no file missing.py." in ran.stderr) == (2, True)
