"""A test of the client that hangs has failed: whatever it waits for, it does not wait for ever."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

SECONDS = 60  # nothing here takes a hundredth of it, unless the machine is busy


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """End a test that hangs, in whatever loop or call it does so."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"the test did not end within {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
