"""Token buckets: the arithmetic of a rate limit. A bucket is one number, the time at which it is
full again.
"""

from __future__ import annotations

# The wall clock is exact to about 0.2 microseconds: a smaller wait counts as none.
GRAIN = 1e-5


def acquire(full: float | None, *, rate: float, burst: float, now: float) -> tuple[float, float]:
    """Take a token from a bucket.

    A token takes `1 / rate` seconds to come back, so a bucket that lacks n tokens is full in `n /
    rate` seconds.

    Args:
        full: When the bucket is full again, in seconds; None for a full bucket.
        rate: Tokens that come back in a second.
        burst: Tokens of a full bucket.
        now: The time in seconds.

    Returns:
        When the bucket is full again, and the seconds to wait for a token (0.0: it was taken).
    """
    before = now if full is None or full < now else full
    after = before + 1.0 / rate
    wait = after - now - burst / rate
    return (after, 0.0) if wait <= GRAIN else (before, wait)


class TokenBucket:
    """A rate limit for one holder, kept in memory.

    Args:
        rate: Tokens that come back in a second.
        burst: Tokens of a full bucket.
    """

    def __init__(self, *, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._full: float | None = None

    def acquire(self, now: float) -> float:
        """Take a token; the seconds to wait for one (0.0: it was taken)."""
        self._full, wait = acquire(self._full, rate=self._rate, burst=self._burst, now=now)
        return wait

    def left(self, now: float) -> int:
        """Return the number of tokens that can be taken at once."""
        missing = 0.0 if self._full is None else max(0.0, self._full - now) * self._rate
        return int(self._burst - missing + GRAIN)
