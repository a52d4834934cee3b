"""Request bodies: each is read within limits of size and time, and all of them together within a
memory limit.
"""

from __future__ import annotations

import asyncio

from ... import types as t
from ...protocol.http import HttpRefusal, error
from ...quotas import Quota
from .access_log import AccessLog
from .error_responses import CLOSE, ErrorResponder, busy
from .limits import Limits
from .requests import EndpointRequest
from .running_calls import quota_holder
from .ticker import Ticker

_STILL = 2.0  # seconds without a byte after which the rest of a refused body is no longer read
_LINGER = 30.0  # the maximum number of seconds for which the rest is read


class BodyReader:
    """Reads the bodies of one endpoint."""

    def __init__(
        self, limits: Limits, ticker: Ticker, errors: ErrorResponder, log: AccessLog
    ) -> None:
        self._limits = limits
        self._ticker = ticker
        self._errors = errors
        self._log = log
        self.arriving = Quota(limits.bodies, limits.share)  # bytes of incomplete bodies

    def take(self, request: EndpointRequest) -> bytes | None:
        """Return the body of a request, if it has arrived and is not too large."""
        body = request.take_body()
        return body if body is not None and len(body) <= self._limits.body else None

    async def read(self, request: EndpointRequest) -> bytes | None:
        """Read the body of a request.

        Returns:
            The body; None if it was refused as too large or too slow, or if the client has
            disconnected.
        """
        length = request.head.headers.get(b"content-length")
        if length is not None and (
            not length.isdigit() or len(length) > 18 or int(length) > self._limits.body
        ):
            await self._turn_away(self._too_large(), request)
            return None
        receive = request.receive
        me = asyncio.current_task()
        assert me is not None
        deadline = self._ticker.set_deadline(me, self._limits.body_seconds)
        body: bytes | HttpRefusal | None
        try:
            message = await receive()
            if message.get("more_body", False):
                body = await self._read_rest(message.get("body", b""), request)
            elif message["type"] == "http.disconnect":
                return None
            else:
                whole: bytes = message.get("body", b"")
                body = whole if len(whole) <= self._limits.body else self._too_large()
        except asyncio.CancelledError:
            if not self._ticker.has_passed(deadline):
                raise
            me.uncancel()
            seconds = f"{self._limits.body_seconds:g}"
            words = f"Request timeout: the body did not arrive within {seconds} seconds"
            await self._errors.send(request, error(408, t.INVALID_REQUEST, words, headers=CLOSE))
            return None
        finally:
            self._ticker.clear_deadline(deadline)
        if isinstance(body, HttpRefusal):
            await self._turn_away(body, request)
            return None
        return body

    async def _read_rest(
        self, first: bytes, request: EndpointRequest
    ) -> bytes | HttpRefusal | None:
        """Read a body that arrives in several pieces, of which `first` is the first one."""
        receive = request.receive
        holder = quota_holder(request)
        pieces = [first]
        size = len(first)
        counted = 0
        try:
            while True:
                if size > self._limits.body:
                    return self._too_large()
                if not self.arriving.acquire(holder, size - counted):
                    return busy(None, "large requests", headers=CLOSE)
                counted = size
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                piece = message.get("body", b"")
                size += len(piece)
                pieces.append(piece)
                if not message.get("more_body", False):
                    return b"".join(pieces) if size <= self._limits.body else self._too_large()
        finally:
            self.arriving.release(holder, counted)

    async def _turn_away(self, refusal: HttpRefusal, request: EndpointRequest) -> None:
        """Refuse a body that is still arriving.

        A reset would discard the response before the client reads it, so the rest of the body is
        read for a moment.
        """
        self._log.refused(refusal)
        receive = request.receive
        send = request.send
        head = [(b"content-length", b"%d" % len(refusal.body)), *refusal.headers]
        await send({"type": "http.response.start", "status": refusal.status, "headers": head})
        await send({"type": "http.response.body", "body": refusal.body, "more_body": True})
        me = asyncio.current_task()
        assert me is not None
        last = asyncio.get_running_loop().time() + _LINGER
        more = True
        while more:
            left = last - asyncio.get_running_loop().time()
            deadline = self._ticker.set_deadline(me, min(_STILL, left))
            try:
                more = (await receive()).get("more_body", False)
            except asyncio.CancelledError:
                if not self._ticker.has_passed(deadline):
                    raise
                me.uncancel()
                more = False
            finally:
                self._ticker.clear_deadline(deadline)
        await send({"type": "http.response.body", "body": b""})

    def _too_large(self) -> HttpRefusal:
        words = f"Content too large: a body has at most {self._limits.body} bytes"
        return error(413, t.INVALID_REQUEST, words, headers=CLOSE)
