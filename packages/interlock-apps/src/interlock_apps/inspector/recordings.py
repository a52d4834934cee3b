"""Recordings: the tapes that an inspector shows. Each is indexed in pieces, and followed.

The tape of the live connections and tapes that were opened as targets are read in the same way, and
nothing in a tape is ever run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from interlock.tape import TapeFile, TapeRow

from ..web.tape_view.call_tree import CallTree
from .events import InspectorEvent, Publish

LIVE = "live"
"""The name of the recording of the live connections."""

PIECE = 4 * 1024 * 1024
"""Bytes that are indexed at a time: a few hundredths of a second."""

_EVERY = 0.1  # seconds between two looks at a file that may grow


class Recording:
    """One tape, its rows, and what belongs to which call.

    Args:
        name: Its unique name.
        path: The file.

    Raises:
        OSError: The file cannot be read.
        TapeError: The file is not a tape, or its version is not supported.
    """

    def __init__(self, name: str, path: str | os.PathLike[str]) -> None:
        self.name = name
        self.path = Path(path)
        self.file = TapeFile(path, most=PIECE)
        self.tree = CallTree(self.file)
        self.connections: dict[str, str] = {}
        """The inspector's connection of each connection of the tape."""
        self._seen = 0
        self.tree.extend()

    @property
    def rows(self) -> list[TapeRow]:
        """The rows that are indexed so far."""
        return self.file.rows

    @property
    def is_complete(self) -> bool:
        """Whether the whole file is indexed."""
        return self.file.behind == 0

    def refresh(self) -> bool:
        """Index the next piece of the file. Returns whether there were new rows."""
        if not self.file.behind:
            return False
        found = self.file.refresh(PIECE)
        self.tree.extend()
        return bool(found)

    def new_connections(self) -> list[str]:
        """The connections of the tape that have no name yet, in order. Each row is looked at once,
        so give each of them a name in `connections`.
        """
        found: dict[str, None] = {}
        for row in self.rows[self._seen :]:
            if row.kind in ("header", "remark"):
                continue
            if row.connection not in self.connections:
                found[row.connection] = None
        self._seen = len(self.rows)
        return list(found)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class Recordings:
    """The recordings of an inspector, by name.

    Args:
        publish: Publishes an event to the pages.
    """

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._recordings: dict[str, Recording] = {}

    def __getitem__(self, name: str) -> Recording:
        return self._recordings[name]

    def __iter__(self) -> Iterator[Recording]:
        return iter(list(self._recordings.values()))

    def get(self, name: str) -> Recording | None:
        """Return a recording; None if there is none of that name."""
        return self._recordings.get(name)

    def add(self, name: str, path: str | os.PathLike[str]) -> Recording:
        """Open a tape. Raises OSError, TapeError."""
        made = self._recordings[name] = Recording(name, path)
        return made

    def refresh(self, changed: Callable[[Recording], None]) -> bool:
        """Index the next piece of every file. `changed` is called with those that have new rows.

        Returns:
            Whether more is waiting to be indexed.
        """
        more = False
        for recording in self:
            if recording.refresh():
                changed(recording)
                data = {"recording": recording.name, "count": len(recording.rows)}
                self._publish(InspectorEvent("rows", data=data))
            more = more or not recording.is_complete
        return more

    async def follow(self, changed: Callable[[Recording], None]) -> None:
        """Index the files as they grow, until cancelled."""
        more = True
        while True:
            # 0: the loop serves requests between two pieces
            await asyncio.sleep(0 if more else _EVERY)
            more = self.refresh(changed)

    def close(self) -> None:
        """Close all files."""
        for recording in self:
            recording.close()
