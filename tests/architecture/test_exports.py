"""Every exported name has a docstring, and the checker finds each omission."""

from __future__ import annotations

import pytest

from tests.architecture import exports
from tests.architecture.conftest import Build
from tests.architecture.source import SourceTree

SOUND = {
    "__init__.py": (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from interlock.server.app import Server as Serving\n"
        "from . import types\n"
        "from interlock.types import *\n"
        "from msgspec import UNSET\n"
        "__all__ = ['Serving', 'Tool', 'Icon', 'LIMIT', 'UNSET', 'types']\n"
    ),
    "types/__init__.py": (
        "from .tools import *\nfrom .codes import A, B, C, D\n__all__ = ('Icon', 'LIMIT', "
        "'Tool', 'A', 'B', 'C', 'D')\n"
    ),
    "types/codes.py": (
        "import re\n# Codes.\nA = 1\nB = (\n    2\n)\n\nC = 3\nD = 4\n'''Two more.'''\n"
    ),
    "types/tools.py": (
        "class Tool:\n    '''A tool.'''\n"
        "Icon = str\n'''An icon.'''\n"
        "try:\n    LIMIT: int = 3  # calls at once\nexcept ValueError:\n    LIMIT = 4\n"
    ),
    "server/app.py": "class Server:\n    '''A server.'''\n",
}

BREACHES = {
    "a class": (
        "class A:\n    pass\n__all__ = ['A']\n",
        "exports A, which has no docstring (interlock/wire/x.py:1)",
    ),
    "a function": (
        "def f():\n    return 1\n__all__ = ['f']\n",
        "exports f, which has no docstring",
    ),
    "a constant": (
        "import re\nA = 1\n__all__ = ['A']\n",
        "exports A, which has neither a docstring below nor a comment beside it",
    ),
    "a constant below an explained block": (
        "# One.\nA = 1\n\nB = 2\n__all__ = ['A', 'B']\n",
        "exports B, which has neither",
    ),
    "a name nobody defines": ("__all__ = ['A']\n", "exports A, which nobody defines"),
    "a name made at run time": (
        "def __getattr__(name):\n    '''Late.'''\n__all__ = ['A']\n",
        "exports A, which nobody defines",
    ),
    "an import of what is not there": (
        "from interlock.types import Wheel\n__all__ = ['Wheel']\n",
        "exports Wheel, which nobody defines",
    ),
    "an import in a ring": (
        "from interlock.wire.x import A\n__all__ = ['A']\n",
        "exports A, which nobody defines",
    ),
    "an import of what is not explained": (
        "from interlock.wire.y import B\n__all__ = ['B']\n",
        "has no docstring (interlock/wire/y.py:1)",
    ),
    "a list that is not plain": (
        "import re\n__all__ = [*re.__all__]\n",
        "its __all__ is not a plain list of names",
    ),
    "a name twice": ("'''It.'''\nA = 1  # the first\n__all__ = ['A', 'A']\n", "exports A twice"),
}


def test_every_exported_name_is_explained(source_tree: SourceTree) -> None:
    """Every name in the ``__all__`` of a public module is defined and documented."""
    assert source_tree.sources
    found = list(exports.problems(source_tree))
    assert not found, "\n".join(found)


def test_explained_exports_give_no_alarm(build: Build) -> None:
    """Re-exports, names for type checking, documented constants, and third-party names pass."""
    assert list(exports.problems(build(SOUND))) == []


@pytest.mark.parametrize("text, alarm", BREACHES.values(), ids=BREACHES)
def test_each_omission_is_found(build: Build, text: str, alarm: str) -> None:
    """Each omission gives one error, which names the place."""
    found = list(
        exports.problems(build(SOUND | {"wire/x.py": text, "wire/y.py": "class B:\n    pass\n"}))
    )
    assert len(found) == 1, found
    assert alarm in found[0]
    assert found[0].startswith("interlock/wire/x.py: ")
