"""The arithmetic of token buckets: a bucket is one number,
the time at which it will be full again."""

from __future__ import annotations

# Times of the wall clock have some 0.2 microseconds of grain: less than this is no lack of a token.
GRAIN = 1e-5


def acquire(full: float | None, *, rate: float, burst: float, now: float) -> tuple[float, float]:
    """Take a token from the bucket that is full again at `full`: when it is full then, and the
    seconds to wait (0.0: it was had).

    A token takes `1 / rate` seconds to come back, so a bucket that lacks n tokens is full in `n /
    rate` seconds.
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
