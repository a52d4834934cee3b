"""The walk of a stateless call in docs/ARCHITECTURE.md: every file exists and imports the next, and
every test that the page names exists."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.architecture.source import SourceTree

LIBRARY = "packages/interlock/src/interlock"
PATH = re.compile(r"`([\w/]+\.py)`")


def paths(page: str) -> list[list[str]]:
    """The paths of the page: the files between arrows, each below the package of the library."""
    return [PATH.findall(line) for line in page.splitlines() if " → " in line]


@pytest.fixture(scope="module")
def page(top: Path) -> str:
    """The page."""
    return (top / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")


def test_the_walk_has_ten_files(page: str) -> None:
    """A new reader follows it in ten minutes."""
    there, back = paths(page)
    assert len({*there, *back}) == 10


def test_each_file_of_the_walk_imports_the_next(
    page: str, source_tree: SourceTree, top: Path
) -> None:
    """A reader can follow the imports."""
    for path in paths(page):
        for file, following in pairwise(path):
            source = source_tree.modules[module(file)]
            assert (top / LIBRARY / file).is_file()
            imported = {found.target for found in source_tree.imports(source)}
            assert module(following) in imported, f"{file} does not import {following}"


def test_every_test_that_the_page_names_exists(page: str, top: Path) -> None:
    """An invariant must have its test."""
    named = re.findall(r"`((?:tests|packages/[\w-]+/tests)/[\w/]+(?:\.py)?)`", page)
    assert named
    assert [name for name in named if not (top / name).exists()] == []


def module(file: str) -> str:
    """The dotted name of a file of the library."""
    return "interlock." + file.removesuffix(".py").replace("/", ".")
