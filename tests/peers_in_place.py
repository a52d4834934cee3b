"""Puts the peers in place, each at first use; where that cannot be done, says so as loudly as the
place demands."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import peers

MISSING: dict[str, str] = {}


@pytest.fixture(scope="session")
def installed() -> Callable[[str], Path]:
    """Return a function that gives the place of a peer, installing it at first use.

    A peer that cannot be installed fails the test in continuous integration; elsewhere, as on a
    machine without a network, the test is skipped and the summary says what was not tested.
    """

    def place_of(name: str) -> Path:
        if name not in MISSING:
            try:
                return peers.INSTALLERS[name]()
            except peers.NotInstalled as bad:
                MISSING[name] = str(bad)
        if os.environ.get("CI"):
            pytest.fail(f"the peer {name} could not be installed: {MISSING[name]}", pytrace=False)
        pytest.skip(
            f"the peer {name} could not be installed: {MISSING[name]}"
        )  # no network is no fault of the code

    return place_of


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which peers nothing was tested against, and why."""
    for name, why in MISSING.items():
        terminalreporter.section(f"NOT TESTED: together with {name}", sep="!")
        terminalreporter.write_line(why)
