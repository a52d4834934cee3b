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
        pytest.param(
            ["ruff", "check", "--quiet", "--output-format", "concise"],
            marks=pytest.mark.endurance(seconds=2),
        ),
        pytest.param(
            ["ruff", "format", "--check", "--quiet"], marks=pytest.mark.endurance(seconds=1)
        ),
    ],
    ids=["types", "lint", "format"],
)
def test_the_tools_have_nothing_to_say(tool: list[str]) -> None:
    """Strict types, lint and format over the whole project.

    `make check` and CI run `make lint types javascript` before all tests, so `make test` does not
    repeat them: types alone take as long as all other tests together.
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


@pytest.mark.endurance(seconds=10)
def test_javascript_and_css_are_formatted_and_typed(installed: Callable[[str], Path]) -> None:
    """Prettier and TypeScript find nothing, as in `make check`."""
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
