"""The arithmetic of token buckets: a bucket is one number, the time at which it will be full again."""

from __future__ import annotations

# Times of the wall clock have some 0.2 microseconds of grain: less than this is no lack of a token.
GRAIN = 1e-5


def acquire(full: float | None, *, rate: float, burst: float, now: float) -> tuple[float, float]:
    """Take a token from the bucket that is full again at `full`: when it is full then, and the seconds to wait (0.0: it was had).

    A token takes `1 / rate` seconds to come back, so a bucket that lacks n tokens is full in `n / rate` seconds.
    """
    before = now if full is None or full < now else full
    after = before + 1.0 / rate
    wait = after - now - burst / rate
    return (after, 0.0) if wait <= GRAIN else (before, wait)
