"""An author at the command line sees why a tool fails; whoever is served in production does not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command

FAILING = """
from interlock import Server

server = Server("failing")


@server.tool
def boom() -> str:
    raise ValueError("disk full")


@server.tool
def forgot(ctx, city: str) -> str:
    return city
"""
BROKEN_LIST = """
from interlock import Server

server = Server("failing")

def layer(handler):
    async def handle(x):
        if x.method == "tools/list":
            raise ValueError("disk full")
        return await handler(x)
    return handle

server.use(layer)

@server.tool
def fine() -> str:
    return "fine"
"""

SHOWN = "ValueError: disk full (failing.py:9, in boom)"


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    """A server whose tool raises, and whose other tool has forgotten an annotation."""
    path = tmp_path / "failing.py"
    path.write_text(FAILING, encoding="utf-8")
    return path


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_call_shows_the_error_of_a_file(interlock: Command, failing: Path, revision: str) -> None:
    """Type, message and place, without -v; code 1, for the tool itself failed."""
    result = interlock("call", failing, "boom", "--revision", revision)
    assert result.exit_code == 1
    assert result.stdout.rstrip().endswith(SHOWN)
    assert "Traceback" not in result.stderr


def test_list_shows_the_error_of_a_file(interlock: Command, tmp_path: Path) -> None:
    """A list runs the author's code too: middleware, for example."""
    path = tmp_path / "failing.py"
    path.write_text(BROKEN_LIST, encoding="utf-8")
    result = interlock("list", path)
    assert result.exit_code == 3
    assert "ValueError: disk full (failing.py:9, in handle)" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_context_without_annotation_is_warned_of(interlock: Command, failing: Path) -> None:
    """On stderr, once, by every command that starts the file."""
    result = interlock("list", failing)
    assert result.stderr.count("Warning: tool forgot: the parameter 'ctx' has no annotation") == 1
    assert "Warning" not in result.stdout


@pytest.mark.parametrize(
    "options, shows",
    [
        ([], False),
        (["--dev"], True),
        (["--dev", "--no-reload"], True),
        (["--reload"], True),
        (["--no-reload"], False),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_run_over_stdio(interlock: Command, failing: Path, options: list[str], shows: bool) -> None:
    """As hosts start it: only --dev and --reload show errors."""
    command = [sys.executable, "-m", "interlock", "run", str(failing), *options]
    result = interlock("call", "boom", "--", *command)
    assert result.exit_code == 1
    assert (SHOWN in result.stdout) is shows
    assert "(reference " in result.stdout


def test_dev_reloads_over_stdio(interlock: Command, failing: Path) -> None:
    """--dev is what an author wants while writing: a broken file is answered with its error."""
    failing.write_text("server = (\n", encoding="utf-8")
    command = [sys.executable, "-m", "interlock", "run", str(failing), "--dev"]
    result = interlock("list", "--", *command)
    assert "SyntaxError" in result.stderr
    assert "saved" in result.stderr


@pytest.fixture(params=[[], ["--dev"]], ids=["production", "dev"])
def served(request: pytest.FixtureRequest, failing: Path) -> Iterator[tuple[str, bool]]:
    """The file served over HTTP: its address, and whether with --dev."""
    pytest.importorskip("httptools")
    options: list[str] = request.param
    command = [sys.executable, "-m", "interlock", "run", str(failing), "--http", ":0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("Serving at "):
            break
    yield line.removeprefix("Serving at ").strip(), bool(options)
    process.terminate()
    process.communicate(timeout=60)


def test_over_http_only_dev_shows_errors(interlock: Command, served: tuple[str, bool]) -> None:
    """Everybody who reaches the port would read them: that has to be said."""
    address, dev = served
    result = interlock("call", address, "boom")
    assert result.exit_code == 1
    assert (SHOWN in result.stdout) is dev


HABITS = """
import time
from interlock import Context, Server

server = Server("habits")


@server.tool
async def informed(ctx: Context) -> str:
    await ctx.set_state("seen", True)
    return "done"


@server.tool
async def block() -> str:
    time.sleep(3)
    return "done"
"""


def test_a_method_of_another_sdk_is_explained(interlock: Command, tmp_path: Path) -> None:
    """The error says what to write instead."""
    path = tmp_path / "habits.py"
    path.write_text(HABITS, encoding="utf-8")
    result = interlock("call", path, "informed")
    assert result.exit_code == 1
    assert "Context has no attribute 'set_state'. Use await ctx.session_state.set" in result.stdout


@pytest.mark.endurance(seconds=5)
def test_a_blocked_event_loop_is_reported_with_its_stack(
    interlock: Command, tmp_path: Path
) -> None:
    path = tmp_path / "habits.py"
    path.write_text(HABITS, encoding="utf-8")
    result = interlock("call", path, "block", "-v")
    assert "the event loop has been blocked for" in result.stderr
    assert "in block" in result.stderr
