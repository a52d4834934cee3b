"""Fixtures of the architecture tests: the source of all distributions,
and small trees for a test."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.architecture.source import SourceTree

Build = Callable[[dict[str, str]], SourceTree]


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Do not collect garbage: syntax trees have none, and searching their 800,000 nodes again and
    again takes twice the time that it takes to make them."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def without_garbage_collection() -> Iterator[None]:
    """The tests of a file parse much, too."""
    with no_garbage_collection():
        yield


@pytest.fixture(scope="session")
def top() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def pyproject(top: Path) -> Path:
    """The project's own description."""
    return top / "packages"


@pytest.fixture(scope="session")
def source_tree(top: Path) -> SourceTree:
    """The source of all distributions."""
    with no_garbage_collection():  # fixtures of the session are made before those of a module
        return SourceTree(*sorted(top.glob("packages/*/src")))


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """A source tree of the given files: path below the package, and text."""

    def write(files: dict[str, str]) -> SourceTree:
        for name, text in files.items():
            path = tmp_path / "interlock" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return SourceTree(tmp_path)

    return write
