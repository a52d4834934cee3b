"""The streams that a session opens with GET: change notices, and the rest of a stream of calls that broke.

The stream of change notices is a view of the board of changes: its event ids are places on that board, so that a client can go on from
any of them at any worker, and misses nothing while it is away.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from .. import types as t
from ..exchange import Exchange, Principal
from ..logs import limited
from ..protocol.http import error
from ..protocol.sessions import POSITION, SINCE, Replay, Session, StoreError, caller_of
from ..protocol.streams import Answer, orphaned, place
from ..wire import jsonrpc
from ..wire.codec import encode
from ..wire.revisions import speaks, supports
from ..wire.sse import event
from .authorized import Term
from .replies import HOLD, Reply, gone

if TYPE_CHECKING:
    from .posts import Incoming, Sessions

log = limited("interlock.server")

_CHANGES = "changes."
_LOOK = 0.5  # seconds after which a stream of another worker is looked at again, should no word of it have come


class Feed:
    """One stream of change notices: the exchange that listens, begun anew whenever the session's subscriptions change."""

    __slots__ = (
        "_feeds",
        "_primed",
        "_principal",
        "_since",
        "_task",
        "_term",
        "_unheard",
        "announced",
        "heard",
        "reply",
        "session",
        "token",
    )

    def __init__(
        self,
        feeds: Feeds,
        session: Session,
        principal: Principal | None,
        reply: Reply,
        since: str | None,
    ) -> None:
        self.session, self.reply, self.token = session, reply, os.urandom(8).hex()
        self._feeds, self._principal, self._since = feeds, principal, since
        self._task: asyncio.Task[None] | None = None
        self._term = Term(principal, self.end)
        self._primed = False
        self._unheard: set[str] = set()  # subscribed to since the session was listened for last
        self.announced = (
            False  # the other workers know of this stream, and what they say of theirs is later
        )
        self.heard: asyncio.Future[None] | None = (
            None  # done once this worker has heard of it itself
        )

    def start(self, session: Session) -> None:
        """Listen to what the session wants now."""
        if self._task is not None:
            self._task.cancel()
            self._unheard |= set(session.subscriptions) - set(self.session.subscriptions)
        self.session = session
        self._task = asyncio.get_running_loop().create_task(self._listen(session))

    def end(self) -> None:
        """End the stream; its client may open another one."""
        if self._task is not None:
            self._task.cancel()
        self.reply.end()

    def over(self) -> None:
        """The stream is over, whoever ended it."""
        self._term.over()
        self._feeds.forget(self)
        self.reply.lose()
        self.end()

    async def _listen(self, session: Session) -> None:
        caller = caller_of(session, self._principal)
        wanted = t.SubscriptionFilter(
            tools_list_changed=True,
            prompts_list_changed=True,
            resources_list_changed=True,
            resource_subscriptions=list(session.subscriptions) or None,
        )
        meta = t.NOTHING if self._since is None else Raw(msgspec.json.encode({SINCE: self._since}))
        params = t.SubscriptionsListenRequestParams(notifications=wanted, meta=meta)
        exchange = Exchange(
            "subscriptions/listen", params, caller, notify=self._notify, drain=self.reply.drain
        )
        try:
            await self._feeds.sessions_of.app.handler(exchange)
        except t.McpError:
            pass  # whoever may not listen has a quiet stream
        except StoreError:
            self.reply.end()  # what was missed cannot be said now; the client comes back for it
        except Exception:
            log.exception("the notices of a session failed")
            self.reply.end()
        else:
            if exchange.params is params and self._feeds.sessions_of.app.draining:
                self.reply.end()

    def _notify(self, method: str, params: Any) -> None:
        meta: dict[str, Any] = msgspec.json.decode(params.meta)
        position = str(meta.get(POSITION, ""))
        if method == "notifications/subscriptions/acknowledged":
            unheard, self._unheard = self._unheard, set()
            if not position:
                # A gateway's: it has no places to go on from, so what was missed is not known.
                for uri in unheard.intersection(params.notifications.resource_subscriptions or ()):
                    changed = t.ResourceUpdatedNotificationParams(uri=uri)
                    self._notify("notifications/resources/updated", changed)
            if not self._primed and position:
                self._primed = True
                self._since = (
                    self._since if self._since is not None else position
                )  # what was missed has yet to be said
                if supports(self.session.revision, "primed_streams"):
                    self.reply.push(event(b"", id=f"{_CHANGES}{self._since}"))
            return
        if not speaks(self.session.revision, method):
            return
        self._since = position or self._since
        frame = jsonrpc.notification(
            method, encode(replace(params, meta=t.NOTHING), self.session.revision)
        )
        self.reply.push(event(frame, id=f"{_CHANGES}{position}" if position else None))


