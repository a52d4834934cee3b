"""The server loop: passes frames between a channel and the connection's state machine, and runs
each request as a task.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace

from .. import types as t
from ..eager import start_task
from ..exchange import (
    MUTE,
    PLAIN_TRANSPORT,
    AnyResult,
    Asker,
    Caller,
    Exchange,
    ExchangeTransport,
    Handler,
    Principal,
    SessionStorage,
    ready,
)
from ..input_required import Direct
from ..logs import limited
from ..protocol.events import (
    CallId,
    NotificationReceived,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    Route,
    ServerEvent,
    SessionListen,
)
from ..protocol.handshake.server import ServerConnection
from ..protocol.identity import Identity
from ..store.errors import StoreError, store_unreachable
from ..wire.jsonrpc import Frame, is_answer
from ..wire.revisions import Era
from .channel import Barriers, Channel, pump

log = limited("interlock.server")

DEFAULT_MOST_CALLS = 4096
_CLEAN_UP = 5.0  # seconds that cancelled calls have to clean up
MOST_QUEUED = 8 * 1024 * 1024
"""The number of queued bytes for a peer above which its progress and log messages are dropped."""

_DROPPABLE = frozenset({"notifications/progress", "notifications/message"})
Sent = tuple[Route, Frame]
Transmit = Callable[[list[Sent]], None]


class ConnectionSession:
    """The session state of a connection, in memory. It ends with the connection or with a new
    handshake.
    """

    __slots__ = ("_connection", "_number", "_state")

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._number = 0  # the number of the session that the state belongs to
        self._state = b""

    async def load(self) -> bytes:
        """Return the bytes that were saved last."""
        if self._number != self._connection.sessions_begun:
            self._number = self._connection.sessions_begun
            self._state = b""
        return self._state

    async def save(self, state: bytes, *, was: bytes) -> bool:
        """Replace the bytes that were loaded."""
        if await self.load() != was:
            return False
        self._state = state
        return True


async def carry_out_notification(
    handler: Handler, event: NotificationReceived, caller: Caller, transport: ExchangeTransport
) -> None:
    """Run the handler of an extension's notification; errors go to the log only."""
    try:
        await handler(Exchange(event.method, event.params, caller, transport=transport))
    except Exception:
        log.exception("the handler of %s failed", event.method)


class Responder(Protocol):
    """Receives the outcomes of requests: of all requests of a connection, or of the only one in a
    POST.
    """

    def respond(self, event: RequestReceived, result: AnyResult) -> None:
        """Answer a request. Raises TypeError if the result cannot be encoded as JSON."""
        ...

    def fail(self, event: RequestReceived, error: t.McpError) -> None:
        """Answer a request with an error."""
        ...

    def end(self, event: RequestReceived) -> None:
        """End a request, answered or not."""
        ...


async def carry_out(
    handler: Handler, event: RequestReceived, exchange: Exchange, answers: Responder
) -> None:
    """Run the handler of one request and answer it. Every request on every transport runs here."""
    try:
        answers.respond(event, await handler(exchange))
    except t.McpError as bad:
        answers.fail(event, bad)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # by the peer or its disconnect: a cancelled call is never answered
        error = t.McpError(t.INTERNAL_ERROR, "The call was cancelled by the server.")
        answers.fail(event, error)
    except StoreError:  # the store has logged the reason
        answers.fail(event, store_unreachable())
    except BaseException as bad:
        # Every exception is answered. The reference in the response points to the details in the
        # log.
        reference = os.urandom(4).hex()
        log.exception("%s failed (reference %s)", event.method, reference)
        words = f"{_what_failed(bad)} (reference {reference})"
        answers.fail(event, t.McpError(t.INTERNAL_ERROR, words))
        if isinstance(bad, KeyboardInterrupt | GeneratorExit):
            raise  # the first ends the program; after the second no await is allowed
    finally:
        answers.end(event)


