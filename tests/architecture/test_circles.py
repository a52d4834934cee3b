"""No file imports itself through others, and the check finds every kind of import cycle."""

from __future__ import annotations

import pytest

from tests.architecture import circles
from tests.architecture.conftest import Build
from tests.architecture.source import SourceTree

SOUND = {
    "__init__.py": "",
    "types/tools.py": "Tool = 1\n",
    "wire/codec.py": "from ..types.tools import Tool\n",
    "wire/lines.py": "from .codec import Tool\nfrom ..types import tools\n",
}

CYCLES = {
    "two files": {
        "types/tools.py": "from .content import Content\n",
        "types/content.py": "from . import tools\n",
    },
    "three files": {
        "types/tools.py": "from . import content\n",
        "types/content.py": "from . import base\n",
        "types/base.py": "import interlock.types.tools\n",
    },
    "for type checking": {
        "types/tools.py": (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .content import "
            "Content\n"
        ),
        "types/content.py": "from .tools import Tool\n",
    },
    "inside a function": {
        "types/tools.py": "def f():\n    from . import content\n",
        "types/content.py": "from .tools import Tool\n",
    },
}


def test_no_import_cycle_between_files(source_tree: SourceTree) -> None:
    """A part never imports the whole that it belongs to, not even for type checking."""
    found = list(circles.problems(source_tree))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("files", CYCLES.values(), ids=CYCLES)
def test_each_kind_of_cycle_is_found(
    build: Build, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]
) -> None:
    """One cycle, one line, with the names of its files."""
    monkeypatch.setattr(circles, "OPEN", frozenset())
    names = sorted(f"interlock.{name[:-3].replace('/', '.')}" for name in files)
    assert list(circles.problems(build(SOUND | files))) == [f"import cycle: {', '.join(names)}"]


def test_files_without_a_cycle_raise_no_alarm(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two import paths to one file are not a cycle."""
    monkeypatch.setattr(circles, "OPEN", frozenset())
    assert list(circles.problems(build(SOUND))) == []


def test_a_listed_file_without_a_cycle_is_reported(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of open cycles only gets shorter."""
    monkeypatch.setattr(circles, "OPEN", frozenset({"interlock.wire.codec"}))
    found = list(circles.problems(build(SOUND)))
    assert found == ["interlock.wire.codec is in no import cycle any more: take it out of OPEN"]
