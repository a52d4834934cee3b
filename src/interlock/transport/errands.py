"""One request of the stateless era while it is carried out: light as long as nothing is sent but its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import types as t
from ..exchange import MUTE, AnyResult, Exchange
from ..protocol.events import RequestReceived
from ..protocol.http import EVENTS, Headers, accepts, status_of
from ..protocol.server import ServerConnection
from ..protocol.streams import Answer
from .replies import Receive, Reply, Send, send_body
from .requests import HttpTransport
from .serve import Serving

if TYPE_CHECKING:
    from .asgi import HttpApp


class Errand:
    """A request, carried out in the task that brought it; the client's going away cancels it (`HTM-14`).

    Most calls give their answer and are done. What else there may be (a connection, an event stream, a watch over the client) is made
    when it is first needed (`grow`): when a call tells something, when it lasts, when it ends in another way, and when the server is
    shut down. To make all of it for each call would cost as much as all the rest.
    """

    __slots__ = (
        "_app",
        "_connection",
        "_event",
        "_grown",
        "_headers",
        "_id",
        "_is_answered",
        "_receive",
        "_scope",
        "_send",
        "_task",
        "_transport",
        "age",
    )

    def __init__(
        self,
        app: HttpApp,
        event: RequestReceived,
        scope: dict[str, Any],
        headers: Headers,
        mirrored: Mapping[str, str],
        receive: Receive,
        send: Send,
        connection: ServerConnection | None,
    ) -> None:
        """`connection` is the one that has read the request, where one has."""
        self._app = app
        self._event = event
        self._headers = headers
        self._connection = connection
        self._transport = HttpTransport(scope, mirrored)
        self._scope, self._receive, self._send = scope, receive, send
        self._id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request has a peer's id
        self._task: asyncio.Task[Any] = asyncio.current_task()  # type: ignore[assignment]  # it is made in a task
        self._grown: tuple[Serving, Reply, Exchange] | None = None
        self._is_answered = False
        self.age = 0  # ticks of the slow clock

    async def run(self) -> None:
        """Carry it out, and answer."""
        app, event = self._app, self._event
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
        app.pulse.begin(self)
        try:
            result = await app.handler(exchange)
            frame = (
                app.identity.plain_answer(self._id, event.caller, result)
                if self._grown is None
                else None
            )
        except BaseException as bad:  # whatever it is, it is told or passed on as everywhere
            await self._finish(None, bad)
            return
        if frame is None:
            await self._finish(result, None)
            return
        self._is_answered = True
        try:
            await send_body(self._send, 200, frame)
        finally:
            app.pulse.end(self)

    def grow(self) -> None:
        """Make what more than an answer needs; nothing where it is there, or needed no more."""
        if self._grown is None and not self._is_answered:
            self._grow()

    def _grow(self) -> tuple[Serving, Reply, Exchange]:
        if self._grown is not None:
            return self._grown
        app, event = self._app, self._event
        connection = self._connection
        if connection is None:
            connection = ServerConnection(
                app.identity, principal=event.caller.principal, shared=False
            )
            connection.adopt(event)
        id = self._id
        reply = Reply(
            Answer(ids=(id,), events=accepts(self._headers, EVENTS)),
            self._send,
            connection,
            cancels=True,
        )
        reply.age = self.age
        serving = Serving(
            app.handler, connection, reply.transmit, drain=reply.drain, queued=lambda: reply.queued, transport=self._transport
        )  # fmt: skip
        serving.running[id] = self._task
        app.running.add(serving)
        app.pulse.add(reply, self._receive, self._task)
        app.pulse.end(self)
        self._grown = serving, reply, serving.exchange(event)
        return self._grown

    async def _finish(self, result: AnyResult | None, bad: BaseException | None) -> None:
        """Answer through the connection."""
        app = self._app
        serving, reply, _ = self._grow()
        connection = serving.connection
        try:
            await serving.finish(self._event, _outcome(result, bad))
            if reply.answer.ended:
                await reply.finish(
                    *app.verdict(self._scope, serving, 1, status_of(connection.error))
                )
        except asyncio.CancelledError:
            if serving in app.ended:
                self._task.uncancel()
                await reply.finish()
            elif not app.pulse.was_cancelled(reply):
                raise
        finally:
            app.running.discard(serving)
            app.ended.discard(serving)
            app.pulse.discard(reply)

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
