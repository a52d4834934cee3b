"""Only the lowest packages and the legacy transports name the handshake's first request."""

from __future__ import annotations

import re

import pytest

from tests.architecture.conftest import Build
from tests.architecture.source import SourceTree

# Packages and files that may. Those above ask `interlock.protocol.handshake.messages`.
ALLOWED = (
    "interlock.types",
    "interlock.wire",
    "interlock.protocol",
    "interlock.transport.http.legacy.sessions",
    "interlock.integrations.mcp_session",  # has the methods of a class of another package
    "interlock.cli.migrate.tables",  # names of other SDKs
)
WORD = re.compile("initiali[sz]e", re.IGNORECASE)


def problems(source_tree: SourceTree) -> list[str]:
    """Every line elsewhere that contains the word: in code, comments and strings."""
    return [
        f"{source.where}:{number}: {line.strip()[:80]}"
        for source in source_tree.sources
        if not any(f"{source.name}.".startswith(f"{place}.") for place in ALLOWED)
        for number, line in enumerate(source.text.splitlines(), 1)
        if WORD.search(line)
    ]


def test_the_word_stands_only_where_the_handshake_lives(source_tree: SourceTree) -> None:
    """Everything above the protocol sees stateless requests."""
    found = problems(source_tree)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        'X = "initialize"\n',
        "# after initialized\n",
        "class InitializeStep: ...\n",
        "initialise = 1\n",
    ],
)
def test_each_use_of_the_word_is_found(build: Build, text: str) -> None:
    """The check finds it in a string, a comment and a name."""
    assert len(problems(build({"transport/x.py": text, "types/x.py": text}))) == 1
