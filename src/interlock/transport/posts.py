"""Sessions of the handshake era over HTTP: any worker serves any request of any session (2025-11-25, "Streamable HTTP").

What a session is lies in the store. What runs for it on this worker is known here only; answers to questions, cancellations and the
ends of sessions go to the other workers as notes.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from .. import types as t
from ..exchange import NO_CAPABILITIES, Principal
from ..protocol.events import NotificationReceived, ServerEvent
from ..protocol.http import EVENTS, SESSION, Ending, InSession, Listening, accepts, error, text
from ..protocol.server import IN_BATCH, STILL_OPEN, ServerConnection
from ..protocol.sessions import Session, SessionStore, StoreError, caller_of
from ..protocol.streams import Answer
from ..wire import jsonrpc
from ..wire.jsonrpc import Envelope, Frame, Malformed
from ..wire.revisions import R2, supports
from .bodies import asked, busy
from .feeds import Feeds
from .notes import Note, Notes
from .replies import Receive, Reply, Send, gone, send_body
from .requests import HttpTransport
from .serve import Serving

if TYPE_CHECKING:
    from .asgi import HttpApp

_MOST_SAVES = 100  # tries, where other requests change the same session at the same time
_STATE_METHODS = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})


class Incoming(Struct):
    """One HTTP request to the endpoint, with its body."""

    body: bytes
    headers: dict[bytes, bytes]
    principal: Principal | None
    scope: dict[str, Any]
    receive: Receive
    send: Send


class Post:
    """A POST whose calls run: the serving, and the response they go out by."""

    __slots__ = ("ids", "name", "reply", "serving")

    def __init__(
        self, serving: Serving, reply: Reply, name: str | None, ids: list[t.RequestId]
    ) -> None:
        self.serving, self.reply, self.name = serving, reply, name
        self.ids = ids

    @property
    def calls(self) -> int:
        """How many requests came in it."""
        return len(self.ids)


class StoredSession:
    """The state of a session in the store, which any worker can read and change."""

    __slots__ = ("_id", "_store")

    def __init__(self, store: SessionStore, id: str) -> None:
        self._store = store
        self._id = id

    async def load(self) -> bytes | None:
        """The bytes kept last; None where the session has ended."""
        return await self._store.load_state(self._id)

    async def save(self, state: bytes, *, was: bytes) -> bool:
        """Keep bytes in place of those that were loaded."""
        return await self._store.save_state(self._id, state, was=was)


class Sessions:
    """The sessions of one endpoint, as this worker sees them."""

    def __init__(
        self, app: HttpApp, *, stream: bool, retry_ms: int | None, most_calls: int
    ) -> None:
        self.app, self.store = app, app.store
        self.notes = Notes(self.store)
        self.worker, self.tell = self.notes.worker, self.notes.tell
        self.posts: dict[str, set[Post]] = {}  # by session
        self.calls = 0  # in all of them
        self._in_flight: dict[tuple[str, t.RequestId], Post] = {}  # by session and request
        self.feeds = Feeds(self)
        self._stream, self._retry, self._most_calls = stream, retry_ms, most_calls
        # No two workers ask under one id, and every script can hold it exactly.
        self._next_question = itertools.count((int(self.worker[:5], 16) << 32) + 1).__next__
        self._streams = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stop_hearing: Callable[[], object] = bool

    def open(self) -> None:
        """Begin to hear the other workers, and to show them that this one lives."""
        if self.store.shared:
            self._stop_hearing = self.notes.open(self._hear)
            self.spawn(self.notes.beat())
        self.spawn(self._attend())

    async def aclose(self) -> None:
        """End what runs here; the sessions stay in the store, for other workers or a later life of this one."""
        self._stop_hearing()
        self.feeds.close()
        for serving in self.servings():
            await serving.aclose()
        self.posts.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def servings(self) -> list[Serving]:
        """All that is running."""
        return [post.serving for posts in self.posts.values() for post in posts]

    def end_listening(self) -> None:
        """End every stream that only listens; their clients come back, to another worker if there is one."""
        self.feeds.close()

    def spawn(self, work: Any) -> None:
        """Run something beside the requests; kept until it is over."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- what a client may do --------------------------------------------------------------------------

    async def greet(self, x: Incoming) -> None:
        """`initialize`: open a session, or answer without one where there are none."""
        sessions = self.app.rules.sessions
        id = os.urandom(24).hex() if sessions else None
        connection = ServerConnection(
            self.app.identity, principal=x.principal, session=id, shared=False
        )
        connection.receive(x.body)
        body = b"".join(frame for _, frame in connection.outgoing())
        caller = connection.remembered
        if caller is None:
            await send_body(x.send, 400, body)
            return
        if id is None:
            await send_body(x.send, 200, body)
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
            created=now,
            until=self.until(now, now),
        )
        if not await self.store.sessions.create(session, most=self.app.limits.sessions, now=now):
            words = f"The server has as many sessions as it takes ({self.app.limits.sessions}). Try again later."
            later = [(b"retry-after", b"30")]
            await self.app.refuse(
                x.send,
                error(
                    503,
                    t.INTERNAL_ERROR,
                    words,
                    {"reason": "busy"},
                    id=asked(x.body),
                    headers=later,
                ),
            )
            return
        self.app.chronicle.session("opened", id, x.scope)
        await send_body(x.send, 200, body, headers=((b"mcp-session-id", id.encode()),))

    async def post(self, x: Incoming, verdict: InSession) -> None:
        """A message of a session: a request, a notification, an answer, or a batch of them."""
        session = await self._session(x, verdict.session, verdict.revision)
        if session is None:
            return
        caller = caller_of(session, x.principal)
        if not accepts(
            x.headers, EVENTS
        ):  # a question could not reach it, and its tool would wait for ever
            known = t.ClientCapabilities(extensions=caller.capabilities.extensions)
            caller = replace(caller, capabilities=known)
        connection = ServerConnection(
            self.app.identity,
            principal=x.principal,
            session=caller.session,
            shared=False,
            remembered=caller,
            subscriptions=session.subscriptions,
            next_id=self._next_question,
        )
        batch = verdict.request is None and jsonrpc.is_batch(x.body)
        try:
            if verdict.request is not None:
                if self._is_open(session.id, verdict.request.id):
                    raise Malformed(t.INVALID_REQUEST, STILL_OPEN, verdict.request.id)
                events, ids, method = (
                    connection.receive_read(verdict.request, verdict.meta, x.body),
                    [verdict.request.id],
                    verdict.request.method,
                )
            else:
                events, ids, method = self._take_in(x.body, session, connection, batch=batch)
        except Malformed as bad:
            await self.app.refuse(x.send, error(400, bad.code, str(bad), id=bad.id))
            return
        told = [event for event in events if isinstance(event, NotificationReceived)]
        if told:
            if not await self.app.hear(told, x.scope):
                await self.app.refuse(x.send, busy(None))
                return
            events = [event for event in events if event not in told]
        if not ids and not events:
            out = [frame for _, frame in connection.outgoing()]
            body = b",".join(out)
            await send_body(x.send, 400 if out else 202, b"[%b]" % body if batch and out else body)
            return
        await self._carry_out(x, session, connection, events, ids, method, batch=batch)

    def _take_in(
        self, body: bytes, session: Session, connection: ServerConnection, *, batch: bool
    ) -> tuple[list[ServerEvent], list[t.RequestId], str]:
        """Read what was posted: requests go into the connection, answers and cancellations to the calls they are for.

        Returns the events, the ids that will be answered, and the method where there is one only. Raises Malformed.
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
                if self.app.rules.sessions and (
                    envelope.method is UNSET or envelope.method == "notifications/cancelled"
                ):
                    self.deliver(session.id, frame)
                elif envelope.method in self.app.identity.extensions.notifications:
                    events += connection.receive(frame)
                continue
            if envelope.id is not None:
                ids.append(envelope.id)
                method = envelope.method
            events += connection.receive(frame)
        return events, ids, method if len(ids) == 1 else ""

    def _open(self, frame: Frame, session: Session, *, in_batch: bool) -> Envelope:
        """Take one message of a session apart. Raises Malformed."""
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
        if envelope.method is not UNSET and id is not None and self._is_open(session.id, id):
            raise Malformed(t.INVALID_REQUEST, STILL_OPEN, id)
        return envelope

    async def _carry_out(
        self,
        x: Incoming,
        session: Session,
        connection: ServerConnection,
        events: list[ServerEvent],
        ids: list[t.RequestId],
        method: str,
        *,
        batch: bool,
    ) -> None:
        """Run what was asked, and answer: with JSON where the responses come first, else with an event stream."""
        app = self.app
        if self._is_full(session.id):
            words = "The server is busy: too many requests are running in this session. Try again later."
            await app.refuse(
                x.send,
                error(503, t.INTERNAL_ERROR, words, {"reason": "busy"}, id=ids[0] if ids else None),
            )
            return
        has_session = app.rules.sessions
        name = f"{self.worker}.{next(self._streams):x}" if has_session else None
        answer = Answer(
            ids=ids,
            batch=batch,
            name=name,
            keep=None
            if name is None
            else lambda number, data, last: self._keep(session.id, name, number, data, last),
            primes=has_session and supports(session.revision, "primed_streams"),
            retry=self._retry,
            events=accepts(x.headers, EVENTS) and method not in _STATE_METHODS,
        )
        reply = Reply(answer, x.send, connection, cancels=False)
        serving = self._serving(connection, reply, session.id, x.scope)
        post = Post(serving, reply, name, ids)
        if has_session:
            self._in_flight.update(((session.id, id), post) for id in ids)
        self.posts.setdefault(session.id, set()).add(post)
        self.calls += post.calls
        reply.over = lambda: self._over(session.id, post)
        reply.first = asyncio.get_running_loop().create_future()
        app.pulse.add(reply, x.receive)
        try:
            for event in events:
                serving.take(event)
            serving.flush()
            if self._stream and answer.events:
                await asyncio.sleep(
                    0
                )  # who may not hears it by the status, which an event stream has sent already
                serving.flush()
                if not serving.denied:
                    answer.begin()
            if not answer.ended:
                await reply.first
            if method in _STATE_METHODS:  # before the client hears that it is done
                await self._save(session, connection)
            if answer.ended and not answer.begun and not answer.body():
                await send_body(x.send, 202, b"")  # cancelled before it said anything
            elif answer.ended:  # a batch of which anything was done is answered with 200: else its client would have that done again
                await reply.finish(*app.verdict(x.scope, serving, len(ids)))
            else:
                await gone(x.receive)
        finally:
            app.pulse.discard(reply)
            if not answer.ended:
                reply.lose()  # the client has gone; the call goes on, and can be come back for (`HTL-21`)

    def _is_open(self, session: str, id: t.RequestId) -> bool:
        """Whether a request of a session is neither answered nor cancelled at this worker."""
        post = self._in_flight.get((session, id))
        return post is not None and post.serving.connection.is_open(id)

    def _serving(
        self, connection: ServerConnection, reply: Reply, session: str, scope: dict[str, Any]
    ) -> Serving:
        return Serving(
            self.app.handler,
            connection,
            reply.transmit,
            drain=reply.drain,
            queued=lambda: reply.queued,
            most_calls=self._most_calls,
            transport=HttpTransport(
                scope, release=lambda retry: self._release(session, reply, retry)
            ),
            session=StoredSession(self.store.sessions, session) if session else None,
        )

    def _release(self, session: str, reply: Reply, retry: int | None) -> bool:
        """Let a client go, also one that has come back already, be it to another worker; False where it could not come back."""
        answer = reply.answer
        if reply.release(retry):
            return True
        if not (answer.primes and answer.begun):
            return False
        payload = f"{answer.name} {'' if retry is None else retry}"
        self.feeds.let_go(session, payload)
        self.tell("released", session, payload)
        return True

    def _is_full(self, session: str) -> bool:
        running = self.posts.get(session)
        return self.app.is_full or (
            running is not None and sum(p.calls for p in running) >= self._most_calls
        )

    async def listen(self, x: Incoming, verdict: Listening) -> None:
        """GET: the stream of change notices, or the rest of a stream that broke."""
        session = await self._session(x, verdict.session, verdict.revision)
        if session is not None:
            await self.feeds.serve(x, session, verdict.last_event)

    async def end(self, x: Incoming, verdict: Ending) -> None:
        """DELETE: end a session, wherever it is being served."""
        session = await self._session(x, verdict.session, verdict.revision)
        if session is None:
            return
        await self._end(session.id, x)
        await send_body(x.send, 204, b"")

    async def _end(self, session: str, x: Incoming) -> None:
        """End a session on every worker."""
        await self.store.sessions.end(session)
        self.tell("ended", session)
        self._end_here(session)
        self.app.chronicle.session("ended", session, x.scope)

    async def _end_named(self, x: Incoming, now: float) -> None:
        """A client that says `initialize` within a session begins anew: the old session is over."""
        named = text(x.headers, SESSION)
        session = None if named is None else await self.store.sessions.load(named, now=now)
        if session is None:
            return
        if session.principal == _key(x.principal):
            await self._end(session.id, x)
        else:
            self.app.chronicle.stolen(session.id, x.scope)

    # -- the record -----------------------------------------------------------------------------------------

    async def _session(self, x: Incoming, id: str | None, revision: str | None) -> Session | None:
        """The session that a request belongs to; None where it was refused."""
        if not self.app.rules.sessions:  # `HTL-49`
            return Session(
                id="", revision=revision or R2, capabilities=NO_CAPABILITIES, created=0.0, until=0.0
            )
        if id is None:  # `HTL-41`
            words = "Bad request: the header Mcp-Session-Id is missing"
            await self.app.refuse(x.send, error(400, t.INVALID_REQUEST, words, id=asked(x.body)))
            return None
        now = time.time()
        session = await self.store.sessions.load(id, now=now)
        if session is None or session.principal != _key(
            x.principal
        ):  # `HTL-42`, `SEC-03`: another's session is none
            if session is not None:
                self.app.chronicle.stolen(id, x.scope)
            words = "Session not found: it has ended; begin a new one with initialize"
            await self.app.refuse(x.send, error(404, t.INVALID_REQUEST, words, id=asked(x.body)))
            return None
        if revision is not None and revision != session.revision:  # `HTL-48`, `HTL-50`
            words = (
                f"Bad request: MCP-Protocol-Version is {revision[:40]!r},"
                f" and this session has agreed on {session.revision!r}"
            )
            data = {"supported": [session.revision], "requested": revision[:40]}
            refused = error(400, t.INVALID_REQUEST, words, data, id=asked(x.body))
            await self.app.refuse(x.send, refused)
            return None
        until = self.until(session.created, now)
        if until - session.until > self.app.limits.idle_seconds / 20:
            await self.store.sessions.prolong(id, until)
        return session

    def until(self, created: float, now: float) -> float:
        """When a session ends that is not used from now on."""
        return min(created + self.app.limits.session_seconds, now + self.app.limits.idle_seconds)

    async def _save(self, session: Session, connection: ServerConnection) -> None:
        """Keep what a request has changed in its session: the log level, or what it has subscribed to or from."""
        caller = connection.remembered
        assert caller is not None
        added = set(connection.subscriptions) - set(session.subscriptions)
        removed = set(session.subscriptions) - set(connection.subscriptions)
        level = caller.log_level if caller.log_level != session.log_level else UNSET
        if not added and not removed and level is UNSET:
            return
        for _ in range(_MOST_SAVES):
            now: Session | None = await self.store.sessions.load(session.id, now=time.time())
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
            if await self.store.sessions.save(new, was=now):
                break
        else:
            raise StoreError("a session changes so often that nothing more can be noted in it")
        if added or removed:
            self.tell("changed", session.id)
            self.feeds.changed(session.id)

    # -- calls and workers --------------------------------------------------------------------------------------

    def deliver(self, session: str, frame: Frame) -> None:
        """Give an answer or a cancellation to whichever call it is for, here or on another worker."""
        self._deliver_here(session, frame)
        self.tell("frame", session, frame.decode("utf-8", "replace"))

    def _deliver_here(self, session: str, frame: Frame) -> None:
        for post in list(self.posts.get(session, ())):
            post.serving.receive([frame])
            if not post.serving.connection.unanswered:
                post.reply.end()  # all that it was to answer has been cancelled

    def _hear(self, note: Note) -> None:
        match note.kind:
            case "listening":
                self.feeds.yield_to(note.session, note.payload)
            case "following":
                self.feeds.follow(note.session, note.payload)
            case _ if note.worker == self.worker:
                pass
            case "frame":
                self._deliver_here(note.session, note.payload.encode())
            case "posted":
                self.app.hear_old(note.session, note.payload)
            case "ended":
                self._end_here(note.session)
            case "changed":
                self.feeds.changed(note.session)
            case "released":
                self.feeds.let_go(note.session, note.payload)
            case "stirred":
                self.feeds.stir(note.session, note.payload)

    def _end_here(self, session: str) -> None:
        """A session has ended: so does all that runs for it here."""
        self.feeds.end(session)
        self.app.end_old(session)
        for post in list(self.posts.get(session, ())):
            for id in list(post.serving.running):
                post.serving.connection.fail(
                    id,
                    t.INTERNAL_ERROR,
                    "The session has ended, and the call with it.",
                    {"reason": "session"},
                )
            post.serving.flush()
            post.reply.end()

    def _keep(self, session: str, name: str, number: int, data: bytes, last: bool) -> None:
        self.store.events.append(session, name, number, data, last=last)
        self.feeds.stir(session, name)
        if name in self.feeds.followed:
            self.tell("stirred", session, name)
            if last:
                self.feeds.followed.discard(name)

    def _over(self, session: str, post: Post) -> None:
        """All of a POST is answered."""
        posts = self.posts.get(session)
        self.calls -= post.calls
        for id in post.ids:
            if self._in_flight.get((session, id)) is post:
                del self._in_flight[session, id]
        if posts is not None:
            posts.discard(post)
            if not posts:
                del self.posts[session]
        if (
            post.serving.running
        ):  # what it listened to on the peer's behalf is the business of the feeds
            self.spawn(post.serving.aclose())

    def running(self, session: str, name: str) -> Post | None:
        """The POST that writes a stream, where it runs on this worker."""
        return next((post for post in self.posts.get(session, ()) if post.name == name), None)

    async def _attend(self) -> None:
        """Keep sessions alive whose streams are open, and end the streams of those that are over."""
        while True:
            await asyncio.sleep(
                max(
                    min(
                        self.app.limits.idle_seconds / 4, self.app.limits.session_seconds / 4, 60.0
                    ),
                    0.05,
                )
            )
            with contextlib.suppress(StoreError):
                await self._attend_once(time.time())

    async def _attend_once(self, now: float) -> None:
        for id in {*self.feeds.sessions, *self.posts, *self.app.old_sessions} - {""}:
            session = await self.store.sessions.load(id, now=now)
            if session is None:
                self._end_here(id)
            else:
                await self.store.sessions.prolong(id, self.until(session.created, now))


def _key(principal: Principal | None) -> str | None:
    return None if principal is None else principal.key
