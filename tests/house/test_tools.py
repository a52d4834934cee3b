"""Types are checked strictly, and the code is formatted and free of what the linter finds: the tools themselves say so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "tool",
    [
        ["mypy"],
        ["ruff", "check", "--quiet", "--output-format", "concise"],
        ["ruff", "format", "--check", "--quiet"],
    ],
    ids=["types", "lint", "format"],
)
def test_the_tools_have_nothing_to_say(tool):
    """Strict types, lint and format over the whole project, as `make check` runs them."""
    found = subprocess.run(
        [sys.executable, "-m", *tool],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
