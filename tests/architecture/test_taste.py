"""Code style that a machine can check, and the checker itself."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.architecture import taste
from tests.architecture.conftest import Build
from tests.architecture.source import SourceTree

OPENING = '"""What this file is for."""\n'

SOUND = {
    "a docstring of several lines": '"""What this file is for,\nand who uses it.\n\nmore\n"""\n',
    "a class whose name only contains a word": OPENING
    + "class Database:\n    pass\nclass Implied:\n    pass\n",
    "an extra, late": OPENING + "def f():\n    import uvloop\n",
    "a reason beside a late import": OPENING + "def f():\n    import x  # only when asked for\n",
    "a reason above a late import": OPENING
    + "def f():\n    # it takes 30 ms\n    import x\n    import y\n",
    "a reason beside a late import of many names": OPENING
    + "def f():\n    from x import (  # it takes long\n        y,\n        z,\n    )\n",
    "a reason beside a waiver": OPENING
    + "x = y  # type: ignore[arg-type]  # y is known to be so\n",
    "a swap": OPENING + "a, b = b, a\n",
    "a value that reads what it replaces": OPENING + "a, b = a + 1, f(a)\n",
    "the values of one call": OPENING + "a, b = f()\n",
    "a conditional expression": OPENING + "x = a if b else c\n",
    "a conditional expression in a call in one": OPENING + "x = a if b else f(c if d else e)\n",
    "a reason above a waiver": OPENING + "# y is known to be so\nx = y  # noqa: F821\n",
}

BREACHES = {
    "no docstring": ("", "does not open with a docstring"),
    "a comment for a docstring": ("# What this file is for.\n", "does not open with a docstring"),
    "a title for a docstring": ('"""Codec."""\n', "does not open with a sentence"),
    "no end to the sentence": ('"""What this file is for"""\n', "does not open with a sentence"),
    "a manager": (
        OPENING + "class SessionManager:\n    pass\n",
        "class SessionManager is called Manager",
    ),
    "a base": (
        OPENING + "class BaseHTTPServer:\n    pass\n",
        "class BaseHTTPServer is called Base",
    ),
    "utils": (OPENING + "class _JSONUtils:\n    pass\n", "class _JSONUtils is called Utils"),
    "an implementation": (
        OPENING + "def f():\n    class ServerImpl:\n        pass\n",
        "class ServerImpl is called Impl",
    ),
    "a late import": (
        OPENING + "def f():\n    import json\n",
        "x.py:3: imports json inside a function",
    ),
    "a late import in a method": (
        OPENING + "class A:\n    def f(self):\n        from interlock import b\n",
        "imports interlock inside a function",
    ),
    "a late import with a waiver only": (
        OPENING + "def f():\n    import json  # noqa: PLC0415 and so on\n",
        "imports json inside a function",
    ),
    "a late import with one word": (
        OPENING + "def f():\n    import json  # lazy\n",
        "imports json inside a function",
    ),
    "a waiver": (
        OPENING + "x = y  # type: ignore[arg-type]\n",
        "silences a check and does not say why",
    ),
    "another waiver": (
        OPENING + "x = y  # noqa: F821, E501\n",
        "silences a check and does not say why",
    ),
    "a packed assignment": (
        OPENING + "a, b = 1, 2\n",
        "x.py:2: several values are assigned in one statement",
    ),
    "a packed assignment in a method": (
        OPENING + "class A:\n    def f(self, a, b):\n        self.a, self.b = a, b\n",
        "several values are assigned in one statement",
    ),
    "a chain of conditional expressions": (
        OPENING + "x = a if b else c if d else e\n",
        "x.py:2: a conditional expression within another one",
    ),
    "a conditional expression as a condition": (
        OPENING + "x = a if (b if c else d) else e\n",
        "a conditional expression within another one",
    ),
    "something left": (
        OPENING + "x = 1  # TO" + "DO: the rest of it\n",
        "something is left unfinished",
    ),
}


def test_the_code_style_is_kept(source_tree: SourceTree) -> None:
    """File docstrings, sizes, names and the place of imports are right, and every silenced check
    has a reason."""
    assert source_tree.sources
    found = list(taste.problems(source_tree))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("folder", ["tests", "packages", "scripts", "benchmarks"])
def test_every_file_says_what_it_is_for(top: Path, folder: str) -> None:
    """Files outside the package open with a sentence too."""
    found = list(taste.openings(top / folder))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("folder", ["tests", "packages", "examples", "scripts", "benchmarks"])
def test_every_ignored_type_error_has_a_reason_after_it(top: Path, folder: str) -> None:
    found = list(taste.bare_ignores(top / folder))
    assert not found, "\n".join(found)


def test_an_ignored_type_error_without_a_reason_is_found(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        "a = 1  # type: ignore[arg-type]\n"
        "b = 1  # type: ignore\n"
        "c = 1  # type: ignore[arg-type]  # a peer's ID\n"
        "d = '# type: ignore'\n",
        encoding="utf-8",
    )
    found = list(taste.bare_ignores(tmp_path))
    assert [line.split(":")[1] for line in found] == ["1", "2"]


@pytest.mark.parametrize(
    "folder", ["tests", "packages/*/tests", "examples", "scripts", "benchmarks"]
)
def test_no_conditional_expression_stands_in_another(top: Path, folder: str) -> None:
    """Statements or a small function are clearer; this applies to tests and programs too."""
    found = []
    for path in sorted(top.glob(f"{folder}/**/*.py")):
        text = path.read_text(encoding="utf-8")
        if len(re.findall(r"\belse\b(?!\s*:)", text)) > 1:  # else nothing can be nested
            nodes = ast.walk(ast.parse(text))
            found += taste.nested_conditionals(nodes, path.relative_to(top).as_posix())
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_good_taste_gives_no_alarm(build: Build, text: str) -> None:
    """Code that the rules allow passes."""
    assert list(taste.problems(build({"wire/x.py": text}))) == []


@pytest.mark.parametrize("text, alarm", BREACHES.values(), ids=BREACHES)
def test_each_lapse_is_found(build: Build, text: str, alarm: str) -> None:
    """Each violation gives one error, which names the place."""
    found = list(taste.problems(build({"wire/x.py": text})))
    assert len(found) == 1, found
    assert alarm in found[0]
    assert found[0].startswith("interlock/wire/x.py")


@pytest.mark.parametrize("name", ["utils.py", "_helpers.py", "common.py"])
def test_a_file_is_called_by_what_is_in_it(build: Build, name: str) -> None:
    """A file with a name that fits anything is found; ``types/base.py`` is allowed by the plan."""
    source_tree = build({f"wire/{name}": OPENING, "types/base.py": OPENING})
    assert len(list(taste.problems(source_tree))) == 1


def test_charters_are_asked_of_other_folders(tmp_path: Path) -> None:
    """A file without a docstring is found below any folder."""
    (tmp_path / "tests" / "deep").mkdir(parents=True)
    (tmp_path / "tests" / "deep" / "test_x.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "tests" / "test_y.py").write_text(OPENING, encoding="utf-8")
    assert list(taste.openings(tmp_path / "tests")) == [
        "tests/deep/test_x.py: does not open with a docstring"
    ]
