"""Tape files: opened by an index of their lines, and read one line at a time.

This is the interface for pages and programs that show tapes, of any size:

    tape = TapeFile("session.tape")      # one pass over the file: 100 MB in less than 2 s
    tape.rows                            # a TapeRow for each line: its kind, sender, connection,
                                         # method, name, id, at, failed and partner
    tape.read(row)                       # the whole line: a Line, StderrText, HttpHead, ...
    tape.duration(row)                   # seconds between a request and its response
    tape.revision(row)                   # the revision that a message was sent under
    tape.headers, tape.problems          # what was recorded; lines that cannot be read
    tape.refresh()                       # index what was appended since; returns the new rows
    tape.behind                          # bytes that `refresh` would read
    tape.verify()                        # check the hash chain; returns what is wrong with it
    tape.conversation("1")               # the messages of one connection, as a `Tape`

A tape is data: reading one never runs or opens what it names. The file is read only. A last line
without its line end was cut off, or is still being written: `refresh` reads it once it is whole.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from .conversation import Tape
from .format import Line, TapeError, decode_line
from .index import ChainCheck, TapeRow
from .indexed import IndexedTape

_BUFFER = 1024 * 1024  # bytes of one read


class TapeFile(IndexedTape):
    """An open tape. Close it, or use it in a `with` block.

    Args:
        path: The file.
        most: How many bytes are indexed at first, in whole lines; None for the whole file.
            `refresh` indexes the rest.

    Raises:
        OSError: The file cannot be read.
        TapeError: The file is not a tape, or its version is not supported.
    """

    def __init__(self, path: str | os.PathLike[str], *, most: int | None = None) -> None:
        super().__init__()
        self.path = Path(path)
        self._end = 0  # bytes that are indexed
        self._rest = b""  # the last line, while it has no line end
        self._file = open(self.path, "rb", buffering=_BUFFER)  # noqa: SIM115  # closed by `close`
        # Rows far apart are read one after the other: a buffer would be filled for each of them.
        self._lines = open(self.path, "rb", buffering=0)  # noqa: SIM115  # closed by `close`
        try:
            self.refresh(most)
            self._check_kind()
        except BaseException:
            self.close()
            raise

    @property
    def problems(self) -> list[str]:
        """Lines that cannot be read, and a last line that was cut off. Empty for a sound tape."""
        cut = [f"the last line, at byte {self._end}, is cut off"] if self._rest.strip() else []
        return [*self._index.problems, *cut]

    @property
    def connections(self) -> list[str]:
        """The names of the connections, in the order in which they began."""
        return list(dict.fromkeys(row.connection for row in self.rows if row.kind != "header"))

    @property
    def behind(self) -> int:
        """The bytes of the file that were not read yet: those after the indexed lines, and after a
        last line that was cut off.
        """
        size = os.fstat(self._file.fileno()).st_size
        return max(0, size - self._end - len(self._rest))

    def refresh(self, most: int | None = None) -> list[TapeRow]:
        """Index the lines that were appended since the last time. Returns their rows.

        Args:
            most: How many bytes are indexed, in whole lines; None for all.
        """
        last = None if most is None else self._end + most
        known = len(self.rows)
        self._file.seek(self._end)
        self._rest = b""
        offset = self._end
        add = self._index.add
        for line in self._file:
            if not line.endswith(b"\n"):
                self._read_last(line)
                break
            add(line[:-1], offset)
            offset += len(line)
            self._end = offset
            if last is not None and offset >= last:
                break
        return self.rows[known:]

    def raw(self, row: TapeRow) -> bytes:
        """The bytes of one line, without its line end."""
        self._lines.seek(row.offset)
        return self._lines.read(row.length)

    def conversation(self, connection: str | None = None) -> Tape:
        """The messages of one connection; by default of all."""
        messages = [
            line
            for row, line in self.lines()
            if isinstance(line, Line) and connection in (None, row.connection)
        ]
        about = {key: value for header in self.headers for key, value in header.about.items()}
        return Tape(messages, about=about)

    def verify(self) -> list[str]:
        """Check the hash chain of the whole file.

        Returns:
            What is wrong with it, one sentence for each line; empty if the chain is sound.
        """
        found = []
        chain = ChainCheck()
        for row in self.rows:
            words = chain.check(self.raw(row))
            if words:
                found.append(f"The line at byte {row.offset} {words}.")
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _read_last(self, line: bytes) -> None:
        """Index a last line without a line end if it is whole: people write such files too."""
        self._rest = line
        try:
            decode_line(line)
        except TapeError:
            return
        if not any(header.version for header in self.headers):
            self._index.add(line, self._end)
            self._end += len(line)
            self._rest = b""

    def _check_kind(self) -> None:
        if self.problems and len(self.problems) >= len(self.rows):
            raise TapeError(f"{self.path} is not a tape: {self.problems[0]}")
