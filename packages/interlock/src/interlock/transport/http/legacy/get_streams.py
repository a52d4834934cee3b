"""The GET streams of sessions on this worker: notification streams, and resumed streams of calls.

A session has at most one notification stream, because a notification must be sent on one stream
only (`HTL-30`).
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from interlock import types as t
from interlock.protocol.http import error
from interlock.protocol.streams import PostResponse, place
from interlock.store.interface import Replay, Session, Store

from ....store.worker_messages import WorkerMessages
from ..background_tasks import BackgroundTasks
from ..error_responses import busy
from ..requests import EndpointRequest, gone
from ..responses import ResponseWriter
from ..running_calls import quota_holder
from ..services import Services
from .in_flight import InFlightPosts
from .notification_streams import CHANGES, NotificationStream
from .resumed_streams import LOOK, ResumedStream


class GetStreams:
    """Opens the streams, and ends a stream when its client opens it again elsewhere.

    Attributes:
        followed: Streams that this worker writes and that another worker reads.
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
        """The sessions that have an open stream on this worker."""
        return {*self._notifying, *self._resumed}

    def close(self) -> None:
        """End every stream. The clients reconnect, to another worker if there is one."""
        for session in self.sessions():
            self._end_session(session)

    # -- opening -----------------------------------------------------------------------------------

    async def serve(self, x: EndpointRequest, session: Session, last_event: str | None) -> None:
        """Serve a GET; `last_event` is its Last-Event-ID."""
        services = self._services
        if not services.ticker.streams.has_room(quota_holder(x)):
            await services.errors.send(x, busy(None, "streams", 5))
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
            await services.errors.send(x, error(400, t.INVALID_REQUEST, words))
            return
        await self._resume(x, session, *where, replay)

    async def _open_notifications(
        self, x: EndpointRequest, session: Session, since: str | None
    ) -> None:
        """Open a notification stream. It replaces an older one of the session on any worker."""
        services = self._services
        answer = PostResponse(name=None)
        reply = ResponseWriter(answer, x, None, cancels=False)
        stream = NotificationStream(
            services.handler, services.shutdown, session, x.principal, reply, since, self._forget
        )
        if (older := self._notifying.pop(session.id, None)) is not None:
            older.stop()
        self._notifying[session.id] = stream
        services.ticker.add(reply, listener=quota_holder(x))
        is_held = False
        try:
            await self._announce(stream, "listening", session.id, stream.token)
            if answer.ended:
                answer.start_stream()
                await reply.finish()
                return
            reply.start_stream(comment=True)
            stream.start(session)
            is_held = await reply.rest(stream)
            if not is_held:
                await gone(x.receive)
        finally:
            if not is_held:
                stream.close()

    def _forget(self, stream: NotificationStream) -> None:
        """Remove a notification stream that has ended."""
        self._services.ticker.discard(stream.reply)
        if self._notifying.get(stream.session.id) is stream:
            del self._notifying[stream.session.id]

    async def _resume(
        self, x: EndpointRequest, session: Session, name: str, after: int, replay: Replay
    ) -> None:
        """Send the rest of a stream of calls, in place of the response that it was sent on
        before.
        """
        ticker = self._services.ticker
        reply = ResponseWriter(PostResponse(name=None), x, None, cancels=False)
        stream = ResumedStream(self._store.events, self._posts, session.id, reply, name, after)
        streams = self._resumed.setdefault(session.id, {})
        self._take_over(session.id, name)
        streams[name] = stream
        ticker.add(reply, listener=quota_holder(x))
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
        """Announce a stream to the other workers, and wait until they can know of it. All workers
        see announcements in the same order.
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
        """Return the events after an event. If another worker writes the stream, the store may
        deliver its events late, so this waits for a moment.
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
        """Listen again, because the subscriptions of a session have changed."""
        if session in self._notifying:
            self._tasks.start(self._listen_anew(session))

    async def _listen_anew(self, id: str) -> None:
        session = await self._store.sessions.load(id, now=time.time())
        stream = self._notifying.get(id)
        if stream is not None and session is not None:
            stream.start(session)

    def _see_notification_stream(self, session: str, token: str) -> None:
        """Process the announcement of a notification stream. All workers see announcements in the
        same order, and the last stream stays.
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
        """Process the announcement of a resumed stream. All workers see announcements in the same
        order, and the last stream stays.
        """
        name, _, token = payload.partition(" ")
        stream = self._resumed.get(session, {}).get(name)
        if stream is not None and stream.token == token:
            stream.announced = True
            _settle(stream.received)
        elif self._take_over(session, name, announced=True):
            self.followed.add(name)
            # Events may have been added between the other worker's read and this announcement.
            self._messages.publish("stirred", session, name)

    def _take_over(self, session: str, name: str, *, announced: bool = False) -> bool:
        """Stop sending a stream on its current response, because a message must not be sent on two
        streams (`HTL-30`).

        Returns:
            Whether its calls run on this worker.
        """
        writer = self._posts.writer(session, name)
        if writer is not None:
            writer.reply.lose()
        stream = self._resumed.get(session, {}).get(name)
        if stream is not None and (stream.announced or not announced):
            stream.stop()
        return writer is not None

    def _release(self, session: str, payload: str) -> None:
        """Close a client's stream at the request of a call. The client resumes it later."""
        name, _, retry = payload.partition(" ")
        stream = self._resumed.get(session, {}).get(name)
        if stream is not None:
            stream.release(int(retry) if retry else None)

    def wake(self, session: str, name: str) -> None:
        """Wake a resumed stream that has more events."""
        stream = self._resumed.get(session, {}).get(name)
        if stream is not None:
            stream.wake()

    def _end_session(self, session: str, payload: str = "") -> None:
        """End the streams of a session that has ended."""
        if (notifying := self._notifying.get(session)) is not None:
            notifying.stop()
        for stream in list(self._resumed.get(session, {}).values()):
            stream.stop()


def _settle(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
