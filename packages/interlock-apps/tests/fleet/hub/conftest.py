"""A test of the hub that hangs has failed: whatever it waits for, it does not wait for ever."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

SECONDS = 30  # nothing here takes a tenth of it, but on a machine that stalls


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """End a test that hangs, in whatever call it does so."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"the test did not end within {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
