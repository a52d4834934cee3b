"""Client middleware around notifications of the server that belong to no request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from .. import types as t
from ..eager import start_eagerly
from ..exchange import AnyResult, Caller, Exchange, Handler, Middleware, Notify, stack
from ..logs import limited
from .callbacks import Callbacks

log = limited("interlock.client")

_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_middleware_of: ContextVar[IncomingNotifications | None] = ContextVar(
    "middleware_of", default=None
)  # the object whose middleware runs in the current task


class _Notification(Struct, frozen=True):
    """A notification as the server sent it: the `received` of its exchange."""

    method: str
    params: Any
    caller: Caller
    owner: IncomingNotifications
    frame: bytes | None = None


class IncomingNotifications:
    """Sends a client's notifications through its middleware, one at a time and in order.

    Middleware that never waits has finished when `receive` returns. While middleware waits, later
    notifications wait in a queue. The queue is bounded; see `Callbacks`.

    Args:
        caller: Returns the caller of the exchanges. It may wait until the revision is known.
        deliver: Gets the notifications that middleware has passed on.
    """

    def __init__(self, caller: Callable[[], Awaitable[Caller]], deliver: Notify) -> None:
        self._caller = caller
        self._deliver = deliver
        self._handler: Handler = self._arrive
        self._queue = Callbacks("client middleware")

    def around(self, handler: Handler, layers: list[Middleware]) -> Handler:
        """Put middleware around the handler that sends requests and around the delivery of
        notifications.

        Each layer is created once, so that both directions share its state.
        """

        async def handle(x: Exchange) -> AnyResult:
            received = x.received
            if isinstance(received, _Notification) and received.owner is self:
                return await self._arrive(x)
            return await handler(x)

        self._handler = stack(handle, *layers)
        return self._handler

    def receive(self, method: str, params: Any) -> None:
        """Send a notification through the middleware. It never raises."""
        self._queue.call(self._start, method, params)

    def in_turn(self, function: Callable[..., None], *args: Any) -> None:
        """Call a function after all earlier notifications. The bounds of the queue apply."""
        self._queue.call(function, *args)

    def after_all(self, function: Callable[[], None]) -> None:
        """Call a function after all earlier notifications. It is never dropped."""
        self._queue.after(function)

    def ordered(self, notify: Notify) -> Notify:
        """Wrap the `notify` of a request, so that notifications stay in order.

        Only the acknowledgement of a subscription is delivered at once: middleware may wait for it.
        """

        def notify_in_order(method: str, params: Any) -> None:
            if method == _ACKNOWLEDGED:
                notify(method, params)
            else:
                self._queue.call(notify, method, params)

        return notify_in_order

    async def caught_up(self) -> None:
        """Wait until all notifications received so far have passed the middleware.

        Requests that middleware makes for a notification do not wait, because they would wait for
        themselves.
        """
        if _middleware_of.get() is None:
            await self._queue.caught_up()

    async def aclose(self) -> None:
        """Wait for the middleware, for at most five seconds, and cancel the rest."""
        if _middleware_of.get() is not self:  # it cannot wait for itself
            await self._queue.aclose()

    def _start(self, method: str, params: Any) -> Awaitable[object] | None:
        """Run the first step of the middleware at once. Returns an awaitable for the rest, if there
        is any.
        """
        work = start_eagerly(self._pass(method, params), asyncio.get_running_loop())
        if not work.done():
            return work
        if work.cancelled():
            log.warning("client middleware cancelled itself on %s", method)
        return None

    async def _pass(self, method: str, params: Any) -> None:
        _middleware_of.set(self)  # in the context of this task only
        try:
            caller = await self._caller()
            received = _Notification(method, params, caller, self)
            await self._handler(Exchange(method, params, caller, received=received))
        except Exception:
            log.exception("client middleware failed on %s, which is dropped", method)

    async def _arrive(self, x: Exchange) -> AnyResult:
        """The innermost handler: calls the client's functions without waiting for them."""
        token = _middleware_of.set(None)  # tasks of these functions are not middleware
        try:
            self._deliver(x.method, x.params)
        finally:
            _middleware_of.reset(token)
        return t.EmptyResult()
