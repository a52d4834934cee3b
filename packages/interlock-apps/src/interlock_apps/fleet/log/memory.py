"""A log in memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from interlock.redaction import Redact

from ..events import AnyEvent, LogEntry, Notice, SessionDeleted
from . import records
from .export import line
from .interface import SessionRow, no_conversation
from .query import wanted
from .records import LogRow
from .session_titles import BEGAN, CHANGED, SAID, SessionTitles


def ignore_notice(_: Notice) -> None:
    """Ignore a notice."""


class MemoryLog:
    """Keeps the newest `most` entries, of at most `most_bytes` together.

    `clock` gives seconds of the wall clock.
    """

    def __init__(
        self,
        *,
        redact: Redact | None = None,
        most: int = 100_000,
        most_bytes: int = 64 * 1024 * 1024,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.publish: Callable[[Notice], None] = ignore_notice
        self._redact = redact
        self._most = most
        self._most_bytes = most_bytes
        self._clock = clock
        self._rows: deque[LogRow] = deque()
        self._bytes = 0
        self._last = 0

    async def open(self) -> None:
        """See Log."""

    def note(self, event: AnyEvent) -> LogEntry:
        """See Log."""
        if not event.kept:
            return LogEntry(seq=0, at=self._clock(), event=event)
        self._last += 1
        noted = LogEntry(seq=self._last, at=self._clock(), event=event)
        self._keep(noted)
        return noted

    def _keep(self, noted: LogEntry) -> None:
        row = records.row(records.encode(noted), self._redact)
        self._rows.append(row)
        self._bytes += len(row.data) + len(row.text)
        while len(self._rows) > 1 and (
            len(self._rows) > self._most or self._bytes > self._most_bytes
        ):
            gone = self._rows.popleft()
            self._bytes -= len(gone.data) + len(gone.text)

    def load(self, entries: Iterable[LogEntry]) -> None:
        """Add entries of another log, with their numbers and times, before anything is noted."""
        for noted in entries:
            self._keep(noted)
            self._last = max(self._last, noted.seq)

    async def flush(self) -> None:
        """See Log."""

    async def aclose(self) -> None:
        """See Log."""

    async def read(
        self, session: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[LogEntry]:
        """See Log."""
        rows = (
            row
            for row in self._rows
            if row.seq > after and (session is None or row.session == session)
        )
        return [records.show(row.data) for row, _ in zip(rows, range(limit), strict=False)]

    async def search(
        self,
        words: str = "",
        *,
        session: str | None = None,
        server: str | None = None,
        kinds: Sequence[str] = (),
        since: float | None = None,
        until: float | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[LogEntry]:
        """See Log."""
        for_these = wanted(words, session, server, kinds, since, until)
        rows = (
            row
            for row in reversed(self._rows)
            if (before is None or row.seq < before) and for_these.fits(row)
        )
        return [records.show(row.data) for row, _ in zip(rows, range(limit), strict=False)]

    async def sessions(self) -> list[SessionRow]:
        """See Log."""
        titles = SessionTitles()
        for row in self._rows:
            if row.kind in (BEGAN, SAID, CHANGED):
                titles.see(records.show(row.data))
        return titles.rows()

    async def delete(self, session: str) -> LogEntry:
        """See Log."""
        kept = deque(row for row in self._rows if row.session != session)
        erased = len(self._rows) - len(kept)
        if not session or not erased:
            raise no_conversation(session)
        self._rows = kept
        self._bytes = sum(len(row.data) + len(row.text) for row in kept)
        return self.note(SessionDeleted(conversation=session, entries=erased))

    async def export(self, write: Callable[[bytes], None], session: str | None = None) -> int:
        """See Log."""
        rows = [row for row in self._rows if session is None or row.session == session]
        for row in rows:
            write(line(row.data))
        return len(rows)
