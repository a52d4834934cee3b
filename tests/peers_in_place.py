"""Installs the peers, each at first use; a failed installation fails the test in CI and skips it
elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import peers

MISSING: dict[str, str] = {}


@pytest.fixture(scope="session")
def installed() -> Callable[[str], Path]:
    """Return a function that returns the path of a peer, and installs it at first use.

    A peer that cannot be installed fails the test in continuous integration. Elsewhere, for example
    without a network, the test is skipped, and the summary lists the untested peers.
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
        )  # a missing network is not an error of the code

    return place_of


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the untested peers, with the reasons."""
    for name, why in MISSING.items():
        terminalreporter.section(f"NOT TESTED: together with {name}", sep="!")
        terminalreporter.write_line(why)
