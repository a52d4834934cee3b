"""`interlock run`: which object of a file is the server, how the file is imported, and what reaches
the wire.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interlock import Client
from interlock.server.request_log import is_request_line
from tests.cli.conftest import Program

META = (
    '{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    '"io.modelcontextprotocol/clientCapabilities":{}}'
)
PING = f'{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{"_meta":{META}}}}}\n'
HINTED = """from __future__ import annotations
from dataclasses import dataclass
from interlock import Server
@dataclass
class Box:
    n: int
mcp = Server('a')
@mcp.tool
def f(x: Box) -> int:
    return 1
"""
HEAD = "from interlock import Server\n"

FOUND = {
    "the only one": (HEAD + "mine = Server('a')\n", "", "a"),
    "the only one under two names": (HEAD + "mine = yours = Server('a')\n", "", "a"),
    "the preferred name": (HEAD + "other = Server('b')\nmcp = Server('a')\n", "", "a"),
    "the most preferred name": (
        HEAD + "app = Server('c')\nmcp = Server('b')\nserver = Server('a')\n",
        "",
        "a",
    ),
    "the one that is named": (HEAD + "server = Server('b')\nother = Server('a')\n", ":other", "a"),
    "what a function makes": (HEAD + "def make():\n    return Server('a')\n", ":make", "a"),
    "not what is under main": (
        HEAD + "mcp = Server('a')\nif __name__ == '__main__':\n    raise SystemExit('no')\n",
        "",
        "a",
    ),
    "with type hints as strings": (HINTED, "", "a"),
}
NOT_FOUND = {
    "none": ("x = 1\n", "", "There is no Interlock Server in"),
    "somebody else's": (
        "import collections\nmcp = collections.Counter()\n",
        "",
        "mcp in it is a collections.Counter",
    ),
    "several": (
        HEAD + "a = Server('a')\nb = Server('b')\n",
        "",
        "has more than one server: a, b. Choose one: ",
    ),
    "no such name": (HEAD + "a = Server('a')\n", ":b", "The servers in it: a."),
    "no server of that name": (
        HEAD + "a = 1\n",
        ":a",
        "is a builtins.int and not an Interlock Server",
    ),
}


def served_name(answer: str) -> str:
    """What the server in an answer to server/discover says it is called."""
    (line,) = answer.splitlines()
    return str(json.loads(line)["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"])


@pytest.mark.parametrize(
    "text, suffix, name", [FOUND["the only one"], FOUND["what a function makes"]]
)
def test_a_server_is_found_and_served(
    program_run: Program, tmp_path: Path, text: str, suffix: str, name: str
) -> None:
    """As a program: one request in, one answer out, and an end with the client's."""
    (tmp_path / "x.py").write_text(text)
    result = program_run("run", f"{tmp_path / 'x.py'}{suffix}", stdin=PING)
    assert result.returncode == 0
    assert all(map(is_request_line, result.stderr.splitlines()))
    assert served_name(result.stdout) == name


@pytest.mark.parametrize("text, suffix, name", FOUND.values(), ids=FOUND)
def test_the_server_of_a_file(tmp_path: Path, text: str, suffix: str, name: str) -> None:
    """The named object, the only server, or the one with a name that is preferred."""
    (tmp_path / "x.py").write_text(text)
    found = loaded(tmp_path / "x.py", suffix.removeprefix(":"))
    assert found.stdout.splitlines()[-1] == name, found.stderr


@pytest.mark.parametrize("text, suffix, words", NOT_FOUND.values(), ids=NOT_FOUND)
def test_no_server_is_a_plain_word(
    program_run: Program, tmp_path: Path, text: str, suffix: str, words: str
) -> None:
    """Code 2, what was looked for and what is there; nothing on the wire."""
    (tmp_path / "x.py").write_text(text)
    result = program_run("run", f"{tmp_path / 'x.py'}{suffix}", stdin=PING)
    assert (result.returncode, result.stdout) == (2, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def loaded(path: Path, name: str = "", after: str = "") -> subprocess.CompletedProcess[str]:
    """Load a file's server in a fresh interpreter and print its name."""
    program = (
        "import sys\nfrom pathlib import Path\nfrom interlock.cli.run.loading import load_server\n"
        f"server = load_server(Path({str(path)!r}), {name!r} or None)\n{after}\nprint(server.name)"
    )
    return subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60
    )


def test_the_folder_of_the_file_is_on_the_path(tmp_path: Path) -> None:
    """So that a server may be several files; and what is on the command line is the file's."""
    (tmp_path / "parts.py").write_text("NAME = 'parted'\n")
    (tmp_path / "x.py").write_text(
        "import sys\nfrom interlock import Server\nfrom parts import NAME\nmcp = Server(NAME + "
        "str(len(sys.argv)))\n"
    )
    assert loaded(tmp_path / "x.py").stdout == "parted1\n"


