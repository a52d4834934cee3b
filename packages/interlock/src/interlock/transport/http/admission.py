"""Admission of requests to the endpoint: Host and Origin checks (DNS rebinding), shutdown, and the
rate limit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ... import types as t
from ...addresses import network_of
from ...protocol.http import EndpointRules, HttpRefusal, error, read_head
from ...store.interface import Store
from .error_responses import CLOSE, ErrorResponder
from .limits import Rate
from .requests import AsgiRequest, EndpointRequest, Receive, Scope, Send
from .shutdown import Shutdown


class Admission:
    """Refuses requests because of their origin, during shutdown, and over the rate limit."""

    __slots__ = ("_errors", "_rate", "_rules", "_shutdown", "_store")

    def __init__(
        self,
        rules: EndpointRules,
        rate: Rate | None,
        store: Store,
        shutdown: Shutdown,
        errors: ErrorResponder,
    ) -> None:
        self._rules = rules
        self._rate = rate
        self._store = store
        self._shutdown = shutdown
        self._errors = errors

    def asgi_request(self, scope: Scope, receive: Receive, send: Send) -> AsgiRequest:
        """Return a request that comes as ASGI."""
        head = read_head(self._rules, scope["method"], scope["headers"])
        return AsgiRequest(scope, receive, send, head)

    @property
    def has_rate(self) -> bool:
        """Whether requests are counted against a rate."""
        return self._rate is not None

    async def has_refused(self, request: EndpointRequest) -> bool:
        """Refuse a request if necessary. Returns whether a refusal was sent."""
        refusal = self.check(request) or await self.check_rate(request)
        if refusal is None:
            return False
        await self._errors.send(request, refusal)
        return True

    def check(self, request: EndpointRequest) -> HttpRefusal | None:
        """Return a refusal because of the source of a request, or because of the shutdown."""
        if refusal := self.check_source(request):
            return refusal
        if not self._shutdown.is_draining:
            return None
        words = "The server is shutting down."
        return error(503, t.INTERNAL_ERROR, words, {"reason": "shutdown"}, headers=CLOSE)

    def check_source(self, request: EndpointRequest) -> HttpRefusal | None:
        """Return a refusal if the Host or the Origin is not allowed (`SEC-01`, `HPS-05`)."""
        why = request.head.source
        return error(403, t.INVALID_REQUEST, f"Forbidden: {why}") if why else None

    async def check_rate(self, request: EndpointRequest) -> HttpRefusal | None:
        """Return a refusal if a principal or an address exceeds its rate.

        The source is checked before, so that pages of other sites do not use up the rate of a user.
        """
        rate = self._rate
        if rate is None:
            return None
        principal = request.principal
        if principal is not None:
            key = principal.key
        else:
            key = f"address:{_network(request.client)}"
        wait = await self._store.rates.acquire(
            key, rate=rate.per_second, burst=rate.burst, now=time.time()
        )
        if wait <= 0:
            return None
        seconds = int(wait) + 1
        words = f"Too many requests: try again in {seconds} s"
        data = {"reason": "rate", "retryAfter": seconds}
        headers = [(b"retry-after", b"%d" % seconds)]
        return error(429, t.INTERNAL_ERROR, words, data, headers=headers)


def _network(client: Sequence[Any] | None) -> str:
    """Return the network that a client's requests are counted under."""
    return network_of(str(client[0])[:100]) if client else ""  # a proxy may send anything
