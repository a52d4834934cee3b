"""The GET streams of sessions on this worker: notification streams, and resumed streams of calls.

A session has at most one notification stream, as a notification goes to one stream only (`HTL-30`).
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from interlock import types as t
from interlock.protocol.http import error
from interlock.protocol.streams import PostResponse, place
from interlock.store.interface import Replay, Session, Store

from ..background_tasks import BackgroundTasks
from ..responses import HOLD, ResponseWriter, gone
from ..services import Services
from .in_flight import InFlightPosts
from .incoming import SessionRequest
from .notification_streams import CHANGES, NotificationStream
from .resumed_streams import LOOK, ResumedStream
from .worker_messages import WorkerMessages


class GetStreams:
    """Opens the streams, and ends one when its client opens it again elsewhere.

    Attributes:
        followed: Streams that run on this worker and whose events another worker waits for.
    """

    def __init__(
        self,
        services: Services,
        store: Store,
        messages: WorkerMessages,
        posts: InFlightPosts,
        tasks: BackgroundTasks,
    ) -> None:
        self._services = services
        self._store = store
        self._messages = messages
        self._posts = posts
        self._tasks = tasks
        self.followed: set[str] = set()
        self._notifying: dict[str, NotificationStream] = {}  # by session
        self._resumed: dict[str, dict[str, ResumedStream]] = {}  # by session, and by stream
        messages.on("changed", self._restart)
        messages.on("released", self._release)
        messages.on("stirred", self.wake)
        messages.on("ended", self._end_session)
        messages.on_every("listening", self._see_notification_stream)
        messages.on_every("following", self._see_resumed_stream)

    def sessions(self) -> set[str]:
        """The sessions that have a stream open here."""
        return {*self._notifying, *self._resumed}

    def close(self) -> None:
        """End every stream; the clients come back, to another worker if there is one."""
        for session in self.sessions():
            self._end_session(session)

    # -- opening ---------------------------------------------------------------------------------

    async def serve(self, x: SessionRequest, session: Session, last_event: str | None) -> None:
        """Answer a GET; `last_event` is its Last-Event-ID."""
        services = self._services
        if services.ticker.streams >= services.limits.streams:
            words = "The server has as many open streams as it takes. Try again later."
            data = {"reason": "busy"}
            later = [(b"retry-after", b"5")]
            await services.errors.send(
                x.send, error(503, t.INTERNAL_ERROR, words, data, headers=later)
            )
            return
        if last_event is None:
            await self._open_notifications(x, session, None)
            return
        if last_event.startswith(CHANGES):
            await self._open_notifications(x, session, last_event[len(CHANGES) :] or "?")
            return
        where = place(last_event)
        replay = None if where is None else await self._read(session, *where)
        if where is None or replay is None:
            words = (
                "The events after this Last-Event-ID are no longer kept, or never were in this "
                "session"
            )
            await services.errors.send(x.send, error(400, t.INVALID_REQUEST, words))
            return
        await self._resume(x, session, *where, replay)

    async def _open_notifications(
        self, x: SessionRequest, session: Session, since: str | None
    ) -> None:
        """Open a notification stream, in place of an older one of the session, wherever that is."""
        services = self._services
        answer = PostResponse(name=None)
        reply = ResponseWriter(answer, x.send, None, cancels=False)
        stream = NotificationStream(
            services.handler, services.shutdown, session, x.principal, reply, since, self._forget
        )
        if (older := self._notifying.pop(session.id, None)) is not None:
            older.stop()
        self._notifying[session.id] = stream
        services.ticker.add(reply, x.receive, listens=True)
        is_held = False
        try:
            await self._announce(stream, "listening", session.id, stream.token)
            if answer.ended:
                answer.start_stream()
                await reply.finish()
                return
            reply.start_stream(comment=True)
            stream.start(session)
            is_held = await reply.rest(x.scope.get(HOLD), stream.close)
            if not is_held:
                await gone(x.receive)
        finally:
            if not is_held:
                stream.close()

    def _forget(self, stream: NotificationStream) -> None:
        """A notification stream is over."""
        self._services.ticker.discard(stream.reply)
        if self._notifying.get(stream.session.id) is stream:
            del self._notifying[stream.session.id]

    async def _resume(
        self, x: SessionRequest, session: Session, name: str, after: int, replay: Replay
    ) -> None:
        """Send the rest of a stream of calls, in place of whatever response it was sent on
        before.
        """
        ticker = self._services.ticker
        reply = ResponseWriter(PostResponse(name=None), x.send, None, cancels=False)
        stream = ResumedStream(self._store.events, self._posts, session.id, reply, name, after)
        streams = self._resumed.setdefault(session.id, {})
        self._take_over(session.id, name)
        streams[name] = stream
        ticker.add(reply, x.receive, listens=True)
        try:
            await self._announce(stream, "following", session.id, f"{name} {stream.token}")
            if reply.answer.ended:
                reply.answer.start_stream()
                await reply.finish()
                return
            reply.start_stream(comment=not replay.events)
            stream.start(replay)
            await gone(x.receive)
        finally:
            ticker.discard(reply)
            reply.lose()
            stream.stop()
            if streams.get(name) is stream:
                del streams[name]
            if not streams and self._resumed.get(session.id) is streams:
                del self._resumed[session.id]

    async def _announce(
        self, stream: NotificationStream | ResumedStream, kind: str, session: str, payload: str
    ) -> None:
        """Tell the other workers of a stream, and wait until they can know: all see streams in the
        order of their opening.
        """
        if not self._messages.is_shared:
            return
        received = stream.received = asyncio.get_running_loop().create_future()
        self._messages.publish(kind, session, payload)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK):
                await received
        stream.received = None

    async def _read(self, session: Session, name: str, after: int) -> Replay | None:
        """What came after an event. A client may be faster than the store through which another
        worker tells of the stream.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + LOOK
        pause = 0.01
        while True:
            replay = await self._store.events.read(session.id, name, after)
            if replay is not None or self._posts.is_ours(name) or loop.time() > until:
                return replay
            if not await self._posts.is_written(session.id, name):
                return await self._store.events.read(session.id, name, after)
            await asyncio.sleep(pause)
            pause *= 2

    # -- messages ----------------------------------------------------------------------------------

    def _restart(self, session: str, payload: str = "") -> None:
        """The subscriptions of a session have changed."""
        if session in self._notifying:
            self._tasks.start(self._listen_anew(session))

    async def _listen_anew(self, id: str) -> None:
        session = await self._store.sessions.load(id, now=time.time())
        stream = self._notifying.get(id)
        if stream is not None and session is not None:
            stream.start(session)

    def _see_notification_stream(self, session: str, token: str) -> None:
        """A notification stream was opened at some worker: all see them in one order, and the last
        one stays.
        """
        stream = self._notifying.get(session)
        if stream is None:
            return
        if stream.token == token:
            stream.announced = True
            _settle(stream.received)
        elif stream.announced:
            stream.stop()

    def _see_resumed_stream(self, session: str, payload: str) -> None:
        """A stream of calls was resumed at some worker: all see that in one order, and the last one
        stays.
        """
        name, _, token = payload.partition(" ")
        stream = self._resumed.get(session, {}).get(name)
        if stream is not None and stream.token == token:
            stream.announced = True
            _settle(stream.received)
        elif self._take_over(session, name, announced=True):
            self.followed.add(name)
            # What was added between its look and our receiving of this:
            self._messages.publish("stirred", session, name)

    def _take_over(self, session: str, name: str, *, announced: bool = False) -> bool:
        """Send no more of a stream where it is sent now; else a message would go out on two
        (`HTL-30`).

        Returns:
            Whether its calls run here.
        """
        writer = self._posts.writer(session, name)
        if writer is not None:
            writer.reply.lose()
        stream = self._resumed.get(session, {}).get(name)
        if stream is not None and (stream.announced or not announced):
            stream.stop()
        return writer is not None

    def _release(self, session: str, payload: str) -> None:
        """A call lets its client go, to come back for the rest later."""
        name, _, retry = payload.partition(" ")
        stream = self._resumed.get(session, {}).get(name)
        if stream is not None:
            stream.release(int(retry) if retry else None)

    def wake(self, session: str, name: str) -> None:
        """A stream of calls has more events."""
        stream = self._resumed.get(session, {}).get(name)
        if stream is not None:
            stream.wake()

    def _end_session(self, session: str, payload: str = "") -> None:
        """A session is over."""
        if (notifying := self._notifying.get(session)) is not None:
            notifying.stop()
        for stream in list(self._resumed.get(session, {}).values()):
            stream.stop()


def _settle(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
