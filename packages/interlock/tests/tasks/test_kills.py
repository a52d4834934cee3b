"""Series of kills: processes die at random moments and around each write of a task. No task is
lost, no recorded step is repeated, and no handle leads nowhere.

The Valkey server comes with the tests' own packages, so all kinds run everywhere.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tasks.killing import KINDS, Outcome, Result, Series, append_result

FEW = 5


def survived(kind: str, *words: str, seed: int) -> None:
    """Run a series in a process of its own, which forks those that it kills."""
    command = [sys.executable, "-m", "tests.tasks.killing", kind, "--seed", str(seed), *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr[-20_000:]}"
    print(ran.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_no_task_is_lost_in_a_few_kills(kind: str, request: pytest.FixtureRequest) -> None:
    survived(kind, "--points", str(FEW), seed=request.config.option.seed)


@pytest.mark.endurance(seconds=90)
@pytest.mark.parametrize("kind", KINDS)
def test_no_task_is_lost_when_processes_are_killed(
    kind: str, request: pytest.FixtureRequest
) -> None:
    """Every announced task ends, as completed or as "may have happened"."""
    survived(kind, "--points", "300", seed=request.config.option.seed)


@pytest.mark.endurance(seconds=60)
@pytest.mark.parametrize("kind", KINDS)
def test_no_task_is_lost_around_a_write(kind: str, request: pytest.FixtureRequest) -> None:
    """A process dies just before and just after each write of a task."""
    survived(kind, "--writes", seed=request.config.option.seed)


@pytest.mark.parametrize("lost", [0, 1])
def test_one_command_shows_all_series_and_fails_for_one_loss(lost: int, tmp_path: Path) -> None:
    """Series that have ended are not run again."""
    file = tmp_path / "results"
    for kind in KINDS:
        wrong = ["task-1: gone"] * lost if kind == KINDS[-1] else []
        outcome = Outcome(kills=300, announced=400, completed=400, wrong=wrong, delays=[0.5, 6.0])
        append_result(file, Result(Series(kind, 300, 7), outcome, seconds=100.0, load=2.0))
    command = [sys.executable, "-m", "tests.tasks.killing", "--points", "300", "--seed", "7"]
    ran = subprocess.run([*command, "--results", file], capture_output=True, text=True, check=False)
    assert ran.returncode == lost, ran.stderr
    rows = [line.split(" | ") for line in ran.stdout.splitlines() if "300" in line and "|" in line]
    assert [row[0].strip("| ").replace(", ", "-") for row in rows] == list(KINDS)
    assert [row[6] for row in rows] == ["0", "0", "0", str(lost)]
    assert ("task-1: gone" in ran.stdout) == bool(lost)
