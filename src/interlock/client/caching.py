"""Answers that the server allows to be kept are not asked for twice (2026-07-28, "Caching")."""

from __future__ import annotations

import time
from collections.abc import Callable

from .. import types as t
from ..exchange import AnyResult, Exchange, Handler, Middleware
from ..protocol.freshness import CACHEABLE, Book


def caching(book: Book, now: Callable[[], float] = time.monotonic) -> Middleware:
    """Answer from the book what is fresh in it, and note what comes; change notices go to `book.outdate`."""

    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method not in CACHEABLE:
                return await handler(x)
            principal = x.caller.principal.key if x.caller.principal is not None else ""
            kept: AnyResult | None = book.find(
                x.method, x.params, x.caller.revision, principal, now()
            )
            if kept is not None:
                return kept
            changes = book.changes
            result = await handler(x)
            if isinstance(result, t.Result) and book.changes == changes:
                book.keep(x.method, x.params, x.caller.revision, principal, result, now())
            return result

        return handle

    return layer
