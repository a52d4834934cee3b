"""A fake clock that only a test moves."""

from __future__ import annotations


class Clock:
    """A callable that returns the time in seconds, for `connect(..., clock=clock)` and every other
    `clock` parameter.
    """

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the current time."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Advance the time. Raises ValueError for a negative number."""
        if seconds < 0:
            raise ValueError("a clock does not run backwards")
        self.now += seconds
