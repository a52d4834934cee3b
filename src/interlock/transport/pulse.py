"""One slow clock for all responses of an endpoint: whoever takes long is watched, and quiet streams show that they live.

A call that is over within a tick costs two operations on a dict and no timer; only what lasts gets a watcher for the client's going
away.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .replies import Receive, Reply, gone

if TYPE_CHECKING:
    from .errands import Errand

_TICK = 0.1  # seconds
_STREAM_AFTER = 10  # ticks after which a call that may be resumed becomes an event stream, so that its client can come back for it


class Pulse:
    """The responses that are under way, and the bodies that are awaited."""

    def __init__(self, keep_alive: float, each: Callable[[], object] = bool) -> None:
        self.keep_alive = keep_alive
        self._each = each  # is called at each tick
        self.streams = 0  # that were opened to listen
        self._young: dict[Reply, tuple[asyncio.Task[None] | None, Receive]] = {}
        self._old: dict[Reply, asyncio.Task[None] | None] = {}
        self._listening: set[Reply] = set()
        self._cancelled: set[Reply] = set()
        self.errands: dict[
            Errand, None
        ] = {}  # calls that have sent nothing yet, and may never need more than that
        self._bodies: dict[object, tuple[asyncio.Task[object], float]] = {}
        self._late: set[object] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._next_sign = 0.0
        self._now = 0.0  # at the last tick
        self._empty: asyncio.Event | None = None

    def begin(self, errand: Errand) -> None:
        """Note a call, which is done when it is taken out of `errands`."""
        self.errands[errand] = None
        if self._timer is None:
            self._start()

    def end(self, errand: Errand) -> None:
        """A call is answered, or no longer light."""
        self.errands.pop(errand, None)
        self._look_whether_empty()

    def add(
        self,
        reply: Reply,
        receive: Receive,
        owner: asyncio.Task[Any] | None = None,
        *,
        listens: bool = False,
    ) -> None:
        """Note a response that a task sends, the current one where none is named."""
        self._young[reply] = (owner or asyncio.current_task(), receive)
        if listens:
            self._listening.add(reply)
            self.streams += 1
        if self._timer is None:
            self._start()

    def discard(self, reply: Reply) -> None:
        """A response is done."""
        self._cancelled.discard(reply)
        if self._young.pop(reply, None) is None:
            self._old.pop(reply, None)
            if reply.watch is not None:
                reply.watch.cancel()
        if self._listening and reply in self._listening:
            self._listening.discard(reply)
            self.streams -= 1
        self._look_whether_empty()

    def was_cancelled(self, reply: Reply) -> bool:
        """Whether the client of a response has gone, so that its task was cancelled; the task goes on then."""
        if reply not in self._cancelled:
            return False
        self._cancelled.discard(reply)
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
        return True

    def guard(self, task: asyncio.Task[object], seconds: float) -> object:
        """Cancel a task that is not through in time; give the ticket back with `release`."""
        ticket = object()
        if self._timer is None:
            self._start()
        self._bodies[ticket] = (task, self._now + seconds)
        return ticket

    def release(self, ticket: object) -> None:
        """The task was in time."""
        self._bodies.pop(ticket, None)

    def is_late(self, ticket: object) -> bool:
        """Whether the task was cancelled because it took too long."""
        if ticket in self._late:
            self._late.discard(ticket)
            return True
        return False

    async def drain(self) -> None:
        """Wait until every response is written, for as long as that may take a client that reads."""
        if self._young or self._old or self.errands:
            self._empty = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await self._empty.wait()

    def close(self) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_whether_empty(self) -> None:
        if self._empty is not None and not self._young and not self._old and not self.errands:
            self._empty.set()

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._now = loop.time()
        self._next_sign = self._next_sign or self._now + self.keep_alive
        self._timer = loop.call_later(_TICK, self._tick)

    def _tick(self) -> None:
        now = self._now = asyncio.get_running_loop().time()
        for ticket, (task, until) in list(self._bodies.items()):
            if now > until:
                del self._bodies[ticket]
                self._late.add(ticket)
                task.cancel()
        for errand in list(self.errands):
            errand.age += 1
            if errand.age > 1:  # it lasts
                errand.grow()
        for reply, (owner, receive) in list(self._young.items()):
            reply.age += 1
            if reply.cancels:
                if reply.watch is None and reply.age > 1:
                    reply.watch = asyncio.get_running_loop().create_task(
                        self._watch(reply, owner, receive)
                    )
                    self._grow_old(reply, owner)
            elif reply.age > _STREAM_AFTER:
                if reply.answer.primes:
                    reply.begin()
                self._grow_old(reply, owner)
        self._each()
        if now >= self._next_sign:
            self._next_sign = now + self.keep_alive
            for reply in list(self._old):
                if not reply.answer.ended:
                    reply.keep_alive()
        if self._young or self._old or self._bodies or self.errands:
            self._timer = asyncio.get_running_loop().call_later(_TICK, self._tick)
        else:
            self._timer, self._next_sign = None, 0.0

    def _grow_old(self, reply: Reply, owner: asyncio.Task[None] | None) -> None:
        self._young.pop(reply, None)
        self._old[reply] = owner if reply.cancels else None

    async def _watch(
        self, reply: Reply, owner: asyncio.Task[None] | None, receive: Receive
    ) -> None:
        """Wait for the client to go away: that cancels the call (`HTM-14`)."""
        await gone(receive)
        if reply in self._old and not reply.answer.ended and owner is not None:
            reply.lose()
            self._cancelled.add(reply)
            owner.cancel()
