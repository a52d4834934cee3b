"""Subscriptions of the stateless era (`subscriptions/listen`) over HTTP: each is one event
stream.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ... import types as t
from ...exchange import MUTE, AnyResult, Exchange
from ...protocol.events import RequestReceived
from ...protocol.http import error, status_of
from ...protocol.server import (
    SubscriptionNotices,
    error_frame,
    result_frame,
    subscription_result,
)
from ...protocol.streams import PostResponse
from ..serve import carry_out
from .authorization import ExpiryTimer
from .error_responses import busy
from .request_info import HttpTransport
from .requests import EndpointRequest, gone
from .responses import ResponseWriter
from .running_calls import held_bytes, quota_holder
from .services import Services


class Subscriptions:
    """The subscription streams of one endpoint."""

    __slots__ = ("notices", "services", "streams")

    def __init__(self, services: Services) -> None:
        self.services = services
        self.notices = SubscriptionNotices(services.identity)
        self.streams: set[SubscriptionStream] = set()

    async def serve(self, event: RequestReceived, request: EndpointRequest) -> None:
        """Serve one subscription: its handler runs in a separate task. Its parameters count in the
        memory budget until its end.

        The stream is left to the web server if that can hold a stream without a task.
        """
        services = self.services
        id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request has a peer's id
        if not request.head.takes_events:
            words = "Not acceptable: a subscription is answered with text/event-stream"
            await services.errors.send(request, error(406, t.INVALID_REQUEST, words, id=id))
            return
        holder = quota_holder(request)
        if not services.ticker.streams.has_room(holder):
            await services.errors.send(request, busy(id, "streams", 5))
            return
        held = held_bytes(len(request.body))
        if held and not services.calls.memory.acquire(holder, held):
            await services.errors.send(request, busy(id, "large requests"))
            return
        request.body = b""  # the stream keeps the request for long
        stream = SubscriptionStream(self, event, request, holder, held)
        reply = stream.reply
        first = reply.first = asyncio.get_running_loop().create_future()
        stream.start(HttpTransport(request))
        is_held = False
        try:
            await first
            reply.first = None
            if reply.answer.ended:
                status = status_of(stream.error)
                await reply.finish(*services.errors.status(request, stream.denied, 1, status))
            else:
                is_held = await reply.rest(stream)
                if not is_held:
                    await gone(request.receive)
        finally:
            if not is_held:
                reply.lose()
                stream.close()

    def end_all(self) -> None:
        """End every subscription with its result. The clients reconnect, to another worker if there
        is one.
        """
        for stream in list(self.streams):
            stream.finish()


class SubscriptionStream:
    """One subscription: the outcome of its request, and the notifications before it.

    There can be tens of thousands of them, all silent, so each is a few small objects.

    Attributes:
        event: The request.
        reply: The response.
        error: The code of the error in the response; 0 if there is none.
        denied: The scopes that the subscription lacks, if it was refused because of them.
    """

    __slots__ = (
        "_expiry",
        "_held",
        "_holder",
        "_subscriptions",
        "_task",
        "denied",
        "error",
        "event",
        "reply",
    )

    def __init__(
        self,
        subscriptions: Subscriptions,
        event: RequestReceived,
        request: EndpointRequest,
        holder: str,
        held: int,
    ) -> None:
        """`holder` is whom the stream counts for, and `held` the memory that it counts, in
        bytes.
        """
        id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request: its ID
        self._subscriptions = subscriptions
        self._holder = holder
        self._held = held
        self._task: asyncio.Task[None] | None = None
        self._expiry: ExpiryTimer | None = None
        self.event = event
        self.error = 0
        self.denied: tuple[tuple[str, ...], ...] = ()
        self.reply = ResponseWriter(PostResponse(ids=(id,)), request, None, cancels=False)

    def start(self, transport: HttpTransport) -> None:
        """Start the handler of the request."""
        event = self.event
        services = self._subscriptions.services
        exchange = Exchange(
            event.method,
            event.params,
            event.caller,
            self.notify,
            MUTE,
            event.progress_token,
            self.reply.drain,
            transport,
            event,
        )
        work = carry_out(services.handler, event, exchange, self)
        # One name for all: asyncio would make one for each.
        self._task = asyncio.get_running_loop().create_task(work, name="subscription")
        self._subscriptions.streams.add(self)
        services.ticker.add(self.reply, listener=self._holder)
        principal = event.caller.principal
        if principal is not None and principal.expires is not None:
            self._expiry = ExpiryTimer(principal, self.finish)

    def finish(self) -> None:
        """End the subscription with its result, in place of its handler."""
        self.respond(self.event, t.SubscriptionsListenResult())
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        """Clean up after the stream has ended."""
        services = self._subscriptions.services
        if self._held:
            services.calls.memory.release(self._holder, self._held)
            self._held = 0
        if self._expiry is not None:
            self._expiry.over()
        self._subscriptions.streams.discard(self)
        services.ticker.discard(self.reply)
        if self._task is not None:
            self._task.cancel()

    # -- what the handler sends --------------------------------------------------------------------

    def notify(self, method: str, params: Any) -> None:
        """Send a notification of the subscription."""
        answer = self.reply.answer
        if answer.ended:
            return
        event = self.event
        id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request: its ID
        piece = self._subscriptions.notices.event(id, event.caller, method, params)
        if piece:
            if not answer.begun:
                answer.start_stream()
            self.reply.push(piece)

    def respond(self, event: RequestReceived, result: AnyResult) -> None:
        """Answer the request."""
        if not self.reply.answer.ended:
            id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request: its ID
            identity = self._subscriptions.services.identity
            named = subscription_result(id, result)
            self.reply.send_last(result_frame(identity, id, named, event.caller.revision))

    def fail(self, event: RequestReceived, error: t.McpError) -> None:
        """Answer the request with an error."""
        if self.reply.answer.ended:
            return
        if isinstance(error, t.Forbidden):
            self.denied = (error.scopes,)
        id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request: its ID
        self.error, frame = error_frame(
            id, error.code, error.message, error.data, event.caller.revision
        )
        self.reply.send_last(frame)

    def end(self, event: RequestReceived) -> None:
        """End the stream, if the request was cancelled and so has no answer."""
        self.reply.close()
