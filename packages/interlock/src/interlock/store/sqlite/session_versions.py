"""Version counters of sessions in shared memory (a memory-mapped file), so that a process can tell
without a statement whether the session that it has in its cache is current. Topics use them too.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from zlib import crc32

from ..files import open_private

_SLOTS = 1024  # sessions share slots; a shared one only makes a cached session look changed
_SIZE = _SLOTS * 2 * 8  # bytes: two counters for each slot
_CHANGING = -1


class SessionVersions:
    """The version counters of one SQLite file, shared by all processes that use it.

    A writer raises the first counter of a slot inside its transaction, and sets the second one to
    the same number after the transaction has ended. While they are equal, no session of the slot is
    being changed, and what was read since they became equal is current. If a process is killed
    between the two, nothing in the slot counts as current until its next change.

    The counters are in a file of mode 0600 beside the SQLite file. Its content is of no use to a
    later start. Hazard: like SQLite's own additional files, it must not be removed while processes
    use it.

    Args:
        path: The SQLite file.
    """

    __slots__ = ("_changing", "_counters", "_map", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changing: dict[int, int] = {}  # the raised slots of the transaction, with versions
        self._map: mmap.mmap | None = None
        self._counters: memoryview | None = None

    def open(self) -> None:
        """Map the file, and create it if it is missing. Call it in a transaction that excludes
        other writers of the SQLite file.

        Raises OSError.
        """
        # SQLite puts its own files beside the file that a link leads to, too.
        path = os.path.realpath(self._path)
        descriptor = open_private(Path(f"{path}-sessions"), os.O_RDWR | os.O_CREAT)
        try:
            missing = _SIZE - os.fstat(descriptor).st_size
            if missing > 0:
                # Written, because a hole in the file would end the process when the disk is full.
                os.lseek(descriptor, 0, os.SEEK_END)
                written = os.write(descriptor, bytes(missing))
                if written < missing:
                    raise OSError(f"{path}-sessions cannot be written: is the disk full?")
            self._map = mmap.mmap(descriptor, _SIZE)
        finally:
            os.close(descriptor)
        self._counters = memoryview(self._map).cast("Q")

    def close(self) -> None:
        """Release the mapping. The file stays, because other processes may use it."""
        counters = self._counters
        self._counters = None
        if counters is not None:
            counters.release()
        if self._map is not None:
            self._map.close()
            self._map = None

    @staticmethod
    def slot(id: str) -> int:
        """Return the slot of a session, the same in every process."""
        return 2 * (crc32(id.encode("utf-8", "surrogatepass")) % _SLOTS)

    def current(self, slot: int) -> int:
        """Return the version of a slot; a negative number while one of its sessions may be
        changing.
        """
        counters = self._counters
        if counters is None:
            return _CHANGING
        version = counters[slot + 1]  # the second counter first: it never overtakes the other one
        return version if counters[slot] == version else _CHANGING

    def start_change(self, id: str) -> None:
        """Announce the change of a session, inside the transaction that makes it."""
        counters = self._counters
        if counters is not None:
            slot = self.slot(id)
            counters[slot] += 1
            self._changing[slot] = counters[slot]

    def end_changes(self) -> None:
        """Announce that the transaction has ended, with or without success."""
        counters = self._counters
        for slot, version in self._changing.items():
            if counters is not None and counters[slot + 1] < version:
                counters[slot + 1] = version
        self._changing.clear()
