"""What every tape with an index can do: its rows, its lines, and what belongs together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from .format import Line, TapeError, TapeHeader, TapeLine, decode_line
from .index import TapeIndex, TapeRow
from .message import revision_of


class IndexedTape(ABC):
    """A tape whose lines have been indexed."""

    def __init__(self) -> None:
        self._index = TapeIndex()

    @property
    def rows(self) -> list[TapeRow]:
        """A row for each line, in order."""
        return self._index.rows

    @property
    def headers(self) -> list[TapeHeader]:
        """The headers of the file's sections."""
        return self._index.headers

    def read(self, row: TapeRow) -> TapeLine | None:
        """Read one line; None for a remark. Raises TapeError for one that cannot be read."""
        return decode_line(self.raw(row))

    @abstractmethod
    def raw(self, row: TapeRow) -> bytes:
        """The bytes of one line, without its line end."""

    def duration(self, row: TapeRow) -> float | None:
        """The seconds between a request and its response; None if one of them is missing."""
        return self._index.duration(row)

    def revision(self, row: TapeRow) -> str:
        """The revision that a message was sent under: the one that it or its request names, or that
        of the last handshake of its connection before it; "" if the tape does not say.
        """
        request = row if row.partner < 0 else self.rows[min(row.number, row.partner)]
        named = self._named_revision(request)
        if named:
            return named
        for number in reversed(self._index.openings.get(row.connection, ())):
            if number <= row.number:
                return self._named_revision(self.rows[number])
        return ""

    def lines(self) -> Iterator[tuple[TapeRow, TapeLine]]:
        """All lines that can be read, with their rows, one at a time."""
        for row in self.rows:
            try:
                line = self.read(row)
            except TapeError:
                continue
            if line is not None:
                yield row, line

    def _named_revision(self, row: TapeRow) -> str:
        try:
            line = self.read(row)
        except TapeError:
            return ""
        return revision_of(line.frame) if isinstance(line, Line) else ""
