"""The client's response cache, without a clock: which answers may be kept, for whom and for how
long (2026-07-28, "Caching").
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from .. import types as t
from ..caches import BoundedCache
from ..exchange import RawResult

CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
_OUTDATED_BY = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}


class CachedResponse(Struct, frozen=True):
    """One answer; fresh while the clock is below `until` (seconds)."""

    result: Any
    until: float


Key = tuple[str, str | None, str, str]
# Whom an answer is for: everybody, and callers without a principal, who share one context.
_EVERYBODY = ""
_NOBODY = "\0"


class ResponseCache:
    """Answers by method, what was asked of it, revision and principal; the least recently used go
    first beyond `most`.
    """

    def __init__(self, most: int = 1000) -> None:
        # notices so far: an answer asked for before one of them is not to be kept after it
        self.changes = 0
        self._entries: BoundedCache[Key, CachedResponse] = BoundedCache(most)

    def find(
        self, method: str, params: Any, revision: str, principal: str, now: float
    ) -> Any | None:
        """The fresh answer to a request, or None. A private answer is only found by the principal
        that got it (`CAC-03`).
        """
        for who in (principal or _NOBODY, _EVERYBODY):
            key = _key(method, params, revision, who)
            entry = self._entries.get(key) if key else None
            if entry is not None and key is not None:
                if now < entry.until:
                    return entry.result
                self._entries.pop(key)
        return None

    def keep(
        self, method: str, params: Any, revision: str, principal: str, result: Any, now: float
    ) -> None:
        """Note an answer, where its hints allow that; answers to retries with input are never kept
        (`CAC-11`).
        """
        hints = result.read if isinstance(result, RawResult) else result
        if (
            not isinstance(hints, t.CacheableResult)
            or not hints.ttl_ms
            or hints.ttl_ms < 0
            or hints.result_type not in (None, "complete")
        ):
            return
        key = _key(
            method,
            params,
            revision,
            _EVERYBODY if hints.cache_scope == "public" else principal or _NOBODY,
        )
        if key is None:
            return
        self._entries.put(key, CachedResponse(result, now + hints.ttl_ms / 1000))

    def invalidate(self, method: str, params: Any = None) -> None:
        """A change notice: what it is about is stale at once (`CAC-09`), also where it is still on
        its way (see `changes`).
        """
        if method == "notifications/resources/updated":
            uri = str(getattr(params, "uri", None))
            self._entries.remove_if(
                lambda key: (
                    key[0] == "resources/read" and f"{key[1]}/".startswith(f"{uri.rstrip('/')}/")
                )
            )
        elif method in _OUTDATED_BY:
            stale = _OUTDATED_BY[method]
            self._entries.remove_if(lambda key: key[0] in stale)
        else:
            return
        self.changes += 1

    def forget(self, method: str) -> bool:
        """Drop the answers to a method, so that it is asked for anew; whether there were any."""
        return self._entries.remove_if(lambda key: key[0] == method)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()


def _key(method: str, params: Any, revision: str, principal: str) -> Key | None:
    """What makes two requests the same (`CAC-02`); None for a request whose answer may not be
    kept.
    """
    if (
        method not in CACHEABLE
        or getattr(params, "request_state", None) is not None
        or getattr(params, "input_responses", None) is not None
    ):
        return None
    asked = (
        getattr(params, "uri", None)
        if method == "resources/read"
        else getattr(params, "cursor", None)
    )
    return method, asked, revision, principal  # an empty cursor is not the first page (`PAG-03`)