class Serving:
    """The server's side of one peer.

    `transmit` queues frames and never waits. `drain` waits until the peer keeps up. `barrier` holds
    back later frames until the peer has read the earlier ones. A barrier separates the progress of
    a call from its response, because the TypeScript SDK loses progress that it reads together with
    the response.
    """

    __slots__ = (
        "_barrier",
        "_cancelled",
        "_closed",
        "_drain",
        "_flush_is_due",
        "_loop",
        "_on_notification",
        "_queued",
        "_reported",
        "_session",
        "_taking",
        "_transmit",
        "_transport",
        "_unflushed",
        "_waiting",
        "connection",
        "denied",
        "dropped",
        "handler",
        "most_calls",
        "notified",
        "running",
    )

    def __init__(
        self,
        handler: Handler,
        connection: ServerConnection,
        transmit: Transmit,
        *,
        drain: Callable[[], Awaitable[None]] = ready,
        queued: Callable[[], int] = int,
        most_calls: int = DEFAULT_MOST_CALLS,
        on_notification: Callable[[str, Any, Caller | None], None] | None = None,
        transport: ExchangeTransport = PLAIN_TRANSPORT,
        barrier: Callable[[], None] | None = None,
        session: SessionStorage | None = None,
    ) -> None:
        self._session = session
        self.handler = handler
        self.connection = connection
        self.most_calls = most_calls
        self._transport = transport
        self._barrier = barrier
        # Empty dicts instead of empty sets, which would be three times as large: there are many
        # servings.
        self._reported: dict[Route, None] = {}  # the calls that have sent progress
        self.running: dict[CallId, asyncio.Task[None]] = {}
        # tasks that run notifications of extensions
        self.notified: dict[asyncio.Task[None], None] = {}
        self.denied: tuple[
            tuple[str, ...], ...
        ] = ()  # the missing scopes of each call that was refused because of them
        self._transmit = transmit
        self._drain = drain
        self._queued = queued
        self._on_notification = on_notification
        self._waiting: dict[t.RequestId, asyncio.Future[Any]] = {}
        self._cancelled: dict[asyncio.Task[Any] | None, None] = {}
        self._loop = asyncio.get_running_loop()
        self._flush_is_due = False
        self._unflushed = 0  # bytes of notifications for the next flush
        self.dropped = 0  # progress and log messages that were dropped because the queue was full
        self._taking = False  # frames are being received, and a flush follows
        self._closed = False

    def receive(self, frames: Iterable[Frame], transport: ExchangeTransport | None = None) -> bool:
        """Receive frames of the peer. Requests run as tasks; immediate answers are sent in one
        write.

        `transport` is the transport of these frames, if each message arrives in a separate request.

        Returns:
            Whether a frame was a request, or was about an open request or question.
        """
        is_known = False
        self._taking = True
        if transport is not None:
            self._transport = transport
        try:
            for frame in frames:
                for event in self.connection.receive(frame):
                    is_known = True
                    self.handle(event)
        finally:
            self._taking = False
        self.flush()
        return is_known

    def flush(self) -> None:
        """Send queued frames now."""
        self._flush_is_due = False
        self._unflushed = 0
        out = self.connection.outgoing()
        if not out:
            return
        if self._barrier is not None and self._reported:
            out, after = self._split(out)
            if after:
                if out:
                    self._transmit(out)
                self._barrier()
                out = after
        self._transmit(out)

    def _split(self, out: list[Sent]) -> tuple[list[Sent], list[Sent]]:
        """Separate the responses to calls that have sent progress from the other frames.

        Returns:
            The frames that may be read together with progress, and those responses.
        """
        before: list[Sent] = []
        after: list[Sent] = []
        for sent in out:
            route, frame = sent
            if frame.startswith(b"[") or (route in self._reported and is_answer(frame)):
                after.append(sent)  # a batch may contain the response to any call
            else:
                before.append(sent)
        if after:
            self._reported = {id: None for id in self._reported if self._is_open(id)}
        return before, after

    def _is_open(self, id: Route) -> bool:
        return id is not None and self.connection.is_open(id)

    async def aclose(self, grace: float = 0.0) -> None:
        """Clean up after the peer is gone: give running calls `grace` seconds to finish, then
        cancel them and let them clean up.
        """
        self._closed = True
        if self.dropped > 1:
            log.warning(
                "%d progress and log messages were dropped on this connection", self.dropped
            )
        finishing = [task for id, task in self.running.items() if not isinstance(id, SessionListen)]
        finishing += self.notified
        if grace > 0 and finishing:
            await asyncio.wait(finishing, timeout=grace)
        self.flush()
        left = [*self.running.values(), *self.notified]
        for event in self.connection.close():
            self.handle(event)
        for task in left:
            task.cancel()
        if left:
            _, stubborn = await asyncio.wait(left, timeout=_CLEAN_UP)
            if stubborn:
                log.error(
                    "%d calls do not end though they were cancelled; the server goes on without "
                    "them",
                    len(stubborn),
                )
        self.running.clear()

    def run(self, event: RequestReceived) -> Coroutine[Any, Any, None]:
        """Run one request, from its event to its queued response."""
        return carry_out(self.handler, event, self.exchange(event), self)

    def exchange(self, event: RequestReceived) -> Exchange:
        """Create the exchange of a request."""
        asker: Asker = MUTE
        session = None
        if event.caller.era is Era.HANDSHAKE:
            asker = Direct(event.caller, partial(self.ask, event.id))
            session = self._session
        return Exchange(
            event.method,
            event.params,
            event.caller,
            partial(self.notify, event),
            asker,
            event.progress_token,
            self._drain,
            self._transport,
            event,
            session,
        )

    def respond(self, event: RequestReceived, result: AnyResult) -> None:
        """Queue the result of a request."""
        if not self._was_cancelled():
            self.connection.respond(event.id, result)

    def fail(self, event: RequestReceived, error: t.McpError) -> None:
        """Queue the error of a request."""
        if self._was_cancelled():
            return
        if isinstance(error, t.Forbidden):
            self.denied += (error.scopes,)
        self.connection.fail(event.id, error.code, error.message, error.data)

    def end(self, event: RequestReceived) -> None:
        """End a request, and send what is still queued for it."""
        task = self.running.get(event.id)
        if task is not None and task is asyncio.current_task():
            del self.running[event.id]
        if self.running or self._taking:
            self._flush_soon()
        else:
            self.flush()

    def _was_cancelled(self) -> bool:
        """Whether the peer has cancelled the request of the current task. Its ID may belong to
        another request by now.
        """
        return bool(self._cancelled) and asyncio.current_task() in self._cancelled

    def is_full(self, elsewhere: int = 0) -> bool:
        """Whether the limit of concurrent requests is reached; `elsewhere` of them run in other
        tasks. Internal subscriptions do not count.
        """
        return (
            sum(not isinstance(id, SessionListen) for id in self.running) + elsewhere
            >= self.most_calls
        )

    def refuse(self, event: RequestReceived) -> None:
        """Refuse a request over the limit."""
        words = (
            f"The server is busy: {self.most_calls} requests are running on this connection. Try "
            "again later."
        )
        self.connection.fail(event.id, t.INTERNAL_ERROR, words, {"reason": "busy"})

    # -- events ------------------------------------------------------------------------------------

    def handle(self, event: ServerEvent) -> None:
        """Handle one event of the connection."""
        if type(event) is RequestReceived:
            if (
                len(self.running) >= self.most_calls
                and not isinstance(event.id, SessionListen)
                and self.is_full()
            ):
                self.refuse(event)
            else:
                task = start_task(self.run(event), self._loop)
                if not task.done():
                    self.running[event.id] = task
        elif type(event) is RequestCancelled:
            if event.reason:
                log.debug("request %r was cancelled: %s", event.id, event.reason)
            self._reported.pop(event.id, None)
            cancelled = self.running.pop(event.id, None)
            if cancelled is not None:
                self._cancelled[cancelled] = None
                cancelled.add_done_callback(lambda task: self._cancelled.pop(task, None))
                cancelled.cancel()
        elif type(event) is ResponseReceived:
            self._settle(event)
        elif type(event) is NotificationReceived and event.caller is not None:
            self._start_notified(event, event.caller)
        elif type(event) is NotificationReceived and self._on_notification is not None:
            try:
                self._on_notification(event.method, event.params, self.connection.remembered)
            except Exception:
                log.exception("a listener for %s failed", event.method)

    def _start_notified(self, event: NotificationReceived, caller: Caller) -> None:
        """Start the handler of an extension's notification."""
        if len(self.notified) >= self.most_calls:
            log.warning("%s is dropped: %d are running", event.method, self.most_calls)
            return
        work = carry_out_notification(self.handler, event, caller, self._transport)
        task = start_task(work, self._loop)
        if not task.done():
            self.notified[task] = None
            task.add_done_callback(lambda task: self.notified.pop(task, None))

    def _settle(self, event: ResponseReceived) -> None:
        waiting = self._waiting.pop(event.id, None)
        if waiting is None or waiting.done():
            return
        if isinstance(event.answer, t.McpError):
            waiting.set_exception(event.answer)
        else:
            waiting.set_result(event.answer)

    def notify(self, event: RequestReceived, method: str, params: Any) -> None:
        """Send a notification of a running request."""
        if self._closed:
            return
        id = event.id
        token = event.progress_token
        if method in _DROPPABLE and self._queued() + self._unflushed > MOST_QUEUED:
            self._drop()
            return
        is_progress = type(params) is t.ProgressNotificationParams  # not that of another request
        if is_progress and params.progress_token != token:
            if token is None:
                return  # the peer did not ask for progress
            params = replace(params, progress_token=token)  # it had another token
        sent = self.connection.notify(id, method, params)
        self._unflushed += sent
        if sent and self._barrier is not None and method == "notifications/progress":
            self._reported[id] = None
        self._flush_soon()

    def _drop(self) -> None:
        self.dropped += 1
        if self.dropped == 1:
            log.warning(
                "progress and log messages are dropped: %d bytes wait for a client that does not"
                " take them in",
                MOST_QUEUED,
            )

    async def ask(self, id: CallId, request: Any, result: type[Any] | None = None) -> Any:
        """Ask the peer a question on behalf of a running request, and wait for the answer.

        The arguments are those of `ServerConnection.ask`.
        """
        asked = self.connection.ask(id, request, result)
        waiting = self._waiting[asked] = self._loop.create_future()
        self._flush_soon()
        try:
            return await waiting
        finally:
            if self._waiting.pop(asked, None) is not None:
                self.connection.withdraw(asked, "the server no longer needs the answer")
                self._flush_soon()

    def _flush_soon(self) -> None:
        """Schedule one write for everything that happens in this turn of the event loop."""
        if not self._flush_is_due and not self._taking:
            self._flush_is_due = True
            self._loop.call_soon(self.flush)


