"""Middleware that servers often put around every exchange."""

from __future__ import annotations

from ..exchange import AnyResult, Exchange, Handler, Middleware
from .calls.concurrency_limit import Gate


def limited(most: int, waiting: int, what: str) -> Middleware:
    """Let `most` exchanges run at once and `waiting` more queue; the others are refused at once.

    Subscriptions do not count.
    """
    gate = Gate(most, waiting, what)

    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method == "subscriptions/listen":
                return await handler(x)
            async with gate:
                return await handler(x)

        return handle

    return layer
