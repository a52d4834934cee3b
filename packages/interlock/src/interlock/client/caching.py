"""Response cache middleware: keeps responses as long as the server allows (2026-07-28,
"Caching").
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from ..exchange import AnyResult, Exchange, Handler, Middleware, RawResult
from ..protocol.pass_through import passes
from ..protocol.response_cache import CACHEABLE, ResponseCache


def _read(result: AnyResult) -> AnyResult:
    """Return a decoded result, which has readable caching hints."""
    return replace(result, read=result.decode()) if isinstance(result, RawResult) else result


def caching(cache: ResponseCache, now: Callable[[], float] = time.monotonic) -> Middleware:
    """Return middleware that answers from the cache while a response is fresh, and stores new
    responses. Change notifications go to `cache.invalidate`.
    """

    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method not in CACHEABLE:
                return await handler(x)
            principal = x.caller.principal.key if x.caller.principal is not None else ""
            kept: AnyResult | None = cache.find(
                x.method, x.params, x.caller.revision, principal, now()
            )
            if isinstance(kept, RawResult) and not passes(x):
                return kept.decode()
            if isinstance(kept, RawResult) or (kept is not None and not passes(x)):
                return kept  # forwarding needs the bytes: decoding drops unknown members
            changes = cache.changes
            result = await handler(x)
            if cache.changes == changes:
                cache.keep(x.method, x.params, x.caller.revision, principal, _read(result), now())
            return result

        return handle

    return layer
