"""A cache of token verdicts: repeated calls verify once, concurrent calls ask once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from hashlib import sha256
from typing import Any

from ...caches import BoundedCache
from ..single_flight import SingleFlightGroup
from .interface import Verified

Ask = Callable[[str, str, float], Coroutine[Any, Any, Verified]]
_MOST_SECONDS = 60.0  # however long a verifier likes: a token that was withdrawn shall not live on


class Verdicts:
    """What was said of tokens, by a digest of each.

    At most `most` verdicts, the least recently used go first.

    `ask` says what a token is worth: it takes the token, the resource and the time. Only tokens
    that are good are kept, until they end, for as long as the verifier says, and a minute at most.
    """

    def __init__(self, ask: Ask, *, most: int = 4096) -> None:
        self._ask = ask
        self._kept: BoundedCache[bytes, tuple[float, float, Verified]] = BoundedCache(most)
        self._asking: SingleFlightGroup[bytes, Verified] = SingleFlightGroup()

    def known(self, key: bytes, now: float) -> Verified | None:
        """The verdict on a token, if it is known at `now`."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        since, until, verified = kept
        if not since <= now < until:  # also where the clock was set back
            self._kept.pop(key)
            return None
        return verified

    async def find_out(self, key: bytes, token: str, resource: str, now: float) -> Verified:
        """Ask the verifier, once for all who want to know at the same time.
        Raises what it raises."""
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
    """What stands for a token at a resource."""
    return sha256(f"{resource}\n{token}".encode("utf-8", "surrogatepass")).digest()