def test_a_file_in_a_package_may_import_its_neighbours(tmp_path: Path) -> None:
    """Relative imports work as in the package, at any depth."""
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "outer" / "__init__.py").write_text("")
    (inner / "__init__.py").write_text("")
    (tmp_path / "outer" / "names.py").write_text("NAME = 'deep'\n")
    (inner / "x.py").write_text(
        "from interlock import Server\nfrom ..names import NAME\nmcp = Server(NAME)\n"
    )
    assert loaded(inner / "x.py").stdout == "deep\n"


def test_the_neighbours_in_a_package_hide_no_module(tmp_path: Path) -> None:
    """A package may have a part that is called like a module of the standard library; a file beside
    it sees the other parts, too.
    """
    package = tmp_path / "outer"
    package.mkdir()
    for name, text in {"__init__": "", "colorsys": "", "parts": "NAME = 'parted'\n"}.items():
        (package / f"{name}.py").write_text(text)
    (package / "x.py").write_text(
        HEAD + "from colorsys import rgb_to_hsv\nfrom parts import NAME\nmcp = Server(NAME)\n"
    )
    assert loaded(package / "x.py").stdout == "parted\n"


@pytest.mark.parametrize("name", ["types", "click", "server"])
def test_a_file_may_be_called_like_a_module(tmp_path: Path, name: str) -> None:
    """Neither hides the other."""
    (tmp_path / f"{name}.py").write_text(
        HEAD + "import json, types\nmcp = Server('a' + json.dumps(1) + types.ModuleType.__name__)\n"
    )
    assert loaded(tmp_path / f"{name}.py").stdout == "a1module\n"


def test_a_file_imports_itself_once(tmp_path: Path) -> None:
    """Another file of the server that imports it gets the same objects."""
    (tmp_path / "x.py").write_text(HEAD + "mcp = Server('a')\nimport more\n")
    (tmp_path / "more.py").write_text("import x\nx.mcp.add_resource('a://b', 'text')\n")
    assert (
        loaded(tmp_path / "x.py", after="assert server.resources.get('a://b') is not None").stdout
        == "a\n"
    )


def test_old_byte_code_is_not_taken_for_a_new_file(tmp_path: Path) -> None:
    """The same size, the same second: it is compiled anew all the same."""
    path = tmp_path / "x.py"
    for name in "ab":
        path.write_text(HEAD + f"mcp = Server('{name}')\n")
        os.utime(path, (1_700_000_000, 1_700_000_000))
        assert loaded(path).stdout == f"{name}\n"


def test_what_a_file_prints_does_not_reach_the_wire(program_run: Program, tmp_path: Path) -> None:
    """By print, by a program it starts, while it is imported; and what it reads is empty."""
    (tmp_path / "x.py").write_text(
        "import subprocess, sys\nfrom interlock import Server\nprint('printed')\n"
        "subprocess.run([sys.executable, '-c', 'print(\"from a "
        "child\")'])\nprint(repr(sys.stdin.read()))\nmcp = Server('a')\n"
    )
    result = program_run("run", tmp_path / "x.py", stdin=PING)
    assert served_name(result.stdout) == "a"
    assert "printed\n" in result.stderr
    assert "from a child\n" in result.stderr
    assert "\n''\n" in result.stderr


@pytest.mark.parametrize(
    "text, last",
    [
        ("def f(:\n", "SyntaxError: invalid syntax"),
        ("\n1 / 0\n", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_file_that_cannot_be_run_shows_its_own_traceback(
    program_run: Program, tmp_path: Path, text: str, last: str
) -> None:
    """Code 1; the frames are the file's, not those of how it was imported."""
    (tmp_path / "x.py").write_text(text)
    result = program_run("run", tmp_path / "x.py", stdin=PING)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == last
    assert "importlib" not in result.stderr
    assert "interlock" not in result.stderr


@pytest.mark.cold  # a forked process does not take all modules apart
def test_the_objects_of_a_file_are_finalized_at_exit(program_run: Program, tmp_path: Path) -> None:
    """Also those in a reference cycle: what was written to a file is in the file."""
    (tmp_path / "x.py").write_text(
        "class Keeper:\n    pass\nkeeper = Keeper()\nkeeper.itself = keeper\n"
        f"keeper.file = open({str(tmp_path / 'kept')!r}, 'w')\nkeeper.file.write('all')\n"
    )
    assert program_run("run", tmp_path / "x.py").returncode == 2
    assert (tmp_path / "kept").read_text() == "all"


@pytest.mark.parametrize("transport", ["unix", "tcp"])
async def test_sockets(everyday: Path, tmp_path: Path, transport: str) -> None:
    """It says where it listens, serves, and ends in good order when it is told to."""
    options = ["--path", str(tmp_path / "s")] if transport == "unix" else ["--port", "0"]
    command = [
        sys.executable,
        "-m",
        "interlock",
        "run",
        str(everyday),
        "--transport",
        transport,
        *options,
    ]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        where = (await process.stderr.readline()).decode().removeprefix("Listening at ").strip()
        async with Client(where) as client:
            assert (await client.call_tool("add", {"a": 1})).value() == 3
    finally:
        process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(20):
        assert await process.wait() == 0
    assert where.startswith(f"{transport}://")
    assert not (tmp_path / "s").exists()
