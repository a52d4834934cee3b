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
        self._held: dict[str, dict[str, None]] = {}  # ids by holder, the least recently used first
        # At least one entry for each session, at or before its end. Prolonging a session does not
        # move its entry.
        self._ends: list[tuple[float, str]] = []
        self._forget = forget

    async def create(self, session: Session, *, most: int, now: float, rested: float = 0.0) -> bool:
        """Store a new session. Returns False, and stores nothing, if there is no room."""
        self._sweep(now)
        if session.id in self._kept:
            self._remove(session.id)
        elif len(self._kept) >= most:
            victim = self._victim(session.holder, rested)
            if victim is None:
                return False
            await self.end(victim)
        self._kept[session.id] = session
        self._held.setdefault(session.holder, {})[session.id] = None
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
            held = self._held[session.holder]
            del held[id]
            held[id] = None  # the most recently used
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
        return self._remove(id)

    async def count(self, *, now: float) -> int:
        """Return the number of sessions."""
        self._sweep(now)
        return len(self._kept)

    async def recent(self, *, most: int, now: float) -> list[Session]:
        """Return at most `most` sessions, those that end last first."""
        self._sweep(now)
        return heapq.nlargest(most, self._kept.values(), key=lambda session: session.until)

    def holder_of(self, id: str) -> str:
        """Return the holder of a session; empty if there is no such session."""
        session = self._kept.get(id)
        return session.holder if session is not None else ""

    def _remove(self, id: str) -> bool:
        self._states.pop(id, None)
        session = self._kept.pop(id, None)
        if session is None:
            return False
        held = self._held[session.holder]
        del held[id]
        if not held:
            del self._held[session.holder]
        return True

    def _victim(self, holder: str, rested: float) -> str | None:
        """Return the session that makes room for a new one of a holder; None if none does."""
        own = len(self._held.get(holder, ()))
        most = max(map(len, self._held.values()), default=0)
        unused = (next(iter(held)) for held in self._held.values() if len(held) == most)
        victim = min(unused, key=lambda id: self._kept[id].until, default=None)
        if victim is None or (most <= own + 1 and self._kept[victim].until >= rested):
            return None
        return victim

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
                self._remove(id)
                self._forget(id)
            elif session is not None:
                heapq.heappush(self._ends, (session.until, id))
