"""Token buckets in memory."""

from __future__ import annotations

from ... import rates

# buckets that may be full, and so as good as none, before it is worth looking for them
_SLACK = 1024


class MemoryRates:
    """A RateStore in memory."""

    def __init__(self) -> None:
        self._full: dict[str, float] = {}
        self._tidy_at = _SLACK

    async def acquire(self, key: str, *, rate: float, burst: float, now: float) -> float:
        """Take one token from a bucket; 0.0 where it was had,
        else the seconds until one is there."""
        full, wait = rates.acquire(self._full.get(key), rate=rate, burst=burst, now=now)
        self._full[key] = full
        if len(self._full) > self._tidy_at:
            self._full = {key: full for key, full in self._full.items() if full >= now}
            self._tidy_at = 2 * len(self._full) + _SLACK
        return wait
