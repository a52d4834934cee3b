"""Token buckets in memory."""

from __future__ import annotations

from ... import rates

# the number of buckets above which full ones, which need not be kept, are searched and removed
_SLACK = 1024


class MemoryRates:
    """A RateStore in memory."""

    def __init__(self) -> None:
        self._full: dict[str, float] = {}
        self._tidy_at = _SLACK

    async def acquire(self, key: str, *, rate: float, burst: float, now: float) -> float:
        """Take one token from a bucket. Returns 0.0 if there was one, otherwise the seconds until
        there is one.
        """
        full, wait = rates.acquire(self._full.get(key), rate=rate, burst=burst, now=now)
        self._full[key] = full
        if len(self._full) > self._tidy_at:
            self._full = {key: full for key, full in self._full.items() if full >= now}
            self._tidy_at = 2 * len(self._full) + _SLACK
        return wait
