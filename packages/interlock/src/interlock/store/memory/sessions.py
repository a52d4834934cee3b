"""Sessions in memory: a dictionary changed by compare-and-swap, and a heap of expiry times."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import msgspec

from .. import records
from ..interface import Session

_SLACK = 64  # stale heap entries that are tolerated before the heap is rebuilt


class MemorySessions:
    """A SessionStore in memory. `forget` is called with the id of every session that has ended."""

    def __init__(self, forget: Callable[[str], None]) -> None:
        self._kept: dict[str, Session] = {}
        self._states: dict[str, bytes] = {}  # of the sessions that have a state
        # At least one entry for each session, at or before its end. Prolonging a session does not
        # move its entry.
        self._ends: list[tuple[float, str]] = []
        self._forget = forget

    async def create(self, session: Session, *, most: int, now: float) -> bool:
        """Store a new session. Returns False, and stores nothing, if `most` exist already."""
        self._sweep(now)
        if len(self._kept) >= most and session.id not in self._kept:
            return False
        self._kept[session.id] = session
        self._states.pop(session.id, None)
        self._note(session.until, session.id)
        return True

    async def load(self, id: str, *, now: float) -> Session | None:
        """Return the session with this id, if it exists."""
        session = self._kept.get(id)
        if session is not None and session.until < now:
            self._sweep(now)
            return None
        return session

    async def save(self, session: Session, *, was: Session) -> bool:
        """Replace a session if the stored one still equals `was`, with the later of the two ends.
        Otherwise return False.
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
        """Return the author's state of a session."""
        return self._states.get(id, b"") if id in self._kept else None

    async def save_state(self, id: str, state: bytes, *, was: bytes) -> bool:
        """Replace the author's state of a session, if the stored one still equals `was`."""
        if id not in self._kept or self._states.get(id, b"") != was:
            return False
        self._states[id] = state
        return True

    async def end(self, id: str) -> bool:
        """Remove a session, its state and its events. Returns False if it did not exist."""
        self._forget(id)
        self._states.pop(id, None)
        return self._kept.pop(id, None) is not None

    async def count(self, *, now: float) -> int:
        """Return the number of sessions."""
        self._sweep(now)
        return len(self._kept)

    def _note(self, until: float, id: str) -> None:
        heapq.heappush(self._ends, (until, id))
        if len(self._ends) > 2 * len(self._kept) + _SLACK:
            self._ends = [(session.until, id) for id, session in self._kept.items()]
            heapq.heapify(self._ends)

    def _sweep(self, now: float) -> None:
        """Remove expired sessions. A prolonged session gets a new heap entry."""
        while self._ends and self._ends[0][0] < now:
            _, id = heapq.heappop(self._ends)
            session = self._kept.get(id)
            if session is not None and session.until < now:
                del self._kept[id]
                self._states.pop(id, None)
                self._forget(id)
            elif session is not None:
                heapq.heappush(self._ends, (session.until, id))
