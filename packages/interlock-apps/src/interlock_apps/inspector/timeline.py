"""The timeline of a recording: the rows that match a filter, and what a page shows of them.

The filter runs here, over the index of the tape. A page asks for the rows that it can see.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.caches import BoundedCache
from interlock.redaction import url_without_secrets
from interlock.tape import HttpHead, Line, StderrText, TapeError, TapeRow
from interlock.types import JSONObject

from .filters import FilterRow, Matches, parse_filter
from .recordings import Recording

MOST_ROWS = 500
"""Rows of one answer."""
MOST_SUMMARY = 200
"""Characters of the text beside a row."""

_PIECE = 20_000  # rows that are filtered at a time
_MOST_TIMELINES = 32


class Timeline:
    """The rows of a recording that match a filter, in order. It follows the recording.

    Args:
        recording: The recording.
        matches: The filter.
        connections: The names of the connections that are shown; empty for all.
    """

    def __init__(
        self, recording: Recording, matches: Matches, connections: Sequence[str] = ()
    ) -> None:
        self.recording = recording
        self.numbers: list[int] = []
        """The numbers of the rows that match."""
        self._matches = matches
        self._connections = frozenset(connections)
        self._seen = 0
        self._turn = asyncio.Lock()

    async def extend(self) -> None:
        """Filter the rows that were indexed since the last time."""
        async with self._turn:
            while self._seen < len(self.recording.rows):
                self._extend_by(_PIECE)
                await asyncio.sleep(0)

    def place(self, number: int) -> int:
        """The position of a row, or of the next one that is shown."""
        return bisect_left(self.numbers, number)

    def _extend_by(self, most: int) -> None:
        rows = self.recording.rows
        until = min(len(rows), self._seen + most)
        for number in range(self._seen, until):
            row = rows[number]
            if self._shows(row):
                self.numbers.append(number)
            # A response says how long its request took, and whether it failed.
            if -1 < row.partner < number:
                self._look_again(row.partner)
        self._seen = until

    def _look_again(self, number: int) -> None:
        place = bisect_left(self.numbers, number)
        was = place < len(self.numbers) and self.numbers[place] == number
        now = self._shows(self.recording.rows[number])
        if now and not was:
            self.numbers.insert(place, number)
        elif was and not now:
            del self.numbers[place]

    def _shows(self, row: TapeRow) -> bool:
        if row.kind in ("header", "remark"):
            return False
        recording = self.recording
        connection = recording.connections.get(row.connection, row.connection)
        if self._connections and connection not in self._connections:
            return False
        one = FilterRow(
            row,
            connection,
            recording.file.duration(row),
            has_failed(recording, row),
            lambda: recording.file.raw(row),
        )
        return self._matches(one)


class Timelines:
    """The timelines that pages look at. The one of an equal query is used again."""

    def __init__(self) -> None:
        self._timelines: BoundedCache[tuple[Any, ...], Timeline] = BoundedCache(_MOST_TIMELINES)

    def get(self, recording: Recording, filter: str, connections: Sequence[str]) -> Timeline:
        """Return the timeline of a query. Raises FilterError."""
        key = (recording.name, filter.strip(), tuple(sorted(connections)))
        found = self._timelines.get(key)
        if found is None:
            found = Timeline(recording, parse_filter(filter), connections)
            self._timelines.put(key, found)
        return found


def has_failed(recording: Recording, row: TapeRow) -> bool:
    """Whether a row, or the response to it, is an error."""
    if row.failed:
        return True
    return row.kind == "request" and row.partner >= 0 and recording.rows[row.partner].failed


def row_state(recording: Recording, row: TapeRow) -> JSONObject:
    """A row as JSON values. Members that say nothing are left out."""
    shown: JSONObject = {
        "number": row.number,
        "kind": row.kind,
        "sender": row.sender,
        "connection": recording.connections.get(row.connection, row.connection),
        "at": row.at,
        "method": row.method,
        "name": row.name,
        "id": row.id,
        "size": row.length,
        "duration": recording.file.duration(row),
        "failed": has_failed(recording, row),
        "partner": row.partner if row.partner >= 0 else None,
        "parent": parent if (parent := recording.tree.parent(row.number)) >= 0 else None,
        "summary": _summary(recording, row),
    }
    return {
        name: value
        for name, value in shown.items()
        if value is not None and value is not False and value != ""
    }


def _summary(recording: Recording, row: TapeRow) -> str:
    """A few words about a row that has no name: a line of stderr, a head of HTTP, a log message."""
    if row.name or row.kind in ("response", "batch"):
        return ""
    try:
        line = recording.file.read(row)
    except TapeError as bad:
        return str(bad)[:MOST_SUMMARY]
    match line:
        case StderrText():
            words = line.text.rstrip("\n")
        case HttpHead():
            words = url_without_secrets(line.request) if line.request else f"{line.status}"
        case Line() if row.kind == "bytes":
            words = line.frame[: 4 * MOST_SUMMARY].decode("utf-8", "backslashreplace")
        case Line():
            words = _words_of(line.message)
        case _:
            words = ""
    return words[:MOST_SUMMARY]


def _words_of(message: Any) -> str:
    """What a notification, question or error says in words."""
    if not isinstance(message, dict):
        return ""
    error = message.get("error")
    if isinstance(error, dict):
        return f"{error.get('code', '')} {error.get('message', '')}".strip()
    params = message.get("params")
    if not isinstance(params, dict):
        return ""
    for member in ("message", "data", "reason", "level"):
        value = params.get(member)
        if isinstance(value, str):
            return value
        if value is not None:
            return msgspec.json.encode(value).decode()
    progress = params.get("progress")
    if progress is not None:
        total = params.get("total")
        return f"{progress}" if total is None else f"{progress} of {total}"
    return ""
