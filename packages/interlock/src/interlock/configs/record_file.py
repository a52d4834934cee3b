"""A JSON file that several processes read and edit: checked, locked, and replaced atomically."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ..store import file_lock, write_atomic

MOST_RECORD_BYTES: Final = 64 << 20
PATIENCE: Final = 10.0
"""The longest wait for another process that writes the file, in seconds."""


class BadRecord(ValueError):
    """A record file is not valid. The message says what to do.

    Such a file is never overwritten.
    """


class RecordFile:
    """One JSON object in a file, which several processes may use at once. Without a path it is in
    memory.

    Every change reads the file again under a lock, and replaces it atomically. The folder must
    exist. A subclass checks the data.
    """

    error: type[BadRecord] = BadRecord
    """The error that is raised for this file."""

    def __init__(self, path: Path | None, empty: dict[str, Any]) -> None:
        """Store the parameters. The file is read later.

        Args:
            path: The file.
            empty: The data if the file does not exist.
        """
        self.path = path
        self._empty = empty
        self._data = copy.deepcopy(empty)
        self._stamp: tuple[int, int, int] | None = None

    def check(self, data: Any) -> str:
        """Return the error in the data of a file, and what to do; empty if the data is valid."""
        raise NotImplementedError

    def read(self) -> dict[str, Any]:
        """Return the present data. Do not change it.

        Raises:
            BadRecord: The file cannot be read, or is not such a record.
        """
        if self.path is None:
            return self._data
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp != self._stamp:
                self._data = self._read(self.path, found.st_size)
                self._stamp = stamp
        except FileNotFoundError:
            # A project may contain such a link, and its target may be added later.
            if self.path.is_symlink():
                raise self.error(
                    f"{self.path} is a link to a missing file. Remove it, or create the file."
                ) from None
            self._data = copy.deepcopy(self._empty)
            self._stamp = None
        except OSError as bad:
            raise self.error(
                f"{self.path} cannot be read: {bad.strerror}. "
                "Make sure that it is a file that you may read."
            ) from None
        return self._data

    def edit(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the data with `change`, and write it.

        Raises:
            BadRecord: The file cannot be read or written, or another process holds its lock. Then
                nothing is written.
        """
        if self.path is None:
            change(self._data)
            return
        lock = self.path.with_name(f".{self.path.name}.turn")
        try:
            with file_lock(lock, patience=PATIENCE):
                # A file that was replaced within one tick of the clock may have the same stamp.
                self._stamp = None
                data = copy.deepcopy(self.read())
                change(data)
                write_atomic(self.path, _encoded(data))
                self._stamp = None
        except TimeoutError:
            raise self.error(
                f"Another process has held {lock} for {PATIENCE:g} seconds. End it, and try again."
            ) from None
        except OSError as bad:
            raise self.error(
                f"{self.path} cannot be written: {bad.strerror}. "
                "Make sure that you may write in its folder."
            ) from None

    def _read(self, path: Path, size: int) -> dict[str, Any]:
        if size > MOST_RECORD_BYTES:
            raise self.error(f"{path} is larger than {MOST_RECORD_BYTES >> 20} MB. Move it away.")
        data: Any = None
        try:
            data = json.loads(path.read_bytes().decode("utf-8"))
            problem = self.check(data)
        except RecursionError:
            problem = "is nested too deeply. Restore it, or move it away."
        except ValueError as bad:
            problem = f"is not JSON ({bad}). Restore it, or move it away."
        if problem:
            raise self.error(f"{path} {problem}")
        checked: dict[str, Any] = data
        return checked


def _encoded(data: dict[str, Any]) -> bytes:
    text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "replace")
