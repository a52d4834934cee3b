"""Mypy, as strict as it is, sees the types that authors rely on, and the mistakes that they
make.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TOP = HERE.parents[3]
RIGHT = sorted(HERE.glob("right_*.py"))
WRONG = sorted((HERE / "wrong").glob("*.py"))
_MARK = re.compile(r"# error: ([a-z, -]+)$")
_ERROR = re.compile(
    r"(?P<file>[^:]+):(?P<line>\d+):\d+: error: (?P<words>.*?)(?:  \[(?P<code>[a-z-]+)\])?$"
)

pytestmark = pytest.mark.slow

Found = dict[tuple[str, int], set[str]]


@pytest.fixture(scope="module")
def errors() -> Found:
    """The errors that mypy has in all of these programs: codes by file and line."""
    files = [str(path.relative_to(TOP)) for path in (*RIGHT, *WRONG)]
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-pretty",
        "--no-error-summary",
        "--hide-error-context",
        *files,
    ]
    said = subprocess.run(
        command, cwd=TOP, capture_output=True, text=True, timeout=300, check=False
    )
    assert said.returncode in (0, 1), said.stdout + said.stderr
    found: Found = {}
    for line in said.stdout.splitlines():
        if (match := _ERROR.match(line)) is not None:
            found.setdefault((match["file"], int(match["line"])), set()).add(
                match["code"] or match["words"]
            )
    return found


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_what_must_type_check(path: Path, errors: Found) -> None:
    """No error in the whole file; what `assert_type` names is what the checker sees."""
    name = str(path.relative_to(TOP))
    assert {line: codes for (file, line), codes in errors.items() if file == name} == {}


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_what_must_not(path: Path, errors: Found) -> None:
    """The marked lines have the errors that they name, and no other line has one."""
    name = str(path.relative_to(TOP))
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    marked = {
        number: set(mark[1].split(", "))
        for number, line in lines
        if (mark := _MARK.search(line)) is not None
    }
    assert len(marked) > 10
    assert {line: codes for (file, line), codes in errors.items() if file == name} == marked
