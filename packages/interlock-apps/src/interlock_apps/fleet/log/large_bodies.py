"""Large bodies of log entries, as content-addressed files beside the log.

An entry keeps the beginning of a long text, and the SHA-256 of the whole, which the hash chain of
the log covers. So a body can be dropped without breaking the chain, and an altered body does not
match its digest. The log's file records which bodies were dropped, when, and why.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from interlock.store import StoreError

Why = Literal["age", "space"]

MARK = b'"bodies":['
"""What the JSON of an entry with references to bodies contains."""

_KEY = "bodies"  # key in an entry's JSON, beside `seq`, `at` and `event`
_START = 500  # characters of a text that stay in the entry
_DAY = 86_400.0  # seconds
_LEVEL = 3  # zlib level: fast, and most results are text
# Protocol fields that may contain any JSON, so a placeholder for a dropped body fits there too.
_OPEN = frozenset({"structuredContent", "arguments", "input", "inputSchema", "requestedSchema"})
_BLOCKS = "content"  # a list of blocks; one block says that the others were dropped


class BodyLimits(Struct, frozen=True, kw_only=True):
    """How much of large bodies is kept.

    Attributes:
        inline: Bytes of a text or JSON value that stay in the entry; a larger one becomes a body.
        total: Bytes of all stored bodies; beyond it the oldest are dropped.
        days: Days after which a body is dropped; None: never.
    """

    inline: int = 32 * 1024
    total: int = 1024 * 1024 * 1024
    days: float | None = 365.0


class BodyReference(Struct, frozen=True):
    """The place of a body in its entry (keys and indexes), its SHA-256 in hex, and its size in
    bytes.
    """

    at: tuple[str | int, ...]
    sha256: str
    size: int


class BodyStore:
    """The bodies of one log. All methods run in the thread of the log's writer."""

    def __init__(self, log: Path, limits: BodyLimits, clock: Callable[[], float]) -> None:
        self.folder = log.with_name(f"{log.name}.bodies")
        self.grown = False  # whether a body was written since the last drop
        self._limits = limits
        self._clock = clock

    def move_out(self, data: bytes) -> bytes:
        """Return an entry whose large values are in files, with references to them.

        Raises StoreError if a file cannot be written.
        """
        if len(data) <= self._limits.inline:
            return data
        entry = msgspec.json.decode(data)
        found: list[tuple[BodyReference, bytes]] = []
        event = self._moved(entry["event"], ("event",), found)
        if not found:
            return data
        for reference, body in found:
            self._write(reference, body, entry["at"])
        references = [reference for reference, _ in found]
        return msgspec.json.encode({**entry, "event": event, _KEY: references})

    def whole(self, db: sqlite3.Connection, data: bytes) -> bytes:
        """Return an entry with its bodies.

        A dropped body is replaced by a text that says so.
        """
        if not references_of(data):
            return data
        entry = msgspec.json.decode(data)
        for reference in references_of(data):
            *way, last = reference.at
            place: Any = entry
            try:
                for step in way:
                    place = place[step]
                place[last] = self._restored(db, reference, place[last])
            except (LookupError, TypeError):
                return data  # the entry was altered; `verify` reports it
        del entry[_KEY]
        return msgspec.json.encode(entry)

    def fault(self, db: sqlite3.Connection, data: bytes) -> str:
        """Return what is wrong with the bodies of an entry; "" if they are intact, or the log
        dropped them.
        """
        for reference in references_of(data):
            stored = self._read(reference)
            if stored is None and _dropped(db, reference.sha256) is None:
                return "has lost a body, which was not dropped by the log itself"
            if stored is not None and hashlib.sha256(stored).hexdigest() != reference.sha256:
                return "has a body that was changed"
        return ""

    def has_dropped(self, db: sqlite3.Connection, data: bytes) -> bool:
        """Whether an entry refers to a body that is no longer there."""
        return any(self._read(reference) is None for reference in references_of(data))

    def remove(self, digests: Iterable[str]) -> None:
        """Remove bodies that no entry refers to any more, by their SHA-256 in hex."""
        remove([self._path(digest) for digest in digests])

    def drop(self, db: sqlite3.Connection) -> list[Path]:
        """Record that bodies are dropped because of their age or the space they take.

        Return their files, to be removed once the record is on disk.
        """
        self.grown = False
        gone: list[Path] = []
        there = sorted(self._files())
        if not there:
            return []
        total = sum(size for _, size, _ in there)
        now = self._clock()
        oldest = now - self._limits.days * _DAY if self._limits.days is not None else float("-inf")
        for at, size, path in there:
            if at >= oldest and total <= self._limits.total:
                break
            why: Why = "age" if at < oldest else "space"
            total -= size
            db.execute("INSERT OR IGNORE INTO dropped VALUES (?, ?, ?)", (path.name, now, why))
            gone.append(path)
        return gone

    def _moved(
        self, value: Any, at: tuple[str | int, ...], found: list[tuple[BodyReference, bytes]]
    ) -> Any:
        if isinstance(value, str):
            if len(value) > self._limits.inline:
                found.append(_body(at, value))
                return value[:_START]
            return value
        if not isinstance(value, dict | list):
            return value
        before = len(found)
        moved: Any
        if isinstance(value, dict):
            moved = {key: self._moved(part, (*at, key), found) for key, part in value.items()}
        else:
            moved = [self._moved(part, (*at, number), found) for number, part in enumerate(value)]
        open_here = at[-1] in _OPEN if isinstance(value, dict) else at[-1] == _BLOCKS
        if open_here and len(msgspec.json.encode(moved)) > self._limits.inline:
            # Many small parts: they are moved out together.
            del found[before:]
            found.append(_body(at, value))
            return type(value)()
        return moved

    def _restored(self, db: sqlite3.Connection, reference: BodyReference, start: Any) -> Any:
        stored = self._read(reference)
        if stored is not None and hashlib.sha256(stored).hexdigest() == reference.sha256:
            return msgspec.json.decode(stored)
        words = _words(reference, stored, _dropped(db, reference.sha256))
        if isinstance(start, str):
            return f"{start}… [{words}]"
        return {"dropped": words} if isinstance(start, dict) else [{"type": "text", "text": words}]

    def _path(self, sha256: str) -> Path:
        return self.folder / os.path.basename(sha256)

    def _read(self, reference: BodyReference) -> bytes | None:
        """The bytes of a body, or None without a file. The bytes differ if the body was altered."""
        try:
            packed = self._path(reference.sha256).read_bytes()
        except OSError:
            return None
        try:
            return zlib.decompressobj().decompress(packed, reference.size + 1)
        except zlib.error:
            return b""

    def _write(self, reference: BodyReference, body: bytes, at: float) -> None:
        path = self._path(reference.sha256)
        try:
            if not path.exists():
                self.folder.mkdir(mode=0o700, exist_ok=True)
                _write_new(path, zlib.compress(body, _LEVEL))
                self.grown = True
            os.utime(path, (at, at))  # its age counts from the last entry that refers to it
        except OSError as bad:
            raise StoreError(f"a large body cannot be written: {bad.strerror}") from None

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """The time of the last reference to each body, its size, and its file."""
        with contextlib.suppress(FileNotFoundError):
            for found in os.scandir(self.folder):
                with contextlib.suppress(FileNotFoundError):  # another host removed it first
                    status = found.stat()
                    if found.name.startswith(".") and status.st_mtime > time.time() - _DAY:
                        continue  # it is being written
                    yield status.st_mtime, status.st_size, Path(found.path)


