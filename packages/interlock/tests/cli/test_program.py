"""The front door: help, version, exit codes, and a start that loads nothing it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from interlock import __version__
from interlock.cli.program import COMMANDS
from tests.cli.conftest import Command, Program

TALKING = ["list", "schema", "call", "read", "prompt", "complete", "ping"]


def loaded_by(*words: str) -> set[str]:
    """The modules that a fresh interpreter has loaded once the command has run."""
    program = (
        "import sys\nfrom interlock.cli import main\n"
        f"try:\n    main({list(words)!r})\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    return set(
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
        ).stderr.split()
    )


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], [], ["install", "--help"], ["new", "--help"]]
)
def test_the_start_loads_neither_server_nor_client(words: list[str]) -> None:
    """What only prints, or edits files, costs no import of the library's rooms."""
    loaded = loaded_by(*words)
    assert "interlock.cli.program" in loaded
    heavy = {
        "interlock.server",
        "interlock.client",
        "interlock.transport",
        "interlock.wire.codec",
        "asyncio",
        "rich",
        "pydantic",
    }
    assert not loaded & heavy


def test_a_command_loads_what_it_needs() -> None:
    """What the test above relies on: the rooms are seen where they are loaded."""
    assert {"interlock.client", "interlock.transport"} <= loaded_by("ping", "--help")


def test_version(interlock: Command) -> None:
    """The version of the package."""
    assert interlock("--version").stdout == f"interlock {__version__}\n"


def test_help_names_every_command(interlock: Command) -> None:
    """With its half line, and the exit codes."""
    help_page = interlock("--help")
    assert help_page.exit_code == 0
    for name, row in COMMANDS.items():
        assert f"  {name} " in help_page.stdout
        assert row.summary in help_page.stdout
    assert "130  interrupted" in help_page.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(interlock: Command, name: str) -> None:
    """Each has a help page with an example; those that talk to a server say how it is told, and the
    exit codes.
    """
    page = interlock(name, "--help")
    assert page.exit_code == 0
    assert len(page.stdout.splitlines()) > 5
    if name in TALKING:
        assert f"interlock {name} " in page.stdout
        assert "-- COMMAND" in page.stdout
        assert "isError" in page.stdout


@pytest.mark.parametrize(
    "words, expected",
    [
        (["cal"], "Did you mean 'call'?"),
        (["zzz"], "There is no command 'zzz'"),
        (["run"], "Missing argument"),
        (["run", "no.py"], "There is no file no.py"),
        (["list", "--"], "Write the command that starts the server after --"),
        (["call", "--json"], "Missing TARGET"),
        (["list", "--revision", "2020-01-01", "--", "x"], "Unknown revision 2020-01-01"),
        (["list", "--server", "x", "--", "x"], "either as -- COMMAND or with --config"),
        (["list", "--server", "x"], "Name the file of the server"),
        (["ping", "x", "--timeout", "0"], "0"),
        (["ping", "--answers", "{", "--", "x"], "--answers cannot be read"),
        (["ping", "--answers", "3", "--", "x"], "--answers must be an object"),
        (["read", "--", "x"], "Missing URI"),
        (["read", "a://b", "c", "--", "x"], "unexpected words: c"),
        (["call", "--", "x"], "Missing TOOL"),
        (["list", "weather"], "weather: no such file"),
        (["list", "python3 x.py"], "write it after --"),
        (["list", "weather.py"], "There is no file weather.py"),
        (["list", "gopher://x"], "gopher"),
        (["run", "x.py", "--port", "1"], "--port are for --transport tcp"),
        (["run", "x.py", "--transport", "tcp"], "needs --port"),
        (["run", "x.py", "--transport", "unix"], "needs --path"),
        (
            ["run", "x.py", "--transport", "unix", "--path", "s", "--reload"],
            "--reload is for --transport stdio",
        ),
        (["serve", "wether"], "wether"),
        (["install", "x.py"], "Name a client with --client"),
        (["install", "x.py", "--client", "zed"], "There is no file x.py"),
    ],
)
def test_wrong_usage_is_code_2_and_says_what_is_wrong(
    interlock: Command, words: list[str], expected: str
) -> None:
    """On stderr; stdout stays clean."""
    result = interlock(*words)
    assert result.exit_code == 2, result.output
    assert expected in result.stderr
    assert result.stdout == ""


def test_without_rich_json_is_plain() -> None:
    """rich is optional: without it the output has no colours."""
    program = (
        "import sys; sys.modules['rich'] = None; sys.stdout.isatty = lambda: True\n"
        "from interlock.cli.screen import print_json\nprint_json({'a': 1})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == '{\n  "a": 1\n}\n'


def test_it_is_a_module_too(program_run: Program) -> None:
    """`python -m interlock`."""
    assert program_run("--version").stdout == f"interlock {__version__}\n"
