"""Series of kills: processes die at random moments and around each write of a task. No task is
lost, no recorded step is repeated, and no handle leads nowhere.

The Valkey server comes with the tests' own packages, so all kinds run everywhere.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.tasks.killing import KINDS

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
