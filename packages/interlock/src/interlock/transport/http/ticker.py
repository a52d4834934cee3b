"""The ticker: one slow clock for all responses of an endpoint, which checks for disconnects and
sends keep-alive comments.

A call that ends within a tick costs two operations on a dict and no timer. Only a longer call gets
a disconnect monitor, which cancels it when its client disconnects.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Protocol

from ...quotas import Quota
from .requests import gone
from .responses import ResponseWriter

_TICK = 0.1  # seconds
# Ticks after which a resumable call becomes an event stream, so that its client can resume it.
_STREAM_AFTER = 10
_DRAIN = 2.0  # maximum seconds for writing the last responses


class LightCall(Protocol):
    """A call that has sent nothing yet, and may never need more than its response."""

    age: int
    """The number of ticks since the start."""

    def grow(self) -> None:
        """Create everything that a longer call needs. Then the ticker forgets the light call."""
        ...


class Ticker:
    """The running responses, and the bodies that are being received.

    Args:
        keep_alive: The interval of keep-alive comments on a silent stream, in seconds.
        streams: The quota of streams that were opened to listen.
        on_tick: Called at each tick.

    Attributes:
        loop: The event loop while the clock runs, otherwise None. `asyncio.current_task(loop)` is
            faster with it: under Python 3.11 a look for the running loop is a system call.
    """

    def __init__(
        self, keep_alive: float, streams: Quota, on_tick: Callable[[], object] = bool
    ) -> None:
        self.keep_alive = keep_alive
        self._on_tick = on_tick
        self.streams = streams
        self.light: dict[LightCall, None] = {}
        self._young: dict[ResponseWriter, asyncio.Task[None] | None] = {}
        self._old: dict[ResponseWriter, asyncio.Task[None] | None] = {}
        self._listening: dict[ResponseWriter, str] = {}  # the holder of each
        self._cancelled: set[ResponseWriter] = set()
        self._deadlines: dict[object, tuple[asyncio.Task[object], float]] = {}
        self._late: set[object] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self._next_sign = 0.0
        self._now = 0.0  # the time of the last tick
        self._empty: asyncio.Event | None = None

    def add_light(self, call: LightCall) -> None:
        """Add a call until `discard_light`."""
        self.light[call] = None
        if self._timer is None:
            self._start()

    def discard_light(self, call: LightCall) -> None:
        """Remove a call that is answered, or no longer light."""
        self.light.pop(call, None)
        if self._empty is not None:
            self._check_empty()

    def add(
        self,
        reply: ResponseWriter,
        owner: asyncio.Task[Any] | None = None,
        *,
        listener: str = "",
    ) -> None:
        """Add a response, and the task that sends it: the current task by default.

        Args:
            reply: The response.
            owner: The task that sends it.
            listener: The holder that it counts for, if it is a notification stream.
        """
        self._young[reply] = owner or asyncio.current_task()
        if listener:
            self._listening[reply] = listener
            self.streams.take(listener)
        if self._timer is None:
            self._start()

    def discard(self, reply: ResponseWriter) -> None:
        """Remove a response that is complete."""
        self._cancelled.discard(reply)
        if reply in self._young:
            del self._young[reply]
        else:
            self._old.pop(reply, None)
            if reply.watch is not None:
                reply.watch.cancel()
        if self._listening and (listener := self._listening.pop(reply, "")):
            self.streams.release(listener)
        self._check_empty()

    def was_cancelled(self, reply: ResponseWriter) -> bool:
        """Whether a task was cancelled because its client has disconnected. If so, the cancellation
        is undone.
        """
        if reply not in self._cancelled:
            return False
        self._cancelled.discard(reply)
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
        return True

    def set_deadline(self, task: asyncio.Task[object], seconds: float) -> object:
        """Cancel a task after this many seconds.

        Returns:
            The deadline, for `clear_deadline`.
        """
        deadline = object()
        if self._timer is None:
            self._start()
        self._deadlines[deadline] = (task, self._now + seconds)
        return deadline

    def clear_deadline(self, deadline: object) -> None:
        """Remove the deadline of a task that was in time."""
        self._deadlines.pop(deadline, None)

    def has_passed(self, deadline: object) -> bool:
        """Whether the task was cancelled because its deadline has passed. True only once."""
        if deadline in self._late:
            self._late.discard(deadline)
            return True
        return False

    async def drain(self) -> None:
        """Wait until every response is written, for at most two seconds."""
        if self._young or self._old or self.light:
            self._empty = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN):
                    await self._empty.wait()

    def close(self) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self.loop = None

    def _check_empty(self) -> None:
        if self._empty is not None and not self._young and not self._old and not self.light:
            self._empty.set()

    def _start(self) -> None:
        loop = self.loop = asyncio.get_running_loop()
        self._now = loop.time()
        self._next_sign = self._next_sign or self._now + self.keep_alive
        self._timer = loop.call_later(_TICK, self._tick)

    def _tick(self) -> None:
        now = self._now = asyncio.get_running_loop().time()
        for deadline, (task, until) in list(self._deadlines.items()):
            if now > until:
                del self._deadlines[deadline]
                self._late.add(deadline)
                task.cancel()
        for call in list(self.light):
            call.age += 1
            if call.age > 1:  # a longer call
                call.grow()
        for reply, owner in list(self._young.items()):
            reply.age += 1
            if reply.cancels:
                if reply.watch is None and reply.age > 1:
                    reply.watch = asyncio.get_running_loop().create_task(self._watch(reply, owner))
                    self._grow_old(reply, owner)
            elif reply.age > _STREAM_AFTER:
                if reply.answer.primes:
                    reply.start_stream()
                self._grow_old(reply, owner)
        self._on_tick()
        if now >= self._next_sign:
            self._next_sign = now + self.keep_alive
            for reply in list(self._old):
                if not reply.answer.ended:
                    reply.keep_alive()
        if self._young or self._old or self._deadlines or self.light:
            self._timer = asyncio.get_running_loop().call_later(_TICK, self._tick)
        else:
            self._timer = self.loop = None
            self._next_sign = 0.0

    def _grow_old(self, reply: ResponseWriter, owner: asyncio.Task[None] | None) -> None:
        self._young.pop(reply, None)
        self._old[reply] = owner if reply.cancels else None

    async def _watch(self, reply: ResponseWriter, owner: asyncio.Task[None] | None) -> None:
        """The disconnect monitor of one call: cancels it when its client disconnects (`HTM-14`)."""
        await gone(reply.receive)
        if reply in self._old and not reply.answer.ended and owner is not None:
            reply.lose()
            self._cancelled.add(reply)
            owner.cancel()
