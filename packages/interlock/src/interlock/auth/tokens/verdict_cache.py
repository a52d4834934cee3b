"""A cache of token verdicts: repeated calls verify once, concurrent calls ask once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from hashlib import sha256
from typing import Any

from ...caches import BoundedCache
from ..single_flight import SingleFlightGroup
from .interface import Verified

Ask = Callable[[str, str, float], Coroutine[Any, Any, Verified]]
# the upper bound for all verifiers: a revoked token must not stay valid for longer
_MOST_SECONDS = 60.0


class Verdicts:
    """A cache of verified tokens, by a digest of each token.

    Only valid tokens are cached: until they expire, for as long as the verifier allows, and for a
    minute at most.

    Args:
        ask: Verifies a token; gets the token, the resource and the time.
        most: The largest number of entries. The least recently used ones are dropped first.
    """

    def __init__(self, ask: Ask, *, most: int = 4096) -> None:
        self._ask = ask
        self._kept: BoundedCache[bytes, tuple[float, float, Verified]] = BoundedCache(most)
        self._asking: SingleFlightGroup[bytes, Verified] = SingleFlightGroup()

    def known(self, key: bytes, now: float) -> Verified | None:
        """The cached result for a token, if it is still valid at `now`."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        since, until, verified = kept
        if not since <= now < until:  # true too if the clock was set back
            self._kept.pop(key)
            return None
        return verified

    async def find_out(self, key: bytes, token: str, resource: str, now: float) -> Verified:
        """Ask the verifier, once for all concurrent callers. Raises what the verifier raises."""
        return await self._asking.join(key, lambda: self._asked(key, token, resource, now))

    async def _asked(self, key: bytes, token: str, resource: str, now: float) -> Verified:
        verified = await self._ask(token, resource, now)
        until = now + min(verified.seconds, _MOST_SECONDS)
        if verified.principal.expires is not None:
            until = min(until, verified.principal.expires)
        if until > now:
            self._kept.put(key, (now, until, verified))
        return verified


def key_of(token: str, resource: str) -> bytes:
    """The cache key of a token at a resource."""
    return sha256(f"{resource}\n{token}".encode("utf-8", "surrogatepass")).digest()
