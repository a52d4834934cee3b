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
        self._rooms: dict[asyncio.AbstractEventLoop, _Room] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._rooms)

    def add(self, receive: Receive) -> Callable[[], None]:
        """Call `receive` with every later note, in the current event loop, until the returned
        function is called.
        """
        loop = asyncio.get_running_loop()
        ticket = object()
        with self._lock:
            room = self._rooms.get(loop)
            if room is None:
                room = self._rooms[loop] = _Room(loop)
            room.receivers[ticket] = receive

        def stop() -> None:
            with self._lock:
                if (
                    room.receivers.pop(ticket, None)
                    and not room.receivers
                    and self._rooms.get(loop) is room
                ):
                    del self._rooms[loop]

        return stop

    def put(self, note: bytes, number: int) -> None:
        """Queue a note for all subscribers, without calling them.

        The caller must keep the order of the notes.
        """
        with self._lock:
            for room in self._rooms.values():
                room.pending.append((note, number))

    def wake(self) -> None:
        """Deliver the queued notes: at once in the current event loop, soon in other loops."""
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        for room in list(self._rooms.values()):
            if room.loop is here:
                room.deliver()
            else:
                self._call(room)

    def before(self, number: int) -> int:
        """Return the number of the newest note that the subscribers in the current event loop have
        received. `number` is the newest note of all.
        """
        try:
            room = self._rooms.get(asyncio.get_running_loop())
        except RuntimeError:
            room = None
        return room.pending[0][1] - 1 if room is not None and room.pending else number

    def _call(self, room: _Room) -> None:
        try:
            room.loop.call_soon_threadsafe(room.deliver)
        except RuntimeError:  # the loop is closed, so its subscribers are gone
            with self._lock:
                self._rooms.pop(room.loop, None)


class _Room:
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
