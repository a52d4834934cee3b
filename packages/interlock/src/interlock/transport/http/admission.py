"""Admission of requests to the endpoint: Host and Origin checks (DNS rebinding), shutdown, and the
rate limit.
"""

from __future__ import annotations

import time

from ... import types as t
from ...caches import BoundedCache
from ...protocol.http import EndpointRules, HttpRefusal, error, read_head
from ...quotas import RATE_LIMITED
from ...rates import TokenBucket
from ...store.interface import Store
from .error_responses import CLOSE, ErrorResponder
from .limits import Limits, Rate
from .requests import AsgiRequest, EndpointRequest, Receive, Scope, Send
from .running_calls import RunningCalls, quota_holder
from .shutdown import Shutdown

_MOST_BUCKETS = 10_000  # callers whose requests are counted while the server is busy


class Admission:
    """Refuses requests because of their origin, during shutdown, and over the rate limit."""

    __slots__ = (
        "_buckets",
        "_busy_from",
        "_busy_rate",
        "_errors",
        "_rate",
        "_rules",
        "_shutdown",
        "_slots",
        "_store",
    )

    def __init__(
        self,
        rules: EndpointRules,
        limits: Limits,
        calls: RunningCalls,
        store: Store,
        shutdown: Shutdown,
        errors: ErrorResponder,
    ) -> None:
        self._rules = rules
        self._rate = limits.rate
        self._busy_rate = limits.busy_rate
        self._busy_from = calls.busy_from
        self._slots = calls.slots
        self._buckets: BoundedCache[str, TokenBucket] = BoundedCache(_MOST_BUCKETS)
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
        """Return a refusal because of the source of a request, because of the shutdown, or over the
        rate of a caller while the server is busy.
        """
        if refusal := self.check_source(request):
            return refusal
        if self._shutdown.is_draining:
            words = "The server is shutting down."
            return error(503, t.INTERNAL_ERROR, words, {"reason": "shutdown"}, headers=CLOSE)
        if self._slots.used >= self._busy_from and self._busy_rate is not None:
            return self._check_busy_rate(self._busy_rate, request)
        return None

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
        wait = await self._store.rates.acquire(
            quota_holder(request), rate=rate.per_second, burst=rate.burst, now=time.time()
        )
        return _too_often(wait) if wait > 0 else None

    def _check_busy_rate(self, rate: Rate, request: EndpointRequest) -> HttpRefusal | None:
        """Return a refusal if a caller exceeds its rate while the server is busy."""
        holder = quota_holder(request)
        bucket = self._buckets.get(holder)
        if bucket is None:
            bucket = TokenBucket(rate=rate.per_second, burst=rate.burst)
            self._buckets.put(holder, bucket)
        wait = bucket.acquire(time.monotonic())
        return _too_often(wait) if wait > 0 else None


def _too_often(wait: float) -> HttpRefusal:
    """Return the refusal of a request that may be repeated after `wait` seconds."""
    seconds = int(wait) + 1
    words = f"Too many requests: try again in {seconds} s"
    data = {"reason": "rate", "retryAfter": seconds}
    headers = [(b"retry-after", b"%d" % seconds)]
    return error(429, RATE_LIMITED, words, data, headers=headers)
