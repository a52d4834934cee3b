"""Subscribers of a topic, each in a loop of its own, in one order for messages of all threads."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

from ..logs import limited

Hear = Callable[[bytes, str], None]

log = limited("interlock.store")


class Listeners:
    """All who listen to one board."""

    def __init__(self) -> None:
        self._rooms: dict[asyncio.AbstractEventLoop, _Room] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._rooms)

    def add(self, hear: Hear) -> Callable[[], None]:
        """Call `hear` with every note from now on, in the loop that runs now, until the returned
        function is called.
        """
        loop = asyncio.get_running_loop()
        ticket = object()
        with self._lock:
            room = self._rooms.get(loop)
            if room is None:
                room = self._rooms[loop] = _Room(loop)
            room.hears[ticket] = hear

        def stop() -> None:
            with self._lock:
                if (
                    room.hears.pop(ticket, None)
                    and not room.hears
                    and self._rooms.get(loop) is room
                ):
                    del self._rooms[loop]

        return stop

    def put(self, note: bytes, number: int) -> None:
        """Lay a note before all who listen; calls nobody yet.

        The caller sees to it that notes are put in their order.
        """
        with self._lock:
            for room in self._rooms.values():
                room.pending.append((note, number))

    def wake(self) -> None:
        """Have all who listen hear what lies before them: at once in the loop that runs now, soon
        in others.
        """
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        for room in list(self._rooms.values()):
            if room.loop is here:
                room.tell()
            else:
                self._call(room)

    def before(self, number: int) -> int:
        """The number of the newest note that those in the loop that runs now have heard, where
        `number` is the newest of all.
        """
        try:
            room = self._rooms.get(asyncio.get_running_loop())
        except RuntimeError:
            room = None
        return room.pending[0][1] - 1 if room is not None and room.pending else number

    def _call(self, room: _Room) -> None:
        try:
            room.loop.call_soon_threadsafe(room.tell)
        except RuntimeError:  # the loop has ended, and with it all who listened there
            with self._lock:
                self._rooms.pop(room.loop, None)


class _Room:
    """Those who listen in one loop, and what they have yet to hear."""

    __slots__ = ("_telling", "hears", "loop", "pending")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.hears: dict[object, Hear] = {}
        self.pending: deque[tuple[bytes, int]] = deque()
        self._telling = False

    def tell(self) -> None:
        """Call everyone with every note.

        A note that is posted meanwhile waits its turn, so that all hear one order.
        """
        if self._telling:
            return
        self._telling = True
        try:
            while self.pending:
                note, number = self.pending.popleft()
                for ticket, hear in list(self.hears.items()):
                    if ticket in self.hears:
                        self._one(hear, note, str(number))
        finally:
            self._telling = False

    def _one(self, hear: Hear, note: bytes, position: str) -> None:
        try:
            hear(note, position)
        except Exception:
            log.exception("a listener failed over a note; the others hear it all the same")
