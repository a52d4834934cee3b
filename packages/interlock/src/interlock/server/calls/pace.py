"""Adaptive placement of a plain function: in the event loop while it is quick, else in threads.

A function runs in place after a hundred runs in threads that took at most a millisecond each. The
first run in place that takes longer than five milliseconds is the last one: from then on the
function runs in threads for good. So a function holds other calls up at most once in each process.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

RUNS_TO_PROVE = 100
QUICK = 0.001  # seconds, of a run in a thread
SLOW = 0.005  # seconds, of a run in place


class Pace:
    """The durations of one function's runs, and what follows from them.

    Attributes:
        is_quick: Whether the next run is in place.
    """

    __slots__ = ("_quick_runs", "_was_slow", "is_quick")

    def __init__(self) -> None:
        self.is_quick = False
        self._quick_runs = 0
        self._was_slow = False

    def run(self, work: Callable[[], Any], *, in_place: bool) -> Any:
        """Run the function, in place or in a thread, and measure it."""
        began = perf_counter()
        try:
            return work()
        finally:
            self.note(perf_counter() - began, in_place=in_place)

    def note(self, seconds: float, *, in_place: bool) -> None:
        """Take a duration into account. Threads may call it at the same time."""
        if self._was_slow:
            return
        if in_place:
            if seconds > SLOW:
                self._was_slow = True
                self.is_quick = False
        elif seconds > QUICK:
            self._quick_runs = 0
        else:
            self._quick_runs += 1
            if self._quick_runs == RUNS_TO_PROVE:
                self.is_quick = True
