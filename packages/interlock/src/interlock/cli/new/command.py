"""`interlock new`: create a small project that installs, tests and builds at once."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path

import click

from ...version import VERSION
from .files import APP_PAGE, texts

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SEPARATORS = re.compile(r"[-_.]+")
_TAKEN = frozenset({"interlock", "tests"})  # packages that a project must not shadow


@click.command("new")
@click.argument("name", type=click.Path(path_type=Path))
@click.option("--http", is_flag=True, help="Its command serves over HTTP, not over stdio.")
@click.option(
    "--app", is_flag=True, help="With an app: an HTML page that shows the results of its tool."
)
@click.option("--skill", is_flag=True, help="With a skill: instructions for a model.")
def new(name: Path, http: bool, app: bool, skill: bool) -> None:
    """Start a project in a new folder NAME: a package with a server of a few lines, its test,
    pyproject.toml and README, a Dockerfile, and a workflow that runs the tests.

    You can install, test and build it as it is. Existing files are never overwritten.

    \b
    interlock new hello
    interlock new hello --http --skill
    cd hello && pip install -e '.[dev]' && pytest
    """
    title = name.resolve().name
    if not _NAME.fullmatch(title):
        raise click.UsageError(
            f"{title!r} is not a valid project name: use letters and digits, with . _ - "
            "between them."
        )
    if name.exists() and not name.is_dir():
        raise click.UsageError(f"{name} exists already, and is not a folder.")
    package = package_name(title)
    server = f"src/{package}/server.py"
    words = {
        "title": title,
        "package": package,
        "file": server,
        "command": _SEPARATORS.sub("-", title).lower(),
        "version": VERSION,
    }
    files = texts(words, http=http, app=app, skill=skill)
    if app:
        page = Path(__file__).with_name("greeting.html")
        files[APP_PAGE.format(**words)] = page.read_text(encoding="utf-8")
    if taken := [file for file in files if (name / file).exists()]:
        raise click.UsageError(f"{name} already has {', '.join(taken)}; nothing was written.")
    for file, text in files.items():
        (name / file).parent.mkdir(parents=True, exist_ok=True)
        with (name / file).open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    click.echo(f"{click.style(str(name), fg='green')} is ready. Try it:")
    click.echo(f"  cd {name}\n  interlock call {server} greet name=Ada")
    click.echo("README.md says how to install, test and build it.")


def package_name(title: str) -> str:
    """The name of a project's package: a valid module name that shadows no other package."""
    name = _SEPARATORS.sub("_", title).lower()
    if name[0].isdigit():
        name = f"mcp_{name}"
    if keyword.iskeyword(name) or name in sys.stdlib_module_names or name in _TAKEN:
        name = f"{name}_server"
    return name
