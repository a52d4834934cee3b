"""Numbers and names that the guide states are those of the code."""

from __future__ import annotations

import inspect
import re

import pytest

from interlock import REVISIONS, Client, Server
from interlock.cli.program import COMMANDS
from interlock.cli.serving import servers_here
from interlock.wire.lines import DEFAULT_LIMIT
from tests.docs.pages import TOP

GUIDE = TOP / "docs" / "guide"


def page(name: str) -> str:
    """The text of a page of the guide."""
    return (GUIDE / name).read_text(encoding="utf-8")


def default(of: type, name: str) -> object:
    """What a parameter is unless it is told otherwise."""
    return inspect.signature(of).parameters[name].default


@pytest.mark.parametrize("option", ["queue", "concurrency", "timeout", "calls_per_peer", "threads", "asking_seconds", "page_size"])
def test_limits_are_as_stated(option: str) -> None:
    """The table of limits has the defaults of Server."""
    value = default(Server, option)
    words = "none" if value is None else f"{value / 60:g} minutes" if isinstance(value, float) else f"{value:,}"
    rows = [line for line in page("limits.md").splitlines() if line.startswith("|") and f"`{option}=`" in line]
    assert rows
    assert all(words in row for row in rows), (option, words)


def test_the_size_of_a_message_is_as_stated() -> None:
    """In both places that name it."""
    stated = f"{DEFAULT_LIMIT // 1024**2} MiB"
    assert stated in page("limits.md")
    assert stated in page("security.md")


def test_the_timeout_of_a_client_is_as_stated() -> None:
    """In seconds."""
    assert f"({default(Client, 'timeout'):g} seconds unless told otherwise)" in page("client.md")


def test_commands_are_named() -> None:
    """Every command of the command line, every server that comes with it, and every revision."""
    text = page("cli.md")
    named = set(re.findall(r"`(?:interlock )?([a-z]+)\b", text))
    assert set(COMMANDS) <= named
    assert set(servers_here()) <= named
    assert all(revision in page("revisions.md") for revision in REVISIONS)
