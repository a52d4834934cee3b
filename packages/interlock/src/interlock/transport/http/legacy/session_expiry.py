"""The expiry of sessions: sessions with an open stream or a running call are prolonged, expired
sessions are ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable

from interlock.store.bounds import CLOCK_TOLERANCE
from interlock.store.errors import StoreError
from interlock.store.interface import Session, Store

from ....store.worker_messages import WorkerMessages
from ..limits import Limits

# Seconds between two checks. A client that is told that its session has ended does not answer a
# question, so the call that asks it must end soon too.
_MOST_WAIT = 15.0
_LEAST_WAIT = 0.05


class SessionExpiry:
    """Decides when sessions end."""

    def __init__(self, store: Store, limits: Limits, messages: WorkerMessages) -> None:
        self._store = store
        self._limits = limits
        self._messages = messages
        self._active: list[Callable[[], Iterable[str]]] = []

    def add_active(self, sessions: Callable[[], Iterable[str]]) -> None:
        """Keep the sessions alive that `sessions` returns."""
        self._active.append(sessions)

    def until(self, created: float, now: float) -> float:
        """Return when a session ends that is not used from now on, in seconds of the wall clock."""
        limits = self._limits
        return min(created + limits.session_seconds, now + limits.idle_seconds)

    def rested(self, now: float) -> float:
        """The end of a session that is unused for so long that it makes room for a new one."""
        return now + self._limits.idle_seconds - self._limits.session_rest_seconds

    def renewed(self, session: Session, now: float) -> float | None:
        """Return the end of a session that is used now; None if the stored end is close to it."""
        limits = self._limits
        until = min(session.created + limits.session_seconds, now + limits.idle_seconds)
        gain = until - session.until  # far below 0: the clock was ahead, and has been set back
        return until if gain > limits.idle_seconds / 20 or gain < -CLOCK_TOLERANCE else None

    async def run(self) -> None:
        """Prolong and end sessions, until cancelled."""
        limits = self._limits
        wait = min(limits.idle_seconds / 4, limits.session_seconds / 4, _MOST_WAIT)
        while True:
            await asyncio.sleep(max(wait, _LEAST_WAIT))
            with contextlib.suppress(StoreError):
                await self._check(time.time())

    async def _check(self, now: float) -> None:
        for id in {id for sessions in self._active for id in sessions()} - {""}:
            session = await self._store.sessions.load(id, now=now)
            if session is None:
                self._messages.deliver("ended", id)
            elif (until := self.renewed(session, now)) is not None:
                await self._store.sessions.prolong(id, until)
