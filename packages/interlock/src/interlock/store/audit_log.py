"""An audit log: an append-only file of JSON lines, each with the hash of the line before it."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from .files import open_private, try_lock_for

_PATIENCE = 5.0  # seconds to wait for other processes that write
_TAIL = 64 * 1024  # bytes in which the last line is looked for; no entry is as long
_MOST_BYTES = 32 * 1024  # of an entry with its line end
_START = "0" * 64  # stands for the hash of the line before the first

_encode = msgspec.json.Encoder(order="deterministic").encode


class _Link(Struct):
    """What the check of the chain reads of a line."""

    previous: str


class AuditCheck(Struct, frozen=True):
    """The result of a check of an audit log.

    Attributes:
        entries: The number of lines that follow from one another, from the first one on.
        broken: The number of the first line, from 1, that does not follow from the line before it;
            None if all do.
        last: The hash of the last of `entries`. Keep it elsewhere: a later check that still finds
            it shows that nothing before it was cut off.
    """

    entries: int
    broken: int | None
    last: str


class AuditLog:
    """Appends entries to one file, from any number of threads and processes.

    Hazard: the chain has no key. It shows changed, inserted and removed lines to those who know the
    last hash. Someone who may write the file can rewrite all of it.

    Args:
        path: The file. It is created with mode 0600.
        sync: Whether each entry is flushed to the disk before `append` returns.
    """

    def __init__(self, path: str | os.PathLike[str], *, sync: bool = False) -> None:
        self.path = Path(path).absolute()
        self._sync = sync

    def append(self, entry: Mapping[str, Any]) -> None:
        """Append an entry, all of it or nothing.

        Raises:
            OSError: The file cannot be written, or other processes keep its lock.
            ValueError: The entry is too long.
        """
        self.append_all([entry])

    def append_all(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Append entries with one write, all of them or nothing.

        Raises:
            OSError: The file cannot be written, or other processes keep its lock.
            ValueError: An entry is too long.
        """
        with open(open_private(self.path, os.O_RDWR | os.O_CREAT), "r+b", buffering=0) as file:
            try_lock_for(file.fileno(), self.path, patience=_PATIENCE)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _TAIL, 0))
            tail = file.read(_TAIL)
            # A process that was killed while it wrote has left a part of a line.
            separator = b"" if not tail or tail.endswith(b"\n") else b"\n"
            previous = _START
            if tail:
                previous = _digest(tail.removesuffix(b"\n").rpartition(b"\n")[2])
            lines: list[bytes] = []
            for entry in entries:
                line = _encode({**entry, "previous": previous})
                if len(line) >= _MOST_BYTES:
                    raise ValueError(f"an audit entry has {_MOST_BYTES} bytes at most")
                lines.append(line + b"\n")
                previous = _digest(line)
            data = separator + b"".join(lines)
            file.seek(size)
            try:
                written = file.write(data)
                if written != len(data):
                    raise OSError(f"only {written} of {len(data)} bytes could be written")
                if self._sync:
                    os.fsync(file.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    file.truncate(size)  # a part of a line would break the chain
                raise

    def check(self) -> AuditCheck:
        """Check the chain of hashes, from the first line to the last.

        Raises:
            OSError: The file cannot be read.
        """
        previous = _START
        entries = 0
        with open(self.path, "rb") as file:
            for line in file:
                try:
                    link = msgspec.json.decode(line, type=_Link)
                except msgspec.DecodeError:
                    return AuditCheck(entries, entries + 1, previous)
                if link.previous != previous or not line.endswith(b"\n"):
                    return AuditCheck(entries, entries + 1, previous)
                previous = _digest(line[:-1])
                entries += 1
        return AuditCheck(entries, None, previous)


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
