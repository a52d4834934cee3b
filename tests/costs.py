"""Costs of the tests: with `--costs FILE`, each test adds a line with the processor time that it
and the programs that it started took. `scripts/test_costs.py` adds them up.

A program counts for the test in which its end was noticed: the browser that the tests of a worker
share counts for one of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--costs`."""
    parser.getgroup("terminal reporting").addoption(
        "--costs",
        type=Path,
        metavar="FILE",
        help="add a line with the processor time of each test to FILE (JSON Lines)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a test with its fixtures."""
    path = item.config.option.costs
    if path is None:
        return (yield)
    before = os.times()
    result = yield
    after = os.times()
    line = {
        "test": item.nodeid,
        "own": after.user + after.system - before.user - before.system,
        "programs": after.children_user
        + after.children_system
        - before.children_user
        - before.children_system,
        "elapsed": after.elapsed - before.elapsed,
    }
    with path.open("ab", buffering=0) as file:  # one write, as several workers append
        file.write(json.dumps(line).encode() + b"\n")
    return result
