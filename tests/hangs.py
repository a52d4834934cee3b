"""Hung tests: the traceback that faulthandler writes of a test that hangs contains its name.

The stack of an asynchronous test consists of the event loop, and not of the test. That is why each
test runs below a frame that has the name of the test.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from _pytest.runner import runtestprotocol  # what plugins that run tests themselves use


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
