"""Test distribution: which tests run in one worker, and in which order.

A file is the unit, with three exceptions. The files with a browser are two units, because more
concurrent browsers slow each other down. Files that share an expensive fixture are one unit too:
the servers of the wired matrix, the parsed source in the architecture tests. In the compatibility
farm, each test is a unit.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

BROWSERS = {
    "browsers": (
        "packages/interlock-apps/tests/demo/test_holiday_in_a_browser.py",
        "packages/interlock-apps/tests/web/test_page_a",
        "packages/interlock-issuer/tests/issuer/test_browser.py",
        "packages/interlock/tests/auth/test_login_in_a_browser.py",
        "tests/docs/test_site.py",
        "tests/interop/test_apps_by_peers.py",
        "tests/interop/test_inspector_panels.py",
    ),
    "more browsers": (
        "packages/interlock-apps/tests/gateway/test_page_in_a_browser.py",
        "packages/interlock-apps/tests/inspector/test_page",
        "packages/interlock-apps/tests/web/test_page_",
    ),
}
"""The files that need a browser, as part of their path, by the name of their unit."""

SHARED = {
    "cells": tuple(
        f"packages/interlock/tests/wired/test_{name}.py"
        for name in (
            "changes", "opening", "questions", "resources", "scopes", "states", "telling", "tools"
        )
    ),
    "architecture": ("tests/architecture/",),
}  # fmt: skip
"""Files that share fixtures of the session, by the name of their unit."""

SOAK = 100
"""The cost in seconds of a file that starts before all others: half an hour that begins at the end
is half an hour more."""

FARM = "tests/interop/test_farm.py"
"""The file whose tests are independent of each other."""


def units(items: Iterable[pytest.Item]) -> list[list[int]]:
    """Return the numbers of the tests of each unit; units and tests stay in their order."""
    found: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        found.setdefault(unit(item.nodeid), []).append(number)
    return list(found.values())


def unit(nodeid: str) -> str:
    """Return the name of the unit that a test belongs to."""
    path = nodeid.partition("::")[0]
    if FARM in path:
        return nodeid
    for name, parts in (BROWSERS | SHARED).items():
        if any(part in path for part in parts):
            return name
    return path


def needs_browser(path: str) -> bool:
    """Return whether the tests of a file need a browser."""
    return any(part in path for parts in BROWSERS.values() for part in parts)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without garbage collection, and keep the collected tests out of later collections.

    Let pytest cache rewritten tests even if Python must not write bytecode: rewriting takes half of
    the time that collection takes. What is frozen is also not copied in the workers.
    """
    unwritten = sys.dont_write_bytecode
    sys.dont_write_bytecode = False
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        sys.dont_write_bytecode = unwritten


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the longest units: the soaks of the endurance suite, the browsers, then the cells,
    then files that wait; quick files fill the gaps at the end."""
    lost = {
        item.path.name
        for item in items
        if "chromium" in item.fixturenames and not needs_browser(item.nodeid)
    }
    if lost:
        raise pytest.UsageError(
            f"tests/lanes.py does not know that there is a browser in {', '.join(sorted(lost))}"
        )
    slow = {
        item.path
        for item in items
        if item.get_closest_marker("slow") or item.get_closest_marker("interop")
    }
    costs: Counter[Path] = Counter()
    for item in items:
        costs[item.path] += _seconds(item)
    rank = {"browsers": 0, "more browsers": 1, "cells": 2}
    items.sort(
        key=lambda item: (
            costs[item.path] < SOAK,
            rank.get(unit(item.nodeid), len(rank)),
            item.path not in slow,
        )
    )


def _seconds(item: pytest.Item) -> int:
    """What a test of the endurance suite says that it costs; 0 for any other."""
    mark = item.get_closest_marker("endurance")
    return 0 if mark is None else int(mark.kwargs["seconds"])
