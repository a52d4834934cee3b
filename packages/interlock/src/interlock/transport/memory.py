"""The in-memory transport: a client and a server in one process exchange real frames, without a
task, queue or socket between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from .. import types as t
from ..exchange import AnyResult, Caller, Exchange, Handler, Principal, ready
from ..protocol.events import RequestReceived, Route
from ..protocol.handshake.server import ServerConnection
from ..protocol.identity import Identity
from ..protocol.opening import Opened
from ..wire.jsonrpc import Frame
from .channel import Tap
from .conversation import Conversation, Hello
from .serve import DEFAULT_MOST_CALLS, ConnectionSession, Serving


class Memory:
    """Passes exchanges to a handler directly: the caller's own task runs the call.

    `enter` and `leave` are awaited at the beginning and the end. `tap` is called with every frame,
    and with "client" or "server" as its sender.
    """

    def __init__(
        self,
        handler: Handler,
        identity: Identity,
        *,
        principal: Principal | None = None,
        most_calls: int = DEFAULT_MOST_CALLS,
        on_notification: Callable[[str, Any, Caller | None], None] | None = None,
        enter: Callable[[], Awaitable[None]] = ready,
        leave: Callable[[], Awaitable[None]] = ready,
        tap: Tap | None = None,
    ) -> None:
        self._handler = handler
        self._identity = identity
        self._principal = principal
        self._most_calls = most_calls
        self._on_notification = on_notification
        self.tap = tap
        self._enter = enter
        self._leave = leave
        self._entered = False
        self._conversation: Conversation | None = None
        self._serving: Serving | None = None
        self._inside: dict[
            asyncio.Future[None], asyncio.Task[Any]
        ] = {}  # running calls by the future of their end, with their tasks
        self._thrown_out: set[asyncio.Task[Any]] = set()

    async def open(self, hello: Hello) -> Opened:
        """Negotiate a revision with the server."""
        await self._enter()
        self._entered = True
        connection = ServerConnection(self._identity, principal=self._principal)
        self._serving = Serving(
            self._handler,
            connection,
            self._to_client,
            most_calls=self._most_calls,
            on_notification=self._on_notification,
            session=ConnectionSession(connection),
        )
        self._conversation = conversation = Conversation(self._to_server)
        opened = await conversation.open(hello)
        conversation.flush()  # completes the handshake, which opens the session's subscription
        await asyncio.sleep(
            0
        )  # the subscription starts before the first call, which runs in its caller's task
        return opened

    async def __call__(self, exchange: Exchange) -> AnyResult:
        """Send one exchange and return its result, in this task."""
        conversation = self._conversation
        serving = self._serving
        if conversation is None or serving is None:
            raise t.Unreachable("The connection was not opened.")
        id, future = conversation.start_request(exchange)
        event = None
        for frame in conversation.connection.outgoing():
            event = self._hand_over(serving, frame, id) or event
        if event is not None:
            await self._run(event, serving, conversation)
        serving.flush()
        return await conversation.finish(id, future, exchange)

    async def _run(
        self, event: RequestReceived, serving: Serving, conversation: Conversation
    ) -> None:
        """Run a call in the caller's own task; `aclose` can cancel it."""
        task = asyncio.current_task()
        assert task is not None
        over = asyncio.get_running_loop().create_future()
        self._inside[over] = task
        try:
            await serving.run(event)
        except BaseException as bad:
            why = "the client no longer waits for the answer"
            conversation.give_up(event.id, why)  # type: ignore[arg-type]  # an id of ours
            conversation.flush()
            if isinstance(bad, asyncio.CancelledError) and task in self._thrown_out:
                raise t.Unreachable("The client was closed.") from None
            raise
        finally:
            del self._inside[over]
            over.set_result(None)
            if task in self._thrown_out:
                self._thrown_out.discard(task)
                task.uncancel()

    def _hand_over(self, serving: Serving, frame: Frame, id: t.RequestId) -> RequestReceived | None:
        """Pass one frame to the server. A request for this task is returned instead of started."""
        if self.tap is not None:
            self.tap("client", frame)
        ours = None
        for event in serving.connection.receive(frame):
            if type(event) is not RequestReceived or event.id != id:
                serving.handle(event)
            elif len(serving.running) + len(self._inside) >= serving.most_calls and serving.is_full(
                len(self._inside)
            ):
                serving.refuse(event)
            else:
                ours = event
        return ours

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification that belongs to no request."""
        if self._conversation is not None:
            self._conversation.send_notification(method, params)

    async def aclose(self) -> None:
        """Close the connection on both sides."""
        conversation = self._conversation
        serving = self._serving
        self._conversation = self._serving = None
        if conversation is not None:
            conversation.flush()
            await conversation.close(t.Unreachable("The client was closed."))
        inside = {
            over: task for over, task in self._inside.items() if task is not asyncio.current_task()
        }
        for task in set(inside.values()):
            self._thrown_out.add(task)
            task.cancel()
        if inside:
            await asyncio.wait(inside)
        if serving is not None:
            await serving.aclose()
        if self._entered:
            self._entered = False
            await self._leave()

    def _to_client(self, out: list[tuple[Route, Frame]]) -> None:
        if self._conversation is None:
            return
        for route, frame in out:
            if self.tap is not None:
                self.tap("server", frame)
            # The routes of the server are IDs of our requests, or its own objects.
            call = route if isinstance(route, int | str) else None
            self._conversation.receive(frame, call=call)

    def _to_server(self, out: list[Frame]) -> None:
        if self._serving is None:
            return
        if self.tap is not None:
            for frame in out:
                self.tap("client", frame)
        self._serving.receive(out)
