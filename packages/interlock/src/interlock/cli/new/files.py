"""The texts of the files of a new project, for `str.format`; each option of the command adds parts.

The parts of an option have the names of the fields that they fill in, such as `{features}`.
"""

from __future__ import annotations

from typing import Final

INIT: Final = '''"""{title}: a server of the Model Context Protocol."""
'''

SERVER: Final = '''"""The server and its tools."""
{imports}
from interlock import Server

server = Server("{title}", instructions="Greets people.")


@server.tool
def greet(name: str, loud: bool = False) -> str:
    """Greet somebody by name."""
    greeting = f"Hello, {{name}}!"
    return greeting.upper() if loud else greeting

{features}
{main}

if __name__ == "__main__":
    main()
'''

MAIN: Final = '''def main() -> None:
    """Serve over stdio: the command `{command}`."""
    server.run()
'''

HTTP_MAIN: Final = '''def main() -> None:
    """Serve over HTTP: the command `{command}`.

    The variables HOST (127.0.0.1) and PORT (8000) say where it listens, and ALLOWED_HOSTS has the
    public names of the server, separated by spaces.
    """
    server.run(
        "http",
        host=os.environ.get("HOST", "127.0.0.1"),
        port=int(os.environ.get("PORT", "8000")),
        hosts=os.environ.get("ALLOWED_HOSTS", "").split(),
    )
'''

APP: Final = """
# Hosts that support apps show each greeting in this page.
server.app("greeting.html", tool=greet)
"""

SKILL: Final = """
# Clients that support skills give these instructions to their model.
server.skills(Path(__file__).with_name("skills"))
"""

SKILL_FILE: Final = """---
name: greeting
description: Greet the people of a meeting, in the order in which they arrive.
---

# Greeting

1. Ask for the names of the people, unless you know them.
2. Call the tool `greet` once for each name.
3. Show the greetings, one on a line. Add nothing to them.
"""

TEST: Final = '''"""The server, tested through a client in the same process."""

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
{tests}'''

HTTP_TEST: Final = '''

async def test_over_http() -> None:
    """The whole path: a port of this machine, a connection, and a call."""
    async with server.serve_http(port=0) as http, Client(http.url) as client:
        result = await client.call_tool("greet", {{"name": "Ada"}})
        assert result.value() == "Hello, Ada!"
'''

APP_TEST: Final = '''

async def test_the_greeting_has_an_app() -> None:
    """Hosts that support apps read its page; all others get the text of the greeting."""
    async with Client(server) as client:
        (tool,) = await client.list_tools()
        assert tool.meta is not None
        (page,) = (await client.read_resource(tool.meta["ui"]["resourceUri"])).contents
        assert page.mime_type == "text/html;profile=mcp-app"
'''

SKILL_TEST: Final = '''

async def test_the_skill_can_be_read() -> None:
    """Its entry and its file agree: the client checks the digest of what it reads."""
    async with Client(server) as client:
        (skill,) = await client.list_skills()
        assert skill.uri == "skill://greeting/SKILL.md"
        assert "`greet`" in str(await skill.read("SKILL.md"))
'''

PYPROJECT: Final = """[build-system]
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

README: Final = """# {title}

A server of the Model Context Protocol, written with Interlock. Its tools are the functions
in `{file}`.

## Begin

Once, in this folder (on Windows the second line is `.venv\\Scripts\\activate`):

    python -m venv .venv
    . .venv/bin/activate
    pip install -e ".[dev]"

## Try it

    pytest
    interlock lint {file}
    interlock list {file}
    interlock call {file} greet name=Ada

A tool that fails shows its error here, with the line that it came from.

## Use it in a host

This shows what would change in the configuration of a host; without `--dry-run` it is changed.
Other hosts are claude-desktop, claude-code, vscode and more (`interlock install --help`).

    {install}

While you write, `--dev` serves the newest version of the file to a host, and shows errors.
Over HTTP the server is at http://127.0.0.1:8000/mcp. {installed}

    interlock run {file} --dev
    interlock run {file} --http :8000
    {command}
{more}
## Build it

    pip wheel --no-deps --wheel-dir dist .

The `Dockerfile` puts the server into an image that runs as an ordinary user, and needs no file
that it can write. The first lines of the file have the commands. `.github/workflows/test.yml`
runs the linter and the tests for each change.
"""

INSTALLED: Final = "Installed, it is a command of its own."
HTTP_INSTALLED: Final = "The installed command serves there too."

INSTALL: Final = "interlock install {file} --client cursor --name {command} --dry-run"
HTTP_INSTALL: Final = (
    "interlock install http://127.0.0.1:8000/mcp --client cursor --name {command} --dry-run"
)

HTTP_README: Final = """
## Who can reach it

