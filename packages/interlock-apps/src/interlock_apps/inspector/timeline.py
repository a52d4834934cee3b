"""The timeline of a recording: the rows that match a filter, and what a page shows of them.

The filter runs here, over the index of the tape. A page asks for the rows that it can see.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from interlock.caches import BoundedCache
from interlock.tape import TapeRow

from ..web.tape_view.rows import has_failed
from .filters import FilterRow, Matches, parse_filter
from .recordings import Recording

MOST_ROWS = 500
"""Rows of one answer."""

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
