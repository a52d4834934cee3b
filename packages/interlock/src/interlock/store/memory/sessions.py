"""Sessions in memory: a dictionary changed by compare-and-swap, and a heap of their ends."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import msgspec

from .. import records
from ..interface import Session

_SLACK = 64  # entries of the heap that may be stale before it is worth tidying


class MemorySessions:
    """A SessionStore in memory. `forget` is told the id of every session that has ended."""

    def __init__(self, forget: Callable[[str], None]) -> None:
        self._kept: dict[str, Session] = {}
        self._states: dict[str, bytes] = {}  # of those sessions that have one
        # One entry at least for each session, not later than its end; moving an end back leaves the
        # entry where it is.
        self._ends: list[tuple[float, str]] = []
        self._forget = forget

    async def create(self, session: Session, *, most: int, now: float) -> bool:
        """Keep a new session; False, and nothing kept, where `most` exist already."""
        self._sweep(now)
        if len(self._kept) >= most and session.id not in self._kept:
            return False
        self._kept[session.id] = session
        self._states.pop(session.id, None)
        self._note(session.until, session.id)
        return True

    async def load(self, id: str, *, now: float) -> Session | None:
        """The session with this id."""
        session = self._kept.get(id)
        if session is not None and session.until < now:
            self._sweep(now)
            return None
        return session

    async def save(self, session: Session, *, was: Session) -> bool:
        """Keep the session as it is now, if it still is as it `was`, and the later of its two ends.

        False where it is not.
        """
        known = self._kept.get(session.id)
        if known is None or not records.follows(was, known):
            return False
        later = (
            session
            if session.until >= known.until
            else msgspec.structs.replace(session, until=known.until)
        )
        self._kept[session.id] = later
        return True

    async def prolong(self, id: str, until: float) -> None:
        """Move the end of a session."""
        session = self._kept.get(id)
        if session is not None and session.until != until:
            self._kept[id] = msgspec.structs.replace(session, until=until)
            if until < session.until:
                self._note(until, id)

    async def load_state(self, id: str) -> bytes | None:
        """The author's state of a session."""
        return self._states.get(id, b"") if id in self._kept else None

    async def save_state(self, id: str, state: bytes, *, was: bytes) -> bool:
        """Keep the author's state of a session, if it still is as it `was`."""
        if id not in self._kept or self._states.get(id, b"") != was:
            return False
        self._states[id] = state
        return True

    async def end(self, id: str) -> bool:
        """Forget a session, its state and its events; False where there was none."""
        self._forget(id)
        self._states.pop(id, None)
        return self._kept.pop(id, None) is not None

    async def count(self, *, now: float) -> int:
        """How many sessions exist."""
        self._sweep(now)
        return len(self._kept)

    def _note(self, until: float, id: str) -> None:
        heapq.heappush(self._ends, (until, id))
        if len(self._ends) > 2 * len(self._kept) + _SLACK:
            self._ends = [(session.until, id) for id, session in self._kept.items()]
            heapq.heapify(self._ends)

    def _sweep(self, now: float) -> None:
        """Forget all that are over; those whose end has been moved get a new entry."""
        while self._ends and self._ends[0][0] < now:
            _, id = heapq.heappop(self._ends)
            session = self._kept.get(id)
            if session is not None and session.until < now:
                del self._kept[id]
                self._states.pop(id, None)
                self._forget(id)
            elif session is not None:
                heapq.heappush(self._ends, (session.until, id))
