"""Exponential backoff with jitter between restarts of a server."""

from __future__ import annotations

from msgspec import Struct


class Backoff(Struct, frozen=True, kw_only=True):
    """A delay that grows with each failure, with jitter so that many servers do not coincide.

    Attributes:
        first: Seconds after the first failure.
        most: The longest delay in seconds, before the jitter.
        factor: How much longer each delay is than the one before.
        jitter: The share of a delay by which it may be shorter or longer, from 0 to below 1.
        steady: Seconds; a server that was up for longer counts as started, and its failures are
            counted from 0 again.
    """

    first: float = 0.5
    most: float = 60.0
    factor: float = 2.0
    jitter: float = 0.25
    steady: float = 60.0

    def __post_init__(self) -> None:
        if not (0 < self.first <= self.most and self.factor >= 1 and 0 <= self.jitter < 1):
            raise ValueError("a backoff has 0 < first <= most, factor >= 1 and 0 <= jitter < 1")

    def seconds(self, failed: int, chance: float = 0.5) -> float:
        """Seconds to wait after `failed` failures in a row.

        `chance`, from 0 to 1, is the place in the range of the jitter.
        """
        if failed < 1:
            return 0.0
        try:
            wait = min(self.first * self.factor ** (failed - 1), self.most)
        except OverflowError:
            wait = self.most
        return wait * (1 + self.jitter * (2 * chance - 1))