class Rest:
    """The rest of a stream of calls, for a client that has come back for it, and what is still added to it (`HTL-34`, `HTL-36`)."""

    def __init__(self, feeds: Feeds, session: str, reply: Reply, name: str, after: int) -> None:
        self.token = os.urandom(8).hex()
        self.announced = False  # the other workers know of it, and what they say of theirs is later
        self.heard: asyncio.Future[None] | None = (
            None  # done once this worker has heard of it itself
        )
        self._feeds, self._session, self._reply, self._name, self._after = (
            feeds,
            session,
            reply,
            name,
            after,
        )
        self._stirred = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, replay: Replay) -> None:
        """Send what there is, and what comes."""
        self._stirred.set()  # there may be more than when it was looked at
        self._task = asyncio.get_running_loop().create_task(self._send(replay))

    def stir(self) -> None:
        """There is more."""
        self._stirred.set()

    def let_go(self, retry: int | None) -> None:
        """Let the client go; `retry` (milliseconds) says when to come back."""
        if retry is not None and not self._reply.answer.ended:
            self._reply.push(event(b"", id=f"{self._name}.{self._after}", retry=retry))
        self.end()

    def end(self) -> None:
        """Send no more."""
        if self._task is not None:
            self._task.cancel()
        self._reply.end()

    async def _send(self, replay: Replay) -> None:
        events = self._feeds.sessions_of.store.events
        found: Replay | None = replay
        while found is not None:
            for number, data in found.events:
                self._after = number
                if data:
                    self._reply.push(event(data, id=f"{self._name}.{number}"))
            if found.ended:
                break
            await self._reply.drain()
            try:
                if not found.events:
                    if not await self._feeds.goes_on(self._session, self._name):
                        found = await events.read(
                            self._session, self._name, self._after
                        )  # what came between the two looks
                        if found is not None and not found.events and not found.ended:
                            found = Replay(await self._orphaned(), True)
                        continue
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK):
                            await self._stirred.wait()
                self._stirred.clear()
                found = await events.read(self._session, self._name, self._after)
            except StoreError:
                found = Replay()
                await asyncio.sleep(_LOOK)  # the store is away, and may come back
        self._reply.end()

    async def _orphaned(self) -> tuple[tuple[int, bytes], ...]:
        """What answers the calls of a stream whose worker is gone; it is noted, so that they have one answer for good."""
        events = self._feeds.sessions_of.store.events
        all_of_it = await events.read(self._session, self._name, -1)
        data = [each for _, each in all_of_it.events] if all_of_it is not None else []
        frames = orphaned(data[0], data[1:]) if data else []
        for number, frame in enumerate(frames, self._after + 1):
            events.append(self._session, self._name, number, frame, last=frame is frames[-1])
        return tuple(enumerate(frames, self._after + 1))


