"""Stateless requests over HTTP: each runs in the task of its HTTP request, and leaves no state
after its response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

from ... import types as t
from ...exchange import MUTE, Exchange, ready
from ...protocol.events import RequestReceived
from ...protocol.handshake.server import ServerConnection
from ...protocol.http import Stateless, status_of
from ...protocol.server import (
    RequestError,
    accept,
    receive_notification,
)
from ...protocol.server import receive as read_request
from ...protocol.streams import PostResponse
from ..serve import Serving, carry_out
from .error_responses import busy
from .notifications import NotificationRunner
from .request_info import HttpTransport
from .requests import EndpointRequest, Pairs
from .responses import ResponseWriter
from .running_calls import held_bytes, quota_holder
from .services import Services
from .single_call import Grown, SingleCall
from .subscriptions import Subscriptions


class StatelessEndpoint:
    """Serves the requests and notifications of the stateless era."""

    __slots__ = ("_notifications", "_services", "_subscriptions")

    def __init__(
        self,
        services: Services,
        subscriptions: Subscriptions,
        notifications: NotificationRunner,
    ) -> None:
        self._services = services
        self._subscriptions = subscriptions
        self._notifications = notifications

    async def answer(self, verdict: Stateless, request: EndpointRequest) -> None:
        """Run a request, and send its response."""
        services = self._services
        if verdict.request is not None:
            event = accept(
                services.identity, verdict.request, verdict.meta, request.body, request.principal
            )
        else:
            event = read_request(services.identity, request.body, request.principal)
        if isinstance(event, RequestError):
            status = 404 if event.code == t.METHOD_NOT_FOUND else 400
            await request.respond(status, event.frame())
            return
        if event.method == "subscriptions/listen":
            await self._subscriptions.serve(event, request)
            return
        calls = services.calls
        slots = calls.slots
        holder = quota_holder(request)
        held = held_bytes(len(request.body))
        if (held or not slots.acquire_uncontended(holder)) and (
            full := await calls.acquire(holder, held)
        ):
            error = busy(event.id, full)  # type: ignore[arg-type]  # a peer's request: its ID
            await services.errors.send(request, error)
            return
        call = StatelessRequest(services, event, request, held)
        services.ticker.add_light(call)
        try:
            await carry_out(services.handler, event, call.exchange(), call)
            await call.sending()
        except asyncio.CancelledError:
            if not await call.recover():
                raise
        finally:
            call.close()
            if held:
                calls.release(holder, held)
            else:
                slots.release(holder)

    async def accept_notification(self, request: EndpointRequest) -> None:
        """Accept a notification. A server acts on notifications of extensions only (`X-15`)."""
        services = self._services
        if services.identity.extensions.notifications:
            event = receive_notification(services.identity, request.body, request.principal)
            if event is not None and not await self._notifications.run([event], request):
                await services.errors.send(request, busy(None, "calls"))
                return
        await request.respond(202, b"")


class StatelessRequest(SingleCall):
    """One stateless request. The client's disconnect cancels it (`HTM-14`).

    What it may need besides its response is created when it sends a notification, when it lasts,
    and when the server shuts down.

    Attributes:
        age: The number of ticks since the start.
    """

    __slots__ = ("_request", "_services", "_task", "_transport", "age")

    def __init__(
        self, services: Services, event: RequestReceived, request: EndpointRequest, held: int
    ) -> None:
        super().__init__(services.identity, event)
        self._services = services
        self._request = request
        self._transport = HttpTransport(request, request.head.params, None, held)
        task = asyncio.current_task(services.ticker.loop)
        self._task: asyncio.Task[Any] = task  # type: ignore[assignment]  # made inside a task
        self.age = 0

    def exchange(self) -> Exchange:
        """Return the request as its handler sees it."""
        event = self.event
        return Exchange(
            event.method,
            event.params,
            event.caller,
            self.notify,
            MUTE,
            event.progress_token,
            self.drain,
            self._transport,
            event,
        )

    def sending(self) -> Awaitable[None]:
        """Send the rest of the response, after the end of the request."""
        if self.grown is not None:
            serving, reply = self.grown
            if not reply.answer.ended:
                return ready()
            return reply.finish(*self._status(serving.denied, serving.connection.error))
        if not self.error:
            return self._request.respond(200, self.frame)
        status, headers = self._status(self.denied, self.error)
        return self._request.respond(status, self.frame, headers=headers)

    async def recover(self) -> bool:
        """Whether the client's disconnect has cancelled the request, or the server's shutdown has
        answered it. Then the task of the request continues.
        """
        if self.grown is None:
            return False
        serving, reply = self.grown
        if self._services.calls.was_answered(serving):
            self._task.uncancel()
            await reply.finish()
            return True
        return self._services.ticker.was_cancelled(reply)

    def close(self) -> None:
        """Stop watching the request, because it is done."""
        services = self._services
        if self.grown is None:
            services.ticker.discard_light(self)
            return
        serving, reply = self.grown
        services.calls.discard(serving)
        services.ticker.discard(reply)

    def _make(self) -> Grown:
        services = self._services
        event = self.event
        id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request: its ID
        response = PostResponse(ids=(id,), events=self._request.head.takes_events)
        connection = ServerConnection(
            services.identity, principal=event.caller.principal, shared=False
        )
        connection.adopt(event)
        reply = ResponseWriter(response, self._request, connection, cancels=True)
        serving = Serving(
            services.handler,
            connection,
            reply.transmit,
            drain=reply.drain,
            queued=lambda: reply.queued,
            transport=self._transport,
        )
        reply.age = self.age
        serving.running[id] = self._task
        services.calls.servings.add(serving)
        services.ticker.add(reply, self._task)
        services.ticker.discard_light(self)
        return serving, reply

    def _status(self, denied: Sequence[Sequence[str]], error: int) -> tuple[int, Pairs]:
        return self._services.errors.status(self._request, denied, 1, status_of(error))
