"""Where the house stands, and how a test builds a small one of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture.source import House

Build = Callable[[dict[str, str]], House]


@pytest.fixture(scope="session")
def top() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def pyproject(top: Path) -> Path:
    """The project's own description."""
    return top / "packages"


@pytest.fixture(scope="session")
def house(top: Path) -> House:
    """The house itself."""
    return House(*sorted(top.glob("packages/*/src")))


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """A house of the given files: path below the package, and text."""

    def write(files: dict[str, str]) -> House:
        for name, text in files.items():
            path = tmp_path / "interlock" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return House(tmp_path)

    return write
