"""What stands under the main block: servers that are set up there, files without one, and files
that hold no one server.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from interlock import Client, Unreachable
from interlock.cli.run.mainblock import advice
from tests.cli.conftest import Command, Program

HEAD = """
from contextlib import asynccontextmanager
from interlock import Server

class Configured(Server):
    pass

@asynccontextmanager
async def life(server):
    yield server.config

mcp = Configured("set up", lifespan=life)

@mcp.tool
def add(a: int, b: int) -> int:
    return a + b
"""
IN_MAIN = """
def main():
    mcp.config = {"port": 1}
    mcp.run()

if __name__ == "__main__":
    main()
"""
BLOCKS: list[tuple[str, bool]] = [
    ("", False),
    ("if __name__ == '__main__':\n    mcp.run()", False),
    ("def main():\n    mcp.run('stdio')\nif __name__ == '__main__':\n    main()", False),
    ("def main():\n    return 1\nif '__main__' == __name__:\n    print(main())", False),
    ("if __name__ == '__main__':\n    local = 1\n    local.x = 2", False),
    ("def other():\n    mcp.config = 1\nif __name__ == '__main__':\n    mcp.run()", False),
    ("if __name__ == '__main__':\n    mcp.config = 1\n    mcp.run()", True),
    ("if __name__ == '__main__':\n    mcp.settings.port += 1\n    mcp.run()", True),
    ("if __name__ == '__main__':\n    mcp.settings['a'] = 1\n    mcp.run()", True),
    ("if __name__ == '__main__':\n    mcp.add_tool(print)\n    mcp.run()", True),
    ("def main():\n    global mcp\n    mcp = 2\nif __name__ == '__main__':\n    main()", True),
    (
        "def a():\n    mcp.x = 1\n    b()\ndef b():\n    a()\nif __name__ == '__main__':\n    b()",
        True,
    ),
    (
        "import asyncio\nasync def main():\n    mcp.x = 1\nif __name__ == '__main__':\n    "
        "asyncio.run(main())",
        True,
    ),
]


@pytest.mark.parametrize("block, sets_up", BLOCKS)
def test_what_a_main_block_sets_up(tmp_path: Path, block: str, sets_up: bool) -> None:
    """Attributes and methods of what the module defines, also in functions that the block calls."""
    path = tmp_path / "server.py"
    path.write_text(HEAD + block, encoding="utf-8")
    assert ("sets up mcp under" in advice(path)) is sets_up


def test_a_file_that_cannot_be_read_sets_up_nothing(tmp_path: Path) -> None:
    """Its error is told by whoever runs it."""
    path = tmp_path / "server.py"
    assert advice(path) == ""
    path.write_text("if (", encoding="utf-8")
    assert advice(path) == ""


@pytest.fixture
def in_main(tmp_path: Path) -> Path:
    """A server that its main block configures, as some servers on the net do."""
    path = tmp_path / "inmain.py"
    path.write_text(HEAD + IN_MAIN, encoding="utf-8")
    return path


def test_a_server_that_is_set_up_in_main(
    interlock: Command, program_run: Program, in_main: Path
) -> None:
    """It works where the file itself is started; elsewhere the error comes with what to do,
    once.
    """
    assert interlock("call", "add", "a=1", "b=2", "--", sys.executable, in_main).stdout == "3\n"
    for result in (interlock("list", in_main), program_run("run", in_main)):
        said = result.stderr
        assert said.count("inmain.py sets up mcp under `if __name__ == '__main__':`") == 1
        assert "AttributeError: 'Configured' object has no attribute 'config'" in said
        assert f"-- python {in_main}" in said
        assert "asyncio" not in said  # none of our own frames


async def test_a_file_without_a_main_block(tmp_path: Path) -> None:
    """A client starts it as a script, which ends at once: the error says what is missing."""
    path = tmp_path / "nomain.py"
    path.write_text("from interlock import Server\nserver = Server('x')\n", encoding="utf-8")
    with pytest.raises(Unreachable, match=r"(?s)came to its end without serving.*server\.run\(\)"):
        async with Client(str(path)):
            pass
    with pytest.raises(Unreachable, match=r"interlock run .*nomain\.py.*exit code 0"):
        async with Client([sys.executable, str(path)]):
            pass


async def test_a_program_that_ends_is_given_no_advice_about_python() -> None:
    """Only a file of Python can lack `server.run()`; one that fails says why itself."""
    for command in (["true"], [sys.executable, "-c", "raise SystemExit(3)"]):
        with pytest.raises(Unreachable) as caught:
            async with Client(command):
                pass
        assert "server.run()" not in str(caught.value)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A file with two servers, of which none is the one."""
    path = tmp_path / "two.py"
    path.write_text("from interlock import Server\na = Server('a')\nb = Server('b')\n")
    return path


@pytest.mark.parametrize("words", [["list"], ["call", "x"], ["ping"], ["schema"]])
def test_a_file_that_holds_no_one_server(interlock: Command, two: Path, words: list[str]) -> None:
    """One line says so, with code 2: no usage, and nothing about how a process ended."""
    command, *rest = words
    result = interlock(command, two, *rest)
    line = f"Error: {two} has more than one server: a, b. Choose one: {two}:a\n"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", line)
    machine = interlock(command, two, *rest, "--json")
    assert json.loads(machine.stdout)["error"]["kind"] == "target"


@pytest.mark.parametrize("options", [[], ["--dev", "--no-reload"]])
def test_run_says_it_once(program_run: Program, two: Path, options: list[str]) -> None:
    """Code 2, and no usage: the command was used as it should be."""
    result = program_run("run", *options, two)
    assert result.returncode == 2
    assert result.stderr.count("has more than one server") == 1
    assert "Usage" not in result.stderr


def test_a_usage_error_shows_the_usage_once(program_run: Program) -> None:
    """Of a command, of a group, and of options that do not fit together."""
    for words in (["list", "nofile.py"], ["lst"], ["run"], ["call", "x.py", "--nothing"]):
        result = program_run(*words)
        assert result.returncode == 2
        assert result.stderr.count("Usage:") == 1, result.stderr


@pytest.mark.parametrize("options", [[], ["--reload"]])
def test_arguments_of_a_file(tmp_path: Path, interlock: Command, options: list[str]) -> None:
    """After two dashes `interlock run` takes arguments, which the file finds where a script
    does.
    """
    path = tmp_path / "argued.py"
    path.write_text(
        "import sys\nfrom interlock import Server\nserver = Server('argued')\n"
        "@server.tool\ndef told() -> list[str]:\n    return sys.argv[1:]\n"
    )
    command = [sys.executable, "-m", "interlock", "run", *options, str(path), "--", "--flag", "a b"]
    result = interlock("call", "told", "--", *command)
    assert json.loads(result.stdout) == ["--flag", "a b"], result.stderr
