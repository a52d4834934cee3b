"""Subscribers of a topic, each in its own event loop. All of them receive the messages of all
threads in the same order.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

from ..logs import limited

Receive = Callable[[bytes, str], None]

log = limited("interlock.store")


class Listeners:
    """All subscribers of one topic."""

    def __init__(self) -> None:
        self._loops: dict[asyncio.AbstractEventLoop, _LoopReceivers] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._loops)

    def add(self, receive: Receive) -> Callable[[], None]:
        """Call `receive` with every later note, in the current event loop, until the returned
        function is called.
        """
        loop = asyncio.get_running_loop()
        ticket = object()
        with self._lock:
            group = self._loops.get(loop)
            if group is None:
                group = self._loops[loop] = _LoopReceivers(loop)
            group.receivers[ticket] = receive

        def stop() -> None:
            with self._lock:
                if (
                    group.receivers.pop(ticket, None)
                    and not group.receivers
                    and self._loops.get(loop) is group
                ):
                    del self._loops[loop]

        return stop

    def put(self, note: bytes, number: int) -> None:
        """Queue a note for all subscribers, without calling them.

        The caller must keep the order of the notes.
        """
        with self._lock:
            for group in self._loops.values():
                group.pending.append((note, number))

    def wake(self) -> None:
        """Deliver the queued notes: at once in the current event loop, soon in other loops."""
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        for group in list(self._loops.values()):
            if group.loop is here:
                group.deliver()
            else:
                self._call(group)

    def before(self, number: int) -> int:
        """Return the number of the newest note that the subscribers in the current event loop have
        received. `number` is the newest note of all.
        """
        try:
            group = self._loops.get(asyncio.get_running_loop())
        except RuntimeError:
            group = None
        return group.pending[0][1] - 1 if group is not None and group.pending else number

    def _call(self, group: _LoopReceivers) -> None:
        try:
            group.loop.call_soon_threadsafe(group.deliver)
        except RuntimeError:  # the loop is closed, so its subscribers are gone
            with self._lock:
                self._loops.pop(group.loop, None)


class _LoopReceivers:
    """The subscribers in one event loop, and their queue of notes."""

    __slots__ = ("_delivering", "loop", "pending", "receivers")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.receivers: dict[object, Receive] = {}
        self.pending: deque[tuple[bytes, int]] = deque()
        self._delivering = False

    def deliver(self) -> None:
        """Call every subscriber with every queued note.

        A note that arrives meanwhile is queued, so that all subscribers get the same order.
        """
        if self._delivering:
            return
        self._delivering = True
        try:
            while self.pending:
                note, number = self.pending.popleft()
                for ticket, receive in list(self.receivers.items()):
                    if ticket in self.receivers:
                        self._one(receive, note, str(number))
        finally:
            self._delivering = False

    def _one(self, receive: Receive, note: bytes, position: str) -> None:
        try:
            receive(note, position)
        except Exception:
            log.exception("a listener failed on a note; the other listeners receive it")
