"""Export of the log as JSON lines, and reading such lines again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ..events import LogEntry
from . import records
from .interface import LogError

_MOST_LINE = 256 * 1024 * 1024  # characters


def line(data: bytes) -> bytes:
    """An entry as a line. JSON contains no raw line breaks, so nothing needs escaping."""
    return data + b"\n"


def read_export(lines: Iterable[str | bytes]) -> Iterator[LogEntry]:
    """The entries of an export, one after another.

    Raises LogError, with the line number, for an invalid line.

    `lines` may be a file, opened for text or for bytes. Empty lines are skipped.
    """
    for number, text in enumerate(lines, start=1):
        if len(text) > _MOST_LINE:
            raise LogError(f"Line {number} is longer than {_MOST_LINE:,} characters.")
        data = text.encode("utf-8", "replace") if isinstance(text, str) else text
        if not data.strip():
            continue
        try:
            yield records.decode(data)
        except msgspec.DecodeError as bad:
            raise LogError(
                f"Line {number} is not a log entry that this version can read: {bad}"
            ) from None
