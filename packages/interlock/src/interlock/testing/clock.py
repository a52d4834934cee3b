"""A fake clock that stands still until a test moves it."""

from __future__ import annotations


class Clock:
    """Call it for the time in seconds; for `connect(..., clock=clock)` and wherever else a clock is
    a parameter.
    """

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time now."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass. Raises ValueError for less than none: a clock does not run backwards."""
        if seconds < 0:
            raise ValueError("a clock does not run backwards")
        self.now += seconds
