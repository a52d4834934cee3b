"""`interlock new`: create a small project that installs, tests and builds at once."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from typing import Final

import click

from ..version import VERSION

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SEPARATORS = re.compile(r"[-_.]+")
_TAKEN = frozenset({"interlock", "tests"})  # packages that a project must not shadow

INIT = '''"""{title}: a server of the Model Context Protocol."""
'''

SERVER = '''"""The server and its tools."""

from interlock import Server

server = Server("{title}", instructions="Greets people.")


@server.tool
def greet(name: str, loud: bool = False) -> str:
    """Greet somebody by name."""
    greeting = f"Hello, {{name}}!"
    return greeting.upper() if loud else greeting

{app}
def main() -> None:
    """Serve over stdio: the command `{command}`."""
    server.run()


if __name__ == "__main__":
    main()
'''

TEST = '''"""The server, tested through a client in the same process."""

from interlock import Client

from {package}.server import server


async def test_greeting() -> None:
    async with Client(server) as client:
        assert [tool.name for tool in await client.list_tools()] == ["greet"]
        result = await client.call_tool("greet", {{"name": "Ada"}})
        assert result.value() == "Hello, Ada!"
        result = await client.call_tool("greet", {{"name": "Ada", "loud": True}})
        assert result.value() == "HELLO, ADA!"


async def test_wrong_arguments_are_an_error_that_the_model_can_read() -> None:
    async with Client(server) as client:
        assert (await client.call_tool("greet", {{}})).is_error
'''

APP = """
# Hosts that support apps show each greeting in this page.
server.app("greeting.html", tool=greet)

"""

APP_PAGE: Final = "src/{package}/greeting.html"

APP_TEST = '''

async def test_the_greeting_has_an_app() -> None:
    """Hosts that support apps read its page; all others get the text of the greeting."""
    async with Client(server) as client:
        (tool,) = await client.list_tools()
        assert tool.meta is not None
        (page,) = (await client.read_resource(tool.meta["ui"]["resourceUri"])).contents
        assert page.mime_type == "text/html;profile=mcp-app"
'''

APP_README = """
## Its app

Hosts that support MCP Apps, such as `interlock host`, show each greeting in the page `{page}`,
in a frame that can reach nothing but this server. All other hosts, and models, read the text of
the greeting. `--dev` serves the newest version of the page too.
"""

PYPROJECT = """[build-system]
requires = ["flit-core>=3.12,<5"]
build-backend = "flit_core.buildapi"

[project]
name = "{title}"
version = "0.1.0"
description = "A server of the Model Context Protocol."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["interlock[http]>={version}"]

[project.optional-dependencies]
dev = ["pytest>=8", "pytest-asyncio>=1"]

[project.scripts]
{command} = "{package}.server:main"

[tool.flit.module]
name = "{package}"

[tool.pytest.ini_options]
testpaths = ["tests"]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
"""

README = """# {title}

A server of the Model Context Protocol, written with Interlock. Its tools are the functions
in `{file}`.

## Begin

Once, in this folder (on Windows the second line is `.venv\\Scripts\\activate`):

    python -m venv .venv
    . .venv/bin/activate
    pip install -e ".[dev]"

## Try it

    pytest
    interlock list {file}
    interlock call {file} greet name=Ada

A tool that fails shows its error here, with the line that it came from.

## Use it in a host

This shows what would change in the configuration of a host; without `--dry-run` it is changed.
Other hosts are claude-desktop, claude-code, vscode and more (`interlock install --help`).

    interlock install {file} --client cursor --name {command} --dry-run

While you write, `--dev` serves the newest version of the file to a host, and shows errors.
Over HTTP the server is at http://127.0.0.1:8000/mcp. Installed, it is a command of its own.

    interlock run {file} --dev
    interlock run {file} --http :8000
    {command}
{app_readme}
## Build it

    pip wheel --no-deps --wheel-dir dist .
"""

FILES: Final = {
    "src/{package}/__init__.py": INIT,
    "src/{package}/server.py": SERVER,
    "tests/test_server.py": TEST + "{app_test}",
    "pyproject.toml": PYPROJECT,
    "README.md": README,
    ".gitignore": "__pycache__/\n.venv/\ndist/\n",
}
"""By path. The package name is filled in there too."""


@click.command("new")
@click.argument("name", type=click.Path(path_type=Path))
@click.option(
    "--app", is_flag=True, help="With an app: an HTML page that shows the results of its tool."
)
def new(name: Path, app: bool) -> None:
    """Start a project in a new folder NAME: a package with a server of a few lines, its test,
    pyproject.toml and README.

    You can install, test and build it as it is. Existing files are never overwritten.

    \b
    interlock new hello
    interlock new hello --app
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
    page = APP_PAGE.format(**words)
    words["app"] = APP if app else ""
    words["app_test"] = APP_TEST if app else ""
    words["app_readme"] = APP_README.format(page=page) if app else ""
    files = {path.format(**words): text.format(**words) for path, text in FILES.items()}
    if app:
        files[page] = Path(__file__).with_name("new_app.html").read_text(encoding="utf-8")
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
