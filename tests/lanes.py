"""How the tests are dealt out to several workers: a file at a time, slow ones first, and all that need a browser to one of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

BROWSERS = ("packages/interlock-apps/tests/demo/test_holiday_in_a_browser.py", "packages/interlock-apps/tests/web/test_page_", "packages/interlock-issuer/tests/issuer/test_browser.py",
            "packages/interlock/tests/auth/test_login_in_a_browser.py", "tests/interop/test_apps_by_peers.py")  # fmt: skip
"""How the names of the files begin whose tests need a browser."""

FARM = "tests/interop/test_farm.py"
"""The file whose tests have nothing in common: each may go to another worker."""


class Lanes(LoadFileScheduling):
    """A file at a time, but the farm test by test, and the files with a browser as if they were one:
    two browsers at once make each other late."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(FARM):
            return nodeid
        return "browsers" if nodeid.startswith(BROWSERS) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes | None:
    """With `--dist loadfile`: the lanes."""
    return Lanes(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the collector of garbage, and keep what was collected out of its way: it would look at all of it, again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the browsers, which take one worker for long, then with what waits much; quick files fill the gaps at the end."""
    lost = {
        item.path.name
        for item in items
        if "chromium" in item.fixturenames and not item.nodeid.startswith(BROWSERS)
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
    items.sort(key=lambda item: (not item.nodeid.startswith(BROWSERS), item.path not in slow))
