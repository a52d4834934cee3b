"""Hung tests: the traceback that faulthandler writes of a test that hangs contains its name.

The stack of an asynchronous test contains the event loop, but not the test. So each test runs below
a frame with its name.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from _pytest.runner import runtestprotocol  # used by plugins that run tests themselves


@pytest.hookimpl(tryfirst=True)  # before pytest itself, which would run it without the frame
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test as pytest does, below a frame with its name."""

    def frame(run: Callable[[], object]) -> None:
        run()

    frame.__code__ = frame.__code__.replace(co_name=item.nodeid)
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    frame(lambda: runtestprotocol(item, nextitem=nextitem))
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
