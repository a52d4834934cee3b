"""Commands of other distributions are found by entry point, and what is missing names its extra."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import click
import pytest

from interlock.cli import groups
from interlock.cli.auth.group import COMMANDS as AUTH_COMMANDS
from interlock.cli.program import COMMANDS
from tests.cli.conftest import Command


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library alone: no other distribution names a command."""
    monkeypatch.setattr(groups, "installed", dict)


def test_every_listed_command_is_installed_here() -> None:
    """The table of the program and the entry points of the distributions name the same ones."""
    wanted = {name for name, row in COMMANDS.items() if row.extra}
    wanted |= {f"auth.{name}" for name, row in AUTH_COMMANDS.items() if row.extra}
    assert wanted <= set(groups.installed())


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize(
    "words, expected",
    [
        (["host"], "host is not installed. Install it: pip install 'interlock[host]'"),
        (["host", "--help"], "pip install 'interlock[host]'"),
        (["serve", "git"], "pip install 'interlock[servers]'"),
        (["auth", "serve"], "auth serve is not installed"),
        (["auth", "account"], "pip install 'interlock[issuer]'"),
    ],
)
def test_a_missing_command_names_its_extra(
    interlock: Command, words: list[str], expected: str
) -> None:
    """It is wrong usage, code 2, and one line says what to install."""
    result = interlock(*words)
    assert result.exit_code == 2
    assert expected in result.stderr


@pytest.mark.usefixtures("nothing_installed")
def test_the_help_page_says_what_is_missing(interlock: Command) -> None:
    """Every known command is listed, those that need an extra with it."""
    page = interlock("--help").stdout
    assert "Use a model with servers, in the terminal. (needs interlock[host])" in page
    assert "Call a tool.\n" in page


def test_a_command_of_somebody_else(interlock: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any distribution may add a command; the library's own cannot be replaced."""
    module = ModuleType("strange_commands")

    @click.command("strange")
    def strange() -> None:
        """A strange command."""
        click.echo("called")

    module.__dict__.update(strange=strange)
    monkeypatch.setitem(sys.modules, "strange_commands", module)
    found = {
        name: EntryPoint(name, "strange_commands:strange", "interlock.commands")
        for name in ("strange", "call")
    }
    monkeypatch.setattr(groups, "installed", lambda: found)
    assert interlock("strange").stdout == "called\n"
    assert "Other commands:\n  strange" in interlock("--help").stdout
    assert "Call a TOOL" in interlock("call", "--help").stdout
