"""Stateless requests over HTTP: each runs in the task of its HTTP request, and leaves no state
after its response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from ... import types as t
from ...exchange import MUTE, AnyResult, Exchange, Principal, ready
from ...protocol.events import RequestReceived
from ...protocol.http import EVENTS, Headers, Stateless, accepts, status_of
from ...protocol.server import (
    RequestError,
    accept,
    error_frame,
    receive_notification,
    result_frame,
)
from ...protocol.server import receive as read_request
from ...protocol.streams import PostResponse
from ...wire.jsonrpc import Frame
from ..serve import Serving, carry_out
from .authorization import Scope
from .error_responses import busy
from .notifications import NotificationRunner
from .request_info import HttpTransport
from .responses import Pairs, Receive, ResponseWriter, Send, send_body
from .services import Services
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
        """Run a request, and send its response."""
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
        services.ticker.add_light(call)
        try:
            await carry_out(services.handler, event, call.exchange(), call)
            await call.sending()
        except asyncio.CancelledError:
            if not await call.recover():
                raise
        finally:
            call.close()

    async def accept_notification(
        self, body: bytes, principal: Principal | None, scope: Scope, send: Send
    ) -> None:
        """Accept a notification. A server acts on notifications of extensions only (`X-15`)."""
        services = self._services
        if services.identity.extensions.notifications:
            event = receive_notification(services.identity, body, principal)
            if event is not None and not await self._notifications.run([event], scope):
                await services.errors.send(send, busy(None))
                return
        await send_body(send, 202, b"")


class StatelessRequest:
    """The response of one stateless request. The client's disconnect cancels the request
    (`HTM-14`).

    Most calls only send a response, which is kept here as one frame. Everything else that a call
    may need (a connection, an event stream, a disconnect monitor) is created by `grow`: when the
    call sends a notification, when it lasts, and when the server shuts down. Creating all of it for
    each call would double the cost of a request.

    Attributes:
        age: The number of ticks since the start.
    """

    __slots__ = (
        "_denied",
        "_error",
        "_event",
        "_frame",
        "_grown",
        "_headers",
        "_is_over",
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
        task = asyncio.current_task()
        self._task: asyncio.Task[Any] = task  # type: ignore[assignment]  # made inside a task
        self._grown: tuple[Serving, ResponseWriter] | None = None
        self._frame: Frame = b""
        self._error = 0
        self._denied: tuple[tuple[str, ...], ...] = ()
        self._is_over = False
        self.age = 0

    def exchange(self) -> Exchange:
        """Return the request as its handler sees it."""
        event = self._event
        return Exchange(
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

    def respond(self, event: RequestReceived, result: AnyResult) -> None:
        """Answer the request."""
        if self._grown is not None:
            self._grown[0].respond(event, result)
            return
        id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request: its ID
        self._frame = result_frame(self._services.identity, id, result, event.caller.revision)

    def fail(self, event: RequestReceived, error: t.McpError) -> None:
        """Answer the request with an error."""
        if self._grown is not None:
            self._grown[0].fail(event, error)
            return
        if isinstance(error, t.Forbidden):
            self._denied = (error.scopes,)
        id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request: its ID
        self._error, self._frame = error_frame(
            id, error.code, error.message, error.data, event.caller.revision
        )

    def end(self, event: RequestReceived) -> None:
        """End the request: it needs nothing beyond its response."""
        self._is_over = True
        if self._grown is not None:
            self._grown[0].end(event)

    def sending(self) -> Awaitable[None]:
        """Send the rest of the response, after the end of the request."""
        if self._grown is not None:
            serving, reply = self._grown
            if not reply.answer.ended:
                return ready()
            return reply.finish(*self._status(serving.denied, serving.connection.error))
        if not self._error:
            return send_body(self._send, 200, self._frame)
        status, headers = self._status(self._denied, self._error)
        return send_body(self._send, status, self._frame, headers=headers)

    async def recover(self) -> bool:
        """Whether the client's disconnect has cancelled the request, or the server's shutdown has
        answered it. Then the task of the request continues.
        """
        if self._grown is None:
            return False
        serving, reply = self._grown
        if self._services.calls.was_answered(serving):
            self._task.uncancel()
            await reply.finish()
            return True
        return self._services.ticker.was_cancelled(reply)

    def close(self) -> None:
        """Stop watching the request, because it is done."""
        services = self._services
        if self._grown is None:
            services.ticker.discard_light(self)
            return
        serving, reply = self._grown
        services.calls.discard(serving)
        services.ticker.discard(reply)

    def grow(self) -> None:
        """Create everything that a request needs beyond its response, if it is still needed."""
        if self._grown is None and not self._is_over:
            self._grow()

    def _grow(self) -> tuple[Serving, ResponseWriter]:
        if self._grown is not None:
            return self._grown
        services = self._services
        event = self._event
        id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request: its ID
        response = PostResponse(ids=(id,), events=accepts(self._headers, EVENTS))
        serving, reply = services.serve_alone(
            event, response, self._send, self._transport, cancels=True
        )
        reply.age = self.age
        serving.running[id] = self._task
        services.calls.servings.add(serving)
        services.ticker.add(reply, self._receive, self._task)
        services.ticker.discard_light(self)
        self._grown = serving, reply
        return self._grown

    def _notify(self, method: str, params: Any) -> None:
        if self._grown is not None or not self._is_over:
            self._grow()[0].notify(self._event, method, params)

    async def _drain(self) -> None:
        if self._grown is not None:
            await self._grown[1].drain()

    def _status(self, denied: Sequence[Sequence[str]], error: int) -> tuple[int, Pairs]:
        return self._services.errors.status(self._scope, denied, 1, status_of(error))
