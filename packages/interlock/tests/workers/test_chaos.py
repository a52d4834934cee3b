"""The chaos test of `benchmarks/chaos`: no request is lost and no action starts twice, whatever
fails."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
STORES = ["sqlite", "redis"]
WHOLE = 1800.0  # seconds of load in the endurance suite
ENDING = 600.0  # seconds in which a loaded machine may start and end it all


def chaos(store: str, duration: float, seed: int, *more: str) -> None:
    """Run it; its report is part of a failure."""
    command = [sys.executable, "-m", "benchmarks.chaos", "--store", store]
    command += ["--duration", f"{duration:.0f}", "--seed", str(seed), *more]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=duration + ENDING, check=False
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0


@pytest.mark.parametrize("store", STORES)
def test_a_sample_of_the_chaos_test(store: str) -> None:
    """Twenty seconds, in which every fault comes for a moment."""
    short = ["--pause", "0.2", "--hold", "0.5", "--stop-seconds", "1", "--aftermath", "0.2"]
    chaos(store, 20.0, 1, *short, "--deadline", "120")


@pytest.mark.endurance(seconds=WHOLE)
@pytest.mark.parametrize("store", STORES)
def test_the_chaos_test(store: str, request: pytest.FixtureRequest) -> None:
    """Half an hour, or what is left of the time of `make endurance DURATION=`."""
    until = request.config.option.until
    duration = WHOLE if until is None else min(WHOLE, max(20.0, until - time.time()))
    chaos(store, duration, request.config.option.seed)
