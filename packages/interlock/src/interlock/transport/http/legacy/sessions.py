"""The session endpoint: sessions of the handshake era over HTTP. Any worker serves any request of a
session (2025-11-25, "Streamable HTTP").

The session itself is in the store. Only the calls that run on this worker are in memory. Answers to
questions, cancellations and the ends of sessions reach other workers as messages.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from msgspec import UNSET
from msgspec.structs import replace

from interlock import types as t
from interlock.eager import start_eagerly
from interlock.exchange import NO_CAPABILITIES, Caller, Principal
from interlock.protocol.events import NotificationReceived, RequestReceived, ServerEvent
from interlock.protocol.handshake.server import (
    IN_BATCH,
    STILL_OPEN,
    ServerConnection,
    accept_in_session,
)
from interlock.protocol.http import (
    EVENTS,
    EndsSession,
    InSession,
    ListensInSession,
    error,
)
from interlock.protocol.streams import PostResponse, opening_event, whole_stream
from interlock.store.errors import StoreError
from interlock.store.interface import Session, SessionStore, Store
from interlock.wire import jsonrpc
from interlock.wire.jsonrpc import Envelope, Frame, Malformed
from interlock.wire.revisions import R2, supports

from ....store.worker_messages import WorkerMessages
from ...serve import Serving, carry_out
from ..background_tasks import BackgroundTasks
from ..error_responses import busy, request_id
from ..notifications import NotificationRunner
from ..request_info import HttpTransport
from ..requests import EVENT_HEADERS, EndpointRequest, gone
from ..responses import ResponseWriter
from ..running_calls import held_bytes, quota_holder
from ..services import Services
from ..single_call import Grown
from .get_streams import GetStreams
from .in_flight import InFlightPost, InFlightPosts
from .session_calls import SessionCall
from .session_expiry import SessionExpiry

_MOST_SAVES = 100  # attempts while other requests change the same session
_STATE_METHODS = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How sessions are served.

    Attributes:
        are_kept: Whether there are sessions. Otherwise each request of the handshake era is
            independent.
        stream: Whether calls are always answered with an event stream.
        retry_ms: The time after which a client should resume a broken stream, in milliseconds; None
            leaves it to the client.
        most_calls: The maximum number of running calls of one session.
        on_end: Called with the duration of each session that is ended, in seconds.
    """

    are_kept: bool
    stream: bool
    retry_ms: int | None
    most_calls: int
    on_end: Callable[[float], object]


class StoredSession:
    """The state of a session in the store, which any worker can read and change."""

    __slots__ = ("_id", "_store")

    def __init__(self, store: SessionStore, id: str) -> None:
        self._store = store
        self._id = id

    async def load(self) -> bytes | None:
        """Return the saved bytes; None if the session has ended."""
        return await self._store.load_state(self._id)

    async def save(self, state: bytes, *, was: bytes) -> bool:
        """Replace the bytes that were loaded."""
        return await self._store.save_state(self._id, state, was=was)


