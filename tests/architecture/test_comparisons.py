"""Code checks features of revisions by name, and the checker finds each kind of comparison."""

from __future__ import annotations

import pytest

from tests.architecture import comparisons
from tests.architecture.conftest import Build
from tests.architecture.source import SourceTree

SOUND = {
    "a question by name": 'def f(caller):\n    return caller.supports("audio")\n',
    "whether it is known at all": "def f(r, REVISIONS):\n    return r not in REVISIONS\n",
    "whether two sides agreed on the same": "def f(a, b):\n    return a.revision == b.revision\n",
    "other dates": "def f(day):\n    return day == 'today'\n",
}

BREACHES = {
    "a date": 'def f(caller):\n    return caller.revision >= "2025-06-18"\n',
    "the other way round": 'def f(caller):\n    return "2025-06-18" <= caller.revision\n',
    "equal to a date": 'def f(caller):\n    return caller.revision == "2025-11-25"\n',
    "a name": "def f(revision, R3):\n    return revision > R3\n",
    "one of several": "def f(revision, wire):\n    return revision in wire.STATELESS_REVISIONS\n",
    "a part of the list": (
        "def f(r, HANDSHAKE_REVISIONS):\n    return r in HANDSHAKE_REVISIONS[1:]\n"
    ),
    "the order of two": "def f(a, b):\n    return a.revision < b.revision\n",
}


def test_nothing_above_the_protocol_compares_revisions(source_tree: SourceTree) -> None:
    """The differences of revisions are rows of the history table (`wire/revisions.py`)."""
    found = list(comparisons.problems(source_tree))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_a_question_by_name_gives_no_alarm(build: Build, text: str) -> None:
    """Allowed code passes."""
    assert not list(comparisons.problems(build({"client/x.py": text})))


@pytest.mark.parametrize("text", BREACHES.values(), ids=BREACHES)
def test_a_comparison_is_found(build: Build, text: str) -> None:
    """Comparisons are not allowed outside the two packages that know the history."""
    files = {"client/x.py": text, "protocol/x.py": text, "wire/x.py": text}
    found = list(comparisons.problems(build(files)))
    assert found
    assert all(line.startswith("interlock/client/x.py:") for line in found)
