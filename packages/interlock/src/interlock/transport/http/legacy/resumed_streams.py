"""Resumed streams: the rest of a stream of calls, for a client that reconnects with Last-Event-ID
(`HTL-34`, `HTL-36`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os

from interlock.protocol.streams import orphaned
from interlock.store.errors import StoreError
from interlock.store.interface import EventLog, Replay
from interlock.wire.sse import event

from ..responses import ResponseWriter
from .in_flight import InFlightPosts

LOOK = 0.5  # seconds after which a stream of another worker is read again without a notice


class ResumedStream:
    """The events of a stream after a given event, and those that are still being added.

    Attributes:
        token: The name of this stream among all that resume the same calls.
        announced: Whether the other workers know of it. Their later announcements are newer then.
        received: Done once this worker has received its own announcement.
    """

    def __init__(
        self,
        events: EventLog,
        posts: InFlightPosts,
        session: str,
        reply: ResponseWriter,
        name: str,
        after: int,
    ) -> None:
        """`name` is the stream, `after` the number of the last event that the client has."""
        self.token = os.urandom(8).hex()
        self.announced = False
        self.received: asyncio.Future[None] | None = None
        self._events = events
        self._posts = posts
        self._session = session
        self._reply = reply
        self._name = name
        self._after = after
        self._has_more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, replay: Replay) -> None:
        """Send the events that were read, and all later ones."""
        self._has_more.set()  # more events may have been added since
        self._task = asyncio.get_running_loop().create_task(self._send(replay))

    def wake(self) -> None:
        """Read the new events of the stream."""
        self._has_more.set()

    def release(self, retry: int | None) -> None:
        """Close the client's stream; `retry` (milliseconds) says when to resume it."""
        if retry is not None and not self._reply.answer.ended:
            self._reply.push(event(b"", id=f"{self._name}.{self._after}", retry=retry))
        self.stop()

    def stop(self) -> None:
        """Stop sending."""
        if self._task is not None:
            self._task.cancel()
        self._reply.close()

    async def _send(self, replay: Replay) -> None:
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
                found = await self._next(found)
            except StoreError:
                found = Replay()
                await asyncio.sleep(LOOK)  # the store is unavailable, and may come back
        self._reply.close()

    async def _next(self, last: Replay) -> Replay | None:
        """Return the next events. Waits for a moment if there are none."""
        if not last.events:
            if not await self._posts.is_written(self._session, self._name):
                found = await self._read()  # events added between the two reads
                if found is not None and not found.events and not found.ended:
                    found = Replay(await self._fail_calls(), True)
                return found
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._has_more.wait()
        self._has_more.clear()
        return await self._read()

    async def _read(self) -> Replay | None:
        return await self._events.read(self._session, self._name, self._after)

    async def _fail_calls(self) -> tuple[tuple[int, bytes], ...]:
        """Return errors for the calls of a stream whose worker is gone. They are stored in the
        event log, so that each call has one final answer.
        """
        whole = await self._events.read(self._session, self._name, -1)
        data = [each for _, each in whole.events] if whole is not None else []
        frames = orphaned(data[0], data[1:]) if data else []
        numbered = tuple(enumerate(frames, self._after + 1))
        for number, frame in numbered:
            last = frame is frames[-1]
            self._events.append(self._session, self._name, number, frame, last=last)
        return numbered
