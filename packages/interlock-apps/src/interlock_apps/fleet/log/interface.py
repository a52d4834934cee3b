"""The interface of a log, and its errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from interlock import InterlockError

from ..events import AnyEvent, LogEntry, Notice


class LogError(InterlockError):
    """The log cannot be used or read; the message is for a person."""


class Tampered(LogError):
    """The log was changed after it was written.

    `place` counts the entries of the file from 1. `seq` is the entry's number, 0 if it is missing.
    """

    def __init__(self, words: str, *, place: int, seq: int = 0) -> None:
        super().__init__(words)
        self.place = place
        self.seq = seq


class SessionRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """A conversation in the log.

    `began` is in seconds of the wall clock, and `spoke` the time of the person's last message, 0
    without any. `turns` counts the person's messages. `pinned`: the person keeps it at the top of
    the list. `project` is the name of its project.
    """

    id: str
    title: str
    began: float
    model: str
    turns: int
    spoke: float = 0.0
    pinned: bool = False
    project: str = ""


def no_conversation(session: str) -> LogError:
    """The error for a conversation that the log does not have."""
    return LogError(f"There is no conversation {session!r} in the log.")


class Log(Protocol):
    """Keeps events.

    The host may set `publish`; it receives notices about the log itself.
    """

    publish: Callable[[Notice], None]

    async def open(self) -> None:
        """Open the log. Raises LogError if it cannot be used."""
        ...

    def note(self, event: AnyEvent) -> LogEntry:
        """Give an event its time, and a number if the log keeps it.

        Returns at once; the event is written soon after. Never raises.
        """
        ...

    async def flush(self) -> None:
        """Wait until all noted events are written. Raises LogError if they cannot be."""
        ...

    async def aclose(self) -> None:
        """Write the remaining events, and close."""
        ...

    async def read(
        self, session: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[LogEntry]:
        """The entries after number `after`, oldest first: of a session, of the host itself (""), or
        of all (None).
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
        """The entries that contain every word, or a word that begins with it, newest first.

        `kinds` are types of events ("callEnded"). `since` (included) and `until` (excluded) are
        seconds of the wall clock. `before` is the number of the last entry on the previous page.
        """
        ...

    async def sessions(self) -> list[SessionRow]:
        """All conversations, newest first."""
        ...

    async def delete(self, session: str) -> LogEntry:
        """Erase the content of all entries of a conversation.

        What remains is that there were entries: their numbers, times and kinds, the ids of the
        conversation and the servers, and a digest of each.

        Returns:
            The entry that records the deletion.

        Raises:
            LogError: There is no such conversation, or the log cannot be written.
        """
        ...

    async def export(self, write: Callable[[bytes], None], session: str | None = None) -> int:
        """Write entries as lines of JSON, oldest first, and return how many; `read_export` reads
        them.

        The entries are read in batches, not all into memory.
        """
        ...