def _what_failed(bad: BaseException) -> str:
    """Return the part of an exception that a client may see. For an error of a server behind this
    one, that is the kind of failure without its message.
    """
    if isinstance(bad, t.TimedOut):
        return "The server behind this one did not answer in time"
    if isinstance(bad, t.Unreachable):
        return "The server behind this one cannot be reached"
    if isinstance(bad, t.ProtocolError):
        return "The server behind this one gave an answer that cannot be read"
    return "Internal error"


async def serve(
    handler: Handler,
    identity: Identity,
    channel: Channel,
    *,
    principal: Principal | None = None,
    most_calls: int = DEFAULT_MOST_CALLS,
    grace: float = 1.0,
    on_notification: Callable[[str, Any, Caller | None], None] | None = None,
) -> None:
    """Serve one peer over a channel until it closes; running calls then have `grace` seconds to
    finish.

    The channel is closed at the end, whatever happens.
    """
    connection = ServerConnection(identity, principal=principal)

    def transmit(out: list[Sent]) -> None:
        channel.send([frame for _, frame in out])

    serving = Serving(
        handler,
        connection,
        transmit,
        drain=channel.drain,
        queued=lambda: channel.queued,
        most_calls=most_calls,
        on_notification=on_notification,
        barrier=channel.barrier if isinstance(channel, Barriers) else None,
        session=ConnectionSession(connection),
    )

    def receive(frames: list[Frame]) -> None:
        if why := channel.lost:
            connection.refuse_unread(why)
        serving.receive(frames)

    try:
        await pump(channel, receive, patient=True)
    finally:
        await serving.aclose(grace)
        await channel.aclose()
