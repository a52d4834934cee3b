"""`interlock new` makes a project that works at once, and `interlock serve` runs the servers that
come along.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from interlock import __version__
from interlock.cli.new.command import package_name
from tests.cli.conftest import Command, Program

FILES = [
    ".dockerignore",
    ".github/workflows/test.yml",
    ".gitignore",
    "Dockerfile",
    "README.md",
    "pyproject.toml",
    "src/hello_world/__init__.py",
    "src/hello_world/server.py",
    "tests/test_server.py",
]
SERVER = "src/hello_world/server.py"
MORE = {
    "--app": ["src/hello_world/greeting.html"],
    "--http": [],
    "--skill": ["src/hello_world/skills/greeting/SKILL.md"],
}
"""The options, each with the files that it adds; each adds a test too."""

KINDS = pytest.mark.parametrize(
    "options",
    [(), ("--app",), ("--http",), ("--skill",), tuple(MORE)],
    ids=["plain", "app", "http", "skill", "everything"],
)


@KINDS
def test_a_new_project_runs_and_passes_its_test(
    interlock: Command, home: Path, options: tuple[str, ...]
) -> None:
    """Its files, its test by pytest, its server by the command, as the words at the end say."""
    result = interlock("new", "hello-world", *options)
    assert result.exit_code == 0
    assert f"cd hello-world\n  interlock call {SERVER} greet name=Ada" in result.stdout
    folder = home / "hello-world"
    found = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    assert sorted(found) == sorted(sum((MORE[option] for option in options), FILES))
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["dependencies"]) == (
        "hello-world",
        [f"interlock[http]>={__version__}"],
    )
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert tested.returncode == 0, tested.stdout
    assert f"{2 + len(options)} passed" in tested.stdout
    assert interlock("call", folder / SERVER, "greet", "name=Ada").stdout == "Hello, Ada!\n"
    if "--http" not in options:  # its program serves over stdio
        program = ("--", sys.executable, folder / SERVER)
        called = interlock("call", "greet", "name=Ada", "loud=true", *program)
        assert called.stdout == "HELLO, ADA!\n"


@pytest.mark.endurance(seconds=6)
@KINDS
def test_a_new_project_is_clean(interlock: Command, home: Path, options: tuple[str, ...]) -> None:
    """It type-checks strictly and the linter has nothing to say: a good start."""
    interlock("new", "hello", *options)
    for command in (
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy", "--strict", "src", "tests"],
    ):
        checked = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=home / "hello",
            env={**os.environ, "MYPYPATH": "src"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert checked.returncode == 0, checked.stdout


def test_the_workflow_of_a_new_project_uses_what_it_has(interlock: Command, home: Path) -> None:
    """Its steps are in the README too, or lint the server, and no step needs a secret."""
    interlock("new", "hello-world")
    text = (home / "hello-world" / ".github" / "workflows" / "test.yml").read_text()
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    job = workflow["jobs"]["test"]
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    runs = [step["run"].removeprefix("python -m ") for step in job["steps"] if "run" in step]
    readme = (home / "hello-world" / "README.md").read_text()
    assert all(f"    {run}\n" in readme for run in runs), runs
    assert "secrets" not in text


NAMES = {
    "hello": ("hello", "hello"),
    "hello-world": ("hello_world", "hello-world"),
    "My.Server_2": ("my_server_2", "my-server-2"),
    "7days": ("mcp_7days", "7days"),
    "time": ("time_server", "time"),
    "Class": ("class_server", "class"),
    "interlock": ("interlock_server", "interlock"),
}


@pytest.mark.parametrize("title", NAMES)
def test_the_package_can_be_imported_and_hides_no_other(
    interlock: Command, home: Path, title: str
) -> None:
    """Whatever the project is called; its command is called as the project is."""
    package, command = NAMES[title]
    assert package_name(title) == package
    assert interlock("new", title).exit_code == 0
    project = tomllib.loads((home / title / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {command: f"{package}.server:main"}
    assert project["tool"]["flit"]["module"]["name"] == package
    server = home / title / "src" / package / "server.py"
    assert interlock("call", server, "greet", "name=Ada").stdout == "Hello, Ada!\n"


def test_nothing_is_written_over(interlock: Command, home: Path) -> None:
    """A folder that has one of the files is left alone, an empty one is used."""
    (home / "there").mkdir()
    (home / "there" / "README.md").write_text("mine")
    result = interlock("new", "there")
    assert result.exit_code == 2
    assert "already has README.md; nothing was written" in result.stderr
    assert [p.name for p in (home / "there").iterdir()] == ["README.md"]
    assert (home / "there" / "README.md").read_text() == "mine"
    (home / "empty").mkdir()
    assert interlock("new", home / "empty").exit_code == 0
    (home / "file").write_text("")
    assert interlock("new", "file").exit_code == 2


@pytest.mark.parametrize("name", ["a b", "-a-", "ü", "a/.b", "_"])
def test_what_is_no_name(interlock: Command, home: Path, name: str) -> None:
    """A project's name has letters, digits and . _ - between them."""
    result = interlock("new", "--", name)
    assert result.exit_code == 2
    assert "is not a valid project name" in result.stderr
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
