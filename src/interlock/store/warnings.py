"""Warnings that may come by the thousand and are told once in a while."""

from __future__ import annotations

import logging
import time

_PAUSE = 10.0  # seconds between two of a kind


class Warnings:
    """One kind of warning; `words` has a place for what is told with it, and a last one for how often it was due since it was told last."""

    def __init__(self, log: logging.Logger, words: str) -> None:
        self._log = log
        self._words = words
        self._due = 0
        self._next = 0.0

    def count(self, *told: str) -> None:
        """It is due once more; from any thread."""
        self._due += 1
        now = time.monotonic()
        if now >= self._next:
            due, self._due, self._next = self._due, 0, now + _PAUSE
            self._log.warning(self._words, *told, due)