**The server has no authentication.** It listens on the loopback address, so only programs of this
machine reach it. Before you listen on another address (the variable HOST), give it a guard:
`server.run("http", guard=...)`. A public name, such as `tools.example.com`, goes into the variable
ALLOWED_HOSTS.
"""

APP_README: Final = """
## Its app

Hosts that support MCP Apps, such as `interlock host`, show each greeting in the page `{page}`,
in a frame that can reach nothing but this server. All other hosts, and models, read the text of
the greeting. `--dev` serves the newest version of the page too.
"""

SKILL_README: Final = """
## Its skill

A skill is a folder of instructions for a model. `src/{package}/skills/greeting/SKILL.md` tells the
model when and how to use the tool. Clients that support skills list and load it; for all others
it is a resource.
"""

DOCKERFILE: Final = """# Build the image, and run it with a read-only root and without privileges:
#   docker build --tag {command} .
#   {run}

FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md ./
COPY src/ src/
RUN python -m venv /app && /app/bin/python -m pip install --no-cache-dir .

FROM python:3.13-slim
COPY --from=build /app /app
ENV PATH="/app/bin:$PATH" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /app
USER 10001:10001
{serving}ENTRYPOINT ["{command}"]
"""

STDIO_RUN: Final = "docker run --rm --interactive --read-only --cap-drop ALL {command}"
STDIO_SERVING: Final = """# A server over stdio lives as long as its client: nothing to probe.
HEALTHCHECK NONE
"""

HTTP_RUN: Final = (
    "docker run --rm --read-only --cap-drop ALL --publish 127.0.0.1:8000:8000 {command}"
)
HTTP_SERVING: Final = """ENV HOST=0.0.0.0 PORT=8000
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s \\
    CMD ["python", "-c", "import os, urllib.request as web; \\
web.urlopen(f'http://127.0.0.1:{{os.environ[\\"PORT\\"]}}/health/live', timeout=2)"]
"""

DOCKERIGNORE: Final = """*
!pyproject.toml
!README.md
!src
**/__pycache__
"""

WORKFLOW: Final = """name: test
on:
  push:
  pull_request:
permissions:
  contents: read
jobs:
  test:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python: ["3.11", "3.12", "3.13", "3.14"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: ${{{{ matrix.python }}}}
      - run: python -m pip install -e ".[dev]"
      - run: interlock lint {file}
      - run: python -m pytest
      - run: python -m pip wheel --no-deps --wheel-dir dist .
"""

FILES: Final = {
    "src/{package}/__init__.py": INIT,
    "src/{package}/server.py": SERVER,
    "tests/test_server.py": TEST,
    "pyproject.toml": PYPROJECT,
    "README.md": README,
    "Dockerfile": DOCKERFILE,
    ".dockerignore": DOCKERIGNORE,
    ".github/workflows/test.yml": WORKFLOW,
    ".gitignore": "__pycache__/\n.venv/\ndist/\n",
}
"""The files of every project, by path. The package name is filled in there too."""

APP_PAGE: Final = "src/{package}/greeting.html"
SKILL_PATH: Final = "src/{package}/skills/greeting/SKILL.md"


def texts(words: dict[str, str], *, http: bool, app: bool, skill: bool) -> dict[str, str]:
    """Return the texts of the files of a project, by path.

    Args:
        words: The fields title, package, file, command and version.
        http: Whether its command serves over HTTP instead of stdio.
        app: Whether it has an app; its page is not among the texts.
        skill: Whether it has a skill.
    """
    imports = [line for used, line in [(http, "import os"), (skill, _PATH)] if used]
    parts = {
        "imports": "".join(f"\n{line}" for line in imports) + ("\n" if imports else ""),
        "features": (APP if app else "") + (SKILL if skill else ""),
        "main": HTTP_MAIN if http else MAIN,
        "tests": _joined((http, HTTP_TEST), (app, APP_TEST), (skill, SKILL_TEST)),
        "more": _joined((http, HTTP_README), (app, APP_README), (skill, SKILL_README)),
        "install": HTTP_INSTALL if http else INSTALL,
        "installed": HTTP_INSTALLED if http else INSTALLED,
        "run": HTTP_RUN if http else STDIO_RUN,
        "serving": HTTP_SERVING if http else STDIO_SERVING,
    }
    if parts["features"]:
        parts["features"] += "\n"
    words = words | {"page": APP_PAGE.format(**words)}
    words |= {name: text.format(**words) for name, text in parts.items()}
    files = FILES | ({SKILL_PATH: SKILL_FILE} if skill else {})
    return {path.format(**words): text.format(**words) for path, text in files.items()}


_PATH = "from pathlib import Path"


def _joined(*parts: tuple[bool, str]) -> str:
    return "".join(text for used, text in parts if used)
