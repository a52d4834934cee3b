"""The interface of a log, and its errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from interlock import InterlockError

from ..events import AnyEvent, LogEntry, Notice


class LogError(InterlockError):
    """The log cannot be used, or cannot be read; the words are for a person."""


class Tampered(LogError):
    """The log is not as it was written.

    `place` counts the entries of the file from 1; `seq` is that of the entry, 0 where none is left.
    """

    def __init__(self, words: str, *, place: int, seq: int = 0) -> None:
        super().__init__(words)
        self.place = place
        self.seq = seq


class SessionRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """A conversation in the log.

    `began` is in seconds of the wall clock; `turns` is how often the person said something.
    """

    id: str
    title: str
    began: float
    model: str
    turns: int


class Log(Protocol):
    """Keeps what happened.

    `publish`, which the host may set, is given what the person should know of the log itself.
    """

    publish: Callable[[Notice], None]

    async def open(self) -> None:
        """Begin. Raises LogError where the log cannot be used."""
        ...

    def note(self, event: AnyEvent) -> LogEntry:
        """Give an event its time, and its number where it is to be kept.

        Returns at once; it is written soon. Never raises.
        """
        ...

    async def flush(self) -> None:
        """Wait until all that was noted is written. Raises LogError where it cannot be."""
        ...

    async def aclose(self) -> None:
        """Write what is left, and end."""
        ...

    async def read(
        self, session: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[LogEntry]:
        """The entries after the one with the number `after`, oldest first: of a session, of the
        host itself (""), or of all (None).
        """
        ...

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
        """The entries that have all the words, or words that begin with them, newest first.

        `kinds` are events' types ("callEnded"); `since` and `until` are seconds of the wall clock,
        the second excluded; `before` is the number of the last entry of the page before.
        """
        ...

    async def sessions(self) -> list[SessionRow]:
        """All conversations, newest first."""
        ...

    async def export(self, write: Callable[[bytes], None], session: str | None = None) -> int:
        """Write entries as lines of JSON, oldest first, and say how many; `read_export` reads them.

        Not all are in memory at once.
        """
        ...