def references_of(data: bytes) -> list[BodyReference]:
    """Return the bodies that an entry refers to."""
    if MARK not in data:
        return []
    try:
        return msgspec.convert(msgspec.json.decode(data).get(_KEY, []), list[BodyReference])
    except msgspec.MsgspecError:
        return []


def remove(files: list[Path]) -> None:
    """Remove the files of bodies that were dropped."""
    for path in files:
        with contextlib.suppress(OSError):
            path.unlink()


def _body(at: tuple[str | int, ...], value: Any) -> tuple[BodyReference, bytes]:
    body = msgspec.json.encode(value)
    return BodyReference(at, hashlib.sha256(body).hexdigest(), len(body)), body


def _dropped(db: sqlite3.Connection, sha256: str) -> tuple[float, str] | None:
    rows = db.execute("SELECT at, why FROM dropped WHERE digest = ?", (sha256,)).fetchall()
    return rows[0] if rows else None


def _words(
    reference: BodyReference, stored: bytes | None, dropped: tuple[float, str] | None
) -> str:
    what = f"{reference.size:,} bytes, SHA-256 {reference.sha256}"
    if stored is not None:
        return f"This body was altered and is not shown: {what}"
    if dropped is None:
        return f"This body is missing, and the log did not drop it: {what}"
    day = time.strftime("%Y-%m-%d", time.localtime(dropped[0]))
    why = "because of its age" if dropped[1] == "age" else "to save space"
    return f"This body was dropped on {day} {why}: {what}"


def _write_new(path: Path, data: bytes) -> None:
    """Write a file atomically: after a crash it is complete or absent."""
    file, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
