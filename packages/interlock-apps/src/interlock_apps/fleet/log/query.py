"""A search of the log."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..text_index import words_of
from .records import MOST_TEXT, LogRow

_MOST_WORDS = 64


class LogQuery(Struct, frozen=True, kw_only=True):
    """A search; None or an empty value matches everything. See Log.search."""

    words: tuple[str, ...] = ()
    session: str | None = None
    server: str | None = None
    kinds: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None

    def fits(self, row: LogRow) -> bool:
        """Whether an entry matches the search."""
        return self.files(row) and (not self.words or self.has_words(row.text))

    def files(self, row: LogRow) -> bool:
        """Whether an entry matches by session, server, kind and time."""
        return (
            (self.session is None or row.session == self.session)
            and (self.server is None or row.server == self.server)
            and (not self.kinds or row.kind in self.kinds)
            and (self.since is None or row.at >= self.since)
            and (self.until is None or row.at < self.until)
        )

    def has_words(self, text: str) -> bool:
        """Whether a text has every word, or a word that begins with it."""
        found = words_of(text, MOST_TEXT)
        return all(any(word.startswith(wanted) for word in found) for wanted in self.words)


def wanted(
    words: str,
    session: str | None = None,
    server: str | None = None,
    kinds: Sequence[str] = (),
    since: float | None = None,
    until: float | None = None,
) -> LogQuery:
    """Return a search for these words."""
    has_words = tuple(dict.fromkeys(words_of(words)))[:_MOST_WORDS]
    return LogQuery(
        words=has_words,
        session=session,
        server=server,
        kinds=tuple(kinds),
        since=since,
        until=until,
    )
