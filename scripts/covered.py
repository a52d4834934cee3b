"""Measures the test coverage of each package,
and compares it with the figures in `scripts/coverage.toml`.

    python scripts/covered.py                     # what `make coverage` runs: the quick tests
    python scripts/covered.py --write             # take over figures that rose, and new packages
    python scripts/covered.py --write --reason "the code that needs a Mac is new"   # and lower ones
    python scripts/covered.py -- -m 'not interop and not database'    # other tests

A figure is the share of a package's statements that ran, in percent, in this process or in one that
a test started. A package that falls below its figure by more than the tolerance is a failure: add
tests, or lower the figure with a reason, which is kept beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "scripts" / "coverage.toml"
TOLERANCE = 0.5
"""Percentage points by which threads and timing may change a figure from run to run."""

QUICK = ["-m", "not slow and not interop and not database"]
UNMEASURABLE = "--ignore=tests/architecture/test_weight.py"
"""Tests of what an import loads: coverage.py itself loads more."""

HEAD = """\
# The share of statements that the quick tests run, in percent. `make coverage` compares;
# `python scripts/covered.py --write` writes this file.
"""


def main() -> int:
    """Run the tests under coverage.py, and compare. Return 0 if no figure fell."""
    given = sys.argv[1:]
    at = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(
        description=" ".join((__doc__ or "").partition("\n\n")[0].split())
    )
    parser.add_argument("--write", action="store_true", help="take over figures that rose")
    parser.add_argument(
        "--reason", default="", help="take over those that fell too, for this reason"
    )
    parser.add_argument("--measured", action="store_true", help="use the data of the last run")
    options = parser.parse_args(given[:at])
    if not options.measured:
        _measure(given[at + 1 :] or QUICK)
    known = tomllib.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}
    found = figures(_report())
    lower = fallen({name: row["percent"] for name, row in known.items()}, found)
    for name, percent in sorted(found.items()):
        print(f"{percent:6.1f} %  {name}")
    for name, (before, now) in lower.items():
        print(f"{name}: {now:.1f} %, and {FIGURES.name} says {before:.1f} %")
    if options.write and (not lower or options.reason):
        FIGURES.write_text(written(known, found, set(lower), options.reason), encoding="utf-8")
        return 0
    return 1 if lower else 0


def figures(report: Mapping[str, dict[str, int]]) -> dict[str, float]:
    """Return the percentage of each package, from the statements of each file.

    Args:
        report: For each file, its path and how many statements it has and how many ran.
    """
    counts: dict[str, list[int]] = {}
    for path, row in report.items():
        both = counts.setdefault(package(path), [0, 0])
        both[0] += row["covered_lines"]
        both[1] += row["num_statements"]
    return {name: round(100 * ran / every, 1) for name, (ran, every) in counts.items() if every}


def package(path: str) -> str:
    """Return the package that a source file belongs to: the first two names of its module."""
    inside = PurePosixPath(path.rpartition("/src/")[2])
    top = inside.parts[0]
    return ".".join(inside.parts[:2]) if len(inside.parts) > 2 else top


def fallen(
    known: Mapping[str, float], found: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    """Return the packages whose coverage fell: each with its figure and the measured value."""
    return {
        name: (before, found[name])
        for name, before in known.items()
        if name in found and found[name] < before - TOLERANCE
    }


def written(
    known: Mapping[str, dict[str, object]], found: Mapping[str, float], lower: set[str], reason: str
) -> str:
    """Return the text of the figures' file."""
    lines = [HEAD]
    for name, percent in sorted(found.items()):
        before = known.get(name, {})
        why = reason if name in lower else before.get("reason", "")
        figure = percent if name in lower else max(percent, float(str(before.get("percent", 0))))
        row = f'"{name}" = {{ percent = {figure:.1f}'
        lines.append(f"{row}, reason = {json.dumps(why)} }}\n" if why else f"{row} }}\n")
    return "".join(lines)


def _measure(chosen: list[str]) -> None:
    """Run the tests. This script only reports failures; `make test` fails on them.

    It ends if the tests did not run to the end, as their figures would be far too low.
    """
    (ROOT / ".coverage-data").mkdir(exist_ok=True)
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run([*coverage, "erase"], cwd=ROOT, check=True)
    pytest = ["-m", "pytest", "-q", "--workers", "4"]
    command = [*coverage, "run", *pytest, UNMEASURABLE, *chosen]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status not in (0, 1):  # 1: all ran, and some failed
        sys.exit(f"the tests did not run to the end: pytest ended with status {status}")
    if status:
        print("some tests failed; what they did not run counts as not covered", file=sys.stderr)
    subprocess.run([*coverage, "combine", "--quiet"], cwd=ROOT, check=True)


def _report() -> dict[str, dict[str, int]]:
    """Return the counts of each file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(path)]
        subprocess.run(command, cwd=ROOT, check=True)
        files = json.loads(path.read_text("utf-8"))["files"]
    return {name.replace("\\", "/"): row["summary"] for name, row in files.items()}


if __name__ == "__main__":
    sys.exit(main())
