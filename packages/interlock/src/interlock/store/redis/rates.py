"""Token buckets in Redis: the arithmetic of `rates.py` as one atomic script."""

from __future__ import annotations

from ... import rates
from .connection import Link

# KEYS: bucket. ARGV: now, seconds in which a token returns, seconds in which an empty bucket fills,
# the wait that counts as zero.
_TAKE = b"""
local now = tonumber(ARGV[1])
local after = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + tonumber(ARGV[2])
local wait = after - now - tonumber(ARGV[3])
if wait > tonumber(ARGV[4]) then return string.format('%.17g', wait) end
local milliseconds = string.format('%.0f', (after - now) * 1000 + 1000)
redis.call('SET', KEYS[1], string.format('%.17g', after), 'PX', milliseconds)
return '0'
"""


class RedisRates:
    """A RateStore in Redis."""

    def __init__(self, link: Link, prefix: str) -> None:
        self._link = link
        self._prefix = f"{prefix}rate:"

    async def acquire(self, key: str, *, rate: float, burst: float, now: float) -> float:
        """Take one token from a bucket. Returns 0.0 if there was one, otherwise the seconds until
        there is one.
        """
        values = (repr(now), repr(1.0 / rate), repr(burst / rate), repr(rates.GRAIN))
        return float(await self._link.ask("EVAL", _TAKE, 1, self._prefix + key, *values))