class SessionEndpoint:
    """The sessions of one endpoint, on this worker."""

    def __init__(
        self,
        services: Services,
        store: Store,
        messages: WorkerMessages,
        expiry: SessionExpiry,
        tasks: BackgroundTasks,
        notifications: NotificationRunner,
        options: SessionOptions,
    ) -> None:
        self._services = services
        self._store = store
        self._messages = messages
        self._expiry = expiry
        self._tasks = tasks
        self._notifications = notifications
        self._options = options
        self._posts = InFlightPosts(messages)
        self._streams = GetStreams(services, store, messages, self._posts, tasks)
        # Two workers never use the same ID for a question, and a JavaScript number is exact for it.
        self._next_question = itertools.count((int(messages.worker[:5], 16) << 32) + 1).__next__
        self._stream_numbers = itertools.count(1)
        messages.on("frame", self._receive_frame)
        messages.on("ended", self._end_calls)
        expiry.add_active(self._streams.sessions)
        expiry.add_active(lambda: self._posts.sessions)

    async def aclose(self) -> None:
        """End everything that runs on this worker. The sessions stay in the store, for other
        workers or a later start of this one.
        """
        self._streams.close()
        for serving in self._posts.servings():
            await serving.aclose()
        self._posts.clear()

    def servings(self) -> list[Serving]:
        """Return all servings."""
        return self._posts.servings()

    def end_listening(self) -> None:
        """End every GET stream. The clients reconnect, to another worker if there is one."""
        self._streams.close()

    # -- requests of a client ----------------------------------------------------------------------

    async def open(self, x: EndpointRequest) -> None:
        """`initialize`: open a session, or respond without one if sessions are off."""
        services = self._services
        most_opening = services.limits.opening
        if len(x.body) > most_opening:
            words = f"Content too large: initialize has at most {most_opening} bytes"
            await services.errors.send(x, error(413, t.INVALID_REQUEST, words))
            return
        id = os.urandom(24).hex() if self._options.are_kept else None
        connection = ServerConnection(
            services.identity, principal=x.principal, session=id, shared=False
        )
        connection.receive(x.body)
        body = b"".join(frame for _, frame in connection.outgoing())
        caller = connection.remembered
        if caller is None:
            await x.respond(400, body)
            return
        if id is None:
            await x.respond(200, body)
            return
        now = time.time()
        await self._end_named(x, now)
        session = Session(
            id=id,
            revision=caller.revision,
            capabilities=caller.capabilities,
            info=caller.info,
            log_level=caller.log_level,
            principal=_key(x.principal),
            holder=quota_holder(x),
            created=now,
            until=self._expiry.until(now, now),
        )
        most = services.limits.sessions
        rested = self._expiry.rested(now)
        if not await self._store.sessions.create(session, most=most, now=now, rested=rested):
            await services.errors.send(x, busy(request_id(x.body), "sessions", 30))
            return
        services.log.session("opened", id, x)
        await x.respond(200, body, headers=((b"mcp-session-id", id.encode()),))

    async def post(self, x: EndpointRequest, verdict: InSession) -> None:
        """Serve a message of a session: a request, a notification, a response, or a batch."""
        session = await self._session(x, verdict.session, verdict.revision)
        if session is None:
            return
        caller = session.caller(x.principal)
        if not x.head.takes_events:
            # A question could not reach the client, so its tool would wait forever.
            known = t.ClientCapabilities(extensions=caller.capabilities.extensions)
            caller = replace(caller, capabilities=known)
        if verdict.request is not None:
            identity = self._services.identity
            event = accept_in_session(identity, caller, verdict.request, verdict.meta, x.body)
            if event is not None and not self._posts.is_open(session.id, verdict.request.id):
                await self._call(x, session, caller, event)
                return
        connection = self._connection(x, session, caller)
        batch = verdict.request is None and jsonrpc.is_batch(x.body)
        try:
            if verdict.request is not None:
                if self._posts.is_open(session.id, verdict.request.id):
                    raise Malformed(t.INVALID_REQUEST, STILL_OPEN, verdict.request.id)
                events = connection.receive_read(verdict.request, verdict.meta, x.body)
                ids = [verdict.request.id]
                method = verdict.request.method
            else:
                events, ids, method = await self._take_in(x.body, session, connection, batch=batch)
        except Malformed as bad:
            await self._services.errors.send(x, error(400, bad.code, str(bad), id=bad.id))
            return
        notifications = [event for event in events if isinstance(event, NotificationReceived)]
        if notifications:
            if not await self._notifications.run(notifications, x):
                await self._services.errors.send(x, busy(None, "calls"))
                return
            events = [event for event in events if event not in notifications]
        if not ids and not events:
            out = [frame for _, frame in connection.outgoing()]
            body = b",".join(out)
            await x.respond(400 if out else 202, b"[%b]" % body if batch and out else body)
            return
        await self._carry_out(x, session, connection, events, ids, method, batch=batch)

    async def _take_in(
        self, body: bytes, session: Session, connection: ServerConnection, *, batch: bool
    ) -> tuple[list[ServerEvent], list[t.RequestId], str]:
        """Process a posted body: requests go to the connection, responses and cancellations to the
        calls that they belong to.

        Returns the events, the IDs of the requests, and the method if there is only one. Raises
        Malformed, and StoreError if another worker may need a message and cannot get it.
        """
        if batch and not supports(session.revision, "batches"):
            raise Malformed(t.INVALID_REQUEST, "Invalid request: this revision has no batches")
        events: list[ServerEvent] = []
        ids: list[t.RequestId] = []
        method = ""
        for frame in jsonrpc.open_batch(body) if batch else [body]:
            try:
                envelope = self._open(frame, session, in_batch=batch)
            except Malformed as bad:
                if not batch:
                    raise
                if not bad.is_answer:
                    connection.refuse(bad.id, bad.code, str(bad))
                continue
            if envelope.method is UNSET or envelope.id is UNSET:
                if self._options.are_kept and (
                    envelope.method is UNSET or envelope.method == "notifications/cancelled"
                ):
                    # Confirmed, because the client does not send it again after status 202.
                    if not self._deliver(session.id, frame):
                        payload = frame.decode("utf-8", "replace")
                        await self._messages.publish_confirmed("frame", session.id, payload)
                elif envelope.method in self._services.identity.extensions.notifications:
                    events += connection.receive(frame)
                continue
            if envelope.id is not None:
                ids.append(envelope.id)
                method = envelope.method
            events += connection.receive(frame)
        return events, ids, method if len(ids) == 1 else ""

    def _open(self, frame: Frame, session: Session, *, in_batch: bool) -> Envelope:
        """Open one message of a session. Raises Malformed."""
        if in_batch and jsonrpc.is_batch(frame):
            raise Malformed(t.INVALID_REQUEST, "Invalid request: a batch within a batch")
        envelope = jsonrpc.open_envelope(frame)
        id = envelope.id if isinstance(envelope.id, int | str) else None
        if envelope.method is UNSET and envelope.result is UNSET and envelope.error is UNSET:
            raise Malformed(
                t.INVALID_REQUEST,
                "Invalid request: neither a method, nor a result, nor an error",
                id,
            )
        if in_batch and envelope.method == "initialize":  # `RPC-15`
            raise Malformed(t.INVALID_REQUEST, IN_BATCH, id)
        if envelope.method is not UNSET and id is not None and self._posts.is_open(session.id, id):
            raise Malformed(t.INVALID_REQUEST, STILL_OPEN, id)
        return envelope

    def _connection(self, x: EndpointRequest, session: Session, caller: Caller) -> ServerConnection:
        return ServerConnection(
            self._services.identity,
            principal=x.principal,
            session=caller.session,
            shared=False,
            remembered=caller,
            subscriptions=session.subscriptions,
            next_id=self._next_question,
        )

    async def _call(
        self, x: EndpointRequest, session: Session, caller: Caller, event: RequestReceived
    ) -> None:
        """Run a POST of one request. Most calls end before they wait for anything, and then only
        their response is sent.
        """
        services = self._services
        id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request: its ID
        holder = quota_holder(x)
        held = held_bytes(len(x.body))
        if (
            held
            or self._is_full(session.id)
            or not services.calls.slots.acquire_uncontended(holder)
        ) and not await self._acquire(x, session, [id], holder, held):
            return
        posts: list[InFlightPost] = []

        def grow() -> Grown:
            connection = self._connection(x, session, caller)
            connection.adopt(event)
            post = self._open_post(
                x, session, connection, [id], event.method, holder, held, batch=False
            )
            posts.append(post)
            return post.serving, post.reply

        stored = StoredSession(self._store.sessions, session.id) if session.id else None
        call = SessionCall(services.identity, event, grow, partial(self._release, session.id))
        exchange = call.exchange(x, stored, held)
        loop = asyncio.get_running_loop()
        work = carry_out(services.handler, event, exchange, call)
        if x.holder is not None:
            work = x.holder.paced(work)
        task = start_eagerly(work, loop)
        if not task.done():
            call.grow()
        if call.grown is None:
            services.calls.release(holder, held)
            await self._send_outcome(x, session, call, id)
            return
        serving = call.grown[0]
        if not task.done():
            serving.running[id] = task  # type: ignore[assignment]  # not done: a task
        await self._finish(x, session, posts[0], event.method)

    async def _send_outcome(
        self, x: EndpointRequest, session: Session, call: SessionCall, id: t.RequestId
    ) -> None:
        """Send the response to a call that has ended already."""
        if not call.frame:
            await x.respond(202, b"")  # cancelled
            return
        if self._options.stream and x.head.takes_events and not call.denied:
            await x.respond(200, self._whole_stream(session, id, call.frame), EVENTS, EVENT_HEADERS)
            return
        status, headers = self._services.errors.status(x, call.denied, 1)
        await x.respond(status, call.frame, headers=headers)

    def _whole_stream(self, session: Session, id: t.RequestId, frame: Frame) -> bytes:
        """Return the event stream of a call that has ended already. Nobody can wait for its events,
        because no client knows its name yet.
        """
        name = None
        if session.id:
            name = self._new_stream()
            events = self._store.events
            events.append(session.id, name, 0, opening_event([id]), last=False)
            events.append(session.id, name, 1, frame, last=True)
        primes = supports(session.revision, "primed_streams")
        return whole_stream(name, frame, primes=primes, retry=self._options.retry_ms)

    def _new_stream(self) -> str:
        """Return a name for a stream. Any worker knows from it which one writes the stream."""
        return f"{self._messages.worker}.{next(self._stream_numbers):x}"

    async def _carry_out(
        self,
        x: EndpointRequest,
        session: Session,
        connection: ServerConnection,
        events: list[ServerEvent],
        ids: list[t.RequestId],
        method: str,
        *,
        batch: bool,
    ) -> None:
        """Run the requests of a POST, and respond: with JSON if the responses come first, otherwise
        with an event stream.
        """
        holder = quota_holder(x)
        held = held_bytes(len(x.body))
        if not await self._acquire(x, session, ids, holder, held):
            return
        if len(ids) > 1:
            self._services.calls.slots.take(holder, len(ids) - 1)  # the other calls of a batch
        post = self._open_post(x, session, connection, ids, method, holder, held, batch=batch)
        for event in events:
            post.serving.handle(event)
        post.serving.flush()
        await self._finish(x, session, post, method)

    async def _acquire(
        self, x: EndpointRequest, session: Session, ids: list[t.RequestId], holder: str, held: int
    ) -> bool:
        """Wait until a POST may run. Returns False if it was refused."""
        services = self._services
        id = ids[0] if ids else None
        if self._is_full(session.id):
            await services.errors.send(x, busy(id, "calls in this session"))
            return False
        if full := await services.calls.acquire(holder, held):
            await services.errors.send(x, busy(id, full))
            return False
        if any(self._posts.is_open(session.id, each) for each in ids):  # opened while this waited
            services.calls.release(holder, held)
            await services.errors.send(x, error(400, t.INVALID_REQUEST, STILL_OPEN, id=id))
            return False
        return True

    def _open_post(
        self,
        x: EndpointRequest,
        session: Session,
        connection: ServerConnection,
        ids: list[t.RequestId],
        method: str,
        holder: str,
        held: int,
        *,
        batch: bool,
    ) -> InFlightPost:
        """Register a POST whose requests are about to run, and which releases its quotas when they
        have ended.
        """
        answer = self._answer(x, session, ids, method, batch=batch)
        reply = ResponseWriter(answer, x, connection, cancels=False)
        serving = self._serving(connection, reply, session.id, x, held)
        release = partial(self._services.calls.release, holder, held, max(len(ids), 1))
        post = InFlightPost(serving, reply, answer.name, ids, release)
        self._posts.add(session.id, post)
        reply.over = lambda: self._close_post(session.id, post)
        reply.first = asyncio.get_running_loop().create_future()
        return post

    async def _finish(
        self, x: EndpointRequest, session: Session, post: InFlightPost, method: str
    ) -> None:
        """Respond to a POST whose requests run."""
        services = self._services
        serving = post.serving
        reply = post.reply
        answer = reply.answer
        services.ticker.add(reply)
        try:
            if self._options.stream and answer.events:
                # A missing scope sets the HTTP status, so an event stream must not start before
                # that is known.
                await asyncio.sleep(0)
                serving.flush()
                if not serving.denied:
                    answer.start_stream()
            if not answer.ended:
                assert reply.first is not None
                await reply.first
            if method in _STATE_METHODS:  # before the client sees the response
                await self._save(session, serving.connection)
            if answer.ended and not answer.begun and not answer.body():
                await x.respond(202, b"")  # cancelled before it sent anything
            elif answer.ended:
                # A batch of which one call has run gets status 200. Otherwise its client would send
                # it again.
                await reply.finish(*services.errors.status(x, serving.denied, len(post.ids)))
            else:
                await gone(x.receive)
        finally:
            services.ticker.discard(reply)
            if not answer.ended:
                reply.lose()  # the client is gone; the call continues and can be resumed (`HTL-21`)

    def _answer(
        self,
        x: EndpointRequest,
        session: Session,
        ids: list[t.RequestId],
        method: str,
        *,
        batch: bool,
    ) -> PostResponse:
        """Return the response to the requests of a POST. In a session its stream can be resumed."""
        events = x.head.takes_events and method not in _STATE_METHODS
        retry = self._options.retry_ms
        if not self._options.are_kept:
            return PostResponse(ids=ids, batch=batch, retry=retry, events=events)
        name = self._new_stream()
        return PostResponse(
            ids=ids,
            batch=batch,
            name=name,
            keep=lambda number, data, last: self._keep(session.id, name, number, data, last),
            primes=supports(session.revision, "primed_streams"),
            retry=retry,
            events=events,
        )

    def _serving(
        self,
        connection: ServerConnection,
        reply: ResponseWriter,
        session: str,
        x: EndpointRequest,
        held: int,
    ) -> Serving:
        return Serving(
            self._services.handler,
            connection,
            reply.transmit,
            drain=reply.drain,
            queued=lambda: reply.queued,
            most_calls=self._options.most_calls,
            transport=HttpTransport(
                x, None, lambda retry: self._release(session, reply, retry), held
            ),
            session=StoredSession(self._store.sessions, session) if session else None,
        )

    def _release(self, session: str, reply: ResponseWriter, retry: int | None) -> bool:
        """Close a client's stream, even if the client has resumed it already, at any worker.

        Returns:
            False if the client could not resume.
        """
        answer = reply.answer
        if reply.release(retry):
            return True
        if not (answer.primes and answer.begun):
            return False
        payload = f"{answer.name} {'' if retry is None else retry}"
        self._messages.announce("released", session, payload)
        return True

    def _is_full(self, session: str) -> bool:
        return self._posts.calls(session) >= self._options.most_calls

    async def listen(self, x: EndpointRequest, verdict: ListensInSession) -> None:
        """Serve a GET: a stream of change notices, or the rest of a broken stream."""
        session = await self._session(x, verdict.session, verdict.revision)
        if session is not None:
            await self._streams.serve(x, session, verdict.last_event)

    async def end_session(self, x: EndpointRequest, verdict: EndsSession) -> None:
        """Serve a DELETE: end a session on all workers."""
        session = await self._session(x, verdict.session, verdict.revision)
        if session is None:
            return
        await self._end(session, x)
        await x.respond(204, b"")

    async def _end(self, session: Session, x: EndpointRequest) -> None:
        """End a session on every worker."""
        if await self._store.sessions.end(session.id):
            self._options.on_end(time.time() - session.created)
        self._messages.announce("ended", session.id)
        self._services.log.session("ended", session.id, x)

    async def _end_named(self, x: EndpointRequest, now: float) -> None:
        """End the session that a client names in `initialize`: the client starts again."""
        named = x.head.session
        session = None if named is None else await self._store.sessions.load(named, now=now)
        if session is None:
            return
        if session.principal == _key(x.principal):
            await self._end(session, x)
        else:
            self._services.log.stolen(session.id, x)

    # -- the stored session ------------------------------------------------------------------------

    async def _session(
        self, x: EndpointRequest, id: str | None, revision: str | None
    ) -> Session | None:
        """Return the session of a request; None if the request was refused."""
        if not self._options.are_kept:  # `HTL-49`
            return Session(
                id="", revision=revision or R2, capabilities=NO_CAPABILITIES, created=0.0, until=0.0
            )
        if id is None:  # `HTL-41`
            words = "Bad request: the header Mcp-Session-Id is missing"
            await self._services.errors.send(
                x, error(400, t.INVALID_REQUEST, words, id=request_id(x.body))
            )
            return None
        now = time.time()
        session = await self._store.sessions.load(id, now=now)
        if session is None or session.principal != _key(
            x.principal
        ):  # `HTL-42`, `SEC-03`: a session of another principal does not exist for this caller
            if session is not None:
                self._services.log.stolen(id, x)
            words = "Session not found: it has ended; begin a new one with initialize"
            await self._services.errors.send(
                x, error(404, t.INVALID_REQUEST, words, id=request_id(x.body))
            )
            return None
        if revision is not None and revision != session.revision:  # `HTL-48`, `HTL-50`
            words = (
                f"Bad request: MCP-Protocol-Version is {revision[:40]!r},"
                f" and this session has agreed on {session.revision!r}"
            )
            data = {"supported": [session.revision], "requested": revision[:40]}
            refused = error(400, t.INVALID_REQUEST, words, data, id=request_id(x.body))
            await self._services.errors.send(x, refused)
            return None
        if (until := self._expiry.renewed(session, now)) is not None:
            await self._store.sessions.prolong(id, until)
        return session

    async def _save(self, session: Session, connection: ServerConnection) -> None:
        """Save the changes of a request to its session: the log level, or its subscriptions."""
        caller = connection.remembered
        assert caller is not None
        added = set(connection.subscriptions) - set(session.subscriptions)
        removed = set(session.subscriptions) - set(connection.subscriptions)
        level = caller.log_level if caller.log_level != session.log_level else UNSET
        if not added and not removed and level is UNSET:
            return
        for _ in range(_MOST_SAVES):
            now: Session | None = await self._store.sessions.load(session.id, now=time.time())
            if now is None:
                return
            kept = [uri for uri in now.subscriptions if uri not in removed]
            new = replace(
                now,
                log_level=now.log_level if level is UNSET else level,
                subscriptions=(
                    *kept,
                    *(uri for uri in connection.subscriptions if uri in added and uri not in kept),
                ),
            )
            if await self._store.sessions.save(new, was=now):
                break
        else:
            raise StoreError("a session changes so often that nothing more can be noted in it")
        if added or removed:
            self._messages.announce("changed", session.id)

    # -- calls -------------------------------------------------------------------------------------

    def _receive_frame(self, session: str, payload: str) -> None:
        """Process a response or a cancellation that another worker received."""
        self._deliver(session, payload.encode())

    def _deliver(self, session: str, frame: Frame) -> bool:
        """Pass a response or a cancellation to the calls of a session on this worker. Returns
        whether it was for one of them.
        """
        for post in self._posts.of(session):
            is_known = post.serving.receive([frame])
            if not post.serving.connection.unanswered:
                post.reply.close()  # every call of the POST has been cancelled
            if is_known:
                return True
        return False

    def _end_calls(self, session: str, payload: str = "") -> None:
        """Fail the calls of a session that has ended."""
        words = "The session has ended, and the call with it."
        for post in self._posts.of(session):
            for id in list(post.serving.running):
                post.serving.connection.fail(id, t.INTERNAL_ERROR, words, {"reason": "session"})
            post.serving.flush()
            post.reply.close()

    def _keep(self, session: str, name: str, number: int, data: bytes, last: bool) -> None:
        """Store an event of a stream for a resumption."""
        self._store.events.append(session, name, number, data, last=last)
        self._streams.wake(session, name)
        if name in self._streams.followed:
            self._messages.publish("stirred", session, name)
            if last:
                self._streams.followed.discard(name)

    def _close_post(self, session: str, post: InFlightPost) -> None:
        """Remove a POST whose calls are all answered."""
        self._posts.discard(session, post)
        if post.serving.running:  # subscriptions: the GET streams serve them
            self._tasks.start(post.serving.aclose())


def _key(principal: Principal | None) -> str | None:
    return None if principal is None else principal.key
