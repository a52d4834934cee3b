"""Strict type checking, the formatter and the linter report no errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.javascript import files

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(["mypy"], marks=pytest.mark.endurance(seconds=60)),
        ["ruff", "check", "--quiet", "--output-format", "concise"],
        ["ruff", "format", "--check", "--quiet"],
    ],
    ids=["types", "lint", "format"],
)
def test_the_tools_have_nothing_to_say(tool: list[str]) -> None:
    """Strict types, lint and format over the whole project, as `make check` runs them.

    CI runs `make types` separately: without a cache it takes as long as all other tests together.
    """
    found = subprocess.run(
        [sys.executable, "-m", *tool],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.slow
def test_javascript_and_css_are_formatted_and_typed(installed: Callable[[str], Path]) -> None:
    """Prettier and TypeScript find nothing, as `make check` runs them."""
    installed("javascript")
    found = subprocess.run(
        [sys.executable, "-m", "scripts.javascript"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_lines_of_javascript_and_css_have_at_most_100_columns(path: Path) -> None:
    """Prettier does not wrap comments and templates, so this test checks their lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 100] == []
