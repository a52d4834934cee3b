"""`interlock new`: a small project that runs and passes its test at once."""

from __future__ import annotations

import re
from pathlib import Path

import click

from ..version import VERSION

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")

SERVER = '''"""A server of the Model Context Protocol: what it can do for a model stands here as functions."""

from interlock import Server

server = Server("{name}", instructions="Greets people.")


@server.tool
def greet(name: str, loud: bool = False) -> str:
    """Greet somebody by name."""
    greeting = f"Hello, {{name}}!"
    return greeting.upper() if loud else greeting


if __name__ == "__main__":
    server.run()
'''

TEST = '''"""The server, tested through a client in the same process."""

from interlock.sync import Client

from server import server


def test_greeting() -> None:
    with Client(server) as client:
        assert [tool.name for tool in client.list_tools()] == ["greet"]
        result = client.call_tool("greet", {{"name": "Ada"}})
        assert result.value() == "Hello, Ada!"
        result = client.call_tool("greet", {{"name": "Ada", "loud": True}})
        assert result.value() == "HELLO, ADA!"


def test_wrong_arguments_are_an_error_that_the_model_can_read() -> None:
    with Client(server) as client:
        assert client.call_tool("greet", {{}}).is_error
'''

PYPROJECT = """[project]
name = "{name}"
version = "0.1.0"
description = "A server of the Model Context Protocol."
requires-python = ">=3.11"
dependencies = ["interlock[cli,http]>={version}"]

[dependency-groups]
dev = ["pytest>=8"]

[tool.pytest.ini_options]
pythonpath = ["."]
"""

README = """# {name}

A server of the Model Context Protocol, written with Interlock.

    interlock run server.py --reload                 # serve over stdio, the newest version of the file
    interlock run server.py --http :8000             # serve over HTTP, at http://127.0.0.1:8000/mcp
    interlock list server.py                         # what it offers
    interlock call server.py greet name=Ada          # try a tool
    interlock install server.py --client cursor      # or claude-desktop, claude-code, vscode, ...
    python -m pytest                                 # test it
"""

FILES = {
    "server.py": SERVER,
    "test_server.py": TEST,
    "pyproject.toml": PYPROJECT,
    "README.md": README,
    ".gitignore": "__pycache__/\n.venv/\n",
}


@click.command("new")
@click.argument("name", type=click.Path(path_type=Path))
def new(name: Path) -> None:
    """Start a project in a new folder NAME: a server of a few lines, its test, pyproject.toml and README.

    Nothing that is there already is written over.

    \b
    interlock new hello
    cd hello && python -m pytest
    """
    title = name.resolve().name
    if not _NAME.fullmatch(title):
        raise click.UsageError(
            f"{title!r} is no name for a project: letters, digits, and . _ - between them."
        )
    if name.exists() and not name.is_dir():
        raise click.UsageError(f"{name} is there already, and is no folder.")
    if taken := [file for file in FILES if (name / file).exists()]:
        raise click.UsageError(f"{name} has {', '.join(taken)} already; nothing was written.")
    name.mkdir(parents=True, exist_ok=True)
    for file, text in FILES.items():
        filled = text.format(name=title, version=VERSION)
        with (name / file).open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(filled)
    click.echo(f"{click.style(str(name), fg='green')} is ready. Try it:")
    click.echo(f"  cd {name}\n  interlock call server.py greet name=Ada\n  python -m pytest")
