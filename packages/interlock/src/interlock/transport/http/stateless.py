"""Stateless requests over HTTP: each is carried out in the task that brought it, and keeps nothing
once it is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ... import types as t
from ...exchange import MUTE, AnyResult, Exchange, Principal
from ...protocol.events import RequestReceived
from ...protocol.handshake.server import ServerConnection
from ...protocol.http import EVENTS, Headers, Stateless, accepts, status_of
from ...protocol.server import RequestError, accept, receive_notification, result_frame
from ...protocol.server import receive as read_request
from ...protocol.streams import PostResponse
from ..serve import Serving
from .authorization import Scope
from .error_responses import busy
from .notifications import NotificationRunner
from .request_info import HttpTransport
from .responses import Receive, ResponseWriter, Send, send_body
from .services import Services
from .subscriptions import Subscriptions


class StatelessEndpoint:
    """Answers the requests and notifications of the stateless era."""

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

    async def answer(
        self,
        verdict: Stateless,
        body: bytes,
        principal: Principal | None,
        headers: Headers,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Carry out a request, and answer it."""
        services = self._services
        request = verdict.request
        if request is not None:
            event = accept(services.identity, request, verdict.meta, body, principal)
        else:
            event = read_request(services.identity, body, principal)
        if isinstance(event, RequestError):
            status = 404 if event.code == t.METHOD_NOT_FOUND else 400
            await send_body(send, status, event.frame())
            return
        if event.method == "subscriptions/listen":
            await self._subscriptions.serve(event, headers, scope, receive, send)
            return
        if services.calls.is_full:
            error = busy(event.id)  # type: ignore[arg-type]  # a peer's request has a peer's ID
            await services.errors.send(send, error)
            return
        call = StatelessRequest(services, event, scope, headers, verdict.headers, receive, send)
        await call.run()

    async def accept_notification(
        self, body: bytes, principal: Principal | None, scope: Scope, send: Send
    ) -> None:
        """Accept a notification; only extensions have any that a server acts on (`X-15`)."""
        services = self._services
        if services.identity.extensions.notifications:
            event = receive_notification(services.identity, body, principal)
            if event is not None and not await self._notifications.run([event], scope):
                await services.errors.send(send, busy(None))
                return
        await send_body(send, 202, b"")


class StatelessRequest:
    """One stateless request; its client's disconnect cancels it (`HTM-14`).

    Most calls only give their answer. What else a call may need (a connection, an event stream, a
    disconnect monitor) is made by `grow`: when it sends a notification, when it lasts, when it ends
    in another way, and when the server shuts down. To make all of it for each call would cost as
    much as all the rest.

    Attributes:
        age: How many ticks it lasts.
    """

    __slots__ = (
        "_event",
        "_grown",
        "_headers",
        "_id",
        "_is_answered",
        "_receive",
        "_scope",
        "_send",
        "_services",
        "_task",
        "_transport",
        "age",
    )

    def __init__(
        self,
        services: Services,
        event: RequestReceived,
        scope: Scope,
        headers: Headers,
        mirrored: Mapping[str, str],
        receive: Receive,
        send: Send,
    ) -> None:
        self._services = services
        self._event = event
        self._headers = headers
        self._transport = HttpTransport(scope, mirrored)
        self._scope = scope
        self._receive = receive
        self._send = send
        self._id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request: its ID
        task = asyncio.current_task()
        self._task: asyncio.Task[Any] = task  # type: ignore[assignment]  # made inside a task
        self._grown: tuple[Serving, ResponseWriter, Exchange] | None = None
        self._is_answered = False
        self.age = 0

    async def run(self) -> None:
        """Carry it out, and answer."""
        services = self._services
        event = self._event
        exchange = Exchange(
            event.method,
            event.params,
            event.caller,
            self._notify,
            MUTE,
            event.progress_token,
            self._drain,
            self._transport,
            event,
        )
        services.ticker.add_light(self)
        frame = None
        try:
            result = await services.handler(exchange)
            if self._grown is None:
                frame = result_frame(services.identity, self._id, result, event.caller.revision)
        except BaseException as bad:  # the serving answers it or raises it again
            await self._finish(None, bad)
            return
        if frame is None:
            await self._finish(result, None)
            return
        self._is_answered = True
        try:
            await send_body(self._send, 200, frame)
        finally:
            services.ticker.discard_light(self)

    def grow(self) -> None:
        """Make what more than an answer needs, if it is still needed."""
        if self._grown is None and not self._is_answered:
            self._grow()

    def _grow(self) -> tuple[Serving, ResponseWriter, Exchange]:
        if self._grown is not None:
            return self._grown
        services = self._services
        event = self._event
        connection = ServerConnection(
            services.identity, principal=event.caller.principal, shared=False
        )
        connection.adopt(event)
        id = self._id
        reply = ResponseWriter(
            PostResponse(ids=(id,), events=accepts(self._headers, EVENTS)),
            self._send,
            connection,
            cancels=True,
        )
        reply.age = self.age
        serving = Serving(
            services.handler,
            connection,
            reply.transmit,
            drain=reply.drain,
            queued=lambda: reply.queued,
            transport=self._transport,
        )
        serving.running[id] = self._task
        services.calls.servings.add(serving)
        services.ticker.add(reply, self._receive, self._task)
        services.ticker.discard_light(self)
        self._grown = serving, reply, serving.exchange(event)
        return self._grown

    async def _finish(self, result: AnyResult | None, bad: BaseException | None) -> None:
        """Answer through the connection."""
        services = self._services
        serving, reply, _ = self._grow()
        connection = serving.connection
        try:
            await serving.finish(self._event, _outcome(result, bad))
            if reply.answer.ended:
                status = status_of(connection.error)
                await reply.finish(*services.errors.status(self._scope, serving.denied, 1, status))
        except asyncio.CancelledError:
            if services.calls.was_answered(serving):
                self._task.uncancel()
                await reply.finish()
            elif not services.ticker.was_cancelled(reply):
                raise
        finally:
            services.calls.discard(serving)
            services.ticker.discard(reply)

    def _notify(self, method: str, params: Any) -> None:
        self._grow()[2].notify(method, params)

    async def _drain(self) -> None:
        if self._grown is not None:
            await self._grown[2].drain()


async def _outcome(result: AnyResult | None, bad: BaseException | None) -> Any:
    """The outcome of a handler, once more."""
    if bad is not None:
        raise bad
    return result
