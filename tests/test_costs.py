"""Costs of the tests: a record has a line for each test, and the script adds the lines up."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from scripts.test_costs import KEYS, ROOT, Cost, added, table

RECORD = [
    {"test": "tests/test_a.py::test_one[x]", "own": 1.0, "programs": 0.5, "elapsed": 9.0},
    {"test": "tests/test_a.py::test_one[y]", "own": 0.25, "programs": 0.0, "elapsed": 9.0},
    {"test": "tests/test_b.py::test_two", "own": 0.0, "programs": 4.0, "elapsed": 9.0},
]


def test_costs_are_added_by_file_function_or_test() -> None:
    """Options of a test are no part of its function."""
    assert added(RECORD) == {
        "tests/test_a.py": Cost(1.25, 0.5, 2),
        "tests/test_b.py": Cost(0.0, 4.0, 1),
    }
    assert list(added(RECORD, KEYS["function"])) == [
        "tests/test_a.py::test_one",
        "tests/test_b.py::test_two",
    ]
    assert len(added(RECORD, KEYS["test"])) == 3


def test_the_table_begins_with_the_highest_and_ends_with_the_sum() -> None:
    assert table(added(RECORD), top=1)[1:] == [
        "     4.0       0.0       4.0       1  tests/test_b.py",
        "     5.8       1.2       4.5       3  all 2",
    ]
    assert len(table({}, top=1)) == 2


def test_each_test_is_recorded_with_the_programs_that_it_starts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the option nothing is written."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import subprocess, sys

        BUSY = "from time import process_time as now\\nend = now() + 0.1\\nwhile now() < end: pass"

        def test_own():
            exec(BUSY, {})

        def test_programs():
            subprocess.run([sys.executable, "-c", BUSY])
        """
    )
    pytester.runpytest_inprocess("-p", "tests.costs", "-q").assert_outcomes(passed=2)
    assert not list(pytester.path.glob("*.jsonl"))
    ran = pytester.runpytest_subprocess("-p", "tests.costs", "-q", "--costs", "costs.jsonl")
    ran.assert_outcomes(passed=2)
    lines = (pytester.path / "costs.jsonl").read_text("utf-8").splitlines()
    costs = added(map(json.loads, lines), KEYS["test"])
    (own,) = (cost for name, cost in costs.items() if name.endswith("::test_own"))
    (started,) = (cost for name, cost in costs.items() if name.endswith("::test_programs"))
    assert own.own >= 0.08  # the clock of processes ticks every 10 ms
    assert own.programs == 0
    assert started.programs >= 0.08


def test_the_command_runs_tests_and_prints_the_table(capfd: pytest.CaptureFixture[str]) -> None:
    """pytest must not take the record for a test: it exists before pytest starts."""
    command = [sys.executable, "scripts/test_costs.py", "--", "tests/test_costs.py", "-k", "added"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    assert "tests/test_costs.py" in capfd.readouterr().out
