"""Middleware that servers often use around every exchange."""

from __future__ import annotations

from ..exchange import AnyResult, Exchange, Handler, Middleware
from ..quotas import holder_of_exchange
from .calls.concurrency_limit import Gate


def limited(most: int, waiting: int, what: str) -> Middleware:
    """Run at most `most` exchanges at once and queue `waiting` more. Further exchanges fail at
    once.

    Subscriptions do not count.
    """
    gate = Gate(most, waiting, what)

    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method == "subscriptions/listen":
                return await handler(x)
            async with gate.slot(holder_of_exchange(x)):
                return await handler(x)

        return handle

    return layer
