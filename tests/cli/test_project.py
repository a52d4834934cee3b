"""`interlock new` makes a project that works at once, and `interlock serve` runs the servers that come along."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from interlock import __version__
from tests.cli.conftest import Command, Program


def test_a_new_project_runs_and_passes_its_test(interlock: Command, home: Path) -> None:
    """Its files, its test by pytest, its server by the command, as the words at the end say."""
    result = interlock("new", "hello-world")
    assert result.exit_code == 0
    assert "cd hello-world" in result.stdout
    folder = home / "hello-world"
    assert sorted(p.name for p in folder.iterdir()) == [
        ".gitignore",
        "README.md",
        "pyproject.toml",
        "server.py",
        "test_server.py",
    ]
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["dependencies"]) == (
        "hello-world",
        [f"interlock[cli,http]>={__version__}"],
    )
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert tested.returncode == 0, tested.stdout
    assert "2 passed" in tested.stdout
    assert interlock("call", folder / "server.py", "greet", "name=Ada").stdout == "Hello, Ada!\n"
    assert "interlock run server.py --http :8000" in (folder / "README.md").read_text()
    assert (
        interlock(
            "call", "greet", "name=Ada", "loud=true", "--", sys.executable, folder / "server.py"
        ).stdout
        == "HELLO, ADA!\n"
    )


def test_a_new_project_is_clean(interlock: Command, home: Path) -> None:
    """It type-checks strictly and the linter has nothing to say: a good start."""
    interlock("new", "hello")
    for command in (
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy", "--strict", "server.py", "test_server.py"],
    ):
        checked = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=home / "hello",
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert checked.returncode == 0, checked.stdout


def test_nothing_is_written_over(interlock: Command, home: Path) -> None:
    """A folder that has one of the files is left alone, an empty one is used."""
    (home / "there").mkdir()
    (home / "there" / "server.py").write_text("mine")
    result = interlock("new", "there")
    assert result.exit_code == 2
    assert "has server.py already; nothing was written" in result.stderr
    assert [p.name for p in (home / "there").iterdir()] == ["server.py"]
    assert (home / "there" / "server.py").read_text() == "mine"
    (home / "empty").mkdir()
    assert interlock("new", home / "empty").exit_code == 0
    (home / "file").write_text("")
    assert interlock("new", "file").exit_code == 2


@pytest.mark.parametrize("name", ["a b", "-a-", "ü", "a/.b", "_"])
def test_what_is_no_name(interlock: Command, home: Path, name: str) -> None:
    """A project's name has letters, digits and . _ - between them."""
    result = interlock("new", "--", name)
    assert result.exit_code == 2
    assert "is no name for a project" in result.stderr
    assert list(home.iterdir()) == []


def test_the_servers_are_listed(interlock: Command) -> None:
    """Without a name, and by --list; each with what it is for; nothing is imported for it."""
    listed = interlock("serve").stdout
    assert listed == interlock("serve", "--list").stdout
    names = [line.split()[0] for line in listed.splitlines()]
    assert {"weather", "everything"} <= set(names)
    assert all(len(line.split()) > 3 for line in listed.splitlines())


@pytest.mark.parametrize("name", ["weather", "everything"])
def test_a_server_that_comes_along_is_served(
    interlock: Command, program_run: Program, name: str
) -> None:
    """Over stdio, and so the command can talk to it."""
    result = interlock(
        "list", "--tools", "--json", "--", sys.executable, "-m", "interlock", "serve", name
    )
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["tools"]
