"""Subscriptions of the stateless era (`subscriptions/listen`) over HTTP: each is one event
stream.
"""

from __future__ import annotations

import asyncio

from ... import types as t
from ...protocol.events import CallId, RequestReceived
from ...protocol.http import error, status_of
from ...protocol.streams import PostResponse
from ..serve import Serving
from .authorization import ExpiryTimer
from .error_responses import busy
from .request_info import HttpTransport
from .requests import EndpointRequest, gone
from .running_calls import held_bytes, quota_holder
from .services import Services


class Subscriptions:
    """The subscription streams of one endpoint."""

    __slots__ = ("_services",)

    def __init__(self, services: Services) -> None:
        self._services = services

    async def serve(self, event: RequestReceived, request: EndpointRequest) -> None:
        """Serve one subscription: its handler runs in a separate task. Its parameters count in the
        memory budget until its end.

        The stream is left to the web server if that can hold a stream without a task.
        """
        services = self._services
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
        memory = services.calls.memory
        if held and not memory.acquire(holder, held):
            await services.errors.send(request, busy(id, "large requests"))
            return
        request.body = b""  # the stream keeps the request for long
        serving, reply = services.serve_alone(
            event, PostResponse(ids=(id,)), request, HttpTransport(request), cancels=False
        )
        loop = asyncio.get_running_loop()
        reply.first = loop.create_future()
        task = serving.running[event.id] = loop.create_task(serving.run(event))
        task.add_done_callback(lambda _: reply.close())
        services.calls.subscriptions.add(serving)
        services.ticker.add(reply, listener=holder)
        term = ExpiryTimer(event.caller.principal, lambda: self._end(serving))

        def close() -> None:
            nonlocal held
            if held:
                memory.release(holder, held)
                held = 0
            term.over()
            services.calls.discard(serving)
            services.ticker.discard(reply)
            task.cancel()

        is_held = False
        try:
            await reply.first
            reply.first = None
            if reply.answer.ended:
                status = status_of(serving.connection.error)
                await reply.finish(*services.errors.status(request, serving.denied, 1, status))
            else:
                is_held = await reply.rest(close)
                if not is_held:
                    await gone(request.receive)
        finally:
            if not is_held:
                reply.lose()
                close()

    def end_all(self) -> None:
        """End every subscription with its result. The clients reconnect, to another worker if there
        is one.
        """
        for serving in list(self._services.calls.subscriptions):
            self._end(serving)

    def _end(self, serving: Serving) -> None:
        self._services.calls.answer(serving, _end_subscription)


def _end_subscription(serving: Serving, id: CallId) -> None:
    serving.connection.respond(id, t.SubscriptionsListenResult())
