"""Token buckets: the arithmetic of a rate limit. A bucket is one number, the time at which it is
full again.
"""

from __future__ import annotations

# The wall clock has a resolution of about 0.2 microseconds: a shorter wait counts as zero.
GRAIN = 1e-5


def acquire(full: float | None, *, rate: float, burst: float, now: float) -> tuple[float, float]:
    """Take a token from a bucket.

    A token returns after `1 / rate` seconds, so a bucket that lacks n tokens is full in `n / rate`
    seconds.

    Args:
        full: The time at which the bucket is full again, in seconds; None for a full bucket.
        rate: The number of tokens that return in a second.
        burst: The number of tokens in a full bucket.
        now: The time in seconds.

    Returns:
        The time at which the bucket is full again, and the seconds to wait for a token. With 0.0
        seconds a token was taken.
    """
    before = now if full is None or full < now else full
    after = before + 1.0 / rate
    wait = after - now - burst / rate
    return (after, 0.0) if wait <= GRAIN else (before, wait)


class TokenBucket:
    """A rate limit for one holder, in memory.

    Args:
        rate: The number of tokens that return in a second.
        burst: The number of tokens in a full bucket.
    """

    def __init__(self, *, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._full: float | None = None

    def acquire(self, now: float) -> float:
        """Take a token. Returns the seconds to wait for one (0.0: a token was taken)."""
        self._full, wait = acquire(self._full, rate=self._rate, burst=self._burst, now=now)
        return wait

    def left(self, now: float) -> int:
        """Return the number of tokens that can be taken at once."""
        missing = 0.0 if self._full is None else max(0.0, self._full - now) * self._rate
        return int(self._burst - missing + GRAIN)