class Feeds:
    """The GET streams of this worker: one of change notices for a session at the most, as a notice goes to one stream only (`HTL-30`)."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions_of = sessions
        self.followed: set[str] = (
            set()
        )  # streams that run on this worker and whose events another one waits for
        self._feeds: dict[str, Feed] = {}
        self._rests: dict[str, dict[str, Rest]] = {}  # by session, and by stream

    @property
    def sessions(self) -> set[str]:
        """The sessions that have a stream open here."""
        return {*self._feeds, *self._rests}

    async def serve(self, x: Incoming, session: Session, last_event: str | None) -> None:
        """Answer a GET."""
        app = self.sessions_of.app
        if app.pulse.streams >= app.limits.streams:
            words = "The server has as many open streams as it takes. Try again later."
            await app.refuse(
                x.send,
                error(
                    503,
                    t.INTERNAL_ERROR,
                    words,
                    {"reason": "busy"},
                    headers=[(b"retry-after", b"5")],
                ),
            )
            return
        since = (
            None
            if last_event is None or not last_event.startswith(_CHANGES)
            else last_event[len(_CHANGES) :] or "?"
        )
        if last_event is None or since is not None:
            await self._feed(x, session, since)
            return
        where = place(last_event)
        replay = None if where is None else await self._read(session, *where)
        if where is None or replay is None:
            words = "The events after this Last-Event-ID are no longer kept, or never were in this session"
            await app.refuse(x.send, error(400, t.INVALID_REQUEST, words))
            return
        await self._follow(x, session, *where, replay)

    async def _feed(self, x: Incoming, session: Session, since: str | None) -> None:
        """The stream of change notices; it takes over from an older one of the same session, wherever that is."""
        app = self.sessions_of.app
        answer = Answer(name=None)
        reply = Reply(answer, x.send, None, cancels=False)
        feed = Feed(self, session, x.principal, reply, since)
        if (older := self._feeds.pop(session.id, None)) is not None:
            older.end()
        self._feeds[session.id] = feed
        app.pulse.add(reply, x.receive, listens=True)
        rests = False
        try:
            await self._announce(feed, "listening", session.id, feed.token)
            if answer.ended:
                answer.begin()
                await reply.finish()
                return
            reply.begin(comment=True)
            feed.start(session)
            rests = await reply.rest(x.scope.get(HOLD), feed.over)
            if not rests:
                await gone(x.receive)
        finally:
            if not rests:
                feed.over()

    def forget(self, feed: Feed) -> None:
        """A stream of change notices is over."""
        self.sessions_of.app.pulse.discard(feed.reply)
        if self._feeds.get(feed.session.id) is feed:
            del self._feeds[feed.session.id]

    async def _follow(
        self, x: Incoming, session: Session, name: str, after: int, replay: Replay
    ) -> None:
        """The rest of a stream of calls; it takes over from whatever this stream was sent on before."""
        app = self.sessions_of.app
        reply = Reply(Answer(name=None), x.send, None, cancels=False)
        rest = Rest(self, session.id, reply, name, after)
        rests = self._rests.setdefault(session.id, {})
        self.take_over(session.id, name)
        rests[name] = rest
        app.pulse.add(reply, x.receive, listens=True)
        try:
            await self._announce(rest, "following", session.id, f"{name} {rest.token}")
            if reply.answer.ended:
                reply.answer.begin()
                await reply.finish()
                return
            reply.begin(comment=not replay.events)
            rest.start(replay)
            await gone(x.receive)
        finally:
            app.pulse.discard(reply)
            reply.lose()
            rest.end()
            if rests.get(name) is rest:
                del rests[name]
            if not rests and self._rests.get(session.id) is rests:
                del self._rests[session.id]

    async def _announce(self, stream: Feed | Rest, kind: str, session: str, payload: str) -> None:
        """Tell the other workers of a stream, and wait until they can know, so that they see streams in the order of their opening."""
        if not self.sessions_of.store.shared:
            return
        heard = stream.heard = asyncio.get_running_loop().create_future()
        self.sessions_of.tell(kind, session, payload)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await heard
        stream.heard = None

    async def _read(self, session: Session, name: str, after: int) -> Replay | None:
        """What came after an event. A client may be faster than the store through which another worker tells of the stream."""
        until, pause = asyncio.get_running_loop().time() + _LOOK, 0.01
        while True:
            replay = await self.sessions_of.store.events.read(session.id, name, after)
            if (
                replay is not None
                or self._is_ours(name)
                or asyncio.get_running_loop().time() > until
            ):
                return replay
            if not await self.goes_on(session.id, name):
                return await self.sessions_of.store.events.read(session.id, name, after)
            await asyncio.sleep(pause)
            pause *= 2

    def _is_ours(self, name: str) -> bool:
        return name.partition(".")[0] == self.sessions_of.worker

    async def goes_on(self, session: str, name: str) -> bool:
        """Whether anybody is there who could still write a stream."""
        if self._is_ours(name):
            return self.sessions_of.running(session, name) is not None
        return await self.sessions_of.notes.lives(name.partition(".")[0])

    # -- what others tell -----------------------------------------------------------------------------------

    def changed(self, session: str) -> None:
        """The subscriptions of a session are not as they were."""
        if session in self._feeds:
            self.sessions_of.spawn(self._restart(session))

    async def _restart(self, id: str) -> None:
        session = await self.sessions_of.store.sessions.load(id, now=time.time())
        feed = self._feeds.get(id)
        if feed is not None and session is not None:
            feed.start(session)

    def yield_to(self, session: str, token: str) -> None:
        """A stream of the session was opened, here or at another worker; all hear of all of them in one order, and the last one stays."""
        feed = self._feeds.get(session)
        if feed is None:
            return
        if feed.token == token:
            feed.announced = True
            _settle(feed.heard)
        elif feed.announced:
            feed.end()

    def follow(self, session: str, payload: str) -> None:
        """A client has come back for a stream, here or at another worker; all hear of all of them in one order, as above."""
        name, _, token = payload.partition(" ")
        rest = self._rests.get(session, {}).get(name)
        if rest is not None and rest.token == token:
            rest.announced = True
            _settle(rest.heard)
        elif self.take_over(session, name, announced=True):
            self.followed.add(name)
            self.sessions_of.tell(
                "stirred", session, name
            )  # for what came between its look and our hearing of it

    def take_over(self, session: str, name: str, *, announced: bool = False) -> bool:
        """Send no more of a stream where it is sent now, else a message would go out on two (`HTL-30`). Whether its calls run here."""
        running = self.sessions_of.running(session, name)
        if running is not None:
            running.reply.lose()
        rest = self._rests.get(session, {}).get(name)
        if rest is not None and (rest.announced or not announced):
            rest.end()
        return running is not None

    def let_go(self, session: str, payload: str) -> None:
        """A call lets its client go, to come back for the rest later."""
        name, _, retry = payload.partition(" ")
        rest = self._rests.get(session, {}).get(name)
        if rest is not None:
            rest.let_go(int(retry) if retry else None)

    def stir(self, session: str, name: str) -> None:
        """A stream has more."""
        rest = self._rests.get(session, {}).get(name)
        if rest is not None:
            rest.stir()

    def end(self, session: str) -> None:
        """A session is over."""
        if (feed := self._feeds.get(session)) is not None:
            feed.end()
        for rest in list(self._rests.get(session, {}).values()):
            rest.end()

    def close(self) -> None:
        """End every stream."""
        for session in self.sessions:
            self.end(session)


def _settle(waited: asyncio.Future[None] | None) -> None:
    if waited is not None and not waited.done():
        waited.set_result(None)
